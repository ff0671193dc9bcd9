//! A store from a URL.

#[cfg(feature = "sqlite")]
use std::path::Path;

#[cfg(feature = "etcd")]
use crate::lease::store::backends::etcd::EtcdStore;
#[cfg(feature = "mysql")]
use crate::lease::store::backends::mysql::MysqlStore;
#[cfg(feature = "postgres")]
use crate::lease::store::backends::postgres::PostgresStore;
#[cfg(feature = "redis")]
use crate::lease::store::backends::redis::RedisStore;
#[cfg(feature = "sqlite")]
use crate::lease::store::backends::{sqlite::SqliteStore, tier::TierStore};
#[cfg(feature = "sqlite")]
use crate::lease::store::connect::file_url;
#[cfg(feature = "sqlite")]
use crate::lease::store::key::StoreKey;
use crate::lease::store::lease_store::LeaseStore;
use crate::lease::store::options::{OpenError, OpenOptions};

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
/// Special characters in a user's name, a password or a value are percent-encoded. An unknown
/// parameter is refused. These are the same for PostgreSQL, MySQL, Redis and etcd; the stores'
/// pages list the others:
///
/// | parameter | value |
/// |---|---|
/// | `tls` | `required` or `off` |
/// | `ca` | a PEM file with the authorities that are trusted, instead of this machine's; for MySQL, in addition to the public ones |
/// | `cert`, `key` | PEM files with the client's own certificate and key |
/// | `password_file` | a file with the password |
///
/// # TLS
/// A password, or a lease, goes to this machine (`localhost`, 127.0.0.0/8, `[::1]`, a
/// Unix socket) or over TLS to a server whose certificate was verified:
///
/// | the URL has | to this machine | to other hosts |
/// |---|---|---|
/// | `tls=required`, `ca`, `cert`, `rediss:` or `etcds:` | TLS | TLS |
/// | none of them | in plain | TLS; `redis:` and `etcd:` are refused |
/// | `tls=off` | in plain | in plain |
///
/// With TLS the certificate and the name in it are verified. The files are read here and at
/// each new connection, so the next connection uses a file that was replaced.
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
///
/// On Unix the file of a password, and that of a private key (`key`)
/// must be this user's with mode 0600 or less, or root's with 0644 or less, as
/// orchestrators mount them: a file that others may read keeps no secret, unless root
/// decides who they are. A pipe, or anything else that is no regular file, is taken as it
/// is.
///
/// No connection is made yet: the first operation makes it. So if the store is down, that operation
/// returns [`StoreError::Unavailable`](crate::lease::error::StoreError::Unavailable), and this
/// function does not.
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
        Some("etcd") => Ok(Box::new(EtcdStore::from_url(url, options)?)),
        #[cfg(feature = "mysql")]
        Some("mysql") => Ok(Box::new(MysqlStore::from_url(url, options)?)),
        #[cfg(feature = "postgres")]
        Some("postgres") => Ok(Box::new(PostgresStore::from_url(url, options)?)),
        #[cfg(feature = "redis")]
        Some("redis") => Ok(Box::new(RedisStore::from_url(url, options)?)),
        #[cfg(feature = "sqlite")]
        Some("sqlite") if scheme == "tier" => Ok(Box::new(TierStore::from_url(url, options)?)),
        #[cfg(feature = "sqlite")]
        Some("sqlite") => Ok(Box::new(SqliteStore::from_url(url, options)?)),
        Some(feature) => Err(OpenError::FeatureOff { feature }),
        None => Err(OpenError::Scheme {
            scheme: scheme.to_owned(),
        }),
    }
}

