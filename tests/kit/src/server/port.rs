//! Ports that no other server of a test gets, in this process or another.
//!
//! The kernel's own choice would go to the next test while a server is stopped, or not
//! listening yet. The one that came second would end, and its test would find the
//! other's server on its port, with the same password, and take it for its own.

use std::net::{TcpListener, UdpSocket};
use std::process;
use std::sync::{Mutex, PoisonError};

/// Below those that the kernel gives to connections, on Linux and elsewhere.
const PORTS: std::ops::Range<u16> = 10_000..32_000;

/// A port of 127.0.0.1 on which nobody listens, and which is this process's until it ends.
///
/// # Panics
/// When no port is left.
pub fn free_port() -> u16 {
    /// The UDP sockets of the same numbers, which nobody uses: what a process of tests
    /// has bound no other can, and the kernel gives it back however the process ends.
    static TAKEN: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    // So that processes rarely look at the same ones, and none twice at its own.
    let first = (process::id() as usize * 97 + taken.len()) % PORTS.len();
    let (before, after) = (PORTS.take(first), PORTS.skip(first));
    for port in after.chain(before) {
        let Ok(socket) = UdpSocket::bind(("127.0.0.1", port)) else {
            continue;
        };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            taken.push(socket);
            return port;
        }
    }
    panic!("no port of {PORTS:?} is free");
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let ports: HashSet<u16> = (0..400).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 400);
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
