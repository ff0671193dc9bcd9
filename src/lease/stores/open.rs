//! A store from a URL.

use std::time::Duration;
use std::{fmt, io};

use crate::lease::store::LeaseStore;
use crate::lease::stores::password::Ask;

/// How stores are opened.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ringflake::lease::OpenOptions;
///
/// let options = OpenOptions::new().timeout(Duration::from_secs(2));
/// assert!(!options.accepts_best_effort());
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    timeout: Duration,
    best_effort: bool,
    password: Option<Ask>,
}

impl OpenOptions {
    /// Five seconds for an operation, and durable stores only.
    pub const fn new() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            best_effort: false,
            password: None,
        }
    }

    /// How long one operation may take at most, connecting included; at least a
    /// millisecond. After that its outcome is unknown.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Whether to use a store that can lose what it has confirmed, such as a
    /// Redis without an append-only file. When it does, IDs may be issued twice:
    /// the incarnation, where it tells, and the horizon are all that is left
    /// between you and duplicates. Refused by default.
    #[must_use]
    pub const fn accept_best_effort(mut self, accept: bool) -> Self {
        self.best_effort = accept;
        self
    }

    /// Asks `password` for the password at each new connection, so that it can be a
    /// token that expires. It comes before every other place for one, that in the URL
    /// included. The answer is waited for, without a limit, by whoever called the store:
    /// with generators, a thread which all that were given clones of these options share
    /// for one URL. An error is
    /// [`StoreError::Unavailable`](crate::lease::error::StoreError::Unavailable), and the next
    /// operation asks again. Stores that have no password never ask.
    ///
    /// # Examples
    /// ```
    /// use ringflake::lease::OpenOptions;
    ///
    /// let options = OpenOptions::new()
    ///     .with_password(|| std::fs::read_to_string("/run/vault/token"));
    /// ```
    #[must_use]
    pub fn with_password(
        mut self,
        password: impl Fn() -> io::Result<String> + Send + Sync + 'static,
    ) -> Self {
        self.password = Some(Ask::new(password));
        self
    }

    #[allow(dead_code, reason = "read by the stores that are features")]
    pub(crate) fn password(&self) -> Option<&Ask> {
        self.password.as_ref()
    }

    /// See [`timeout`](Self::timeout).
    pub const fn operation_timeout(&self) -> Duration {
        self.timeout
    }

    /// See [`accept_best_effort`](Self::accept_best_effort).
    pub const fn accepts_best_effort(&self) -> bool {
        self.best_effort
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Opens the store that `url` names.
///
/// | URL | feature | store |
/// |---|---|---|
/// | `sqlite:PATH` | `sqlite` | a file on this machine |
/// | `postgres://USER:PASSWORD@HOST:PORT/DATABASE` | `postgres` | PostgreSQL |
/// | `mysql://USER:PASSWORD@HOST:PORT/DATABASE` | `mysql` | MySQL or MariaDB |
/// | `redis://USER:PASSWORD@HOST:PORT/NUMBER`, `rediss://` | `redis` | Redis |
/// | `etcd://USER:PASSWORD@HOST:PORT,HOST:PORT`, `etcds://` | `etcd` | etcd |
/// | `tier:PATH?upstream=URL` | `sqlite` | a file on this machine, fed by another store |
///
/// A password, or a lease, goes to this machine (`localhost`, 127.0.0.0/8, `[::1]`, a
/// Unix socket) or over TLS to a server whose certificate was verified. To do without,
/// the URL must say so: `sslmode=disable`, `require_ssl=false`, `tls=off`; the stores'
/// pages have the other words.
///
/// # Passwords
/// A password is taken from the first of these places that has one, at each new
/// connection, so that one that is changed there needs no restart:
///
/// | place | |
/// |---|---|
/// | [`OpenOptions::with_password`] | the program is asked |
/// | the URL | `USER:PASSWORD@`, percent-encoded; people see it in lists of processes and in logs |
/// | `password_file=PATH` in the URL | a file's content, without the end of its last line |
/// | the environment | `PGPASSWORD`, `MYSQL_PWD`, `REDISCLI_AUTH`, `ETCDCTL_PASSWORD` |
/// | `~/.pgpass`, `PGPASSFILE` | PostgreSQL only; the page of its store has more |
///
/// On Unix the file of a password, and that of a private key (`sslkey`, `priv_key_path`,
/// `key`), must be this user's with mode 0600 or less, or root's with 0644 or less, as
/// orchestrators mount them: what others may read is no secret, unless root says who. What
/// is no regular file, such as a pipe, is taken as it is.
///
/// No connection is made yet: the first operation does that, so that a store
/// that is down is [`StoreError::Unavailable`](crate::lease::error::StoreError::Unavailable)
/// there and not here.
///
/// # Errors
/// [`OpenError`]; it never holds the URL, which may hold a password.
pub fn open(url: &str, options: &OpenOptions) -> Result<Box<dyn LeaseStore>, OpenError> {
    let scheme = match url.split_once(':') {
        Some((scheme, _)) => scheme,
        None => return Err(OpenError::NoScheme),
    };
    // Without a feature nothing reads them.
    let _ = options;
    match feature_of(scheme) {
        #[cfg(feature = "etcd")]
        Some("etcd") => Ok(Box::new(crate::lease::stores::etcd::EtcdStore::from_url(
            url, options,
        )?)),
        #[cfg(feature = "mysql")]
        Some("mysql") => Ok(Box::new(crate::lease::stores::mysql::MysqlStore::from_url(
            url, options,
        )?)),
        #[cfg(feature = "postgres")]
        Some("postgres") => Ok(Box::new(
            crate::lease::stores::postgres::PostgresStore::from_url(url, options)?,
        )),
        #[cfg(feature = "redis")]
        Some("redis") => Ok(Box::new(crate::lease::stores::redis::RedisStore::from_url(
            url, options,
        )?)),
        #[cfg(feature = "sqlite")]
        Some("sqlite") if scheme == "tier" => Ok(Box::new(
            crate::lease::stores::tier::TierStore::from_url(url, options)?,
        )),
        #[cfg(feature = "sqlite")]
        Some("sqlite") => Ok(Box::new(
            crate::lease::stores::sqlite::SqliteStore::from_url(url, options)?,
        )),
        Some(feature) => Err(OpenError::FeatureOff { feature }),
        None => Err(OpenError::Scheme {
            scheme: scheme.to_owned(),
        }),
    }
}

/// The feature that knows this scheme.
fn feature_of(scheme: &str) -> Option<&'static str> {
    Some(match scheme {
        "sqlite" | "tier" => "sqlite",
        "postgres" | "postgresql" => "postgres",
        "mysql" | "mariadb" => "mysql",
        "redis" | "rediss" => "redis",
        "etcd" | "etcds" => "etcd",
        _ => return None,
    })
}

