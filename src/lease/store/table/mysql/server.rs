//! Which server, and how it is reached.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fmt, io};

use mysql::consts::CapabilityFlags;
use mysql::{Conn, DriverError, Error, Opts, OptsBuilder, SslOpts, UrlError};

use super::roots::RootsFile;
use crate::lease::store::connect::password::Password;
use crate::lease::store::connect::url::StoreUrl;
use crate::lease::store::connect::{certificates, peer};
use crate::lease::store::options::{Hidden, OpenError, OpenOptions};

/// To log in with `caching_sha2_password` for the first time without TLS, a client sends the
/// password encrypted with the server's RSA key. Without a file that holds the key, the driver
/// asks the peer for one, and so encrypts for any peer that answers. The driver has no setting
/// against that, so it is given a file that can't exist: no path of a file holds this byte.
const NO_KEY_FILE: &str = "\0";

const NEEDS_TLS: &str = "the server asks for the password, not for a proof of it, and has not \
    shown who it is: use TLS (require_ssl=true, root_cert_path=FILE) or a Unix socket (socket=PATH)";

/// As for `mysql`.
const VARIABLE: &str = "MYSQL_PWD";

/// The parameters that a URL may have. All but the last two are the driver's.
const PARAMETERS: [&str; 13] = [
    "socket",
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
    "password_file",
];

const HAS_NO_TLS: &str = "the server has no TLS: set it up there, or, if what is sent may be \
    read and changed on the way, write require_ssl=false";

pub(in crate::lease) struct Server {
    /// One for each host, in the order in which they are tried.
    pub(super) hosts: Vec<Opts>,
    password: Password,
    /// Whether `WORKER_NODE` has a row of this process, or rejected it.
    is_noted: AtomicBool,
    /// For one answer: half of an operation's time.
    pub(super) patience: Duration,
    pub(super) accepts_best_effort: bool,
}

impl Server {
    pub(super) fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let mut url = StoreUrl::parse_for_driver(url, &["mysql", "mariadb"], &PARAMETERS)?;
        let tls = match url.parameter("require_ssl")?.as_deref() {
            None => None,
            Some("false") => Some(false),
            Some("true") => Some(true),
            Some(_) => return Err(url.wrong("require_ssl is neither true nor false")),
        };
        let file = url.parameter("password_file")?;
        // The driver's error quotes values, so it is not passed on.
        let parse = |text: &str| {
            Opts::from_url(text).map_err(|error| {
                url.wrong(match error {
                    UrlError::InvalidValue(name, _) => {
                        format!("{name} has a value that it can't have")
                    }
                    UrlError::UnknownParameter(name) => {
                        format!("{name} is unknown on this system")
                    }
                    _ => "it can't be read: write it as \
                          mysql://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE"
                        .to_owned(),
                })
            })
        };
        let each = url.rest_by_host("mysql");
        let hosts = each.iter().map(|url| parse(url));
        let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
        let Some(parsed) = hosts.first() else {
            return Err(url.wrong("it names no host"));
        };
        if parsed.get_db_name().is_none() {
            return Err(url.wrong("it names no database"));
        }
        if parsed.get_socket().is_some() && hosts.len() > 1 {
            return Err(url.wrong("a Unix socket leads to one server"));
        }
        let described = parsed.get_ssl_opts().cloned();
        let names: Vec<_> = hosts.iter().map(Opts::get_ip_or_hostname).collect();
        let tls = match (parsed.get_socket(), described, tls) {
            (Some(_), None, None | Some(false)) => None,
            (Some(_), _, _) => {
                return Err(url.wrong("a Unix socket has no TLS: leave out what describes it"));
            }
            (None, Some(_), Some(false)) => {
                return Err(url.wrong(
                    "require_ssl=false says that there is no TLS, and another parameter \
                     describes it: leave out one of them",
                ));
            }
            (None, Some(described), _) => Some(described),
            (None, None, Some(true)) => Some(SslOpts::default()),
            (None, None, Some(false)) => None,
            (None, None, None) => match peer::default_for(names.iter().map(|name| &**name)) {
                peer::Default::Open => None,
                peer::Default::Verified => Some(SslOpts::default()),
            },
        };
        let password = parsed.get_pass().map(Hidden::new);
        let password = Password::new(options, password, file, VARIABLE);
        let password = password.map_err(|reason| url.wrong(reason))?;
        let timeout = options.operation_timeout().max(Duration::from_millis(1));
        // Nothing is sent in the second half of an operation's time, so that the
        // last answer may take as long.
        let patience = timeout / 2;
        // So that a host that is gone leaves time for the next.
        let share = patience / u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1);
        let hosts = hosts.iter().map(|host| {
            let connect_timeout = host.get_tcp_connect_timeout().unwrap_or(share);
            OptsBuilder::from_opts(host.clone())
                .ssl_opts(tls.clone())
                .read_timeout(Some(patience))
                .write_timeout(Some(patience))
                .tcp_connect_timeout(Some(connect_timeout))
                .server_key_path(Some(PathBuf::from(NO_KEY_FILE)))
                // It would look for a socket on this machine that may lead elsewhere.
                .prefer_socket(false)
                // A renewal that adds nothing finds its row all the same.
                .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS)
                .into()
        });
        Ok(Self {
            hosts: hosts.collect(),
            password,
            is_noted: AtomicBool::new(false),
            patience,
            accepts_best_effort: options.accepts_best_effort(),
        })
    }

    /// Whether this process is yet to be noted, which it is from now on.
    pub(super) fn notes_launch(&self) -> bool {
        // Relaxed: it orders nothing else.
        !self.is_noted.swap(true, Ordering::Relaxed)
    }

    /// Connects and logs in.
    pub(super) fn connect(&self, host: &Opts) -> Result<Conn, Error> {
        let password = self.password.get()?;
        let password = password.as_ref().map(Hidden::expose);
        prepare(host)?;
        let options = OptsBuilder::from_opts(host.clone()).pass(password);
        let mut options = Opts::from(options);
        // There as long as the driver may read it.
        let roots = roots(host)?;
        if let (Some(file), Some(tls)) = (&roots, options.get_ssl_opts()) {
            let tls = tls
                .clone()
                .with_root_cert_path(Some(file.path().to_owned()));
            options = OptsBuilder::from_opts(options).ssl_opts(tls).into();
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
                io::Error::new(io::ErrorKind::PermissionDenied, HAS_NO_TLS).into()
            }
            error => error,
        })
    }
}

