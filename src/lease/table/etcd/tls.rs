//! Certificates for connections to etcd.

use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use crate::lease::connect::certificates::{self, TlsContents};

/// How the HTTP client is set up. Without `ca` it trusts the authorities that
/// this machine knows.
///
/// # Errors
/// What to show to people.
pub(super) fn config(files: &TlsContents) -> Result<TlsConfig, String> {
    let roots = match &files.ca {
        Some(ca) => chain("ca", ca)?,
        None => {
            let found = certificates::of_this_machine();
            if found.is_empty() {
                return Err("this machine knows no certificate authority: \
                            name a file with ca"
                    .into());
            }
            let certificate =
                |der: &_| Certificate::from_der(AsRef::<[u8]>::as_ref(der)).to_owned();
            found.iter().map(certificate).collect()
        }
    };
    let own = match &files.identity {
        None => None,
        Some((cert, key)) => Some(ClientCert::new_with_certs(
            &chain("cert", cert)?,
            private_key(key)?,
        )),
    };
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&roots))
        .client_cert(own)
        .build())
}
fn items(name: &str, file: &[u8]) -> Result<Vec<PemItem<'static>>, String> {
    parse_pem(file)
        .collect::<Result<_, _>>()
        .map_err(|_| format!("the file of {name} is no PEM file"))
}

fn chain(name: &str, file: &[u8]) -> Result<Vec<Certificate<'static>>, String> {
    let found = items(name, file)?.into_iter();
    let found = found.filter_map(|item| match item {
        PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    });
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return Err(format!("the file of {name} holds no certificate"));
    }
    Ok(found)
}

fn private_key(file: &[u8]) -> Result<PrivateKey<'static>, String> {
    let found = items("key", file)?.into_iter();
    let mut keys = found.filter_map(|item| match item {
        PemItem::PrivateKey(key) => Some(key),
        _ => None,
    });
    keys.next()
        .ok_or_else(|| "the file of key holds no private key".into())
}
