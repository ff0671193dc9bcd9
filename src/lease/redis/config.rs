//! Where a Redis is, and what is asked of it.

use std::io;
use std::path::PathBuf;

use redis::{ClientTlsConfig, ConnectionAddr, IntoConnectionInfo, RedisResult, TlsCertificates};

use super::super::password::Password;
use super::super::url::{Host, StoreUrl};
use super::super::{OpenError, OpenOptions, certificates};

const PARAMETERS: [&str; 6] = ["wait", "password_file", "tls", "ca", "cert", "key"];
/// As for `redis-cli`.
const VARIABLE: &str = "REDISCLI_AUTH";

/// What a URL says.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) host: Host,
    pub(super) user: Option<String>,
    pub(super) password: Password,
    pub(super) database: u32,
    /// How many replicas must confirm a write; none for all that are online.
    pub(super) wait: Option<u64>,
    tls: Option<Tls>,
}

/// The files in which certificates and keys are.
#[derive(Clone, Debug)]
struct Tls {
    ca: Option<PathBuf>,
    /// The client's own certificate, and the key to it.
    identity: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    fn load(&self) -> io::Result<TlsCertificates> {
        let read = |name, path| certificates::read(name, path).map_err(io::Error::other);
        let root_cert = match &self.ca {
            None => None,
            Some(ca) => Some(read("ca", ca)?),
        };
        let client_tls = match &self.identity {
            None => None,
            Some((cert, key)) => Some(ClientTlsConfig {
                client_cert: read("cert", cert)?,
                client_key: read("key", key)?,
            }),
        };
        Ok(TlsCertificates {
            client_tls,
            root_cert,
        })
    }
}

impl Config {
    /// # Errors
    /// [`OpenError::Invalid`].
    pub(super) fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let mut url = StoreUrl::parse(url, &["redis", "rediss"], 6379)?;
        let [host] = &*url.hosts else {
            return Err(url.wrong("give one host: the one that leads to the primary".into()));
        };
        let host = host.clone();
        let database = match &*url.path {
            "" => 0,
            number => number
                .parse()
                .map_err(|_| url.wrong("give the database as a number".into()))?,
        };
        let wait =
            match url.parameter("wait")? {
                None => None,
                Some(count) => Some(count.parse().ok().filter(|n| *n <= 100).ok_or_else(|| {
                    url.wrong("give wait as a number of replicas, 0 to 100".into())
                })?),
            };
        let mut file = |name| Ok(url.parameter(name)?.map(PathBuf::from));
        let (ca, cert, key) = (file("ca")?, file("cert")?, file("key")?);
        let identity = match (cert, key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some((cert, key)),
            _ => return Err(url.wrong("give cert and key, or neither".into())),
        };
        let secure = url.encrypted("rediss")?;
        if !secure && (ca.is_some() || identity.is_some()) {
            return Err(url.wrong("ca, cert and key need rediss://".into()));
        }
        let tls = secure.then_some(Tls { ca, identity });
        let config = Self {
            host,
            user: url.user.clone(),
            password: url.password(options, VARIABLE)?,
            database,
            wait,
            tls,
        };
        if config.user.is_some() && config.password.is_missing() {
            return Err(url.wrong(format!(
                "a user needs a password: in the URL, in a password_file, or in {VARIABLE}"
            )));
        }
        // Certificates that are none are found here and not at the first use.
        config
            .client()
            .map_err(|error| url.wrong(format!("the certificates can't be used: {error}")))?;
        url.finish(&PARAMETERS)?;
        Ok(config)
    }

    /// The driver's client. It holds no credentials, so that it has nothing to
    /// ask the server before time-outs are set. Reads the files anew.
    ///
    /// # Errors
    /// The driver's, for certificates that can't be read.
    pub(super) fn client(&self) -> RedisResult<redis::Client> {
        let Host { name, port } = self.host.clone();
        let Some(tls) = &self.tls else {
            let info = ConnectionAddr::Tcp(name, port).into_connection_info()?;
            return redis::Client::open(silent(info));
        };
        let address = ConnectionAddr::TcpTls {
            host: name,
            port,
            insecure: false,
            tls_params: None,
        };
        let info = address.into_connection_info()?;
        redis::Client::build_with_tls(silent(info), tls.load()?)
    }

    pub(super) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }
}

fn silent(info: redis::ConnectionInfo) -> redis::ConnectionInfo {
    let settings = info.redis_settings().clone().set_skip_set_lib_name();
    let tcp = info.tcp_settings().clone().set_nodelay(true);
    info.set_redis_settings(settings).set_tcp_settings(tcp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Result<Config, OpenError> {
        Config::from_url(url, &OpenOptions::new())
    }

    fn reason(url: &str) -> String {
        match parsed(url).unwrap_err() {
            OpenError::Invalid { reason, .. } => reason,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_url_says_where_and_what() {
        let config = parsed("redis://me:word@db:7000/3?wait=2&tls=off").unwrap();
        assert_eq!(config.host.to_string(), "db:7000");
        assert_eq!(config.user.as_deref(), Some("me"));
        assert_eq!(config.password.get().unwrap().unwrap().expose(), "word");
        assert_eq!((config.database, config.wait), (3, Some(2)));

        let config = parsed("redis://localhost").unwrap();
        assert_eq!(config.host.to_string(), "localhost:6379");
        assert_eq!((config.database, config.wait), (0, None));
        assert!(!config.is_tls());
        assert!(parsed("rediss://db").unwrap().is_tls());
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for (url, part) in [
            ("redis://a,b", "one host"),
            ("redis://[::1]/first", "number"),
            ("redis://[::1]?wait=all", "wait"),
            ("redis://[::1]?wait=101", "wait"),
            ("redis://[::1]?wait=1&wait=2", "twice"),
            (
                "redis://[::1]?wiat=1",
                "wait, password_file, tls, ca, cert, key",
            ),
            ("redis://me@[::1]", "password"),
            ("redis://[::1]?ca=/dev/null", "rediss"),
            ("redis://a", "rediss://"),
            ("rediss://a?cert=/dev/null", "neither"),
            ("rediss://a?ca=/nowhere", "can't be read"),
            ("rediss://a?cert=/dev/null&key=/dev/null", "can't be used"),
        ] {
            let reason = reason(url);
            assert!(reason.contains(part), "{url}: {reason}");
        }
    }
}
