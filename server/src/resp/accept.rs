//! New connections.

use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use mio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use mio::net::{UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use rustls::ServerConfig;

use super::inbox::Accepted;
use super::stream::Stream;
use crate::clients::{Client, Clients};
use crate::front::{FrontCounters, add};
use crate::listener::{AcceptFailures, Listener};

/// The certificate and the rest of TLS, as they are at the moment.
pub(crate) type Tls = Arc<ArcSwap<ServerConfig>>;

/// How long nothing is accepted once the process has as many files open as it may.
const PAUSE: Duration = Duration::from_millis(100);

/// How many are accepted before those who have a connection are served.
const AT_ONCE: usize = 64;

/// What those get who get no connection.
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
}

/// The listeners of a front. One worker has them.
pub(super) struct Acceptor {
    sockets: Vec<Socket>,
    tls: Option<Tls>,
    clients: Arc<Clients>,
    /// The number of the next session.
    next: u64,
    /// Which sockets may have connections to accept.
    ready: Vec<bool>,
    paused_until: Option<Instant>,
    failures: AcceptFailures,
}

impl Acceptor {
    /// Takes the listeners, whose tokens are those from `first` on.
    pub(super) fn new(
        listeners: Vec<Listener>,
        tls: Option<Tls>,
        clients: Arc<Clients>,
        registry: &Registry,
        first: usize,
    ) -> io::Result<Self> {
        let mut sockets = Vec::new();
        for (index, listener) in listeners.into_iter().enumerate() {
            let token = Token(first + index);
            sockets.push(match listener {
                Listener::Tcp(socket) => {
                    socket.set_nonblocking(true)?;
                    let mut socket = TcpListener::from_std(socket);
                    registry.register(&mut socket, token, Interest::READABLE)?;
                    Socket::Tcp(socket)
                }
                #[cfg(unix)]
                Listener::Unix(socket) => {
                    socket.set_nonblocking(true)?;
                    let mut socket = UnixListener::from_std(socket);
                    registry.register(&mut socket, token, Interest::READABLE)?;
                    Socket::Unix(socket)
                }
            });
        }
        Ok(Self {
            ready: vec![true; sockets.len()],
            sockets,
            tls,
            clients,
            next: 1,
            paused_until: None,
            failures: AcceptFailures::default(),
        })
    }

    pub(super) fn is_ready(&mut self, index: usize) {
        if let Some(ready) = self.ready.get_mut(index) {
            *ready = true;
        }
    }

    /// When to accept again; `None` if the event loop says that.
    pub(super) fn due(&self) -> Option<Instant> {
        let is_ready = self.ready.contains(&true);
        is_ready.then(|| self.paused_until.unwrap_or_else(Instant::now))
    }

    /// Accepts some of the connections that wait.
    pub(super) fn accept(
        &mut self,
        counters: &FrontCounters,
        mut found: impl FnMut(Box<Accepted>),
    ) {
        if let Some(until) = self.paused_until {
            if Instant::now() < until {
                return;
            }
            self.paused_until = None;
        }
        for index in 0..self.sockets.len() {
            let mut left = AT_ONCE;
            while self.ready[index] && left > 0 {
                left -= 1;
                match self.sockets[index].accept() {
                    Ok((stream, client, peer)) => {
                        if let Some(accepted) = self.admit(stream, client, peer, counters) {
                            found(accepted);
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        self.ready[index] = false;
                    }
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(error) => {
                        self.failures.warn("resp", &error);
                        self.paused_until = Some(Instant::now() + PAUSE);
                        return;
                    }
                }
            }
        }
    }

    fn admit(
        &mut self,
        mut stream: Stream,
        client: Client,
        peer: String,
        counters: &FrontCounters,
    ) -> Option<Box<Accepted>> {
        if !self.clients.enter(client) {
            add(&counters.turned_away, 1);
            if self.tls.is_none() {
                // If it is not taken at once, the client has to do without.
                let _ = stream.write(FULL);
            }
            return None;
        }
        let stream = match (stream, &self.tls) {
            (Stream::Tcp(socket), Some(tls)) => match Stream::tls(socket, tls.load_full()) {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(%error, "TLS can't begin");
                    self.clients.leave(client);
                    return None;
                }
            },
            (stream, _) => stream,
        };
        add(&counters.accepted, 1);
        let number = self.next;
        self.next += 1;
        Some(Box::new(Accepted {
            stream,
            client,
            peer,
            number,
        }))
    }
}

impl Socket {
    fn accept(&self) -> io::Result<(Stream, Client, String)> {
        match self {
            Self::Tcp(socket) => socket
                .accept()
                .map(|(stream, address)| of_tcp(stream, address)),
            #[cfg(unix)]
            Self::Unix(socket) => socket.accept().map(|(stream, _)| {
                let client = Client::User(user(&stream));
                (Stream::Unix(stream), client, "unix".to_owned())
            }),
        }
    }
}

fn of_tcp(stream: TcpStream, address: SocketAddr) -> (Stream, Client, String) {
    // A reply goes out at once. Without that it is slower, and as good.
    let _ = stream.set_nodelay(true);
    let client = Client::from(address.ip());
    (Stream::Tcp(stream), client, address.to_string())
}

#[cfg(target_os = "linux")]
fn user(stream: &UnixStream) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    Some(peer.uid.as_raw())
}

#[cfg(all(unix, not(target_os = "linux")))]
fn user(_: &UnixStream) -> Option<u32> {
    None
}

/// Whether the connection that was to be accepted is at fault, and not the process.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted
    )
}
