//! How a connection is encrypted, and guarded where it is not.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto};
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::guard::Guard;
use crate::lease::store::connect::tls::{Protection, TlsFiles};
use crate::lease::store::table::failure::Cause;

/// Makes connections what their [`Protection`] says: none in plain.
#[derive(Clone)]
pub(super) struct Connector(Option<MakeRustlsConnect>);

impl Connector {
    /// Reads the files anew.
    pub(super) fn new(protection: &Protection) -> Result<Self, Cause> {
        let tls = protection.files().map(client).transpose()?;
        Ok(Self(tls.map(MakeRustlsConnect::new)))
    }
}

fn client(files: &TlsFiles) -> Result<ClientConfig, Cause> {
    // Named, because a program that links two of them has no default.
    let provider = Arc::new(crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let files = files.read()?;
    let mut roots = RootCertStore::empty();
    if roots.add_parsable_certificates(files.roots()?).0 == 0 {
        return Err("the file of ca holds no authority".into());
    }
    let config = config.with_root_certificates(roots);
    Ok(match files.identity()? {
        None => config.with_no_client_auth(),
        Some((chain, key)) => config.with_client_auth_cert(chain, key)?,
    })
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Guard;
    type TlsConnect = Handshake;
    type Error = Cause;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Cause> {
        let tls = self.0.as_mut();
        let tls = tls.map(|tls| MakeTlsConnect::<Socket>::make_tls_connect(tls, host));
        Ok(Handshake(tls.transpose()?))
    }
}

/// The beginning of one connection.
pub(super) struct Handshake(Option<<MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect>);

impl TlsConnect<Socket> for Handshake {
    type Stream = Guard;
    type Error = Cause;
    type Future = Pin<Box<dyn Future<Output = Result<Guard, Cause>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            Ok(match self.0 {
                None => Guard::plain(stream),
                Some(tls) => Guard::tls(tls.connect(stream).await?),
            })
        })
    }
}
