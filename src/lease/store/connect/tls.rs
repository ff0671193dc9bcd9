//! How connections are protected: when bytes may go in plain, and which certificates are used.
//!
//! A password, or a lease, goes to this machine or to a server whose certificate was verified.
//! Anything else must be asked for in the URL:
//!
//! | the URL has | to this machine | to other hosts |
//! |---|---|---|
//! | `tls=required`, `ca`, `cert`, or the scheme of a store for TLS | TLS, verified | TLS, verified |
//! | none of them | in plain | TLS, verified; refused where the store has a scheme for TLS |
//! | `tls=off` | in plain | in plain |
//!
//! For a Unix socket PostgreSQL ignores what the URL says of TLS, as libpq does. MySQL trusts the
//! public authorities beside `ca`.
//!
//! The decision is about what is dialled, not about what a certificate should say: a name may
//! lead anywhere, and is this machine's only if it is `localhost`. Files are read anew for each
//! connection, so the next connection uses a file that was replaced.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

#[cfg(any(feature = "etcd", feature = "postgres"))]
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::lease::store::connect::private_file;

/// The error where a server refuses TLS that the URL requires.
pub(crate) const HAS_NO_TLS: &str = "the server has no TLS: set it up there, or, if what is sent \
     may be read and changed on the way, write tls=off in place of all that the URL says of TLS";

/// How the connections of a URL are protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// TLS, with the chain and the host's name verified.
    Tls(TlsFiles),
    /// The URL asks for nothing, and all hosts are this machine.
    Local,
    /// In plain to any host, which the URL accepts.
    Off,
}

impl Protection {
    /// The files for TLS; none in plain.
    pub(crate) fn files(&self) -> Option<&TlsFiles> {
        match self {
            Self::Tls(files) => Some(files),
            Self::Local | Self::Off => None,
        }
    }
}

/// Whether a connection to `host` stays on this machine.
///
/// An address is one of the loopback's; other ways to write one, such as `127.1`
/// or `0.0.0.0`, are taken for somebody else's.
pub(crate) fn is_local(host: &str) -> bool {
    match host.parse() {
        Ok(IpAddr::V4(address)) => address.is_loopback(),
        Ok(IpAddr::V6(address)) => address.is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// Why a URL that asks for no TLS is refused, and what to write; `secure` is the
/// scheme that asks for it.
pub(crate) fn refusal(secure: &str) -> String {
    format!(
        "a host is not this machine, and what is sent in plain can be read and changed on the \
         way, passwords included: write {secure}:// for TLS, or accept that with tls=off"
    )
}

/// The files in which the certificates and keys of a URL are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// The authorities that are trusted.
    pub(crate) ca: Option<PathBuf>,
    /// The client's own certificate, and the key to it.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// What to show to people; also for a key that others may read or write.
    pub(crate) fn read(&self) -> Result<TlsContents, String> {
        let unreadable =
            |name: &str, error: io::Error| format!("the file of {name} can't be read: {error}");
        let read = |name, path: &Path| std::fs::read(path).map_err(|error| unreadable(name, error));
        let mut contents = TlsContents::default();
        if let Some(ca) = &self.ca {
            contents.ca = Some(read("ca", ca)?);
        }
        if let Some((cert, key)) = &self.identity {
            let cert = read("cert", cert)?;
            let key = private_file::read(key).map_err(|error| unreadable("key", error))?;
            contents.identity = Some((cert, key));
        }
        Ok(contents)
    }
}

/// A chain of certificates, and the key to the first.
type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The contents of the files when they were read, in PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct TlsContents {
    pub(crate) ca: Option<Vec<u8>>,
    /// A chain of certificates and a private key.
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsContents {
    /// Checks that the files hold what they should.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(ca) = &self.ca {
            chain("ca", ca)?;
        }
        self.identity().map(drop)
    }

    /// The authorities to trust: those of `ca`, or those that this machine knows.
    #[cfg(any(feature = "etcd", feature = "postgres"))]
    pub(crate) fn roots(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        let roots = match &self.ca {
            Some(ca) => chain("ca", ca)?,
            None => roots_of_this_machine(),
        };
        match roots.is_empty() {
            true => Err("this machine knows no certificate authority: name a file with ca".into()),
            false => Ok(roots),
        }
    }

    /// The client's own certificates, and the key to them.
    pub(crate) fn identity(&self) -> Result<Option<Identity>, String> {
        let Some((cert, key)) = &self.identity else {
            return Ok(None);
        };
        let key = PrivateKeyDer::from_pem_slice(key);
        let key = key.map_err(|_| "the file of key holds no private key")?;
        Ok(Some((chain("cert", cert)?, key)))
    }
}

