//! Which server, and how it is reached.

use std::fmt;
use std::time::Duration;

use mysql::consts::CapabilityFlags;
use mysql::{Opts, OptsBuilder, SslOpts, UrlError};

use super::super::sql::{Cause, Url};
use super::super::{OpenError, OpenOptions};

/// What the URL may hold. All but the last are the driver's.
const PARAMETERS: [&str; 13] = [
    "socket",
    "server_key_path",
    "tcp_connect_timeout_ms",
    "tcp_keepalive_time_ms",
    "tcp_keepalive_probe_interval_secs",
    "tcp_keepalive_probe_count",
    "tcp_user_timeout_ms",
    "root_cert_path",
    "cert_chain_path",
    "priv_key_path",
    "danger_skip_domain_validation",
    "danger_accept_invalid_certs",
    "require_ssl",
];

pub(super) struct Server {
    pub(super) options: Opts,
    /// For an operation.
    pub(super) timeout: Duration,
    /// For one answer.
    pub(super) patience: Duration,
    pub(super) accepts_best_effort: bool,
}

impl Server {
    pub(super) fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let mut url = Url::parse("mysql", url, &PARAMETERS)?;
        let tls = match url.take("require_ssl")?.as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(url.invalid("require_ssl is neither true nor false")),
        };
        // The driver's error quotes values, so it is not passed on.
        let parsed = Opts::from_url(&url.rest("mysql")).map_err(|error| {
            url.invalid(match error {
                UrlError::InvalidValue(name, _) => format!("{name} has a value that it can't have"),
                UrlError::UnknownParameter(name) => format!("{name} is unknown on this system"),
                _ => "it can't be read: write it as mysql://USER:PASSWORD@HOST:PORT/DATABASE"
                    .to_owned(),
            })
        })?;
        if parsed.get_db_name().is_none() {
            return Err(url.invalid("it names no database"));
        }
        let mut builder = OptsBuilder::from_opts(parsed.clone());
        if tls && parsed.get_ssl_opts().is_none() {
            builder = builder.ssl_opts(SslOpts::default());
        }
        Ok(Self::new(builder.into(), options))
    }

    fn new(parsed: Opts, options: &OpenOptions) -> Self {
        let timeout = options.operation_timeout().max(Duration::from_millis(1));
        // Nothing is sent in the second half of an operation's time, so that the
        // last answer may take as long.
        let patience = timeout / 2;
        let connect_timeout = parsed.get_tcp_connect_timeout().unwrap_or(patience);
        let options_of_ours = OptsBuilder::from_opts(parsed)
            .read_timeout(Some(patience))
            .write_timeout(Some(patience))
            .tcp_connect_timeout(Some(connect_timeout))
            // It would look for a socket on this machine that may lead elsewhere.
            .prefer_socket(false)
            // A renewal that adds nothing finds its row all the same.
            .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS);
        Self {
            options: options_of_ours.into(),
            timeout,
            patience,
            accepts_best_effort: options.accepts_best_effort(),
        }
    }

    /// Sees to what the driver needs before it may be asked for TLS.
    pub(super) fn prepare(&self) -> Result<(), Cause> {
        // It takes the process's default, and panics where a program links two
        // providers and chose none.
        if self.options.get_ssl_opts().is_some()
            && rustls::crypto::CryptoProvider::get_default().is_none()
        {
            // Another thread may have been faster, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        Ok(())
    }
}

impl fmt::Display for Server {
    /// The database and where it is: no user, no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        write!(f, "{} at ", options.get_db_name().unwrap_or_default())?;
        match options.get_socket() {
            Some(path) => f.write_str(path),
            None => write!(
                f,
                "{}:{}",
                options.get_ip_or_hostname(),
                options.get_tcp_port()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> Result<Server, OpenError> {
        Server::from_url(url, &OpenOptions::new().timeout(Duration::from_secs(3)))
    }

    #[test]
    fn both_schemes_name_a_database() {
        for scheme in ["mysql", "mariadb"] {
            let server = server(&format!("{scheme}://u:hunter2@h:1/d")).unwrap();
            assert_eq!(server.to_string(), "d at h:1");
            assert_eq!(server.options.get_pass(), Some("hunter2"));
            assert!(server.options.get_ssl_opts().is_none());
        }
    }

    #[test]
    fn tls_is_on_when_it_is_required_or_described() {
        for query in ["require_ssl=true", "root_cert_path=%2Fca.pem"] {
            let server = server(&format!("mysql://u:p@h/d?{query}")).unwrap();
            assert!(server.options.get_ssl_opts().is_some(), "{query}");
        }
    }

    #[test]
    fn every_wait_is_bounded() {
        let options = server("mysql://u:p@h/d").unwrap().options;
        let half = Duration::from_millis(1500);
        assert_eq!(options.get_read_timeout(), Some(&half));
        assert_eq!(options.get_write_timeout(), Some(&half));
        assert_eq!(options.get_tcp_connect_timeout(), Some(half));
        let own = server("mysql://u:p@h/d?tcp_connect_timeout_ms=7").unwrap();
        let own = own.options.get_tcp_connect_timeout();
        assert_eq!(own, Some(Duration::from_millis(7)));
    }

    #[test]
    fn what_is_wrong_is_named_and_no_password_quoted() {
        for (url, named) in [
            ("mysql://u:hunter2@h/d?ssl=1", "\"ssl\""),
            ("mysql://u:hunter2@h:hunter2/d", "PORT"),
            (
                "mysql://u:hunter2@h/d?tcp_user_timeout_ms=soon",
                "tcp_user_timeout_ms",
            ),
            ("mysql://u:hunter2@h/d?require_ssl=soon", "require_ssl"),
            ("mysql://u:hunter2@h/", "database"),
            ("mysql://u:hunter2/@h/d", "%2F"),
        ] {
            let Err(error) = server(url) else {
                panic!("{url} was taken");
            };
            let text = error.to_string();
            assert!(text.contains(named), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}