/// Why a URL names no store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no `scheme:` at its start.
    NoScheme,
    /// No store has this scheme.
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The store exists, but this program was built without it.
    FeatureOff {
        /// The crate's feature.
        feature: &'static str,
    },
    /// The rest of the URL, or an option, is wrong.
    Invalid {
        /// The scheme.
        scheme: &'static str,
        /// What is wrong and what is allowed, without the URL.
        reason: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const KNOWN: &str = "sqlite:, postgres://, mysql://, redis://, etcd:// or tier:";
        match self {
            Self::NoScheme => write!(f, "the store's URL has no scheme: begin it with {KNOWN}"),
            Self::Scheme { scheme } => {
                write!(f, "no store has the scheme {scheme:?}: use {KNOWN}")
            }
            Self::FeatureOff { feature } => write!(
                f,
                "this program was built without the {feature} store: \
                 build it with the feature {feature:?}"
            ),
            Self::Invalid { scheme, reason } => write!(f, "the {scheme} URL is wrong: {reason}"),
        }
    }
}

impl std::error::Error for OpenError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> OpenError {
        open(url, &OpenOptions::new()).unwrap_err()
    }

    #[test]
    fn a_url_begins_with_a_scheme_that_is_known() {
        assert_eq!(refused("localhost"), OpenError::NoScheme);
        assert_eq!(
            refused("zookeeper://localhost"),
            OpenError::Scheme {
                scheme: "zookeeper".into()
            }
        );
    }

    #[test]
    fn errors_hold_no_password() {
        for url in ["hunter2", "unknown://me:hunter2@host/", ":hunter2"] {
            let error = refused(url);
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }
}
