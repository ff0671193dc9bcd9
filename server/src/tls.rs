//! TLS, and how its files are read anew while the server runs.
//!
//! A connection keeps the settings that it began with; the next one begins with those that
//! count then.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use crate::config::{ConfigError, Protocol, TlsFiles};

pub(crate) struct Tls(ArcSwap<Loaded>);

/// What the files say.
pub(crate) struct Loaded {
    resp: Arc<ServerConfig>,
    http: Arc<ServerConfig>,
    /// In Unix seconds; `None` if it can't be read.
    expires: Option<u64>,
    /// Whether the certificate had expired when it was read.
    pub(crate) has_expired: bool,
}

impl Tls {
    pub(crate) fn new(loaded: Loaded) -> Self {
        Self(ArcSwap::from_pointee(loaded))
    }

    /// The current settings for new connections of this protocol.
    pub(crate) fn of(&self, protocol: Protocol) -> Arc<ServerConfig> {
        let loaded = self.0.load();
        Arc::clone(match protocol {
            Protocol::Resp => &loaded.resp,
            Protocol::Http => &loaded.http,
        })
    }

    /// When the certificate expires, in Unix seconds; `None` if its time can't be read.
    pub(crate) fn expires_unix_seconds(&self) -> Option<u64> {
        self.0.load().expires
    }

    /// Connections that begin from now on use this.
    pub(crate) fn replace(&self, loaded: Loaded) {
        self.0.store(Arc::new(loaded));
    }
}

impl Loaded {
    /// Reads the files. Only this user may be able to read the key.
    pub(crate) fn from_files(files: &TlsFiles) -> Result<Self, ConfigError> {
        let refused = |path: &Path, reason: String| ConfigError::content(path, reason);
        let unreadable = ConfigError::unreadable;
        let certificates = |path: &Path| {
            let pem = std::fs::read(path).map_err(|error| unreadable(path, error))?;
            let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
            match read {
                Ok(chain) if chain.is_empty() => Err(refused(
                    path,
                    "there is no certificate in it, in PEM".into(),
                )),
                Ok(chain) => Ok(chain),
                // The error prints bytes as numbers.
                Err(_) => Err(refused(path, "it is no PEM, or is cut short".into())),
            }
        };
        let chain = certificates(&files.certificate)?;
        let path = &files.key;
        let pem = ringflake::lease::read_private_file(path);
        let pem = pem.map_err(|error| unreadable(path, error))?;
        // The error repeats nothing of the file.
        let key = PrivateKeyDer::from_pem_slice(&pem)
            .map_err(|_| refused(path, "there is no private key in it, in PEM".into()))?;

        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(path, error.to_string()))?;
        let builder = match &files.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots
                        .add(certificate)
                        .map_err(|error| refused(path, error.to_string()))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = verifier.build();
                let verifier = verifier.map_err(|error| refused(path, error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let expires = chain.first().and_then(expiry);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        let has_expired = expires.is_some_and(|end| end <= now);
        if has_expired {
            let certificate = files.certificate.display().to_string();
            tracing::warn!(
                certificate,
                "the certificate has expired: clients refuse to connect"
            );
        }
        let resp = builder.with_single_cert(chain, key).map_err(|error| {
            let key = path.display();
            let reason = format!("it can't be used with the key in {key}: {error}");
            refused(&files.certificate, reason)
        })?;
        let mut http = resp.clone();
        http.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            resp: Arc::new(resp),
            http: Arc::new(http),
            expires,
            has_expired,
        })
    }
}

/// When a certificate expires, in Unix seconds.
fn expiry(certificate: &CertificateDer<'_>) -> Option<u64> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let validity = certificate.tbs_certificate.validity;
    Some(validity.not_after.to_unix_duration().as_secs())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ringflake_kit::tls::{Identity, allow, file};

    use super::*;

    fn files(identity: &Identity) -> TlsFiles {
        TlsFiles {
            certificate: identity.certificate(),
            key: identity.key(),
            client_ca: None,
        }
    }

    /// Why these files are refused, and which of them is named.
    #[track_caller]
    fn refusal(files: &TlsFiles) -> String {
        match Loaded::from_files(files) {
            Ok(_) => panic!("they are accepted"),
            Err(error) => {
                let source = std::error::Error::source(&error);
                let source = source.map(ToString::to_string).unwrap_or_default();
                format!("{error}: {source}")
            }
        }
    }

    #[test]
    fn http_offers_its_versions_and_the_redis_protocol_none() {
        let identity = Identity::new();
        let tls = Tls::new(Loaded::from_files(&files(&identity)).unwrap());
        let [resp, http] = Protocol::ALL.map(|protocol| tls.of(protocol));
        assert_eq!(http.alpn_protocols, [b"http/1.1"]);
        assert!(resp.alpn_protocols.is_empty());
    }

    #[test]
    fn a_file_that_is_wrong_is_refused_by_its_name() {
        let identity = Identity::new();
        let good = files(&identity);
        let of_clients = TlsFiles {
            client_ca: Some(file("ca.pem").into()),
            ..good.clone()
        };
        assert!(Loaded::from_files(&of_clients).is_ok());

        let with = |change: fn(&mut TlsFiles, &TlsFiles)| {
            let mut files = good.clone();
            change(&mut files, &good);
            allow(&files.key, 0o600);
            refusal(&files)
        };
        let other = with(|files, _| files.certificate = file("server.pem").into());
        assert!(other.contains("can't be used with the key"));
        let swapped = with(|files, good| files.certificate.clone_from(&good.key));
        assert!(swapped.contains("no certificate"));
        let no_key = with(|files, good| files.key.clone_from(&good.certificate));
        assert!(no_key.contains("no private key"));
        let no_ca = with(|files, good| files.client_ca = Some(good.key.clone()));
        assert!(no_ca.contains("client.key: there is no certificate"));
        let cut = fs::read(&good.certificate).unwrap();
        fs::write(&good.certificate, &cut[..cut.len() / 2]).unwrap();
        assert!(refusal(&good).contains("cut short: "));
        fs::write(&good.certificate, cut).unwrap();
        allow(&good.key, 0o666);
        assert!(refusal(&good).contains("chmod "));
        fs::remove_file(&good.certificate).unwrap();
        assert!(refusal(&good).contains("client.pem can't be read"));
    }
}
