//! Certificates: those of the authorities that this machine knows, and those in
//! files. Nothing is kept, so that what is renewed is taken up by the next
//! connection.

use std::io;
use std::path::Path;

#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres"))]
use rustls::RootCertStore;
#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres"))]
use rustls::pki_types::CertificateDer;

use crate::lease::stores::private_file;

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

/// What the file at `path` holds, which `parameter` of the URL names.
///
/// # Errors
/// What to show to people.
#[cfg(any(feature = "etcd", feature = "postgres", feature = "redis"))]
pub(crate) fn read(parameter: &str, path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| unreadable(parameter, &error))
}

/// As [`read`], of a private key: not where others may read or write it.
///
/// # Errors
/// What to show to people.
#[cfg(any(feature = "etcd", feature = "postgres", feature = "redis"))]
pub(crate) fn read_key(parameter: &str, path: &Path) -> Result<Vec<u8>, String> {
    private_file::read(path).map_err(|error| unreadable(parameter, &error))
}

/// Sees that others may neither read nor write the private key at `path`, which the
/// driver reads by itself.
///
/// # Errors
/// What to show to people.
#[cfg(feature = "mysql")]
pub(crate) fn check_key(parameter: &str, path: &Path) -> Result<(), String> {
    private_file::look_at(path).map_err(|error| unreadable(parameter, &error))
}

fn unreadable(parameter: &str, error: &io::Error) -> String {
    format!("the file of {parameter} can't be read: {error}")
}
