//! Which server, and how it is reached.

use std::str::FromStr;
use std::time::Duration;
use std::{fmt, io};

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, SslNegotiation};

use crate::lease::store::connect::password::Password;
use crate::lease::store::connect::tls::Protection;
use crate::lease::store::connect::url::StoreUrl;
use crate::lease::store::options::{Hidden, OpenError, OpenOptions};

/// As for libpq.
const VARIABLE: &str = "PGPASSWORD";

const SCHEMES: [&str; 2] = ["postgres", "postgresql"];

/// The parameters of all stores, and the names that libpq has for them.
const OURS: [&str; 9] = [
    "tls",
    "ca",
    "cert",
    "key",
    "password_file",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
];

/// What the driver reads by itself.
const DRIVERS: [&str; 15] = [
    "user",
    "password",
    "dbname",
    "host",
    "port",
    "options",
    "application_name",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "channel_binding",
];

pub(in crate::lease) struct Server {
    /// All but the host.
    config: Config,
    password: Password,
    /// With their ports.
    endpoints: Vec<(Host, u16)>,
    pub(super) protection: Protection,
    pub(super) timeout: Duration,
    pub(super) accepts_best_effort: bool,
}

impl Server {
    pub(super) fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let known = [&OURS[..], &DRIVERS].concat();
        let mut url = StoreUrl::parse(url, &SCHEMES, &known)?;
        let mut ours = url.split_off(&OURS);
        let places = parse(&url, &url.rest("postgres"))?;
        let endpoints = endpoints(&places).map_err(|reason| url.wrong(reason))?;
        let protection = protection(&mut ours, endpoints.iter().filter_map(name))?;
        let password_file = ours.parameter("password_file")?;
        url.split_off(&["host", "port"]);
        let mut config = parse(&url, &url.rest_without_host("postgres"))?;
        let password = match config.get_password().map(str::from_utf8).transpose() {
            Ok(password) => password.map(Hidden::new),
            Err(_) => return Err(url.wrong("the password is not UTF-8")),
        };
        let password = Password::new(options, password, password_file, VARIABLE);
        let password = password.map_err(|reason| url.wrong(reason))?;
        let timeout = options.operation_timeout().max(Duration::from_millis(1));
        if config.get_application_name().is_none() {
            config.application_name("ringflake");
        }
        if config.get_connect_timeout().is_none() {
            // So that a host that is gone leaves time for the next.
            let hosts = u32::try_from(endpoints.len()).unwrap_or(u32::MAX);
            config.connect_timeout(timeout / hosts.max(1));
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(timeout);
        }
        Ok(Self {
            password,
            config,
            endpoints,
            protection,
            timeout,
            accepts_best_effort: options.accepts_best_effort(),
        })
    }

    /// How each host is reached, in the order in which they are tried.
    pub(super) fn hosts(&self) -> io::Result<Vec<Config>> {
        let password = self.password.get()?;
        let hosts = self.endpoints.iter().map(|endpoint| {
            let mut config = self.at(endpoint);
            if let Some(password) = &password {
                config.password(password.expose());
            }
            config
        });
        Ok(hosts.collect())
    }

    fn at(&self, (host, port): &(Host, u16)) -> Config {
        let mut config = self.config.clone();
        config.port(*port);
        match host {
            Host::Tcp(name) => {
                config.host(name);
                // In plain the driver asks for nothing, and the connector adds the guard.
                config.ssl_mode(SslMode::Require);
                config.ssl_negotiation(match self.protection.files() {
                    Some(_) => SslNegotiation::Postgres,
                    None => SslNegotiation::Direct,
                });
            }
            #[cfg(unix)]
            Host::Unix(path) => {
                config.host_path(path);
                config.ssl_mode(SslMode::Disable);
            }
        }
        config
    }

    /// The time-out as a setting of the server, which has 31 bits.
    pub(super) fn timeout_ms(&self) -> i32 {
        i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX)
    }
}

/// The name that is dialled; a Unix socket has none.
fn name((host, _): &(Host, u16)) -> Option<&str> {
    match host {
        Host::Tcp(name) => Some(name),
        #[cfg(unix)]
        Host::Unix(_) => None,
    }
}

