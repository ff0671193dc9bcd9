//! Turns of long answers.
//!
//! A long answer keeps a core busy for as long as its client reads. So each part of it is made
//! in a turn of its own, which is a place and [`Room`]. There are a few places, two for each
//! thread, and a client has no more than half of them, so that nobody who comes alone waits for
//! somebody who came in numbers. Both queues are first in, first out: a client waits in its own
//! first, and takes one place in the common one at a time for each of its own.
//!
//! ```text
//! room of the connection --> place of the client --> place of all --> the part is made
//! kept until it is sent      +-------- both are kept until then -------+
//! ```
//!
//! A place is held by who computes, and by nobody who waits: it is given back when the part is
//! made, before its client reads it, and while there are no IDs. So however slowly clients
//! read, and however many they are, all queues for places move; and parts of as many long
//! answers as there are places, and of no more, are before a short request in the threads'
//! queues. Room is the connection's own, and is taken first: who waits for its own client has
//! no place, and who has a place waits for nobody.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::room::{Room, Rooms};

/// The places of all clients.
#[derive(Debug)]
pub(super) struct Bulk(Arc<Semaphore>);

/// The queues of a connection.
#[derive(Debug)]
pub(super) struct Turns {
    pub(super) rooms: Rooms,
    of_client: Arc<Semaphore>,
    of_all: Arc<Semaphore>,
}

/// A turn: room for a part, and a place to make it.
#[derive(Debug)]
pub(super) struct Turn {
    room: Room,
    _place: Place,
}

/// A place, given back when it is dropped.
#[derive(Debug)]
struct Place {
    _of_client: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Bulk {
    /// Places of one client, where threads are so many.
    pub(super) fn of_one(workers: usize) -> usize {
        workers
    }

    pub(super) fn new(workers: usize) -> Self {
        Self(Arc::new(Semaphore::new(2 * Self::of_one(workers))))
    }

    /// The queues of a connection of the client who has these places.
    pub(super) fn turns(&self, of_client: Arc<Semaphore>) -> Turns {
        Turns {
            rooms: Rooms::new(),
            of_client,
            of_all: Arc::clone(&self.0),
        }
    }
}

impl Turns {
    /// The next turn. None of the queues is ever closed, so that it comes.
    pub(super) async fn next(&self) -> Option<Turn> {
        let room = self.rooms.enter().await?;
        self.again(room).await
    }

    /// None if it did not come until then.
    pub(super) async fn next_until(&self, until: Instant) -> Option<Turn> {
        let next = tokio::time::timeout_at(until.into(), self.next()).await;
        next.ok().flatten()
    }

    /// A turn for a part that has room.
    pub(super) async fn again(&self, room: Room) -> Option<Turn> {
        let of_client = Arc::clone(&self.of_client).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.of_all).acquire_owned().await.ok()?;
        let place = Place {
            _of_client: of_client,
            _of_all: of_all,
        };
        Some(Turn {
            room,
            _place: place,
        })
    }
}

impl Turn {
    /// Gives the place back, and keeps the room.
    pub(super) fn leave(self) -> Room {
        self.room
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::super::room::ROOMS;
    use super::*;

    /// The first poll of each that waits, in order.
    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn each_thread_has_two_places_of_which_a_client_has_one() {
        for workers in [1, 2, 7] {
            assert_eq!(Bulk::new(workers).0.available_permits(), 2 * workers);
            assert_eq!(Bulk::of_one(workers), workers);
        }
    }

    #[test]
    fn a_client_in_numbers_leaves_a_place_to_others() {
        let bulk = Bulk::new(1);
        let client = || bulk.turns(Arc::new(Semaphore::new(Bulk::of_one(1))));
        let (many, one, two) = (client(), client(), client());

        let mut first = pin!(many.next());
        let Poll::Ready(Some(first)) = poll(first.as_mut()) else {
            panic!("all places are free");
        };
        let mut second = pin!(many.next());
        assert!(poll(second.as_mut()).is_pending(), "it has its half");
        let mut other = pin!(one.next());
        let Poll::Ready(Some(other)) = poll(other.as_mut()) else {
            panic!("the other half is free, whoever waits");
        };
        let mut third = pin!(two.next());
        assert!(poll(third.as_mut()).is_pending(), "all are taken");

        // Who came alone is before the second of who came in numbers.
        drop(first);
        assert!(poll(second.as_mut()).is_pending());
        let Poll::Ready(Some(third)) = poll(third.as_mut()) else {
            panic!("a place is free");
        };
        drop(other);
        assert!(matches!(poll(second.as_mut()), Poll::Ready(Some(_))));
        drop(third);
    }

    #[test]
    fn a_wait_for_a_place_has_an_end() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().build().unwrap();
        let turns = Bulk::new(1).turns(Arc::new(Semaphore::new(0)));
        let turn = runtime.block_on(turns.next_until(Instant::now()));
        assert!(turn.is_none());
    }

    #[test]
    fn who_waits_for_its_client_has_no_place() {
        let bulk = Bulk::new(1);
        let client = Arc::new(Semaphore::new(Bulk::of_one(1)));
        let (slow, other) = (bulk.turns(Arc::clone(&client)), bulk.turns(client));
        let mut parts = Vec::new();
        for _ in 0..ROOMS {
            let Poll::Ready(Some(turn)) = poll(pin!(slow.next())) else {
                panic!("nobody has a place");
            };
            parts.push(turn.leave().hold("a part"));
        }
        let mut next = pin!(slow.next());
        assert!(poll(next.as_mut()).is_pending(), "it has no room");
        // Another connection of the same client has.
        assert!(matches!(poll(pin!(other.next())), Poll::Ready(Some(_))));
        parts.pop();
        assert!(matches!(poll(next.as_mut()), Poll::Ready(Some(_))));
    }
}