#[cfg(feature = "sqlite")]
impl TierStore {
    /// The tier that a URL names: `tier:PATH?upstream=URL`, where `PATH` is as in
    /// `sqlite:PATH`, and `URL` is that of any other store, as it stands, up to the end.
    /// Touches no file and makes no connection.
    ///
    /// # Errors
    /// [`OpenError`], of either store.
    ///
    /// # Examples
    /// ```
    /// use ringflake::lease::{OpenOptions, TierStore};
    ///
    /// let url = "tier:/var/lib/app/tier.db?upstream=sqlite:/mnt/leases.db";
    /// TierStore::from_url(url, &OpenOptions::new())?;
    /// # Ok::<(), ringflake::lease::OpenError>(())
    /// ```
    pub fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let (path, upstream) = file_url::parse_tier(url)?;
        let store = Self::new(path, open(upstream, options)?, options)?;
        let path = std::path::absolute(path).ok();
        let path = path.as_deref().and_then(Path::to_str);
        Ok(store.with_key(path.map(|path| {
            let url = format!("tier:{path}?upstream={upstream}");
            StoreKey::new(&url, options)
        })))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> OpenError {
        open(url, &OpenOptions::new()).unwrap_err()
    }

    #[test]
    fn errors_name_what_is_wrong_and_hold_no_password() {
        let ca = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls/ca.pem");
        let with_ca = |url: &str| format!("{url}sslrootcert={ca}");
        let [off, twice] = ["sslmode=disable&", "ca=x&"]
            .map(|query| with_ca(&format!("postgres://u:hunter2@h/d?{query}")));
        for (url, part) in [
            ("hunter2", "no scheme"),
            (":hunter2", "no store has the scheme"),
            ("unknown://me:hunter2@host/", "has the scheme \"unknown\""),
            (
                "postgres://u:hunter2@h/d?sslmod=require",
                "parameter sslmod:",
            ),
            ("postgres://u:hunter2@h:port/d", "port"),
            (
                "postgres://u:hunter2@h/d?connect_timeout=soon",
                "connect_timeout",
            ),
            ("postgres://u:hunter2@/d", "host"),
            ("postgres://u:hunter2/@h/d", "%2F"),
            ("postgres://u:hunter2@h/d?sslcert=x", "neither"),
            ("postgres://u:hunter2@h/d?sslmode=allow", "verify-full"),
            (
                "postgres://u:hunter2@h/d?sslmode=require&tls=required",
                "sslmode",
            ),
            (&off, "leave out one"),
            (&twice, "ca is given twice"),
            ("mysql://u:hunter2@h/d?ssl=1", "parameter ssl:"),
            ("mysql://u:hunter2@h/d?require_ssl=true", "use tls, ca"),
            ("mysql://u:hunter2@h:hunter2/d", "PORT"),
            ("mysql://u:hunter2@h,i/d?socket=x", "one server"),
            ("mysql://u:hunter2@h,/d", "give each host"),
            ("mysql://u:hunter2@h/", "database"),
            ("mysql://u:hunter2/@h/d", "%2F"),
            ("redis://:hunter2@localhost,b", "rediss://"),
            ("redis://:hunter2@a?socket=/s&sentinel=s", "Unix socket"),
            ("redis://:hunter2@[::1]?sentinel=", "sentinel=NAME"),
            (
                "redis://:hunter2@[::1]?sentinel_password_file=f",
                "sentinel=NAME",
            ),
            ("redis://:hunter2@[::1]/first", "number"),
            ("redis://:hunter2@[::1]?wait=all", "wait"),
            ("redis://:hunter2@[::1]?wait=101", "wait"),
            (
                "redis://:hunter2@[::1]?wiat=1",
                "socket, wait, sentinel, sentinel_password_file",
            ),
            ("redis://hunter2@[::1]", "password"),
            ("etcd://hunter2@a", "ETCDCTL_PASSWORD"),
            ("etcd://:hunter2@a", "neither"),
            ("etcd://u:hunter2@a/path", "nothing but parameters"),
            (
                "etcd://u:hunter2@[::1]?timeout=1",
                "tls, ca, cert, key, password_file",
            ),
            ("etcd://u:hunter2@a", "etcds://"),
        ] {
            let error = refused(url);
            if let OpenError::FeatureOff { .. } = error {
                continue;
            }
            assert!(error.to_string().contains(part), "{url}: {error}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }
}
