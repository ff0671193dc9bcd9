//! Where an etcd is.

use super::tls;
use crate::lease::store::connect::certificates::TlsFiles;
use crate::lease::store::connect::password::Password;
use crate::lease::store::connect::url::{Host, StoreUrl};
use crate::lease::store::options::{OpenError, OpenOptions};

const SCHEMES: [&str; 2] = ["etcd", "etcds"];
const PARAMETERS: [&str; 5] = ["password_file", "tls", "ca", "cert", "key"];
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
    /// # Errors
    /// [`OpenError::Invalid`].
    pub(super) fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let mut url = StoreUrl::parse(url, &SCHEMES, &PARAMETERS)?;
        if !url.path().is_empty() {
            return Err(url.wrong("nothing but parameters follows the hosts"));
        }
        let hosts = url.hosts(2379)?;
        let (user, password) = url.credentials(options, VARIABLE)?;
        let login = match user {
            // The variable may be there for others.
            None if password.is_given() => {
                return Err(url.wrong("a password needs a user: give both, or neither"));
            }
            user => user.map(|user| (user, password)),
        };
        let wire = url.wire(&hosts, "etcds")?;
        let tls = url.tls_files(wire, "etcds")?;
        // Files that are none of certificates are found here and not at the first use.
        if let Some(tls) = &tls {
            let files = tls.read().and_then(|files| tls::config(&files));
            files.map_err(|reason| url.wrong(reason))?;
        }
        Ok(Self { hosts, login, tls })
    }
}

#[cfg(test)]
mod tests {
    use ureq::tls::RootCerts;

    use super::*;
    use crate::lease::store::connect::private_file;

    fn parsed(url: &str) -> Result<Config, OpenError> {
        Config::from_url(url, &OpenOptions::new())
    }

    fn file(name: &str) -> String {
        format!("{}/tests/data/tls/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    /// A copy with these rights, where there are such.
    fn copy(name: &str, mode: u32) -> tempfile::NamedTempFile {
        let copy = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy(file(name), copy.path()).unwrap();
        private_file::allow(copy.path(), mode);
        copy
    }

    #[test]
    fn a_url_says_where_and_who() {
        let config = parsed("etcd://me:word@a,b:1?tls=off").unwrap();
        let hosts: Vec<_> = config.hosts.iter().map(Host::to_string).collect();
        assert_eq!(hosts, ["a:2379", "b:1"]);
        let (user, password) = config.login.unwrap();
        let password = password.get().unwrap().unwrap();
        assert_eq!((&*user, password.expose()), ("me", "word"));
        assert!(config.tls.is_none());

        let (ca, cert) = (file("ca.pem"), file("client.pem"));
        let key = copy("client.key", 0o600);
        let key = key.path().display();
        let url = format!("etcds://a?ca={ca}&cert={cert}&key={key}");
        let tls = parsed(&url).unwrap().tls.unwrap();
        let tls = tls::config(&tls.read().unwrap()).unwrap();
        assert!(tls.client_cert().is_some());
        assert!(matches!(tls.root_certs(), RootCerts::Specific(certs) if certs.len() == 1));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let (cert, open) = (file("client.pem"), copy("client.key", 0o646));
        let [key, no_key] = ["client.key", "client.pem"].map(|name| copy(name, 0o600));
        let [open, key, no_key] = [&open, &key, &no_key].map(|file| file.path().display());
        for (url, part) in [
            ("etcd://a/path".into(), "nothing but parameters"),
            ("etcd://me@a".into(), "ETCDCTL_PASSWORD"),
            ("etcd://:word@a".into(), "neither"),
            (
                "etcd://[::1]?timeout=1".into(),
                "password_file, tls, ca, cert, key",
            ),
            ("etcd://a".into(), "etcds://"),
            (format!("etcd://[::1]?ca={cert}"), "need etcds"),
            (format!("etcds://a?cert={cert}"), "neither"),
            (format!("etcds://a?cert={key}&key={key}"), "no certificate"),
            (
                format!("etcds://a?cert={cert}&key={no_key}"),
                "no private key",
            ),
            #[cfg(unix)]
            (
                format!("etcds://a?cert={cert}&key={open}"),
                "key can't be read",
            ),
            #[cfg(unix)]
            (format!("etcds://a?cert={cert}&key={open}"), "chmod 600"),
            ("etcds://a?ca=/dev/null".into(), "no certificate"),
            ("etcds://a?ca=/nowhere".into(), "can't be read"),
        ] {
            match parsed(&url) {
                Err(OpenError::Invalid { reason, .. }) => {
                    assert!(reason.contains(part), "{url}: {reason}");
                }
                Err(other) => panic!("{other}"),
                Ok(_) => panic!("{url} is accepted"),
            }
        }
    }
}
