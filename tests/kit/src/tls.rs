//! The certificates and keys of the tests, by an authority that only they know.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

pub fn file(name: &str) -> String {
    format!("{}/../data/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

pub fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(file(name)).unwrap()
}

/// The settings of a client that trusts the authority of the tests alone.
pub fn client(alpn: &[&[u8]]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate("ca.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config
}

pub fn allow(path: &Path, mode: u32) {
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(path, mode).unwrap();
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
}

#[cfg(unix)]
pub fn mode(path: &Path) -> u32 {
    std::os::unix::fs::MetadataExt::mode(&fs::metadata(path).unwrap()) & 0o777
}

pub fn only_for_us(path: &Path) {
    allow(path, 0o600);
}

/// The certificate and the key of the tests' client, in a directory of the owner alone.
pub struct Identity {
    directory: TempDir,
}

impl Identity {
    pub fn new() -> Self {
        let directory = TempDir::new().unwrap();
        for name in ["client.pem", "client.key"] {
            fs::copy(file(name), directory.path().join(name)).unwrap();
        }
        let identity = Self { directory };
        only_for_us(&identity.key());
        identity
    }

    pub fn certificate(&self) -> PathBuf {
        self.directory.path().join("client.pem")
    }

    pub fn key(&self) -> PathBuf {
        self.directory.path().join("client.key")
    }

    pub fn parameters(&self) -> String {
        let (cert, key) = (self.certificate(), self.key());
        format!("cert={}&key={}", cert.display(), key.display())
    }
}
