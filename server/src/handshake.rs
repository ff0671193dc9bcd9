//! What precedes the requests of a connection, and what follows them: its place in the table of
//! clients, the header of a proxy, the TLS handshake, and an end that loses no answer.
//!
//! A failed header or handshake has no response that a client could read, so the log has each
//! cause once a minute. A peer that closes the connection is not logged: health checks do.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::buffer_budget::{BufferPermit, ClientBudget};
use crate::clients::{Client, Clients};
use crate::config::Protocol;
use crate::counters::{Counters, add_shared};
use crate::listener::Stream;
use crate::lock::lock;
use crate::log_limit::LogLimit;
use crate::proxy_protocol;
use crate::setup::Setup;
use crate::tls::Tls;

/// The most memory of a connection with TLS before its first authorized request, measured: the
/// longest message of the handshake that never ends.
pub(crate) const TLS_STRANGER_BYTES: usize = 76 << 10;

/// How long a connection that ends waits for the client to close its side. If it were closed while
/// input is unread, the system would drop the end of the answer.
pub(crate) const LINGER: Duration = Duration::from_millis(500);

/// Ends the output, a TLS session properly, and discards input until the client closes.
pub(crate) async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin, patience: Duration) {
    if let Ok(Ok(())) = timeout(patience, stream.shutdown()).await {
        let mut discarded = [0; 2048];
        let ended = async { while matches!(stream.read(&mut discarded).await, Ok(1..)) {} };
        let _ = timeout(LINGER, ended).await;
    }
}

/// The start of the connections of one protocol.
pub(crate) struct Handshakes {
    protocol: Protocol,
    /// Whether TCP connections begin with the header of a proxy.
    proxy_protocol: bool,
    tls: Option<Arc<Tls>>,
    request_time: Duration,
    draining: watch::Receiver<bool>,
    drain_time: Duration,
    clients: Clients,
    counters: Arc<Counters>,
    /// Response to a client that is turned away.
    full: Vec<u8>,
    log: LogLimit,
    /// Its drop ends [`Tasks`].
    _task: mpsc::Sender<Infallible>,
}

/// The listeners and connections that use a [`Handshakes`].
pub(crate) struct Tasks(Mutex<mpsc::Receiver<Infallible>>);

impl Tasks {
    /// Waits for the end of all of them until `deadline`. Returns whether it came.
    pub(crate) fn join(&self, deadline: Instant) -> bool {
        let patience = deadline.saturating_duration_since(Instant::now());
        lock(&self.0).recv_timeout(patience) == Err(RecvTimeoutError::Disconnected)
    }
}

impl Handshakes {
    /// Connections begin for `drain_time` after the drain has begun.
    pub(crate) fn new(
        protocol: Protocol,
        setup: &Setup,
        drain_time: Duration,
        full: Vec<u8>,
    ) -> (Arc<Self>, Tasks) {
        let (task, tasks) = mpsc::channel();
        let handshakes = Self {
            protocol,
            proxy_protocol: setup.config.proxy_protocol,
            tls: setup.tls.clone(),
            request_time: setup.limits.request_time,
            draining: setup.drain.subscribe(),
            drain_time,
            clients: Clients::new(&setup.limits),
            counters: Arc::clone(&setup.counters[0]),
            full,
            log: LogLimit::default(),
            _task: task,
        };
        (Arc::new(handshakes), Tasks(Mutex::new(tasks)))
    }

    /// Waits until no connection begins any more.
    pub(crate) async fn drained(&self) {
        let _ = self.draining.clone().wait_for(|begun| *begun).await;
        if !self.drain_time.is_zero() {
            tokio::time::sleep(self.drain_time).await;
        }
    }

    /// Gives a connection its place in the table, or turns it away.
    pub(crate) fn admit(
        self: &Arc<Self>,
        stream: Stream,
        client: Client,
    ) -> Option<(Stream, Admission)> {
        let is_proxied = self.proxy_protocol && matches!(stream, Stream::Tcp(_));
        let client = (!is_proxied).then_some(client);
        if !self.clients.enter(client) {
            self.turn_away(stream);
            return None;
        }
        add_shared(&self.counters.accepted, 1);
        let handshakes = Arc::clone(self);
        Some((stream, Admission { client, handshakes }))
    }

    fn turn_away(&self, stream: Stream) {
        add_shared(&self.counters.turned_away, 1);
        stream.turn_away(self.has_tls(), &self.full);
    }

