//! Counts the connections of each client.
//!
//! A client that fills the table of connections closes it to all others. So each client has a
//! limit, and the last sixteenth of the table is reserved for clients below their share: the
//! table divided by the number of clients plus one.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Mutex;

use crate::config::Limits;
use crate::lock::lock;

/// Connections that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    V4([u8; 4]),
    /// The half of an address that a network is given.
    V6([u8; 8]),
    /// A user on a Unix socket, where the system says which.
    User(Option<u32>),
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(address) => Ipv4Addr::from(*address).fmt(f),
            Self::V6(network) => {
                let mut address = [0; 16];
                address[..8].copy_from_slice(network);
                write!(f, "{}/64", Ipv6Addr::from(address))
            }
            Self::User(Some(uid)) => write!(f, "user {uid}"),
            Self::User(None) => f.write_str("a local user"),
        }
    }
}

impl From<IpAddr> for Client {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.octets()),
            IpAddr::V6(address) => {
                let mut network = [0; 8];
                network.copy_from_slice(&address.octets()[..8]);
                Self::V6(network)
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Clients {
    most: usize,
    most_per_client: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    all: usize,
    /// None is zero.
    counts: HashMap<Client, usize>,
}

impl Clients {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            most: limits.connections,
            most_per_client: limits.connections_per_client,
            table: Mutex::default(),
        }
    }

    /// Whether this client may have one more connection; then it is counted. One whose client is
    /// not known yet counts only in the table.
    pub(crate) fn enter(&self, client: Option<Client>) -> bool {
        let mut table = lock(&self.table);
        let may = match client {
            Some(client) => self.count(&mut table, client),
            None => table.all < self.most,
        };
        table.all += usize::from(may);
        may
    }

    /// The same for a connection in the table whose client has become known.
    pub(crate) fn identify(&self, client: Client) -> bool {
        let mut table = lock(&self.table);
        table.all -= 1;
        let may = self.count(&mut table, client);
        table.all += 1;
        may
    }

    fn count(&self, table: &mut Table, client: Client) -> bool {
        let has = table.counts.get(&client).copied().unwrap_or(0);
        let others = table.counts.len() - usize::from(has > 0);
        let is_scarce = table.all >= self.most - self.most / 16;
        let may = table.all < self.most
            && has < self.most_per_client
            && !(is_scarce && has >= (self.most / (others + 2)).max(1));
        if may {
            *table.counts.entry(client).or_default() += 1;
        }
        may
    }

    pub(crate) fn leave(&self, client: Option<Client>) {
        let mut table = lock(&self.table);
        table.all -= 1;
        let Some(client) = client else { return };
        if let Some(count) = table.counts.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                table.counts.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(connections: usize, connections_per_client: usize) -> Clients {
        Clients::new(&Limits {
            connections,
            connections_per_client,
            ..Limits::default()
        })
    }

    fn client(number: u32) -> Option<Client> {
        Some(Client::User(Some(number)))
    }

    fn fill(clients: &Clients, client: Option<Client>) -> usize {
        (0..1_000).take_while(|_| clients.enter(client)).count()
    }

    #[test]
    fn a_client_that_fills_the_table_leaves_room_for_others() {
        let clients = table(160, 160);
        assert_eq!(fill(&clients, client(1)), 150);
        // Each of those that come later finds a place.
        for late in 2..12 {
            assert!(clients.enter(client(late)), "{late}");
        }
        assert!(!clients.enter(client(12)));
        assert!(!clients.enter(client(1)));
        clients.leave(client(1));
        assert!(!clients.enter(client(1)));
        assert!(clients.enter(client(12)));
    }

    #[test]
    fn the_last_places_are_for_those_below_their_share() {
        let clients = table(160, 160);
        assert_eq!((0..100).filter(|_| clients.enter(client(1))).count(), 100);
        // Of three, one of which has not come yet: 53 places.
        assert_eq!(fill(&clients, client(2)), 53);
        assert_eq!(fill(&clients, client(1)), 0);
        // And of four.
        assert_eq!(fill(&clients, client(3)), 7);
    }

    #[test]
    fn a_small_table_is_filled_to_its_last_place() {
        let clients = table(8, 8);
        assert_eq!(fill(&clients, client(1)), 8);
        for _ in 0..8 {
            clients.leave(client(1));
        }
        assert_eq!(lock(&clients.table).counts.len(), 0);
        assert_eq!(fill(&clients, client(2)), 8);
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let of = |text: &str| Client::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("::ffff:192.0.2.1").to_string(), "192.0.2.1");
        assert_eq!(of("2001:db8:0:1::1").to_string(), "2001:db8:0:1::/64");
        assert_eq!(Client::User(Some(7)).to_string(), "user 7");
    }
}
