//! Where an etcd is.

use std::fs;

use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use super::super::OpenError;
use super::super::url::{Hidden, Host, StoreUrl};

const FILES: [&str; 3] = ["ca", "cert", "key"];
const PARAMETERS: [&str; 4] = ["tls", "ca", "cert", "key"];

/// What a URL says.
#[derive(Clone)]
pub(super) struct Config {
    /// The members, at least one.
    pub(super) hosts: Vec<Host>,
    /// User and password.
    pub(super) login: Option<(String, Hidden)>,
    pub(super) tls: Option<TlsConfig>,
}

impl Config {
    /// # Errors
    /// [`OpenError::Invalid`].
    pub(super) fn from_url(url: &str) -> Result<Self, OpenError> {
        let mut url = StoreUrl::parse(url, &["etcd", "etcds"], 2379)?;
        if !url.path.is_empty() {
            return Err(url.wrong("nothing but parameters follows the hosts".into()));
        }
        let login = match (url.user.clone(), url.password.clone()) {
            (None, None) => None,
            (Some(user), Some(password)) => Some((user, password)),
            _ => return Err(url.wrong("give user and password, or neither".into())),
        };
        let [ca, cert, key] = FILES.map(|name| read_pem(&mut url, name));
        let (ca, cert, key) = (ca?, cert?, key?);
        let secure = url.encrypted("etcds")?;
        if !secure && (ca.is_some() || cert.is_some() || key.is_some()) {
            return Err(url.wrong("ca, cert and key need etcds://".into()));
        }
        let client_cert = match (cert, key) {
            (None, None) => None,
            (Some(cert), Some(key)) => {
                let chain = certificates(&url, "cert", cert)?;
                Some(ClientCert::new_with_certs(&chain, private_key(&url, key)?))
            }
            _ => return Err(url.wrong("give cert and key, or neither".into())),
        };
        let root_certs = match ca {
            None => RootCerts::WebPki,
            Some(ca) => RootCerts::new_with_certs(&certificates(&url, "ca", ca)?),
        };
        let tls = secure.then(|| {
            TlsConfig::builder()
                .root_certs(root_certs)
                .client_cert(client_cert)
                .build()
        });
        let hosts = url.hosts.clone();
        url.finish(&PARAMETERS)?;
        Ok(Self { hosts, login, tls })
    }
}

/// What the file that a parameter names holds.
fn read_pem(url: &mut StoreUrl, name: &str) -> Result<Option<Vec<PemItem<'static>>>, OpenError> {
    let Some(path) = url.parameter(name)? else {
        return Ok(None);
    };
    let file = fs::read(path)
        .map_err(|error| url.wrong(format!("the file of {name} can't be read: {error}")))?;
    parse_pem(&file)
        .collect::<Result<_, _>>()
        .map(Some)
        .map_err(|_| url.wrong(format!("the file of {name} is no PEM file")))
}

fn certificates(
    url: &StoreUrl,
    name: &str,
    items: Vec<PemItem<'static>>,
) -> Result<Vec<Certificate<'static>>, OpenError> {
    let found = items.into_iter().filter_map(|item| match item {
        PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    });
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return Err(url.wrong(format!("the file of {name} holds no certificate")));
    }
    Ok(found)
}

fn private_key(
    url: &StoreUrl,
    items: Vec<PemItem<'static>>,
) -> Result<PrivateKey<'static>, OpenError> {
    let found = items.into_iter().find_map(|item| match item {
        PemItem::PrivateKey(key) => Some(key),
        _ => None,
    });
    found.ok_or_else(|| url.wrong("the file of key holds no private key".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> String {
        format!("{}/tests/data/tls/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    #[test]
    fn a_url_says_where_and_who() {
        let config = Config::from_url("etcd://me:word@a,b:1?tls=off").unwrap();
        let hosts: Vec<_> = config.hosts.iter().map(Host::to_string).collect();
        assert_eq!(hosts, ["a:2379", "b:1"]);
        let (user, password) = config.login.unwrap();
        assert_eq!((&*user, password.expose()), ("me", "word"));
        assert!(config.tls.is_none());

        let (ca, cert, key) = (file("ca.pem"), file("client.pem"), file("client.key"));
        let url = format!("etcds://a?ca={ca}&cert={cert}&key={key}");
        let tls = Config::from_url(&url).unwrap().tls.unwrap();
        assert!(tls.client_cert().is_some());
        assert!(matches!(tls.root_certs(), RootCerts::Specific(certs) if certs.len() == 1));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let (cert, key) = (file("client.pem"), file("client.key"));
        for (url, part) in [
            ("etcd://a/path".into(), "nothing but parameters"),
            ("etcd://me@a".into(), "neither"),
            ("etcd://:word@a".into(), "neither"),
            ("etcd://[::1]?timeout=1".into(), "tls, ca, cert, key"),
            ("etcd://a".into(), "etcds://"),
            (format!("etcd://[::1]?ca={cert}"), "need etcds"),
            (format!("etcds://a?cert={cert}"), "neither"),
            (format!("etcds://a?cert={key}&key={key}"), "no certificate"),
            (
                format!("etcds://a?cert={cert}&key={cert}"),
                "no private key",
            ),
            ("etcds://a?ca=/dev/null".into(), "no certificate"),
            ("etcds://a?ca=/nowhere".into(), "can't be read"),
        ] {
            match Config::from_url(&url) {
                Err(OpenError::Invalid { reason, .. }) => {
                    assert!(reason.contains(part), "{url}: {reason}");
                }
                Err(other) => panic!("{other}"),
                Ok(_) => panic!("{url} is accepted"),
            }
        }
    }
}
