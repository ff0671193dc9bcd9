//! Where an etcd is.

use crate::lease::store::connect::password::Password;
use crate::lease::store::connect::tls::TlsFiles;
use crate::lease::store::connect::url::{Host, StoreUrl};
use crate::lease::store::options::{OpenError, OpenOptions};

const SCHEMES: [&str; 2] = ["etcd", "etcds"];
const PARAMETERS: [&str; 5] = ["tls", "ca", "cert", "key", "password_file"];
/// As for `etcdctl`.
const VARIABLE: &str = "ETCDCTL_PASSWORD";

/// The settings of a URL.
#[derive(Clone)]
pub(super) struct Config {
    /// The members, at least one.
    pub(super) hosts: Vec<Host>,
    /// User and password.
    pub(super) login: Option<(String, Password)>,
    pub(super) tls: Option<TlsFiles>,
}

impl Config {
    pub(super) fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let mut url = StoreUrl::parse(url, &SCHEMES, &PARAMETERS)?;
        if !url.path().is_empty() {
            return Err(url.wrong("nothing but parameters follows the hosts"));
        }
        let hosts = url.hosts(2379)?;
        let (user, password) = url.credentials_in_full(options, VARIABLE)?;
        let login = match user {
            // The variable may be there for others.
            None if password.is_given() => {
                return Err(url.wrong("a password needs a user: give both, or neither"));
            }
            user => user.map(|user| (user, password)),
        };
        let names = hosts.iter().map(|host| &*host.name);
        let protection = url.protection(names, Some("etcds"))?;
        let tls = protection.files().cloned();
        Ok(Self { hosts, login, tls })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_who() {
        let parsed = |url| Config::from_url(url, &OpenOptions::new()).unwrap();
        let config = parsed("etcd://me:word@a,b:1?tls=off");
        let hosts: Vec<_> = config.hosts.iter().map(Host::to_string).collect();
        assert_eq!(hosts, ["a:2379", "b:1"]);
        let (user, password) = config.login.unwrap();
        let password = password.get().unwrap().unwrap();
        assert_eq!((&*user, password.expose()), ("me", "word"));
        assert!(config.tls.is_none());
        assert!(parsed("etcds://a").tls.is_some());
    }
}
