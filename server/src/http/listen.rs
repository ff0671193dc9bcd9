//! Accepting connections.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

use super::app::App;
use super::connection::{Protocol, Shared, serve};
use super::problem::{Kind, PROBLEM_JSON, Problem};
use super::routes;
use super::seats::{Seat, Seats};
use super::setup::{Setup, TlsConfig};
#[cfg(unix)]
use crate::clients::Client;
use crate::front::add_shared;
use crate::listener::{AcceptFailures, Listener};

/// How long to wait after an error of the system, most often that it has no more files.
const PAUSE: Duration = Duration::from_millis(50);

/// What all listeners share.
#[derive(Clone)]
pub(super) struct Listening {
    shared: Shared,
    seats: Arc<Seats>,
    tls: Option<TlsConfig>,
    /// Held by every task until its end.
    task: mpsc::Sender<Infallible>,
}

impl Listening {
    pub(super) fn new(
        setup: &Setup,
        app: Arc<App>,
        draining: watch::Receiver<bool>,
        bulk_of_one: usize,
        task: mpsc::Sender<Infallible>,
    ) -> Self {
        Self {
            seats: Arc::new(Seats::new(&setup.limits, bulk_of_one)),
            shared: Shared {
                router: routes::router(Arc::clone(&app)),
                app,
                protocol: Protocol::new(),
                draining,
                hosts: setup.known_hosts(),
            },
            tls: setup.tls.clone(),
            task,
        }
    }

    /// Accepts from this listener until the server drains, and closes it then.
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
        while let Some((stream, from)) = self.next(|| listener.accept(), &mut failures).await {
            // Answers are whole when they are written.
            let _ = stream.set_nodelay(true);
            match self.seats.admit(from.ip().into()) {
                Some(seat) => self.spawn(tcp(self.clone(), stream, seat)),
                None => {
                    self.count_turned_away();
                    if self.tls.is_none() {
                        turn_away(|answer| stream.try_write(answer));
                    }
                }
            }
        }
    }

    #[cfg(unix)]
    async fn accept_unix(self, listener: UnixListener) {
        let mut failures = AcceptFailures::default();
        while let Some((stream, _)) = self.next(|| listener.accept(), &mut failures).await {
            let user = stream.peer_cred().ok().map(|peer| peer.uid());
            match self.seats.admit(Client::User(user)) {
                Some(seat) => self.spawn(unix(self.clone(), stream, seat)),
                None => {
                    self.count_turned_away();
                    turn_away(|answer| stream.try_write(answer));
                }
            }
        }
    }

    /// The next connection; none when the server drains.
    async fn next<T, F>(&self, accept: impl Fn() -> F, failures: &mut AcceptFailures) -> Option<T>
    where
        F: Future<Output = io::Result<T>>,
    {
        let mut draining = self.shared.draining.clone();
        loop {
            let accepted = tokio::select! {
                biased;
                _ = draining.wait_for(|is_draining| *is_draining) => return None,
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

    fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let counters = &self.shared.app.counters;
        add_shared(&counters.accepted, 1);
        let (task, counters) = (self.task.clone(), Arc::clone(counters));
        // The block below would have room for it twice: as it comes, and as it is awaited.
        let connection = Box::pin(connection);
        tokio::spawn(async move {
            connection.await;
            add_shared(&counters.closed, 1);
            drop(task);
        });
    }

    fn count_turned_away(&self) {
        add_shared(&self.shared.app.counters.turned_away, 1);
    }
}

/// Whether only the connection that came is lost.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

async fn tcp(listening: Listening, stream: TcpStream, seat: Seat) {
    let Some(tls) = &listening.tls else {
        return serve(stream, seat, listening.shared).await;
    };
    let acceptor = TlsAcceptor::from(tls.load_full());
    // It is larger by far, and a connection without TLS has no room for it.
    Box::pin(tcp_with_tls(acceptor, stream, seat, listening.shared)).await;
}

async fn tcp_with_tls(acceptor: TlsAcceptor, stream: TcpStream, seat: Seat, shared: Shared) {
    let most = shared.app.limits.request_time;
    let mut draining = shared.draining.clone();
    let handshake = tokio::select! {
        done = tokio::time::timeout(most, acceptor.accept(stream)) => done,
        // No request was begun.
        _ = draining.wait_for(|is_draining| *is_draining) => return,
    };
    // One that fails or takes too long is no connection yet.
    if let Ok(Ok(stream)) = handshake {
        Box::pin(serve(stream, seat, shared)).await;
    }
}

#[cfg(unix)]
async fn unix(listening: Listening, stream: UnixStream, seat: Seat) {
    serve(stream, seat, listening.shared.of_unix()).await;
}

/// Says in few words, which fit into any socket's buffer, that there is no place.
fn turn_away(write: impl FnOnce(&[u8]) -> io::Result<usize>) {
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
    // Whoever does not read it sees the end of the connection.
    let _ = write(&answer);
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
