//! Permits for memory that waits for a client: answers, active connections, and connections before
//! their first authorized request.
//!
//! Each of these has a [budget](BufferBudget) for all clients, of which one may hold a part. A
//! request waits until its deadline at most.
//!
//! A permit of an answer moves into the answer's bytes, and is returned when the last of them
//! went to the socket.

use std::sync::Mutex;

use axum::body::Bytes;

use crate::buffer_budget::{BufferBudget, BufferPermit, ClientBudget};
use crate::clients::Client;
use crate::lock::lock;

pub(super) const ANSWER_BYTES: usize = 64 << 20;

/// The budget of the metrics, the status and the readiness, in bytes. Answers that a client does not
/// read leave it alone.
pub(super) const FIGURES_BYTES: usize = 16 << 20;

/// The budget of connections before their first authorized request, with TLS or a request, in
/// bytes.
pub(super) const STRANGER_BYTES: usize = 48 << 20;

/// The budget of connections with a request, in bytes.
pub(super) const ACTIVE_BYTES: usize = 64 << 20;

/// hyper's buffers and state of an active connection.
pub(super) const BYTES_PER_ACTIVE: usize = 24 << 10;

/// The budget of connections with a health check, in bytes: four for one client. They don't wait
/// behind requests that wait for a store.
const PROBE_BYTES: usize = 16 * 4 * BYTES_PER_ACTIVE;

/// Answers above this size need a permit.
pub(super) const SMALL_BYTES: usize = 2 << 10;

#[derive(Clone, Debug)]
pub(super) struct Budgets<B = BufferBudget> {
    pub(super) answers: B,
    pub(super) figures: B,
    pub(super) strangers: B,
    pub(super) active: B,
    pub(super) probes: B,
}

/// The budgets as one client sees them.
pub(super) type ClientBudgets = Budgets<ClientBudget>;

impl Budgets {
    pub(super) fn new() -> Self {
        Self {
            answers: BufferBudget::new(ANSWER_BYTES),
            figures: BufferBudget::new(FIGURES_BYTES),
            strangers: BufferBudget::for_strangers(STRANGER_BYTES),
            active: BufferBudget::new(ACTIVE_BYTES),
            probes: BufferBudget::for_strangers(PROBE_BYTES),
        }
    }

    pub(super) fn client(&self, client: Client) -> ClientBudgets {
        ClientBudgets {
            answers: self.answers.client(client),
            figures: self.figures.client(client),
            strangers: self.strangers.client(client),
            active: self.active.client(client),
            probes: self.probes.client(client),
        }
    }
}

/// The permits that a connection holds from the strangers' budgets until a request is authorized.
#[derive(Debug)]
pub(super) struct StrangerPermits(Mutex<Option<Held>>);

#[derive(Debug)]
struct Held {
    /// For as long as the connection, from its handshake on.
    tls: Option<BufferPermit>,
    active: Option<BufferPermit>,
}

impl StrangerPermits {
    pub(super) fn new(tls: Option<BufferPermit>) -> Self {
        Self(Mutex::new(Some(Held { tls, active: None })))
    }

    /// Whether its next request needs a permit.
    pub(super) fn needs_active(&self) -> bool {
        lock(&self.0)
            .as_ref()
            .is_some_and(|held| held.tls.is_none())
    }

    pub(super) fn set_active(&self, permit: Option<BufferPermit>) {
        if let Some(held) = &mut *lock(&self.0) {
            held.active = permit;
        }
    }

    /// Returns all permits. Returns whether this request is the first that is authorized.
    pub(super) fn authorize(&self) -> bool {
        lock(&self.0).take().is_some()
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