/// Prepares what the driver takes for granted.
fn prepare(host: &Opts) -> io::Result<()> {
    let Some(tls) = host.get_ssl_opts() else {
        return Ok(());
    };
    if let Some(identity) = tls.client_identity() {
        let checked = certificates::check_key("priv_key_path", identity.priv_key_path());
        checked.map_err(io::Error::other)?;
    }
    certificates::install_tls_provider();
    Ok(())
}

/// The authorities that are trusted, where the URL names none.
fn roots(host: &Opts) -> io::Result<Option<RootsFile>> {
    match host.get_ssl_opts() {
        Some(tls) if tls.root_cert_path().is_none() && !tls.accept_invalid_certs() => {
            RootsFile::of_this_machine()
        }
        _ => Ok(None),
    }
}

/// Where a host is.
pub(super) fn address_of(host: &Opts) -> String {
    match host.get_socket() {
        Some(path) => path.to_owned(),
        None => format!("{}:{}", host.get_ip_or_hostname(), host.get_tcp_port()),
    }
}

impl fmt::Display for Server {
    /// The database and where it is: no user, no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = self.hosts.first().and_then(Opts::get_db_name);
        let places: Vec<_> = self.hosts.iter().map(address_of).collect();
        write!(
            f,
            "{} at {}",
            database.unwrap_or_default(),
            places.join(",")
        )
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
            let password = server.password.get().unwrap().unwrap();
            assert_eq!(password.expose(), "hunter2");
        }
    }

    #[test]
    fn tls_is_on_elsewhere_and_when_it_is_required_or_described() {
        for (url, tls) in [
            ("h/d", true),
            ("0.0.0.0/d", true),
            ("h/d?require_ssl=true", true),
            ("localhost/d?require_ssl=true", true),
            ("localhost/d?root_cert_path=%2Fca.pem", true),
            ("localhost/d?danger_skip_domain_validation=true", true),
            ("h/d?require_ssl=false", false),
            ("localhost/d", false),
            ("127.0.0.1/d", false),
            ("[::1]/d", false),
            ("h/d?socket=%2Frun%2Fmysqld", false),
        ] {
            let server = server(&format!("mysql://u:p@{url}")).unwrap();
            let found = server.hosts[0].get_ssl_opts();
            assert_eq!(found.is_some(), tls, "{url}");
            if let Some(found) = found.filter(|_| !url.contains("danger")) {
                let lax = found.accept_invalid_certs() || found.skip_domain_validation();
                assert!(!lax, "{url}");
            }
        }
    }

    #[test]
    fn the_driver_never_asks_the_peer_for_a_key() {
        let server = server("mysql://u:p@localhost/d").unwrap();
        let path = server.hosts[0].get_server_key_path().unwrap();
        let error = std::fs::read(path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error.raw_os_error(), None);
    }

    #[test]
    fn hosts_share_the_time_to_connect() {
        let both = server("mysql://u:hunter2@h,[::1]:7/d?require_ssl=false").unwrap();
        assert_eq!(both.to_string(), "d at h:3306,[::1]:7");
        let quarter = Duration::from_millis(750);
        assert!(
            both.hosts
                .iter()
                .all(|host| host.get_tcp_connect_timeout() == Some(quarter))
        );
        assert!(both.hosts.iter().all(|host| host.get_user() == Some("u")));
        // One that is elsewhere is enough.
        let mixed = server("mysql://localhost,h/d").unwrap();
        assert!(mixed.hosts.iter().all(|host| host.get_ssl_opts().is_some()));
    }

    #[test]
    fn every_wait_is_bounded() {
        let options = server("mysql://u:p@h/d").unwrap().hosts.remove(0);
        let half = Duration::from_millis(1500);
        assert_eq!(options.get_read_timeout(), Some(&half));
        assert_eq!(options.get_write_timeout(), Some(&half));
        assert_eq!(options.get_tcp_connect_timeout(), Some(half));
        let own = server("mysql://u:p@h/d?tcp_connect_timeout_ms=7").unwrap();
        let own = own.hosts[0].get_tcp_connect_timeout();
        assert_eq!(own, Some(Duration::from_millis(7)));
    }

    #[test]
    fn what_is_wrong_is_named_and_no_password_quoted() {
        for (url, named) in [
            ("mysql://u:hunter2@h/d?ssl=1", "parameter ssl:"),
            ("mysql://u:hunter2@h:hunter2/d", "PORT"),
            (
                "mysql://u:hunter2@h/d?tcp_user_timeout_ms=soon",
                "tcp_user_timeout_ms",
            ),
            ("mysql://u:hunter2@h/d?require_ssl=soon", "require_ssl"),
            (
                "mysql://u:hunter2@h/d?require_ssl=false&root_cert_path=x",
                "require_ssl=false",
            ),
            ("mysql://u:hunter2@h/d?socket=x&require_ssl=true", "socket"),
            ("mysql://u:hunter2@h,i/d?socket=x", "one server"),
            ("mysql://u:hunter2@h,/d", "HOST"),
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