/// How connections to these hosts are protected: by the parameters of all stores, or by libpq's.
fn protection<'h>(
    url: &mut StoreUrl<'_>,
    hosts: impl IntoIterator<Item = &'h str>,
) -> Result<Protection, OpenError> {
    for (alias, name) in [
        ("sslrootcert", "ca"),
        ("sslcert", "cert"),
        ("sslkey", "key"),
    ] {
        url.rename(alias, name)?;
    }
    let mode = url.parameter("sslmode")?;
    if mode.is_some() && url.has("tls") {
        return Err(url.wrong("sslmode is libpq's word for tls: give one of them"));
    }
    match mode.as_deref() {
        None => {}
        Some("disable") => url.add("tls", "off")?,
        Some("require" | "verify-full") => url.add("tls", "required")?,
        Some(_) => {
            return Err(url.wrong(
                "sslmode must be disable, for no TLS, or require or verify-full, which both \
                 verify the certificate",
            ));
        }
    }
    url.protection(hosts, None)
}

/// What the driver reads out of `text`. Its error quotes nothing but a parameter's name.
fn parse(url: &StoreUrl<'_>, text: &str) -> Result<Config, OpenError> {
    Config::from_str(text).map_err(|error| {
        let cause = std::error::Error::source(&error);
        url.wrong(cause.map_or_else(|| error.to_string(), ToString::to_string))
    })
}

/// The hosts of a URL, with their ports.
fn endpoints(config: &Config) -> Result<Vec<(Host, u16)>, &'static str> {
    let (hosts, ports) = (config.get_hosts(), config.get_ports());
    if hosts.is_empty() {
        return Err("it names no host");
    }
    if ports.len() > 1 && ports.len() != hosts.len() {
        return Err("give one port, or one for each host");
    }
    let port = |index| ports.get(index).or(ports.first()).copied();
    let with_port = |(index, host): (usize, &Host)| (host.clone(), port(index).unwrap_or(5432));
    Ok(hosts.iter().enumerate().map(with_port).collect())
}

impl fmt::Display for Server {
    /// The database and where it is: no user, no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(database) = self.config.get_dbname() {
            write!(f, "{database} at ")?;
        }
        for (index, (host, port)) in self.endpoints.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match host {
                Host::Tcp(name) => f.write_str(name)?,
                #[cfg(unix)]
                Host::Unix(path) => write!(f, "{}", path.display())?,
            }
            write!(f, ":{port}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> Server {
        let options = OpenOptions::new().timeout(Duration::from_secs(3));
        Server::from_url(url, &options).unwrap()
    }

    #[test]
    fn tls_is_as_the_url_says() {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls");
        let root = format!("sslrootcert={data}/ca.pem");
        for (url, is_encrypted) in [
            // Elsewhere
            ("h/d", true),
            ("127.0.0.1,h/d", true),
            ("h/d?tls=off", false),
            ("h/d?sslmode=disable", false),
            ("h/d?sslmode=require", true),
            ("h/d?sslmode=verify-full", true),
            (&format!("h/d?{root}&sslmode=require"), true),
            // This machine
            ("[::1],localhost/d", false),
            ("/d?host=%2Frun", false),
            (&format!("localhost/d?{root}"), true),
            ("localhost/d?sslmode=verify-full", true),
        ] {
            let protection = server(&format!("postgres://u:p@{url}")).protection;
            assert_eq!(protection.files().is_some(), is_encrypted, "{url}");
            let ca = protection.files().and_then(|files| files.ca.as_ref());
            assert_eq!(ca.is_some(), url.contains(&root), "{url}");
        }
    }

    #[test]
    fn hosts_share_the_time_to_connect() {
        let both = server("postgresql://u:hunter2@a:1,b:2/d");
        let share = Duration::from_millis(1500);
        assert_eq!(both.config.get_connect_timeout(), Some(&share));
        assert_eq!(both.to_string(), "d at a:1,b:2");
        let ports = |config: &Config| config.get_ports().to_vec();
        let ports: Vec<_> = both.hosts().unwrap().iter().map(ports).collect();
        assert_eq!(ports, [[1], [2]]);
        let own = server("postgres://a,b/d?connect_timeout=2");
        let own = own.config.get_connect_timeout();
        assert_eq!(own, Some(&Duration::from_secs(2)));
    }
}
