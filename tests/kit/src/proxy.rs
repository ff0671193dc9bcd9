//! A TCP proxy between a client and a server that loses bytes on request.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What the proxy does with bytes, on open and on future connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// Requests reach the server, and replies are lost.
    LoseReplies {
        /// How many more requests are answered before, over all connections. A request is
        /// all that a client sends until the server speaks, so what is pipelined counts
        /// once.
        after: u64,
        then: Then,
    },
    /// Every connection is closed, and new ones are closed as soon as they are
    /// accepted.
    Cut,
    /// Where a reply of HTTP names the date, it is ahead by so many seconds: the
    /// clock of a server whose clock can't be set.
    Dates {
        /// Negative: behind.
        ahead: i64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is closed at the moment when the first reply comes: the server did what it was asked
    /// first, and may never do what was sent along with that.
    Close,
    /// It stays open, and nothing comes any more.
    Hang,
}

/// Listens on a port of its own and passes on what comes to a server on 127.0.0.1. Stops,
/// with all connections and threads, when dropped.
#[derive(Debug)]
pub struct Proxy {
    inner: Arc<Inner>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Inner {
    server_port: AtomicU16,
    stopped: AtomicBool,
    lost: AtomicU64,
    forgotten: AtomicU64,
    accepted: AtomicU64,
    requests: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    fault: Fault,
    connections: Vec<Arc<Connection>>,
}

#[derive(Debug)]
struct Connection {
    client: TcpStream,
    server: TcpStream,
    /// The client has spoken and the server has not answered yet.
    asked: AtomicBool,
    losing: AtomicBool,
    /// The reply to the latest request was counted as lost.
    counted: AtomicBool,
    /// Nothing passes any more, for good.
    forgotten: AtomicBool,
}

impl Proxy {
    /// A proxy before the server on this port of 127.0.0.1, which need not
    /// listen yet.
    pub fn to(server_port: u16) -> Self {
        Self::at("127.0.0.1", server_port)
    }

