//! Accept loops: one task for each listener, on the first worker.

use std::convert::Infallible;
use std::io::{self, ErrorKind, Write as _};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::budget::Share;
use super::connection;
use super::context::Shared;
use super::session::Session;
use crate::clients::Client;
use crate::front::add_shared;
use crate::listener::{AcceptFailures, Listener};
use crate::proxy_protocol;

/// The current certificate and TLS settings.
pub(crate) type Tls = Arc<ArcSwap<ServerConfig>>;

/// How long accepting pauses when the process has no file descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

/// Response to a client that is turned away.
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
}

/// An accepted connection that is not registered with a runtime yet.
enum Stream {
    Tcp(std::net::TcpStream),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

/// A place in the connection table. Dropping it frees the place.
pub(super) struct Admission {
    /// `None` once its place is free.
    client: Option<Client>,
    /// Of its session.
    number: u64,
    shared: Arc<Shared>,
    /// `Frontend::join` waits until the last one is dropped.
    _task: mpsc::Sender<Infallible>,
}

impl Admission {
    /// `None` if the table is full, or the client has its share of it.
    fn new(client: Client, shared: &Arc<Shared>, task: &mpsc::Sender<Infallible>) -> Option<Self> {
        let counters = shared.accept_counters();
        if !shared.clients.enter(client) {
            add_shared(&counters.turned_away, 1);
            return None;
        }
        add_shared(&counters.accepted, 1);
        Some(Self {
            client: Some(client),
            number: shared.next_session(),
            shared: Arc::clone(shared),
            _task: task.clone(),
        })
    }

    /// Its share of the memory of all connections. `None` if it has no place.
    fn share(&self) -> Option<Share> {
        Some(self.shared.budget.share(self.client?))
    }

