//! Permits for memory that waits for a client: answers and request bodies, active connections,
//! and handshakes.
//!
//! Each of these has a budget for all clients. A client, which is an address or a user on a Unix socket, may
//! hold half of it, so one client can't use it up. A connection has at most
//! [`LARGE_PER_CONNECTION`] large answers at once. Each queue is first in, first out, and a
//! request waits until its deadline at most.
//!
//! A permit of an answer moves into the answer's bytes, and is returned when the last of them
//! went to the socket.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use axum::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clients::Client;

/// The budget of all answers and request bodies, in bytes.
pub(super) const ANSWER_BYTES: usize = 64 << 20;

/// The budget of all TLS handshakes, in bytes.
pub(super) const HANDSHAKE_BYTES: usize = 32 << 20;

/// The budget of connections with a request in HTTP/1, and of all HTTP/2 connections, in
/// bytes each.
pub(super) const ACTIVE_BYTES: usize = 64 << 20;

/// hyper's buffers and state of an active connection. Those of HTTP/2 live as long as it does.
pub(super) const BYTES_PER_ACTIVE: usize = 24 << 10;

/// The most memory of a handshake: rustls buffers a message of this size.
pub(super) const BYTES_PER_HANDSHAKE: usize = 64 << 10;

/// Large answers that a connection may have at once.
pub(super) const LARGE_PER_CONNECTION: usize = 2;

/// Answers above this size are large. HTTP/2 requests hold a permit for as many bytes, since
/// a connection may have a hundred of them.
pub(super) const SMALL_BYTES: usize = 2 << 10;

/// A permit stands for as many bytes.
const UNIT: usize = 1 << 10;

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

/// A budget of bytes.
#[derive(Debug)]
pub(super) struct BufferBudget {
    all: Arc<Semaphore>,
    units_per_client: usize,
    clients: Mutex<Clients>,
}

/// The semaphores of clients that have connections.
#[derive(Debug, Default)]
struct Clients {
    semaphores: HashMap<Client, Weak<Semaphore>>,
    /// At this size, those of clients without connections are removed.
    sweep_at: usize,
}

/// The budget as one client sees it.
#[derive(Clone, Debug)]
pub(super) struct ClientBudget {
    client: Client,
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
    most_units: usize,
}

/// A part of the budget, returned on drop.
#[derive(Debug)]
pub(super) struct BufferPermit {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl BufferBudget {
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(bytes / UNIT)),
            units_per_client: bytes / UNIT / 2,
            clients: Mutex::default(),
        }
    }

    /// What this client may use. All its connections share it.
    pub(super) fn client(&self, client: Client) -> ClientBudget {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let known = clients.semaphores.get(&client).and_then(Weak::upgrade);
        let own = known.unwrap_or_else(|| {
            if clients.semaphores.len() >= clients.sweep_at {
                let semaphores = &mut clients.semaphores;
                semaphores.retain(|_, semaphore| semaphore.strong_count() > 0);
                clients.sweep_at = (2 * clients.semaphores.len()).max(64);
            }
            let own = Arc::new(Semaphore::new(self.units_per_client));
            clients.semaphores.insert(client, Arc::downgrade(&own));
            own
        });
        ClientBudget {
            client,
            own,
            all: Arc::clone(&self.all),
            most_units: self.units_per_client,
        }
    }
}

impl ClientBudget {
    pub(super) fn client(&self) -> Client {
        self.client
    }

    /// Waits for memory of this size. `None` only if the server ends.
    pub(super) async fn acquire(&self, bytes: usize) -> Option<BufferPermit> {
        let units = self.units(bytes);
        let own = Arc::clone(&self.own).acquire_many_owned(units).await.ok()?;
        let all = Arc::clone(&self.all).acquire_many_owned(units).await.ok()?;
        Some(BufferPermit {
            _own: own,
            _all: all,
        })
    }

    /// The same without waiting.
    pub(super) fn try_acquire(&self, bytes: usize) -> Option<BufferPermit> {
        let units = self.units(bytes);
        let own = Arc::clone(&self.own).try_acquire_many_owned(units).ok()?;
        let all = Arc::clone(&self.all).try_acquire_many_owned(units).ok()?;
        Some(BufferPermit {
            _own: own,
            _all: all,
        })
    }

    fn units(&self, bytes: usize) -> u32 {
        let units = bytes.div_ceil(UNIT).min(self.most_units);
        u32::try_from(units).unwrap_or(u32::MAX)
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

    const A: Client = Client::V4([192, 0, 2, 1]);
    const B: Client = Client::V4([192, 0, 2, 2]);

    #[test]
    fn a_client_holds_at_most_half() {
        let budget = BufferBudget::new(8 * UNIT);
        let (first, second) = (budget.client(A), budget.client(A));
        let held = first.try_acquire(3 * UNIT).unwrap();
        assert!(second.try_acquire(UNIT + 1).is_none(), "rounded up to two");
        let rest = second.try_acquire(UNIT).unwrap();
        assert!(first.try_acquire(1).is_none());
        let other = budget.client(B).try_acquire(4 * UNIT).unwrap();
        drop(held);
        assert!(first.try_acquire(3 * UNIT).is_some());
        drop((rest, other));
    }

    #[test]
    fn all_clients_together_hold_at_most_the_budget() {
        let budget = BufferBudget::new(8 * UNIT);
        let held = [A, B].map(|client| budget.client(client).try_acquire(4 * UNIT));
        assert!(held.iter().all(Option::is_some));
        let third = budget.client(Client::User(None));
        assert!(third.try_acquire(1).is_none());
        drop(held);
        assert!(third.try_acquire(usize::MAX).is_some(), "clamped to half");
    }

    #[test]
    fn a_permit_returns_with_the_last_of_its_bytes() {
        let budget = BufferBudget::new(2 * UNIT).client(A);
        let bytes = guarded("several", budget.try_acquire(UNIT));
        let rest = bytes.slice(3..);
        drop(bytes);
        assert!(budget.try_acquire(1).is_none(), "{} are left", rest.len());
        drop(rest);
        assert!(budget.try_acquire(1).is_some());
    }

    #[test]
    fn clients_without_connections_are_forgotten() {
        let budget = BufferBudget::new(2 * UNIT);
        let kept = budget.client(A);
        for number in 0..1000 {
            budget.client(Client::User(Some(number)));
        }
        let known = budget.clients.lock().unwrap().semaphores.len();
        assert!(known <= 128, "{known}");
        assert!(Arc::ptr_eq(&budget.client(A).own, &kept.own));
    }
}
