//! Which server, and how it is reached.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::super::sql::Url;
use super::super::{OpenError, OpenOptions};
use super::tls::Trust;

/// What the URL may hold. All but the last are the driver's.
const PARAMETERS: [&str; 19] = [
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
    "sslmode",
    "sslrootcert",
];

pub(super) struct Server {
    pub(super) config: Config,
    pub(super) trust: Trust,
    pub(super) timeout: Duration,
    pub(super) accepts_best_effort: bool,
}

impl Server {
    pub(super) fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let mut url = Url::parse("postgres", url, &PARAMETERS)?;
        let roots = url.take("sslrootcert")?;
        let mode = url.take("sslmode")?;
        // The driver's error quotes nothing but a parameter's name.
        let mut config = Config::from_str(&url.rest("postgres")).map_err(|error| {
            let cause = std::error::Error::source(&error);
            url.invalid(cause.map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(url.invalid("it names no host"));
        }
        let (mode, verify) = match mode.as_deref() {
            Some("disable") => (SslMode::Disable, false),
            None | Some("prefer") => (SslMode::Prefer, false),
            Some("require") => (SslMode::Require, false),
            Some("verify-full") => (SslMode::Require, true),
            Some(_) => {
                return Err(url.invalid(
                    "sslmode is none of disable, prefer, require and verify-full; \
                     verify-ca is verify-full here",
                ));
            }
        };
        config.ssl_mode(mode);
        let trust = match (roots, verify) {
            (Some(path), _) => Trust::File(path),
            (None, true) => Trust::System,
            (None, false) => Trust::Anybody,
        };
        Ok(Self::new(config, trust, options))
    }

    pub(super) fn new(mut config: Config, trust: Trust, options: &OpenOptions) -> Self {
        let timeout = options.operation_timeout().max(Duration::from_millis(1));
        if config.get_application_name().is_none() {
            config.application_name("ringflake");
        }
        // So that a host that is gone leaves time for the next.
        if config.get_connect_timeout().is_none() {
            let hosts = config.get_hosts().len().max(config.get_hostaddrs().len());
            let share = u32::try_from(hosts).unwrap_or(u32::MAX).max(1);
            config.connect_timeout(timeout / share);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(timeout);
        }
        Self {
            config,
            trust,
            timeout,
            accepts_best_effort: options.accepts_best_effort(),
        }
    }
}

impl Server {
    /// The time-out as a setting of the server, which has 31 bits.
    pub(super) fn timeout_ms(&self) -> i32 {
        i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX)
    }
}

impl fmt::Display for Server {
    /// The database and where it is: no user, no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.config;
        let ports = config.get_ports();
        if let Some(database) = config.get_dbname() {
            write!(f, "{database} at ")?;
        }
        let hosts = config.get_hosts().len().max(config.get_hostaddrs().len());
        for index in 0..hosts {
            if index > 0 {
                f.write_str(",")?;
            }
            match (
                config.get_hosts().get(index),
                config.get_hostaddrs().get(index),
            ) {
                (Some(Host::Tcp(name)), _) => f.write_str(name)?,
                #[cfg(unix)]
                (Some(Host::Unix(path)), _) => write!(f, "{}", path.display())?,
                (None, Some(address)) => write!(f, "{address}")?,
                (None, None) => {}
            }
            let port = ports.get(index).or(ports.first()).unwrap_or(&5432);
            write!(f, ":{port}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> Result<Server, OpenError> {
        Server::from_url(url, &OpenOptions::new().timeout(Duration::from_secs(3)))
    }

    #[track_caller]
    fn refused(url: &str) -> String {
        match server(url) {
            Ok(server) => panic!("{server} was taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn tls_is_as_the_url_says() {
        for (query, mode, trust) in [
            ("", SslMode::Prefer, Trust::Anybody),
            ("?sslmode=disable", SslMode::Disable, Trust::Anybody),
            ("?sslmode=require", SslMode::Require, Trust::Anybody),
            ("?sslmode=verify-full", SslMode::Require, Trust::System),
            (
                "?sslrootcert=%2Fca.pem&sslmode=require",
                SslMode::Require,
                Trust::File("/ca.pem".into()),
            ),
        ] {
            let server = server(&format!("postgres://u:p@h/d{query}")).unwrap();
            assert_eq!(server.config.get_ssl_mode(), mode, "{query}");
            assert_eq!(server.trust, trust, "{query}");
        }
        assert!(refused("postgres://u:p@h/d?sslmode=allow").contains("verify-full"));
    }

    #[test]
    fn what_is_wrong_is_named_and_no_password_quoted() {
        for (url, named) in [
            ("postgres://u:hunter2@h/d?sslmod=require", "\"sslmod\""),
            ("postgres://u:hunter2@h:port/d", "port"),
            (
                "postgres://u:hunter2@h/d?connect_timeout=soon",
                "connect_timeout",
            ),
            ("postgres://u:hunter2@/d", "host"),
            ("postgres://u:hunter2/@h/d", "%2F"),
        ] {
            let text = refused(url);
            assert!(text.contains(named), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn hosts_share_the_time_to_connect() {
        let both = server("postgresql://u:hunter2@a:1,b:2/d").unwrap();
        let share = Duration::from_millis(1500);
        assert_eq!(both.config.get_connect_timeout(), Some(&share));
        assert_eq!(both.to_string(), "d at a:1,b:2");
        let own = server("postgres://a,b/d?connect_timeout=2").unwrap();
        let own = own.config.get_connect_timeout();
        assert_eq!(own, Some(&Duration::from_secs(2)));
    }
}
