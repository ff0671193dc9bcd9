//! Room for answers that are made and not sent.
//!
//! A client of HTTP/2 asks for a hundred answers at once, and need not read any of them. Those
//! of few IDs are small; others, and the figures of all namespaces, are made when their
//! connection has room for one more, and keep it until their last byte has gone to the socket.
//! So before an ID is taken there is room for it. What a connection keeps is bounded by
//!
//! ```text
//! ROOMS x (PART_BYTES, or an answer as a whole) + STREAMS x (an answer of ROOMLESS IDs)
//! ```
//!
//! Who waits for room waits for nothing but its own connection, first come, first served. A
//! client that takes nothing of a part for `Limits::request_time` is closed by `Activity`.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most answers, or parts of one, that a connection keeps.
pub(super) const ROOMS: usize = 4;

/// The most IDs of an answer that needs no room.
pub(super) const ROOMLESS: usize = 64;

/// The room of a connection.
#[derive(Clone, Debug)]
pub(super) struct Rooms(Arc<Semaphore>);

/// Room for an answer or a part of one, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    _permit: OwnedSemaphorePermit,
}

impl Rooms {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(ROOMS)))
    }

    /// Waits until there is room.
    pub(super) async fn enter(&self) -> Option<Room> {
        // It is never closed.
        let permit = Arc::clone(&self.0).acquire_owned().await;
        permit.ok().map(|permit| Room { _permit: permit })
    }

    /// None if there was none until then.
    pub(super) async fn enter_until(&self, until: Instant) -> Option<Room> {
        let entered = tokio::time::timeout_at(until.into(), self.enter()).await;
        entered.ok().flatten()
    }
}

impl Room {
    /// Bytes that have the room until they are dropped.
    pub(super) fn hold(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(Held { bytes, _room: self })
    }
}

struct Held<T> {
    bytes: T,
    _room: Room,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Held<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_comes_back_with_the_last_of_its_bytes() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().build().unwrap();
        let rooms = Rooms::new();
        let enter = || runtime.block_on(rooms.enter_until(Instant::now()));
        let mut held: Vec<Bytes> = std::iter::from_fn(&enter)
            .map(|room| room.hold("several"))
            .collect();
        assert_eq!(held.len(), ROOMS);
        let one = held.pop().unwrap();
        let rest = one.slice(3..);
        drop(one);
        assert!(enter().is_none(), "{} bytes wait", rest.len());
        drop(rest);
        assert!(enter().is_some());
    }
}
