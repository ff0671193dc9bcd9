//! Certificates: those of the authorities that this machine knows, and those in
//! files. Nothing is kept, so that what is renewed is taken up by the next
//! connection.

use std::io;
use std::path::{Path, PathBuf};

#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres"))]
use rustls::RootCertStore;
#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres"))]
use rustls::pki_types::CertificateDer;

use crate::lease::store::connect::private_file;

/// The authorities that this machine knows, without those that nothing can verify
/// with. `SSL_CERT_FILE` and `SSL_CERT_DIR` name others, as for OpenSSL.
#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres"))]
pub(crate) fn of_this_machine() -> Vec<CertificateDer<'static>> {
    let found = rustls_native_certs::load_native_certs().certs;
    let usable = |certificate: &CertificateDer<'_>| {
        let mut alone = RootCertStore::empty();
        alone.add(certificate.clone().into_owned()).is_ok()
    };
    found.into_iter().filter(usable).collect()
}

/// The certificates in the contents of a file, which `parameter` of the URL names.
///
/// # Errors
/// What to show to people.
#[cfg(any(feature = "etcd", feature = "postgres"))]
pub(crate) fn chain(parameter: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    use rustls::pki_types::pem::PemObject;

    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| format!("the file of {parameter} is no PEM: {error}"))?;
    if found.is_empty() {
        return Err(format!("the file of {parameter} holds no certificate"));
    }
    Ok(found)
}

/// Installs a TLS provider unless the process has one. Some drivers take the process's, and
/// panic where there is none and the build has several.
#[cfg(any(feature = "mysql", feature = "redis"))]
pub(crate) fn install_tls_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails if another thread was faster, and then there is one.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// The contents of the file at `path`, which `parameter` of the URL names.
///
/// # Errors
/// What to show to people.
pub(crate) fn read(parameter: &str, path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| unreadable(parameter, &error))
}

/// As [`read`], of a private key: not where others may read or write it.
///
/// # Errors
/// What to show to people.
pub(crate) fn read_key(parameter: &str, path: &Path) -> Result<Vec<u8>, String> {
    private_file::read(path).map_err(|error| unreadable(parameter, &error))
}

/// Sees that others may neither read nor write the private key at `path`, which the
/// driver reads by itself.
///
/// # Errors
/// What to show to people.
pub(crate) fn check_key(parameter: &str, path: &Path) -> Result<(), String> {
    private_file::look_at(path).map_err(|error| unreadable(parameter, &error))
}

/// The files in which the certificates and keys of a URL are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// The authorities that are trusted.
    pub(crate) ca: Option<PathBuf>,
    /// The client's own certificate, and the key to it.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

/// The contents of the files when they were read.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TlsContents {
    pub(crate) ca: Option<Vec<u8>>,
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsFiles {
    /// Whether the URL names none.
    pub(crate) fn is_empty(&self) -> bool {
        self.ca.is_none() && self.identity.is_none()
    }

    /// # Errors
    /// What to show to people.
    pub(crate) fn read(&self) -> Result<TlsContents, String> {
        let ca = self.ca.as_ref().map(|ca| read("ca", ca));
        let identity = match &self.identity {
            None => None,
            Some((cert, key)) => Some((read("cert", cert)?, read_key("key", key)?)),
        };
        Ok(TlsContents {
            ca: ca.transpose()?,
            identity,
        })
    }
}

fn unreadable(parameter: &str, error: &io::Error) -> String {
    format!("the file of {parameter} can't be read: {error}")
}