    /// `None` if it takes longer than a request may, or if the server has drained first.
    async fn within<T>(&self, beginning: impl Future<Output = Option<T>>) -> Option<T> {
        tokio::select! {
            biased;
            begun = timeout(self.request_time, beginning) => begun.ok().flatten(),
            () = self.drained() => None,
        }
    }

    /// Reads the header of a proxy: the address that it names, if any.
    async fn read_header(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        peer: Client,
    ) -> Option<Option<SocketAddr>> {
        let header = proxy_protocol::read_header(stream).await;
        header
            .inspect_err(|error| self.failed("PROXY header", peer, error))
            .ok()
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Waits for memory, which is returned with the permit, and does the TLS handshake.
    pub(crate) async fn accept_tls<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        budget: &ClientBudget,
    ) -> Option<(TlsStream<S>, BufferPermit)> {
        // Waiting for memory counts as part of the handshake.
        let handshake = async {
            let config = self.tls.as_ref()?.of(self.protocol);
            let permit = match budget.try_acquire(TLS_STRANGER_BYTES) {
                Some(permit) => permit,
                None => {
                    self.delayed(budget.client());
                    budget.acquire(TLS_STRANGER_BYTES).await?
                }
            };
            let accepted = TlsAcceptor::from(config).accept(stream).await;
            let accepted = accepted
                .inspect_err(|error| self.failed("TLS handshake", budget.client(), error))
                .ok()?;
            Some((accepted, permit))
        };
        // Pinned, it is stored once.
        self.within(std::pin::pin!(handshake)).await
    }

    fn delayed(&self, peer: Client) {
        add_shared(&self.counters.handshakes_delayed, 1);
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

/// The place of an open connection in the table of clients, which is freed on drop.
pub(crate) struct Admission {
    /// `None` until the header of a proxy has named it. Until then the connection counts only in
    /// the table.
    client: Option<Client>,
    pub(crate) handshakes: Arc<Handshakes>,
}

impl Admission {
    /// Reads the header of a proxy, where the settings say that there is one, and counts the
    /// connection for the client that it names. Returns that address, if any; `None` if the
    /// connection ends.
    pub(crate) async fn identify(
        &mut self,
        mut stream: TcpStream,
        proxy: Client,
    ) -> Option<(TcpStream, Option<SocketAddr>)> {
        if self.client.is_some() {
            return Some((stream, None));
        }
        let handshakes = &self.handshakes;
        // A peer that sends no header is not a proxy, and would not understand a response.
        let header = handshakes.within(handshakes.read_header(&mut stream, proxy));
        let address = Box::pin(header).await?;
        // No address is a health check of the proxy itself.
        let client = address.map_or(proxy, |address| address.ip().into());
        if !handshakes.clients.identify(client) {
            handshakes.turn_away(Stream::Tcp(stream));
            return None;
        }
        self.client = Some(client);
        Some((stream, address))
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.handshakes.clients.leave(self.client);
        add_shared(&self.handshakes.counters.closed, 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use ringflake_kit::events::said;
    use ringflake_kit::tls::Identity;
    use tokio::io::{join, sink};

    use super::*;
    use crate::access::Access;
    use crate::buffer_budget::BufferBudget;
    use crate::config::TlsFiles;
    use crate::namespaces::{Namespaces, OpenError};
    use crate::tls::Loaded;

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
        let namespaces = Namespaces::new(Box::new(|_| Err(OpenError::Unknown)), 1);
        let mut setup = Setup::of(Access::open(), namespaces);
        setup.tls = Some(Arc::new(tls));
        setup.limits.request_time = Duration::from_millis(1);
        let (handshakes, _tasks) =
            Handshakes::new(Protocol::Http, &setup, Duration::ZERO, Vec::new());
        // For one of them.
        let budget = BufferBudget::new(2 * TLS_STRANGER_BYTES).client(CLIENT);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let begin = |mut bytes: &'static [u8]| {
            runtime.block_on(async {
                let stream = join(bytes, sink());
                assert!(handshakes.accept_tls(stream, &budget).await.is_none());
                let header = handshakes.read_header(&mut bytes, CLIENT);
                assert!(header.await.is_none());
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
        assert_eq!(setup.counters[0].handshakes_delayed.load(Relaxed), 2);
    }
}
