//! The places of those who are connected, each with its client's places for long answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use crate::clients::{Client, Clients};
use crate::limits::Limits;

/// The places of all clients.
#[derive(Debug)]
pub(super) struct Seats {
    clients: Clients,
    bulk: Mutex<HashMap<Client, OfOne>>,
    /// Places for long answers, of each client.
    bulk_of_one: usize,
}

#[derive(Debug)]
struct OfOne {
    connections: usize,
    bulk: Arc<Semaphore>,
}

impl Seats {
    pub(super) fn new(limits: &Limits, bulk_of_one: usize) -> Self {
        Self {
            clients: Clients::new(limits),
            bulk: Mutex::default(),
            bulk_of_one,
        }
    }

    /// A place for a connection, if there is one.
    pub(super) fn admit(self: &Arc<Self>, client: Client) -> Option<Seat> {
        if !self.clients.enter(client) {
            return None;
        }
        let mut all = self.bulk.lock().unwrap_or_else(PoisonError::into_inner);
        let of_one = all.entry(client).or_insert_with(|| OfOne {
            connections: 0,
            bulk: Arc::new(Semaphore::new(self.bulk_of_one)),
        });
        of_one.connections += 1;
        Some(Seat {
            seats: Arc::clone(self),
            client,
            bulk: Arc::clone(&of_one.bulk),
        })
    }

    fn leave(&self, client: Client) {
        let mut all = self.bulk.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_one) = all.get_mut(&client) {
            of_one.connections -= 1;
            if of_one.connections == 0 {
                all.remove(&client);
            }
        }
        self.clients.leave(client);
    }
}

/// The place of a connection, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    client: Client,
    /// The client's places for long answers.
    pub(super) bulk: Arc<Semaphore>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.leave(self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_a_client_share_places_for_long_answers() {
        let seats = Arc::new(Seats::new(&Limits::default(), 1));
        let (one, other) = (Client::V4([192, 0, 2, 1]), Client::User(Some(1000)));
        let first = seats.admit(one).unwrap();
        let second = seats.admit(one).unwrap();
        let third = seats.admit(other).unwrap();
        assert!(Arc::ptr_eq(&first.bulk, &second.bulk));
        assert!(!Arc::ptr_eq(&first.bulk, &third.bulk));
        drop((first, second, third));
        let all = seats.bulk.lock().unwrap();
        assert!(all.is_empty(), "nothing is kept of who is gone");
    }

    #[test]
    fn one_client_does_not_take_every_place() {
        let limits = Limits {
            connections: 32,
            connections_per_client: 32,
            ..Limits::default()
        };
        let seats = Arc::new(Seats::new(&limits, 1));
        let (one, other) = (Client::V4([192, 0, 2, 1]), Client::V4([192, 0, 2, 2]));
        let mut taken: Vec<_> = std::iter::from_fn(|| seats.admit(one)).collect();
        assert_eq!(taken.len(), 30);
        let late = seats.admit(other).unwrap();
        assert!(seats.admit(one).is_none());
        // A place that is left is anybody's again.
        drop(late);
        taken.truncate(29);
        assert!(seats.admit(one).is_some());
    }
}
