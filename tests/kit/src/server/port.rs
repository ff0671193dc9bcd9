//! Ports that no other server of a test gets, in this process or another.
//!
//! The kernel's own choice would go to the next test while a server is stopped, or not
//! listening yet. The one that came second would end, and its test would find the
//! other's server on its port, with the same password, and take it for its own.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::ops::Range;
use std::process;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Below those that the kernel gives to connections, on Linux and elsewhere.
const PORTS: Range<u16> = 10_000..32_000;

/// A port of 127.0.0.1 on which nobody listens, and which is this process's until it ends.
///
/// # Panics
/// When no port is left.
pub fn free_port() -> u16 {
    static TAKEN: Mutex<Taken> = Mutex::new(Taken(Vec::new()));
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    // So that processes rarely look at the same ones, and none twice at its own.
    let first = (process::id() as usize * 97 + taken.0.len()) % PORTS.len();
    let (before, after) = (PORTS.take(first), PORTS.skip(first));
    after
        .chain(before)
        .find(|&port| taken.has(port))
        .unwrap_or_else(|| panic!("no port of {PORTS:?} is free"))
}

/// The UDP sockets of the ports that are taken, which nobody uses: what a process of tests
/// has bound no other can, and the kernel gives it back however the process ends.
struct Taken(Vec<UdpSocket>);

impl Taken {
    /// Takes this port, if nobody else has.
    fn has(&mut self, port: u16) -> bool {
        let socket = UdpSocket::bind(("127.0.0.1", port));
        // A connection is refused where nobody listens. To listen here, if only for a moment,
        // could fail the server that gets the port: a child that another thread forks keeps
        // the socket until it executes its program.
        let is_free = socket.is_ok() && !is_listening(port);
        self.0.extend(socket.ok().filter(|_| is_free));
        is_free
    }
}

/// Whether somebody listens on this port of 127.0.0.1. A connection to a server whose backlog
/// is full times out.
fn is_listening(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match TcpStream::connect_timeout(&address, Duration::from_secs(1)) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::TimedOut,
    }
}
