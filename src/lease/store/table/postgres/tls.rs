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
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::guard::Guard;
use crate::lease::store::connect::certificates;
use crate::lease::store::table::session::Cause;

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

/// The trusted certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Everybody's: the connection is encrypted, to whom is not known.
    Anybody,
    /// Those of the authorities that this machine knows.
    System,
    /// Those of the authorities in this PEM file.
    File(String),
}

/// How a connection over TCP is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Protection {
    pub(super) encryption: Encryption,
    pub(super) trust: Trust,
    /// PEM files with the client's own certificate, and the key to it.
    pub(super) identity: Option<(String, String)>,
}

impl Protection {
    fn client(&self) -> Result<ClientConfig, Cause> {
        // Named, because a program that links two of them has no default.
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let roots = match &self.trust {
            Trust::Anybody => None,
            Trust::System => Some(certificates::of_this_machine()),
            Trust::File(path) => Some(pem("sslrootcert", path)?),
        };
        let config = match roots {
            None => config
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Anybody(provider))),
            Some(found) => {
                let mut roots = RootCertStore::empty();
                if roots.add_parsable_certificates(found).0 == 0 {
                    return Err("no certificate authority is known here: \
                                name a file with sslrootcert"
                        .into());
                }
                config.with_root_certificates(roots)
            }
        };
        let Some((certificate, key)) = &self.identity else {
            return Ok(config.with_no_client_auth());
        };
        let chain = pem("sslcert", certificate)?;
        let key = certificates::read_key("sslkey", key.as_ref())?;
        let key = PrivateKeyDer::from_pem_slice(&key)
            .map_err(|error| format!("the file of sslkey holds no key: {error}"))?;
        Ok(config.with_client_auth_cert(chain, key)?)
    }

    /// Reads the files anew.
    ///
    /// # Errors
    /// When one of them can't be used.
    pub(super) fn connector(&self) -> Result<Connector, Cause> {
        Ok(Connector {
            encryption: self.encryption,
            verified: self.trust != Trust::Anybody,
            tls: MakeRustlsConnect::new(self.client()?),
        })
    }
}

/// Makes connections what their [`Protection`] says.
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
                ([b'N'], _) => Err("the server has no TLS: set ssl = on there, or, if what is \
                                    sent may be read and changed on the way, write \
                                    sslmode=disable"
                    .into()),
                _ => Err(Error::new(ErrorKind::InvalidData, "this is no PostgreSQL").into()),
            }
        })
    }
}

fn pem(parameter: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    certificates::chain(parameter, &certificates::read(parameter, path.as_ref())?)
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
