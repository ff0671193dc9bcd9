//! Which server, and how it is reached.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode, SslNegotiation};

use super::tls::{Encryption, PgTls};
use crate::lease::store::connect::password::Password;
use crate::lease::store::connect::tls::{Protection, TlsFiles};
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
const DRIVERS: [&str; 17] = [
    "user",
    "password",
    "dbname",
    "host",
    "hostaddr",
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
    "load_balance_hosts",
];

pub(in crate::lease) struct Server {
    /// All but the host.
    config: Config,
    password: Password,
    endpoints: Vec<Endpoint>,
    pub(super) tls: PgTls,
    pub(super) timeout: Duration,
    pub(super) accepts_best_effort: bool,
}

/// Where a server may be.
struct Endpoint {
    /// The name that a certificate must have; without an address also the one to connect to.
    host: Host,
    address: Option<IpAddr>,
    port: u16,
}

impl Endpoint {
    /// The address to connect to over TCP.
    fn dialled(&self) -> Option<Cow<'_, str>> {
        match (self.address, &self.host) {
            (Some(address), _) => Some(address.to_string().into()),
            (None, Host::Tcp(name)) => Some(name.into()),
            #[cfg(unix)]
            (None, Host::Unix(_)) => None,
        }
    }
}

impl Server {
    pub(super) fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let known = [&OURS[..], &DRIVERS].concat();
        let mut url = StoreUrl::parse(url, &SCHEMES, &known)?;
        let mut ours = url.split_off(&OURS);
        let places = parse(&url, &url.rest("postgres"))?;
        let endpoints = endpoints(&places).map_err(|reason| url.wrong(reason))?;
        let dialled: Vec<_> = endpoints.iter().filter_map(Endpoint::dialled).collect();
        let tls = tls(&mut ours, dialled.iter().map(|host| &**host))?;
        let password_file = ours.parameter("password_file")?;
        url.split_off(&["host", "hostaddr", "port"]);
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
            tls,
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
        let mut hosts: Vec<_> = hosts.collect();
        if self.config.get_load_balance_hosts() == LoadBalanceHosts::Random {
            // Each has keys of its own, which nobody can foretell.
            hosts.sort_by_cached_key(|_| RandomState::new().build_hasher().finish());
        }
        Ok(hosts)
    }

    fn at(&self, endpoint: &Endpoint) -> Config {
        let mut config = self.config.clone();
        config.port(endpoint.port);
        match &endpoint.host {
            Host::Tcp(name) => {
                config.host(name);
                // The driver asks for no TLS: the connector does.
                config.ssl_mode(SslMode::Require);
                config.ssl_negotiation(SslNegotiation::Direct);
            }
            #[cfg(unix)]
            Host::Unix(path) => {
                config.host_path(path);
                config.ssl_mode(SslMode::Disable);
            }
        }
        if let Some(address) = endpoint.address {
            config.hostaddr(address);
        }
        config
    }

    /// The time-out as a setting of the server, which has 31 bits.
    pub(super) fn timeout_ms(&self) -> i32 {
        i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX)
    }
}

/// How connections to these hosts are protected: by the parameters of all stores, or by libpq's.
fn tls<'h>(
    url: &mut StoreUrl<'_>,
    hosts: impl IntoIterator<Item = &'h str>,
) -> Result<PgTls, OpenError> {
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
    let unverified = match mode.as_deref() {
        None => None,
        Some("disable") => {
            url.add("tls", "off")?;
            None
        }
        // Without authorities that are named, these verify nothing, as in libpq.
        Some("prefer") if !url.has("ca") => Some(Encryption::Preferred),
        Some("require") if !url.has("ca") => Some(Encryption::Always),
        Some("prefer" | "require" | "verify-full") => {
            url.add("tls", "required")?;
            None
        }
        Some(_) => {
            return Err(url.wrong(
                "sslmode is none of disable, prefer, require and verify-full; \
                 verify-ca is verify-full here",
            ));
        }
    };
    if let Some(encryption) = unverified {
        let files = url.tls_files()?;
        return Ok(PgTls::unverified(encryption, files));
    }
    Ok(match url.protection(hosts, None)? {
        Protection::Tls(files) => PgTls {
            encryption: Encryption::Always,
            is_verified: true,
            files,
        },
        Protection::Local => PgTls::unverified(Encryption::Preferred, TlsFiles::default()),
        Protection::Off => PgTls::unverified(Encryption::Never, TlsFiles::default()),
    })
}

