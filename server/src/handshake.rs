//! The start of a TCP connection, before its first request: the header of a proxy, and the TLS
//! handshake.
//!
//! Neither failure has a response that a client could read, so the log has each cause once a
//! minute. A peer that closes the connection is not logged: health checks do.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::buffer_budget::{BufferPermit, ClientBudget};
use crate::clients::Client;
use crate::config::Protocol;
use crate::counters::{Counters, add_shared};
use crate::log_limit::LogLimit;
use crate::proxy_protocol;

/// The most memory of a connection with TLS before its first authorized request, measured: the
/// longest message of the handshake that never ends.
pub(crate) const TLS_STRANGER_BYTES: usize = 76 << 10;

#[derive(Debug)]
pub(crate) struct Handshakes {
    protocol: Protocol,
    log: LogLimit,
}

impl Handshakes {
    pub(crate) fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            log: LogLimit::default(),
        }
    }

    /// Reads the header of a proxy: the address that it names, if any.
    ///
    /// # Errors
    /// The stream's, or there is no header.
    pub(crate) async fn read_header(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        peer: Client,
    ) -> io::Result<Option<SocketAddr>> {
        let header = proxy_protocol::read_header(stream).await;
        header.inspect_err(|error| self.failed("PROXY header", peer, error))
    }

    /// Waits for memory, which is returned with the permit, and does the handshake. The caller
    /// bounds the time.
    pub(crate) async fn accept_tls<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        config: Arc<ServerConfig>,
        stream: S,
        budget: &ClientBudget,
        counters: &Counters,
    ) -> Option<(TlsStream<S>, BufferPermit)> {
        let permit = match budget.try_acquire(TLS_STRANGER_BYTES) {
            Some(permit) => permit,
            None => {
                self.delayed(budget.client(), counters);
                budget.acquire(TLS_STRANGER_BYTES).await?
            }
        };
        let accepted = TlsAcceptor::from(config).accept(stream).await;
        let accepted = accepted
            .inspect_err(|error| self.failed("TLS handshake", budget.client(), error))
            .ok()?;
        Some((accepted, permit))
    }

    fn delayed(&self, peer: Client, counters: &Counters) {
        add_shared(&counters.handshakes_delayed, 1);
        if let Some(suppressed) = self.log.permit("delayed") {
            tracing::warn!(
                protocol = self.protocol.name(),
                %peer,
                suppressed,
                "TLS handshake waits: too many connections have sent no authorized request yet"
            );
        }
    }

    fn failed(&self, what: &'static str, peer: Client, error: &io::Error) {
        if error.kind() != ErrorKind::InvalidData {
            return;
        }
        if let Some(suppressed) = self.log.permit(what) {
            tracing::warn!(
                protocol = self.protocol.name(),
                %peer,
                %error,
                suppressed,
                "{what} rejected"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use ringflake_kit::events::said;
    use ringflake_kit::tls::Identity;
    use tokio::io::{join, sink};
    use tokio::time::timeout;

    use super::*;
    use crate::buffer_budget::BufferBudget;
    use crate::config::TlsFiles;
    use crate::tls::{Loaded, Tls};

    const CLIENT: Client = Client::V4([192, 0, 2, 1]);

    #[test]
    fn a_failure_is_logged_by_its_cause_and_a_health_check_is_not() {
        let identity = Identity::new();
        let tls = Tls::new(
            Loaded::from_files(&TlsFiles {
                certificate: identity.certificate(),
                key: identity.key(),
                client_ca: None,
            })
            .unwrap(),
        );
        let handshakes = Handshakes::new(Protocol::Http);
        // For one of them.
        let budget = BufferBudget::new(2 * TLS_STRANGER_BYTES).client(CLIENT);
        let counters = Counters::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let begin = |mut bytes: &'static [u8]| {
            runtime.block_on(async {
                let stream = join(bytes, sink());
                let config = tls.of(Protocol::Http);
                let done = handshakes.accept_tls(config, stream, &budget, &counters);
                let done = timeout(Duration::from_millis(1), done).await;
                assert!(!done.is_ok_and(|done| done.is_some()));
                let header = handshakes.read_header(&mut bytes, CLIENT).await;
                header.unwrap_err();
            });
        };
        assert_eq!(said(|| begin(b"")), [""; 0]);
        let lines = said(|| {
            begin(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
            begin(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
            let _held = budget.try_acquire(1);
            begin(b"");
            begin(b"");
        });
        let expected = ["TLS handshake rejected", "PROXY header rejected", "waits"];
        assert_eq!(lines.len(), expected.len(), "{lines:?}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.contains(expected), "{line}");
            assert!(line.contains("192.0.2.1"), "{line}");
        }
        assert_eq!(counters.handshakes_delayed.load(Relaxed), 2);
    }
}