    /// Moves the place to another client. Returns whether that one may have one more.
    fn transfer(&mut self, client: Client) -> bool {
        let clients = &self.shared.clients;
        if let Some(before) = self.client.take() {
            clients.leave(before);
        }
        self.client = clients.enter(client).then_some(client);
        if self.client.is_none() {
            add_shared(&self.shared.accept_counters().turned_away, 1);
        }
        self.client.is_some()
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(client) = self.client {
            self.shared.clients.leave(client);
        }
        add_shared(&self.shared.accept_counters().closed, 1);
    }
}

/// Accepts from `listener` until the drain begins, and spawns connections on the workers in
/// turn.
///
/// # Errors
/// The listener can't be registered with the current runtime.
pub(super) fn accept_from(
    listener: Listener,
    tls: Option<Tls>,
    shared: Arc<Shared>,
    workers: Arc<[Handle]>,
    mut draining: watch::Receiver<bool>,
    task: mpsc::Sender<Infallible>,
) -> io::Result<impl Future<Output = ()> + Send> {
    let socket = match listener {
        Listener::Tcp(socket) => {
            socket.set_nonblocking(true)?;
            Socket::Tcp(TcpListener::from_std(socket)?)
        }
        #[cfg(unix)]
        Listener::Unix(socket) => {
            socket.set_nonblocking(true)?;
            Socket::Unix(UnixListener::from_std(socket)?)
        }
    };
    Ok(async move {
        let mut failures = AcceptFailures::default();
        let drain = draining.clone();
        loop {
            let accepted = tokio::select! {
                biased;
                _ = draining.wait_for(|begun| *begun) => return,
                accepted = socket.accept() => accepted,
            };
            match accepted {
                Ok((stream, client, peer)) => {
                    if let Some(admission) = Admission::new(client, &shared, &task) {
                        let session = Session::new(admission.number, peer, &shared);
                        spawn(stream, tls.as_ref(), session, admission, &workers, &drain);
                    } else {
                        turn_away(stream, tls.is_some());
                    }
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    failures.warn("resp", &error);
                    sleep(PAUSE).await;
                }
            }
        }
    })
}

fn turn_away(stream: Stream, has_tls: bool) {
    // Best effort: the reply is lost if the socket does not accept it at once.
    match stream {
        Stream::Tcp(mut socket) if !has_tls => drop(socket.write(FULL)),
        Stream::Tcp(_) => {}
        #[cfg(unix)]
        Stream::Unix(mut socket) => drop(socket.write(FULL)),
    }
}

fn spawn(
    stream: Stream,
    tls: Option<&Tls>,
    mut session: Session,
    mut admission: Admission,
    workers: &[Handle],
    draining: &watch::Receiver<bool>,
) {
    let worker = &workers[session.number as usize % workers.len()];
    let mut draining = draining.clone();
    match (stream, tls) {
        (Stream::Tcp(socket), None) => drop(worker.spawn(async move {
            let shared = Arc::clone(&admission.shared);
            if let Ok(mut stream) = TcpStream::from_std(socket)
                && is_identified(&mut stream, &mut session, &mut admission, &mut draining).await
                && let Some(share) = admission.share()
            {
                connection::serve(stream, session, share, &shared, draining).await;
            }
        })),
        #[cfg(unix)]
        (Stream::Unix(socket), _) => drop(worker.spawn(async move {
            let shared = Arc::clone(&admission.shared);
            if let Ok(stream) = UnixStream::from_std(socket)
                && let Some(share) = admission.share()
            {
                connection::serve(stream, session, share, &shared, draining).await;
            }
        })),
        (Stream::Tcp(socket), Some(tls)) => {
            let acceptor = TlsAcceptor::from(tls.load_full());
            drop(worker.spawn(async move {
                let shared = Arc::clone(&admission.shared);
                let Ok(mut stream) = TcpStream::from_std(socket) else {
                    return;
                };
                if !is_identified(&mut stream, &mut session, &mut admission, &mut draining).await {
                    return;
                }
                let Some(mut share) = admission.share() else {
                    return;
                };
                let handshake = async {
                    shared.budget.add_tls(&mut share).await;
                    Some((acceptor.accept(stream).await.ok()?, share))
                };
                // A handshake's future is large. A connection does not keep it.
                let handshake = Box::pin(begin(handshake, &shared, &mut draining));
                if let Some((stream, share)) = handshake.await {
                    connection::serve(stream, session, share, &shared, draining).await;
                }
            }));
        }
    }
}

/// The beginning of a connection. `None` if it takes longer than a request may, or if the
/// drain begins first.
async fn begin<T>(
    beginning: impl Future<Output = Option<T>>,
    shared: &Shared,
    draining: &mut watch::Receiver<bool>,
) -> Option<T> {
    tokio::select! {
        biased;
        begun = timeout(shared.limits.request_time, beginning) => begun.ok().flatten(),
        _ = draining.wait_for(|begun| *begun) => None,
    }
}

/// Reads the header of a proxy, where the settings say that there is one, and moves the
/// connection to the client that it names.
async fn is_identified(
    stream: &mut TcpStream,
    session: &mut Session,
    admission: &mut Admission,
    draining: &mut watch::Receiver<bool>,
) -> bool {
    let shared = Arc::clone(&admission.shared);
    if !shared.proxy_protocol {
        return true;
    }
    let header = async { proxy_protocol::read_header(stream).await.ok() };
    match Box::pin(begin(header, &shared, draining)).await {
        Some(Some(address)) => {
            session.peer = address.to_string();
            let has_place = admission.transfer(address.ip().into());
            if !has_place && !shared.has_tls {
                // Best effort, as for any other client.
                let _ = stream.try_write(FULL);
            }
            has_place
        }
        // A health check of the proxy itself.
        Some(None) => true,
        None => false,
    }
}

impl Socket {
    async fn accept(&self) -> io::Result<(Stream, Client, String)> {
        match self {
            Self::Tcp(socket) => {
                let (stream, address) = socket.accept().await?;
                // Without it replies are slower, and as correct.
                let _ = stream.set_nodelay(true);
                let client = Client::from(address.ip());
                Ok((Stream::Tcp(stream.into_std()?), client, address.to_string()))
            }
            #[cfg(unix)]
            Self::Unix(socket) => {
                let (stream, _) = socket.accept().await?;
                let client = Client::User(user(&stream));
                Ok((Stream::Unix(stream.into_std()?), client, "unix".to_owned()))
            }
        }
    }
}

#[cfg(unix)]
fn user(stream: &UnixStream) -> Option<u32> {
    Some(stream.peer_cred().ok()?.uid())
}

/// Whether the error concerns the accepted connection only, and not the process.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted
    )
}
