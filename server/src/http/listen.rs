//! Accepting connections.

use std::convert::Infallible;
use std::future::Future;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

use super::app::App;
use super::buffer_permit::{BYTES_PER_TLS_STRANGER, Budgets, ClientBudgets};
use super::connection::{Protocols, Shared, serve};
use super::cross_origin::Hosts;
use super::deadlines::Tap;
use super::problem::{Kind, PROBLEM_JSON, Problem};
use super::routes;
use super::setup::{Setup, TlsConfig};
use crate::clients::{Client, Clients};
use crate::front::add_shared;
use crate::listener::{AcceptFailures, Listener};
use crate::proxy_protocol;

/// How long to wait after an error of the system, most often that it has no more files.
const PAUSE: Duration = Duration::from_millis(50);

/// What all listeners share.
#[derive(Clone)]
pub(super) struct Listening {
    shared: Shared,
    clients: Arc<Clients>,
    budgets: Arc<Budgets>,
    tls: Option<TlsConfig>,
    proxy_protocol: bool,
    /// Held by every task until its end.
    task: mpsc::Sender<Infallible>,
}

/// A connection that counts for its client until it is dropped.
struct Admitted {
    clients: Arc<Clients>,
    client: Client,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.clients.leave(self.client);
    }
}

impl Listening {
    pub(super) fn new(
        setup: &Setup,
        app: Arc<App>,
        draining: watch::Receiver<bool>,
        task: mpsc::Sender<Infallible>,
    ) -> Self {
        Self {
            clients: Arc::new(Clients::new(&setup.limits)),
            budgets: Arc::new(Budgets::new()),
            shared: Shared {
                router: routes::router(Arc::clone(&app)),
                protocols: Protocols::new(app.limits.request_time),
                app,
                draining,
                hosts: setup.known_hosts(),
            },
            tls: setup.tls.clone(),
            proxy_protocol: setup.proxy_protocol,
            task,
        }
    }

