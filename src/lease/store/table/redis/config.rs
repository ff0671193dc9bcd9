//! The settings in a URL: the servers, the login, the replicas to wait for.

use std::{fmt, io};

use redis::{ClientTlsConfig, ConnectionAddr, IntoConnectionInfo, RedisResult, TlsCertificates};

use crate::lease::store::connect::password::Password;
use crate::lease::store::connect::tls::{self, Protection, TlsFiles};
use crate::lease::store::connect::url::{Endpoint, Host, StoreUrl, join};
use crate::lease::store::options::{OpenError, OpenOptions};

const SCHEMES: [&str; 2] = ["redis", "rediss"];
const PARAMETERS: [&str; 9] = [
    "tls",
    "ca",
    "cert",
    "key",
    "password_file",
    "socket",
    "wait",
    "sentinel",
    "sentinel_password_file",
];
/// As for `redis-cli`.
const VARIABLE: &str = "REDISCLI_AUTH";

/// The settings of a URL.
#[derive(Clone, Debug)]
pub(in crate::lease) struct Config {
    /// Where the server is, or the sentinels; at least one.
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) sentinel: Option<Sentinel>,
    pub(super) user: Option<String>,
    pub(super) password: Password,
    pub(super) database: u32,
    /// How many replicas must confirm a write; none for all that are online.
    pub(super) wait: Option<u64>,
    pub(super) accepts_best_effort: bool,
    protection: Protection,
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(&self.endpoints))
    }
}

/// How to ask sentinels.
#[derive(Clone, Debug)]
pub(super) struct Sentinel {
    /// The primary's name among them.
    pub(super) name: String,
    /// Theirs, and not the server's.
    pub(super) password: Option<Password>,
}

/// The contents of the files, as the driver takes them.
fn load(tls: &TlsFiles) -> io::Result<TlsCertificates> {
    let files = tls.read().and_then(|files| files.check().map(|()| files));
    let files = files.map_err(io::Error::other)?;
    let client_tls = files
        .identity
        .map(|(client_cert, client_key)| ClientTlsConfig {
            client_cert,
            client_key,
        });
    Ok(TlsCertificates {
        client_tls,
        root_cert: files.ca,
    })
}

impl Config {
    pub(super) fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let mut url = StoreUrl::parse(url, &SCHEMES, &PARAMETERS)?;
        let sentinel = sentinel(&mut url)?;
        let port = if sentinel.is_some() { 26379 } else { 6379 };
        let (endpoints, protection) = url.endpoints(port, Some("rediss"))?;
        if sentinel.is_some() && matches!(*endpoints, [Endpoint::Socket(_)]) {
            return Err(url.wrong("sentinels have no Unix socket"));
        }
        let database = match url.path() {
            "" => 0,
            number => number
                .parse()
                .map_err(|_| url.wrong("give the database as a number"))?,
        };
        let wait = match url.parameter("wait")? {
            None => None,
            Some(count) => Some(
                count
                    .parse()
                    .ok()
                    .filter(|n| *n <= 100)
                    .ok_or_else(|| url.wrong("give wait as a number of replicas, 0 to 100"))?,
            ),
        };
        let (user, password) = url.credentials_in_full(options, VARIABLE)?;
        Ok(Self {
            endpoints,
            sentinel,
            user,
            password,
            database,
            wait,
            accepts_best_effort: options.accepts_best_effort(),
            protection,
        })
    }

    /// The driver's client. It holds no credentials, so that it has nothing to
    /// ask the server before time-outs are set. Reads the files anew.
    pub(super) fn client(&self, endpoint: &Endpoint) -> RedisResult<redis::Client> {
        let files = self.protection.files();
        let address = match endpoint.clone() {
            Endpoint::Socket(path) => ConnectionAddr::Unix(path),
            Endpoint::Host(Host { name, port }) if files.is_none() => {
                ConnectionAddr::Tcp(name, port)
            }
            Endpoint::Host(Host { name, port }) => ConnectionAddr::TcpTls {
                host: name,
                port,
                insecure: false,
                tls_params: None,
            },
        };
        let info = silent(address.into_connection_info()?);
        match files {
            None => redis::Client::open(info),
            Some(files) => redis::Client::build_with_tls(info, load(files)?),
        }
    }

    /// The endpoint of a server that a sentinel named.
    ///
    /// # Errors
    /// The text for people, where the address may not be used.
    pub(super) fn found(&self, host: Host) -> Result<Endpoint, String> {
        if self.protection == Protection::Local && !tls::is_local(&host.name) {
            return Err(format!(
                "a sentinel names {host}: {}",
                tls::refusal("rediss")
            ));
        }
        Ok(Endpoint::Host(host))
    }

    pub(super) fn is_tls(&self) -> bool {
        self.protection.files().is_some()
    }
}

fn sentinel(url: &mut StoreUrl<'_>) -> Result<Option<Sentinel>, OpenError> {
    let file = url.parameter("sentinel_password_file")?;
    let Some(name) = url.parameter("sentinel")? else {
        return match file {
            None => Ok(None),
            Some(_) => Err(url.wrong("sentinel_password_file needs sentinel=NAME")),
        };
    };
    if name.is_empty() {
        return Err(url.wrong("give the primary's name as sentinel=NAME"));
    }
    // Only from the file: other passwords are the server's.
    let alone = OpenOptions::new();
    let password = file.map(|file| Password::new(&alone, None, Some(file), ""));
    Ok(Some(Sentinel {
        name,
        password: password.transpose().map_err(|reason| url.wrong(reason))?,
    }))
}

fn silent(info: redis::ConnectionInfo) -> redis::ConnectionInfo {
    let settings = info.redis_settings().clone().set_skip_set_lib_name();
    let tcp = info.tcp_settings().clone().set_nodelay(true);
    info.set_redis_settings(settings).set_tcp_settings(tcp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Config {
        Config::from_url(url, &OpenOptions::new()).unwrap()
    }

    #[test]
    fn a_url_says_where_and_what() {
        let config = parsed("redis://me:word@db:7000/3?wait=2&tls=off");
        assert_eq!(config.user.as_deref(), Some("me"));
        assert_eq!(config.password.get().unwrap().unwrap().expose(), "word");
        assert_eq!((config.database, config.wait), (3, Some(2)));
        let config = parsed("redis://localhost");
        assert_eq!((config.database, config.wait), (0, None));
        for (url, places, is_tls) in [
            ("redis://db:7000?tls=off", "db:7000", false),
            ("rediss://a,b:1", "a:6379,b:1", true),
            ("rediss://a,b:1?sentinel=s", "a:26379,b:1", true),
            ("redis://me:word@a/1?socket=%2Frun%2Fs", "/run/s", false),
        ] {
            let config = parsed(url);
            assert_eq!((&*config.to_string(), config.is_tls()), (places, is_tls));
        }
    }

    #[test]
    fn a_sentinel_leads_no_password_away() {
        let found = |url: &str, name: &str| {
            let name = name.to_owned();
            parsed(url).found(Host { name, port: 1 })
        };
        found("redis://localhost?sentinel=s", "127.0.0.1").unwrap();
        found("redis://localhost?sentinel=s&tls=off", "a").unwrap();
        found("rediss://localhost?sentinel=s", "a").unwrap();
        let error = found("redis://localhost?sentinel=s", "a").unwrap_err();
        assert!(error.contains("tls=off"), "{error}");
    }
}