/// What the driver reads out of `text`. Its error quotes nothing but a parameter's name.
fn parse(url: &StoreUrl<'_>, text: &str) -> Result<Config, OpenError> {
    Config::from_str(text).map_err(|error| {
        let cause = std::error::Error::source(&error);
        url.wrong(cause.map_or_else(|| error.to_string(), ToString::to_string))
    })
}

/// The hosts of a URL. An address without a name is its own.
fn endpoints(config: &Config) -> Result<Vec<Endpoint>, &'static str> {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let count = hosts.len().max(addresses.len());
    if count == 0 {
        return Err("it names no host");
    }
    if !hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len() {
        return Err("give as many hostaddr as host, or one of the two");
    }
    let ports = config.get_ports();
    if ports.len() > 1 && ports.len() != count {
        return Err("give one port, or one for each host");
    }
    (0..count)
        .map(|index| {
            let address = addresses.get(index).copied();
            let host = match (hosts.get(index), address) {
                (Some(host), _) => host.clone(),
                (None, Some(address)) => Host::Tcp(address.to_string()),
                (None, None) => return Err("it names no host"),
            };
            #[cfg(unix)]
            if address.is_some() && matches!(host, Host::Unix(_)) {
                return Err("a Unix socket has no hostaddr");
            }
            let port = ports.get(index).or(ports.first()).copied();
            Ok(Endpoint {
                host,
                address,
                port: port.unwrap_or(5432),
            })
        })
        .collect()
}

impl fmt::Display for Server {
    /// The database and where it is: no user, no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(database) = self.config.get_dbname() {
            write!(f, "{database} at ")?;
        }
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match &endpoint.host {
                Host::Tcp(name) => f.write_str(name)?,
                #[cfg(unix)]
                Host::Unix(path) => write!(f, "{}", path.display())?,
            }
            write!(f, ":{}", endpoint.port)?;
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
        use Encryption::{Always, Never, Preferred};

        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls");
        let root = format!("sslrootcert={data}/ca.pem");
        for (url, encryption, verified) in [
            // Elsewhere
            ("h/d", Always, true),
            ("127.0.0.1,h/d", Always, true),
            ("localhost/d?hostaddr=10.0.0.1", Always, true),
            ("/d?hostaddr=10.0.0.1", Always, true),
            ("h/d?tls=off", Never, false),
            ("h/d?sslmode=disable", Never, false),
            ("h/d?sslmode=prefer", Preferred, false),
            ("h/d?sslmode=require", Always, false),
            ("h/d?sslmode=verify-full", Always, true),
            (&format!("h/d?{root}"), Always, true),
            (&format!("h/d?{root}&sslmode=require"), Always, true),
            (&format!("h/d?{root}&sslmode=prefer"), Always, true),
            // This machine
            ("[::1],localhost/d", Preferred, false),
            ("/d?host=%2Frun", Preferred, false),
            ("h/d?hostaddr=127.0.0.1", Preferred, false),
            (&format!("localhost/d?{root}"), Always, true),
            ("localhost/d?tls=required", Always, true),
            ("localhost/d?sslmode=verify-full", Always, true),
        ] {
            let tls = server(&format!("postgres://u:p@{url}")).tls;
            let found = (tls.encryption, tls.is_verified);
            assert_eq!(found, (encryption, verified), "{url}");
            assert_eq!(tls.files.ca.is_some(), url.contains(&root), "{url}");
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
