//! Who is connected: so many in all, and so many of one client.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

/// One client, as far as a limit is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Client {
    /// An address of IPv4, or the network of one of IPv6: a client has all addresses of its
    /// own, 2^64 of them.
    Address([u8; 8]),
    /// A user, on a Unix socket.
    User(u32),
}

impl From<IpAddr> for Client {
    fn from(address: IpAddr) -> Self {
        let octets = match address.to_canonical() {
            // No network of IPv6 begins with zeros.
            IpAddr::V4(address) => {
                let [a, b, c, d] = address.octets();
                [0, 0, 0, 0, a, b, c, d]
            }
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, h, ..] = address.octets();
                [a, b, c, d, e, f, g, h]
            }
        };
        Self::Address(octets)
    }
}

/// The clients that are connected.
#[derive(Debug)]
pub(super) struct Clients {
    seated: Mutex<Seated>,
    most: usize,
    most_of_one: usize,
    /// Places for long answers, of each client.
    bulk_of_one: usize,
}

#[derive(Debug, Default)]
struct Seated {
    connections: usize,
    clients: HashMap<Client, OfOne>,
}

#[derive(Debug)]
struct OfOne {
    connections: usize,
    bulk: Arc<Semaphore>,
}

impl Clients {
    pub(super) fn new(most: usize, most_of_one: usize, bulk_of_one: usize) -> Self {
        Self {
            seated: Mutex::default(),
            most,
            most_of_one,
            bulk_of_one,
        }
    }

    /// A place for a connection, if there is one.
    pub(super) fn admit(self: &Arc<Self>, client: Client) -> Option<Seat> {
        let mut seated = self.seated.lock().unwrap_or_else(PoisonError::into_inner);
        if seated.connections >= self.most {
            return None;
        }
        let of_one = seated.clients.entry(client).or_insert_with(|| OfOne {
            connections: 0,
            bulk: Arc::new(Semaphore::new(self.bulk_of_one)),
        });
        if of_one.connections >= self.most_of_one {
            return None;
        }
        of_one.connections += 1;
        let bulk = Arc::clone(&of_one.bulk);
        seated.connections += 1;
        Some(Seat {
            clients: Arc::clone(self),
            client,
            bulk,
        })
    }

    fn leave(&self, client: Client) {
        let mut seated = self.seated.lock().unwrap_or_else(PoisonError::into_inner);
        seated.connections -= 1;
        if let Some(of_one) = seated.clients.get_mut(&client) {
            of_one.connections -= 1;
            if of_one.connections == 0 {
                seated.clients.remove(&client);
            }
        }
    }
}

/// The place of a connection, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    clients: Arc<Clients>,
    client: Client,
    /// The client's places for long answers.
    pub(super) bulk: Arc<Semaphore>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.clients.leave(self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Client {
        Client::from(text.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn a_client_of_ipv6_is_a_network() {
        assert_eq!(address("2001:db8:1:2:3::4"), address("2001:db8:1:2::9"));
        assert_ne!(address("2001:db8:1:2:3::4"), address("2001:db8:1:3:3::4"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
        assert_ne!(address("192.0.2.2"), address("192.0.2.1"));
    }

    #[test]
    fn places_are_counted_for_all_and_for_each() {
        let clients = Arc::new(Clients::new(3, 2, 1));
        let (one, other) = (address("192.0.2.1"), Client::User(1000));
        let first = clients.admit(one).unwrap();
        let second = clients.admit(one).unwrap();
        assert!(clients.admit(one).is_none(), "its third");
        let third = clients.admit(other).unwrap();
        assert!(clients.admit(other).is_none(), "the fourth of all");
        drop(first);
        let first = clients.admit(one).unwrap();
        drop((first, second, third));
        let seated = clients.seated.lock().unwrap();
        assert_eq!(seated.connections, 0);
        assert!(seated.clients.is_empty(), "nothing is kept of who is gone");
    }
}
