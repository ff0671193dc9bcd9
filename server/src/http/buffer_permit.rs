//! Permits for memory that waits for a client: answers and request bodies, active connections,
//! and handshakes.
//!
//! Each of these has a [budget](BufferBudget) for all clients, of which one may hold half. A
//! connection has at most [`LARGE_PER_CONNECTION`] large answers at once. A request waits until
//! its deadline at most.
//!
//! A permit of an answer moves into the answer's bytes, and is returned when the last of them
//! went to the socket.

use axum::body::Bytes;

use crate::buffer_budget::{BufferBudget, ClientBudget};
use crate::clients::Client;

/// The budget of all answers and request bodies, in bytes.
pub(super) const ANSWER_BYTES: usize = 64 << 20;

/// The budget of all TLS handshakes, in bytes.
pub(super) const HANDSHAKE_BYTES: usize = 32 << 20;

/// The budget of connections with a request in HTTP/1, and of all HTTP/2 connections, in
/// bytes each.
pub(super) const ACTIVE_BYTES: usize = 64 << 20;

/// hyper's buffers and state of an active connection in HTTP/1.
pub(super) const BYTES_PER_HTTP1: usize = 24 << 10;

/// Those of a connection in HTTP/2, with a head that does not end and streams that nobody reads.
/// They live as long as it does.
pub(super) const BYTES_PER_HTTP2: usize = 80 << 10;

/// The most memory of a handshake: rustls buffers a message of this size.
pub(super) const BYTES_PER_HANDSHAKE: usize = 64 << 10;

/// Large answers that a connection may have at once.
pub(super) const LARGE_PER_CONNECTION: usize = 2;

/// Answers above this size are large. HTTP/2 requests hold a permit for as many bytes, since
/// a connection may have a hundred of them.
pub(super) const SMALL_BYTES: usize = 2 << 10;

/// The budgets of a server.
#[derive(Debug)]
pub(super) struct Budgets {
    answers: BufferBudget,
    handshakes: BufferBudget,
    http1: BufferBudget,
    http2: BufferBudget,
}

/// The budgets as one client sees them.
#[derive(Clone, Debug)]
pub(super) struct ClientBudgets {
    pub(super) answers: ClientBudget,
    pub(super) handshakes: ClientBudget,
    pub(super) http1: ClientBudget,
    pub(super) http2: ClientBudget,
}

impl Budgets {
    pub(super) fn new() -> Self {
        Self {
            answers: BufferBudget::new(ANSWER_BYTES),
            handshakes: BufferBudget::new(HANDSHAKE_BYTES),
            http1: BufferBudget::new(ACTIVE_BYTES),
            http2: BufferBudget::new(ACTIVE_BYTES),
        }
    }

    pub(super) fn client(&self, client: Client) -> ClientBudgets {
        ClientBudgets {
            answers: self.answers.client(client),
            handshakes: self.handshakes.client(client),
            http1: self.http1.client(client),
            http2: self.http2.client(client),
        }
    }
}

/// Bytes that keep `guard` until the last of them is dropped.
pub(super) fn guarded<G: Send + 'static>(
    bytes: impl AsRef<[u8]> + Send + 'static,
    guard: G,
) -> Bytes {
    struct Guarded<T, G> {
        bytes: T,
        _guard: G,
    }

    impl<T: AsRef<[u8]>, G> AsRef<[u8]> for Guarded<T, G> {
        fn as_ref(&self) -> &[u8] {
            self.bytes.as_ref()
        }
    }

    Bytes::from_owner(Guarded {
        bytes,
        _guard: guard,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_returns_with_the_last_of_its_bytes() {
        let budget = BufferBudget::new(2 << 10).client(Client::User(None));
        let bytes = guarded("several", budget.try_acquire(1 << 10));
        let rest = bytes.slice(3..);
        drop(bytes);
        assert!(budget.try_acquire(1).is_none(), "{} are left", rest.len());
        drop(rest);
        assert!(budget.try_acquire(1).is_some());
    }
}
