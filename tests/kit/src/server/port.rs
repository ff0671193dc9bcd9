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
    first_of(PORTS, |port, taken| taken.has(port))
}

/// A port for a node of a Redis Cluster, which listens on the port 10,000 above it, too: both
/// are free, this process's, and none of those that the kernel gives to connections.
///
/// # Panics
/// When no such port is left.
pub(super) fn free_port_of_a_node() -> u16 {
    first_of(PORTS.start..PORTS.end - ABOVE, |port, taken| {
        taken.has(port) && taken.has(port + ABOVE)
    })
}

/// How far above its own port a node of a Redis Cluster listens to the others.
const ABOVE: u16 = 10_000;

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

/// The first of these ports that `is_had`.
fn first_of(ports: Range<u16>, mut is_had: impl FnMut(u16, &mut Taken) -> bool) -> u16 {
    static TAKEN: Mutex<Taken> = Mutex::new(Taken(Vec::new()));
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    // So that processes rarely look at the same ones, and none twice at its own.
    let first = (process::id() as usize * 97 + taken.0.len()) % ports.len();
    let (before, after) = (ports.clone().take(first), ports.clone().skip(first));
    after
        .chain(before)
        .find(|&port| is_had(port, &mut taken))
        .unwrap_or_else(|| panic!("no port of {ports:?} is free"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let ports: HashSet<u16> = (0..400).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 400);
    }

    #[test]
    fn a_node_has_both_of_its_ports() {
        let port = free_port_of_a_node();
        for port in [port, port + 10_000] {
            assert!(PORTS.contains(&port), "{port} may be a connection's");
            let other = UdpSocket::bind(("127.0.0.1", port));
            assert!(other.is_err(), "{port} could be had twice");
        }
    }

    #[test]
    fn a_port_is_kept_from_other_processes() {
        let port = free_port();
        // As `free_port` of another process asks.
        let other = UdpSocket::bind(("127.0.0.1", port));
        assert!(other.is_err(), "{port} could be had twice");
        assert!(
            TcpListener::bind(("127.0.0.1", port)).is_ok(),
            "{port} is in use"
        );
    }
}
