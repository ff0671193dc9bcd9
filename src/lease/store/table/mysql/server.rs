//! Which server, and how it is reached.

use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use mysql::consts::CapabilityFlags;
use mysql::{ClientIdentity, Conn, DriverError, Error, OptsBuilder, SslOpts};

use crate::lease::store::connect::password::Password;
use crate::lease::store::connect::tls::{self, Protection, TlsFiles};
use crate::lease::store::connect::url::{Endpoint, StoreUrl, join};
use crate::lease::store::options::{Hidden, OpenError, OpenOptions};

/// To log in with `caching_sha2_password` for the first time without TLS, a client sends the
/// password encrypted with the server's RSA key. Without a file that holds the key, the driver
/// asks the peer for one, and so encrypts for any peer that answers. The driver has no setting
/// against that, so it is given a file that can't exist: no path of a file holds this byte.
const NO_KEY_FILE: &str = "\0";

const NEEDS_TLS: &str = "the server asks for the password, not for a proof of it, and has not \
    shown who it is: use TLS (tls=required, ca=FILE) or a Unix socket (socket=PATH)";

/// As for `mysql`.
const VARIABLE: &str = "MYSQL_PWD";

const SCHEMES: [&str; 2] = ["mysql", "mariadb"];
const PARAMETERS: [&str; 6] = ["tls", "ca", "cert", "key", "password_file", "socket"];

pub(in crate::lease) struct Server {
    /// In the order in which they are tried.
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) database: String,
    user: Option<String>,
    password: Password,
    protection: Protection,
    /// For one answer: half of an operation's time.
    pub(super) patience: Duration,
    pub(super) accepts_best_effort: bool,
}

impl Server {
    pub(super) fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let mut url = StoreUrl::parse(url, &SCHEMES, &PARAMETERS)?;
        let (endpoints, protection) = url.endpoints(3306, None)?;
        let database = url.database()?;
        let (user, password) = url.credentials(options, VARIABLE)?;
        let timeout = options.operation_timeout().max(Duration::from_millis(1));
        Ok(Self {
            endpoints,
            database,
            user,
            password,
            protection,
            // Nothing is sent in the second half of an operation's time, so that the
            // last answer may take as long.
            patience: timeout / 2,
            accepts_best_effort: options.accepts_best_effort(),
        })
    }

    /// Everything but password and TLS, as the driver takes it.
    fn options(&self, endpoint: &Endpoint) -> OptsBuilder {
        // So that a host that is gone leaves time for the next.
        let hosts = u32::try_from(self.endpoints.len()).unwrap_or(u32::MAX);
        let options = OptsBuilder::new()
            .user(self.user.as_deref())
            .db_name(Some(&*self.database))
            .read_timeout(Some(self.patience))
            .write_timeout(Some(self.patience))
            .tcp_connect_timeout(Some(self.patience / hosts.max(1)))
            .server_key_path(Some(PathBuf::from(NO_KEY_FILE)))
            // It would look for a socket on this machine that may lead elsewhere.
            .prefer_socket(false)
            // A renewal that adds nothing finds its row all the same.
            .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS);
        match endpoint {
            Endpoint::Host(host) => options
                .ip_or_hostname(Some(host.bracketed()))
                .tcp_port(host.port),
            Endpoint::Socket(path) => options.socket(Some(path.to_string_lossy())),
        }
    }

    /// Connects and logs in.
    pub(super) fn connect(&self, endpoint: &Endpoint) -> Result<Conn, Error> {
        let password = self.password.get()?;
        let password = password.as_ref().map(Hidden::expose);
        let mut options = self.options(endpoint).pass(password);
        if let Some(files) = self.protection.files() {
            options = options.ssl_opts(self.ssl(files)?);
        }
        Conn::new(options).map_err(|error| match error {
            // The one file that the driver can't read for this reason.
            Error::IoError(error)
                if error.kind() == io::ErrorKind::InvalidInput
                    && error.raw_os_error().is_none() =>
            {
                io::Error::new(io::ErrorKind::PermissionDenied, NEEDS_TLS).into()
            }
            Error::DriverError(DriverError::TlsNotSupported) => {
                io::Error::new(io::ErrorKind::PermissionDenied, tls::HAS_NO_TLS).into()
            }
            error => error,
        })
    }

    /// TLS as the driver takes it.
    fn ssl(&self, files: &TlsFiles) -> io::Result<SslOpts> {
        // The driver reads them by itself, and looks neither at who may read the key nor for a
        // file without certificates.
        let found = files.read().and_then(|found| found.check());
        found.map_err(io::Error::other)?;
        tls::install_provider();
        let identity = files.identity.clone();
        Ok(SslOpts::default()
            .with_root_cert_path(files.ca.clone())
            .with_client_identity(identity.map(|(cert, key)| ClientIdentity::new(cert, key))))
    }
}

impl fmt::Display for Server {
    /// The database and where it is: no user, no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.database, join(&self.endpoints))
    }
}

#[cfg(test)]
mod tests {
    use mysql::Opts;

    use super::*;

    fn server(url: &str) -> Server {
        let options = OpenOptions::new().timeout(Duration::from_secs(3));
        Server::from_url(url, &options).unwrap()
    }

    fn options(server: &Server) -> Opts {
        server.options(&server.endpoints[0]).into()
    }

    #[test]
    fn both_schemes_name_a_database() {
        for scheme in ["mysql", "mariadb"] {
            let server = server(&format!("{scheme}://u:hunter2@h:1/d%20e"));
            assert_eq!(server.to_string(), "d e at h:1");
            let password = server.password.get().unwrap().unwrap();
            assert_eq!(password.expose(), "hunter2");
            assert_eq!(options(&server).get_user(), Some("u"));
            assert_eq!(options(&server).get_db_name(), Some("d e"));
        }
    }

    #[test]
    fn the_driver_never_asks_the_peer_for_a_key() {
        let options = options(&server("mysql://u:p@localhost/d"));
        let error = std::fs::read(options.get_server_key_path().unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error.raw_os_error(), None);
    }

    #[test]
    fn every_wait_is_bounded_and_hosts_share_the_time_to_connect() {
        let both = server("mysql://u:hunter2@[::1]:7,h/d?tls=off");
        assert_eq!(both.to_string(), "d at [::1]:7,h:3306");
        let options = options(&both);
        assert_eq!(options.get_ip_or_hostname(), "[::1]");
        let half = Duration::from_millis(1500);
        assert_eq!(options.get_read_timeout(), Some(&half));
        assert_eq!(options.get_write_timeout(), Some(&half));
        assert_eq!(options.get_tcp_connect_timeout(), Some(half / 2));
    }
}