    /// The same, which listens on this address.
    pub fn at(host: &str, server_port: u16) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            server_port: AtomicU16::new(server_port),
            ..Inner::default()
        });
        let acceptor = thread::spawn({
            let inner = Arc::clone(&inner);
            move || inner.accept(&listener)
        });
        Self {
            inner,
            address,
            acceptor: Some(acceptor),
        }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Replaces the fault; [`Fault::None`] heals. Connections that were closed
    /// stay closed.
    pub fn set(&self, fault: Fault) {
        let mut state = self.inner.state();
        state.fault = fault;
        for connection in &state.connections {
            connection.losing.store(false, SeqCst);
            if fault == Fault::Cut {
                connection.close();
            }
        }
    }

    /// Sends new connections to another port of 127.0.0.1.
    pub fn redirect(&self, server_port: u16) {
        self.inner.server_port.store(server_port, SeqCst);
    }

    /// How many requests' replies were lost so far. Those requests have reached
    /// the server, and it has answered them.
    pub fn lost(&self) -> u64 {
        self.inner.lost.load(SeqCst)
    }

    /// Forgets the connections that there are, as a router that keeps no idle flows: they pass
    /// nothing any more, without notice to either side.
    pub fn forget(&self) {
        for connection in &self.inner.state().connections {
            if !connection.forgotten.swap(true, SeqCst) {
                self.inner.forgotten.fetch_add(1, SeqCst);
            }
        }
    }

    pub fn forgotten(&self) -> u64 {
        self.inner.forgotten.load(SeqCst)
    }

    pub fn accepted(&self) -> u64 {
        self.inner.accepted.load(SeqCst)
    }

    /// How many requests have begun so far. A request is all that a client sends until the
    /// server speaks.
    pub fn requests(&self) -> u64 {
        self.inner.requests.load(SeqCst)
    }

    pub fn connections(&self) -> usize {
        self.inner.state().connections.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.inner.stopped.store(true, SeqCst);
        // Wakes the acceptor, which then closes everything.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        let mut pumps: Vec<JoinHandle<()>> = Vec::new();
        for client in listener.incoming() {
            if self.stopped.load(SeqCst) {
                break;
            }
            pumps.retain(|pump| !pump.is_finished());
            if let Some(connection) = client.ok().and_then(|client| self.connect(client)) {
                let both: [fn(&Self, &Connection); 2] = [Self::pump_requests, Self::pump_replies];
                for pump in both {
                    let (inner, connection) = (Arc::clone(self), Arc::clone(&connection));
                    pumps.push(thread::spawn(move || {
                        pump(&inner, &connection);
                        inner.end(&connection);
                    }));
                }
            }
        }
        self.state().connections.iter().for_each(|c| c.close());
        for pump in pumps {
            let _ = pump.join();
        }
    }

    /// The other half of a connection; none, and so an end of this half, when it
    /// can't be had or must not be.
    fn connect(&self, client: TcpStream) -> Option<Arc<Connection>> {
        let server = TcpStream::connect(("127.0.0.1", self.server_port.load(SeqCst))).ok()?;
        client.set_nodelay(true).ok()?;
        server.set_nodelay(true).ok()?;
        let connection = Arc::new(Connection {
            client,
            server,
            asked: AtomicBool::new(false),
            losing: AtomicBool::new(false),
            counted: AtomicBool::new(false),
            forgotten: AtomicBool::new(false),
        });
        // Under the lock, so that a cut misses no connection.
        let mut state = self.state();
        if state.fault == Fault::Cut {
            connection.close();
            return None;
        }
        state.connections.push(Arc::clone(&connection));
        self.accepted.fetch_add(1, SeqCst);
        Some(connection)
    }

    fn end(&self, connection: &Arc<Connection>) {
        connection.close();
        let mut state = self.state();
        state.connections.retain(|c| !Arc::ptr_eq(c, connection));
    }

    fn pump_requests(&self, connection: &Connection) {
        let mut buffer = [0; 16 * 1024];
        while let Some(bytes) = read(&connection.client, &mut buffer) {
            if connection.forgotten.load(SeqCst) {
                continue;
            }
            // Before the server can see it, so that no reply is faster.
            if !connection.asked.swap(true, SeqCst) {
                connection.counted.store(false, SeqCst);
                self.count_request(connection);
            }
            if (&connection.server).write_all(bytes).is_err() {
                return;
            }
        }
    }

    /// Decides on the replies to a request that begins.
    fn count_request(&self, connection: &Connection) {
        self.requests.fetch_add(1, SeqCst);
        if let Fault::LoseReplies { after, .. } = &mut self.state().fault {
            match after.checked_sub(1) {
                Some(fewer) => *after = fewer,
                None => connection.losing.store(true, SeqCst),
            }
        }
    }

    fn pump_replies(&self, connection: &Connection) {
        let mut buffer = [0; 16 * 1024];
        while let Some(bytes) = read(&connection.server, &mut buffer) {
            if connection.forgotten.load(SeqCst) {
                continue;
            }
            connection.asked.store(false, SeqCst);
            self.shift_date(bytes);
            if let Some(then) = self.loses(connection) {
                if !connection.counted.swap(true, SeqCst) {
                    self.lost.fetch_add(1, SeqCst);
                }
                if then == Then::Close {
                    return;
                }
            } else if (&connection.client).write_all(bytes).is_err() {
                return;
            }
        }
    }

    /// The name and the date are written in one piece by every server there is.
    fn shift_date(&self, reply: &mut [u8]) {
        const NAME: &[u8] = b"\r\nDate: ";
        const LENGTH: usize = "Sun, 06 Nov 1994 08:49:37 GMT".len();

        let Fault::Dates { ahead } = self.state().fault else {
            return;
        };
        let Some(at) = reply.windows(NAME.len()).position(|name| name == NAME) else {
            return;
        };
        let Some(date) = reply[at + NAME.len()..].get_mut(..LENGTH) else {
            return;
        };
        let told = httpdate::parse_http_date(std::str::from_utf8(date).unwrap()).unwrap();
        let by = Duration::from_secs(ahead.unsigned_abs());
        let shifted = if ahead < 0 { told - by } else { told + by };
        date.copy_from_slice(httpdate::fmt_http_date(shifted).as_bytes());
    }

    /// The treatment of the connection if all of this reply is lost; `None` if the reply may pass.
    fn loses(&self, connection: &Connection) -> Option<Then> {
        match self.state().fault {
            Fault::LoseReplies { then, .. } => connection.losing.load(SeqCst).then_some(then),
            _ => None,
        }
    }
}

impl Connection {
    fn close(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

fn read<'a>(mut stream: &TcpStream, buffer: &'a mut [u8]) -> Option<&'a mut [u8]> {
    match stream.read(buffer) {
        Ok(0) | Err(_) => None,
        Ok(count) => Some(&mut buffer[..count]),
    }
}
