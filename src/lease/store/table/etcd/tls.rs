//! Certificates for connections to etcd.

use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

use crate::lease::store::connect::certificates::{self, TlsContents};

/// How the HTTP client is set up. Without `ca` it trusts the authorities that
/// this machine knows.
///
/// # Errors
/// What to show to people.
pub(super) fn config(files: &TlsContents) -> Result<TlsConfig, String> {
    let roots = match &files.ca {
        Some(ca) => certificates::chain("ca", ca)?,
        None => certificates::of_this_machine(),
    };
    if roots.is_empty() {
        return Err("this machine knows no certificate authority: name a file with ca".into());
    }
    let own = match &files.identity {
        None => None,
        Some((cert, key)) => {
            let key = PrivateKey::from_pem(key);
            let key = key.map_err(|_| "the file of key holds no private key")?;
            let chain = owned(&certificates::chain("cert", cert)?);
            Some(ClientCert::new_with_certs(&chain, key))
        }
    };
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&owned(&roots)))
        .client_cert(own)
        .build())
}

fn owned<T: AsRef<[u8]>>(ders: &[T]) -> Vec<Certificate<'static>> {
    let certificate = |der: &T| Certificate::from_der(der.as_ref()).to_owned();
    ders.iter().map(certificate).collect()
}