    /// Accepts from this listener until the server has drained, and closes it then.
    ///
    /// # Errors
    ///
    /// When it can't be used without blocking.
    pub(super) fn accept_from(
        self,
        listener: Listener,
    ) -> io::Result<Pin<Box<dyn Future<Output = ()> + Send>>> {
        match listener {
            Listener::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                let listener = TcpListener::from_std(listener)?;
                Ok(Box::pin(self.accept_tcp(listener)))
            }
            #[cfg(unix)]
            Listener::Unix(listener) => {
                listener.set_nonblocking(true)?;
                let listener = UnixListener::from_std(listener)?;
                Ok(Box::pin(self.accept_unix(listener)))
            }
        }
    }

    async fn accept_tcp(self, listener: TcpListener) {
        let mut failures = AcceptFailures::default();
        let mut drained = Box::pin(self.drained());
        let mut next = async || {
            self.next(|| listener.accept(), &mut failures, &mut drained)
                .await
        };
        while let Some((stream, from)) = next().await {
            // Answers are whole when they are written.
            let _ = stream.set_nodelay(true);
            let client = from.ip().into();
            match self.admit(client) {
                Some(admitted) if self.proxy_protocol => {
                    self.spawn(proxied(self.clone(), stream, client, admitted), None);
                }
                Some(admitted) => self.spawn(tcp(self.clone(), stream, client), Some(admitted)),
                None if self.tls.is_none() => turn_away(stream.into_std()),
                None => {}
            }
        }
    }

    #[cfg(unix)]
    async fn accept_unix(self, listener: UnixListener) {
        let mut failures = AcceptFailures::default();
        let mut drained = Box::pin(self.drained());
        let mut next = async || {
            self.next(|| listener.accept(), &mut failures, &mut drained)
                .await
        };
        while let Some((stream, _)) = next().await {
            let client = Client::User(stream.peer_cred().ok().map(|peer| peer.uid()));
            match self.admit(client) {
                Some(admitted) => self.spawn(unix(self.clone(), stream, client), Some(admitted)),
                None => turn_away(stream.into_std()),
            }
        }
    }

    /// Counts one more connection of this client, if it may have one.
    fn admit(&self, client: Client) -> Option<Admitted> {
        if self.clients.enter(client) {
            let clients = Arc::clone(&self.clients);
            return Some(Admitted { clients, client });
        }
        add_shared(&self.shared.app.counters.turned_away, 1);
        None
    }

    /// Waits until the server has drained for its `drain_time`.
    fn drained(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut draining = self.shared.draining.clone();
        let time = self.shared.app.times.drain;
        async move { drained(&mut draining, time).await }
    }

    /// The next connection; none once `drained` is over. Clients that connect until then get an
    /// answer, and no reset.
    async fn next<T, F>(
        &self,
        accept: impl Fn() -> F,
        failures: &mut AcceptFailures,
        drained: &mut (impl Future<Output = ()> + Unpin),
    ) -> Option<T>
    where
        F: Future<Output = io::Result<T>>,
    {
        loop {
            let accepted = tokio::select! {
                biased;
                // Polled first, and kept from one connection to the next: clients reconnect at once
                // after `Connection: close`, and would keep the listener open.
                () = &mut *drained => return None,
                accepted = accept() => accepted,
            };
            match accepted {
                Ok(accepted) => return Some(accepted),
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    failures.warn("http", &error);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn spawn(
        &self,
        connection: impl Future<Output = ()> + Send + 'static,
        admitted: Option<Admitted>,
    ) {
        let counters = &self.shared.app.counters;
        add_shared(&counters.accepted, 1);
        let (task, counters) = (self.task.clone(), Arc::clone(counters));
        // The block below would have room for it twice: as it comes, and as it is awaited.
        let connection = Box::pin(connection);
        tokio::spawn(async move {
            connection.await;
            drop(admitted);
            add_shared(&counters.closed, 1);
            drop(task);
        });
    }
}

/// Waits until the server has drained for its `drain_time`.
async fn drained(draining: &mut watch::Receiver<bool>, time: Duration) {
    let _ = draining.wait_for(|draining| *draining).await;
    tokio::time::sleep(time).await;
}

/// Whether only the connection that came is lost.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

/// A connection of a proxy, for the client that it names.
async fn proxied(listening: Listening, mut stream: TcpStream, proxy: Client, admitted: Admitted) {
    let app = &listening.shared.app;
    let mut draining = listening.shared.draining.clone();
    let header = proxy_protocol::read_header(&mut stream);
    let header = tokio::select! {
        header = tokio::time::timeout(app.limits.request_time, header) => header,
        () = drained(&mut draining, app.times.drain) => return,
    };
    // A peer that sends no header is not a proxy, and would not understand a response.
    let Ok(Ok(address)) = header else {
        return;
    };
    let Some(address) = address else {
        // Health checks of the proxy itself.
        let _admitted = admitted;
        return tcp(listening, stream, proxy).await;
    };
    drop(admitted);
    let client = address.ip().into();
    match listening.admit(client) {
        Some(_admitted) => tcp(listening, stream, client).await,
        None if listening.tls.is_none() => turn_away(stream.into_std()),
        None => {}
    }
}

async fn tcp(listening: Listening, stream: TcpStream, client: Client) {
    let budgets = listening.budgets.client(client);
    let Some(tls) = &listening.tls else {
        return serve(stream, Tap::default(), None, budgets, listening.shared).await;
    };
    let acceptor = TlsAcceptor::from(tls.load_full());
    // It is larger by far, and a connection without TLS has no room for it.
    Box::pin(with_tls(acceptor, stream, budgets, listening.shared)).await;
}

async fn with_tls(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    budgets: ClientBudgets,
    shared: Shared,
) {
    let most = shared.app.limits.request_time;
    let tap = Tap::default();
    let stream = tap.inspect(stream);
    let mut draining = shared.draining.clone();
    let handshake = async {
        // Waiting for a permit counts as part of the handshake.
        let permit = budgets.strangers.acquire(BYTES_PER_TLS_STRANGER).await?;
        Some((acceptor.accept(stream).await.ok()?, permit))
    };
    let handshake = tokio::select! {
        done = tokio::time::timeout(most, handshake) => done,
        // No request has begun.
        () = drained(&mut draining, shared.app.times.drain) => return,
    };
    // A handshake that fails or takes too long makes no connection.
    if let Ok(Some((stream, permit))) = handshake {
        Box::pin(serve(stream, tap, Some(permit), budgets, shared)).await;
    }
}

#[cfg(unix)]
async fn unix(listening: Listening, stream: UnixStream, client: Client) {
    let budgets = listening.budgets.client(client);
    let shared = Shared {
        // No web page can connect to a Unix socket.
        hosts: Hosts::All,
        ..listening.shared
    };
    serve(stream, Tap::default(), None, budgets, shared).await;
}

/// Sends a response to a client that is turned away, short enough for any socket's buffer. It
/// does not wait, and not for the runtime's events either.
fn turn_away(stream: io::Result<impl Write>) {
    let detail = "there are as many connections as there may be, of all clients or of this one: \
                  close some, or try again";
    let body = Problem::new(Kind::BUSY, detail)
        .retry_after(Duration::from_secs(1))
        .to_json();
    let mut answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: {PROBLEM_JSON}\r\ncontent-length: {}\r\n\
         retry-after: 1\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(&body);
    // A client that does not read the response sees the end of the connection.
    let _ = stream.and_then(|mut stream| stream.write(&answer));
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn what_only_one_connection_meets_is_no_failure_of_the_listener() {
        for (kind, is_one) in [
            (ErrorKind::ConnectionAborted, true),
            (ErrorKind::ConnectionRefused, true),
            (ErrorKind::ConnectionReset, true),
            (ErrorKind::Interrupted, true),
            (ErrorKind::OutOfMemory, false),
            (ErrorKind::Other, false),
        ] {
            assert_eq!(is_of_connection(&kind.into()), is_one, "{kind}");
        }
    }
}