/// The certificates in the contents of a file, which `parameter` of the URL names.
fn chain(parameter: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    // The error quotes a line of the file.
    let found = found.map_err(|_| format!("the file of {parameter} is no PEM"))?;
    if found.is_empty() {
        return Err(format!("the file of {parameter} holds no certificate"));
    }
    Ok(found)
}

/// The authorities that this machine knows, without those that nothing can verify
/// with. `SSL_CERT_FILE` and `SSL_CERT_DIR` name others, as for OpenSSL.
#[cfg(any(feature = "etcd", feature = "postgres"))]
fn roots_of_this_machine() -> Vec<CertificateDer<'static>> {
    let found = rustls_native_certs::load_native_certs().certs;
    let usable = |certificate: &CertificateDer<'_>| {
        let mut alone = RootCertStore::empty();
        alone.add(certificate.clone().into_owned()).is_ok()
    };
    found.into_iter().filter(usable).collect()
}

/// Installs a TLS provider unless the process has one. Some drivers take the process's, and
/// panic where there is none and the build has several.
#[cfg(any(feature = "mysql", feature = "redis"))]
pub(crate) fn install_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails if another thread was faster, and then there is one.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loopback_is_local() {
        for host in ["127.0.0.1", "127.8.9.10", "::1", "localhost", "LocalHost"] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "0.0.0.0",
            "::",
            "127.1",
            "10.0.0.1",
            "128.0.0.1",
            "::ffff:10.0.0.1",
            "localhost.example.com",
            "localhost.",
            "127.0.0.1.example.com",
            "db",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }

    fn file(name: &str) -> PathBuf {
        format!("{}/tests/data/tls/{name}", env!("CARGO_MANIFEST_DIR")).into()
    }

    /// A copy with these rights, where there are such.
    fn copy(name: &str, mode: u32) -> tempfile::NamedTempFile {
        let copy = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy(file(name), copy.path()).unwrap();
        private_file::allow(copy.path(), mode);
        copy
    }

    #[test]
    fn files_hold_certificates_and_a_key_that_nobody_else_reads() {
        let (ca, cert, open) = (
            file("ca.pem"),
            file("client.pem"),
            copy("client.key", 0o646),
        );
        let [key, no_key] = ["client.key", "client.pem"].map(|name| copy(name, 0o600));
        let [open, key, no_key] = [&open, &key, &no_key].map(|file| file.path().to_owned());
        let read = |ca: Option<&Path>, identity: Option<(&Path, &Path)>| {
            let ca = ca.map(Path::to_owned);
            let identity = identity.map(|(cert, key)| (cert.to_owned(), key.to_owned()));
            let found = TlsFiles { ca, identity }.read()?;
            found.check().map(|()| found)
        };
        let found = read(Some(&ca), Some((&cert, &key))).unwrap();
        assert_eq!(chain("ca", &found.ca.clone().unwrap()).unwrap().len(), 1);
        assert_eq!(found.identity().unwrap().unwrap().0.len(), 1);
        for (ca, identity, part) in [
            (Some(Path::new("/nowhere")), None, "ca can't be read"),
            (
                Some(Path::new("/dev/null")),
                None,
                "ca holds no certificate",
            ),
            (None, Some((&*key, &*key)), "cert holds no certificate"),
            (None, Some((&*cert, &*no_key)), "key holds no private key"),
            #[cfg(unix)]
            (None, Some((&*cert, &*open)), "key can't be read"),
            #[cfg(unix)]
            (None, Some((&*cert, &*open)), "chmod "),
        ] {
            let reason = read(ca, identity).err().unwrap();
            assert!(reason.contains(part), "{part} is not in: {reason}");
        }
    }
}
