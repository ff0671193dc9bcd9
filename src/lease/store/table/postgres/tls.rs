//! How a connection is encrypted.
//!
//! The request for TLS is sent here and not by the driver, so that a connection that
//! is not encrypted passes through the [`Guard`], too.

use std::future::Future;
use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{self, CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::guard::Guard;
use crate::lease::store::connect::tls::{HAS_NO_TLS, TlsFiles};
use crate::lease::store::table::failure::Cause;

/// "May we speak TLS?", of which a server answers S or N.
const REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Whether a connection over TCP is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    Never,
    /// If the server has it.
    Preferred,
    Always,
}

/// How a connection over TCP is protected.
#[derive(Clone, Debug)]
pub(super) struct PgTls {
    pub(super) encryption: Encryption,
    /// Whether the server must show that it is the one that was named.
    pub(super) is_verified: bool,
    pub(super) files: TlsFiles,
}

impl PgTls {
    pub(super) fn unverified(encryption: Encryption, files: TlsFiles) -> Self {
        Self {
            encryption,
            is_verified: false,
            files,
        }
    }

    fn client(&self) -> Result<ClientConfig, Cause> {
        // Named, because a program that links two of them has no default.
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let files = self.files.read()?;
        let config = if self.is_verified {
            let mut roots = RootCertStore::empty();
            if roots.add_parsable_certificates(files.roots()?).0 == 0 {
                return Err("the file of ca holds no authority".into());
            }
            config.with_root_certificates(roots)
        } else {
            config
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        };
        Ok(match files.identity()? {
            None => config.with_no_client_auth(),
            Some((chain, key)) => config.with_client_auth_cert(chain, key)?,
        })
    }

    /// Reads the files anew.
    pub(super) fn connector(&self) -> Result<Connector, Cause> {
        Ok(Connector {
            encryption: self.encryption,
            verified: self.is_verified,
            tls: MakeRustlsConnect::new(self.client()?),
        })
    }
}

/// Makes connections what their [`PgTls`] says.
#[derive(Clone)]
pub(super) struct Connector {
    encryption: Encryption,
    verified: bool,
    tls: MakeRustlsConnect,
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Guard;
    type TlsConnect = Handshake;
    type Error = Cause;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Cause> {
        Ok(Handshake {
            encryption: self.encryption,
            verified: self.verified,
            tls: MakeTlsConnect::<Socket>::make_tls_connect(&mut self.tls, host)?,
        })
    }
}

/// The beginning of one connection.
pub(super) struct Handshake {
    encryption: Encryption,
    verified: bool,
    tls: <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Guard;
    type Error = Cause;
    type Future = Pin<Box<dyn Future<Output = Result<Guard, Cause>> + Send>>;

    fn connect(self, mut stream: Socket) -> Self::Future {
        Box::pin(async move {
            if self.encryption == Encryption::Never {
                return Ok(Guard::plain(stream));
            }
            stream.write_all(&REQUEST).await?;
            // One byte and no more: what follows it must come encrypted.
            let mut answer = [0];
            stream.read_exact(&mut answer).await?;
            match (answer, self.encryption) {
                ([b'S'], _) => {
                    let stream = self.tls.connect(stream).await?;
                    Ok(Guard::tls(stream, self.verified))
                }
                ([b'N'], Encryption::Preferred) => Ok(Guard::plain(stream)),
                ([b'N'], _) => Err(HAS_NO_TLS.into()),
                _ => Err(Error::new(ErrorKind::InvalidData, "this is no PostgreSQL").into()),
            }
        })
    }
}

/// Accepts every certificate, if the peer has its key.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
