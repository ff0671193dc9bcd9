//! Memory that waits for clients, in permits.
//!
//! A client, which is an address or a user on a Unix socket, may hold a part of a budget: half, so
//! one client can't use it up, or an eighth before it is authenticated, so a few can't. Each queue
//! is first in, first out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clients::Client;

const STRANGER_PARTS: usize = 8;

/// A permit stands for as many bytes.
const UNIT: usize = 1 << 10;

/// A budget of bytes.
#[derive(Debug)]
pub(crate) struct BufferBudget {
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
pub(crate) struct ClientBudget {
    client: Client,
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
    most_units: usize,
}

/// A part of the budget, returned on drop.
#[derive(Debug)]
pub(crate) struct BufferPermit {
    own: OwnedSemaphorePermit,
    all: OwnedSemaphorePermit,
}

impl BufferPermit {
    fn units(&self) -> usize {
        self.own.num_permits()
    }

    fn merge(&mut self, more: Self) {
        self.own.merge(more.own);
        self.all.merge(more.all);
    }

    /// Returns this much of it.
    fn split(&mut self, units: usize) {
        drop(self.own.split(units));
        drop(self.all.split(units));
    }
}

impl BufferBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self::with_parts(bytes, 2)
    }

    /// A budget of which a stranger holds at most one of [`STRANGER_PARTS`].
    pub(crate) fn for_strangers(bytes: usize) -> Self {
        Self::with_parts(bytes, STRANGER_PARTS)
    }

    fn with_parts(bytes: usize, parts: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(bytes / UNIT)),
            units_per_client: bytes / UNIT / parts,
            clients: Mutex::default(),
        }
    }

    /// What nobody holds, in bytes.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.all.available_permits() * UNIT
    }

    /// What this client may use. All its connections share it.
    pub(crate) fn client(&self, client: Client) -> ClientBudget {
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
    pub(crate) fn client(&self) -> Client {
        self.client
    }

    /// Waits for memory of this size. `None` only if the server ends.
    pub(crate) async fn acquire(&self, bytes: usize) -> Option<BufferPermit> {
        let units = self.units(bytes);
        let own = Arc::clone(&self.own).acquire_many_owned(units).await.ok()?;
        let all = Arc::clone(&self.all).acquire_many_owned(units).await.ok()?;
        Some(BufferPermit { own, all })
    }

    /// The same without waiting.
    pub(crate) fn try_acquire(&self, bytes: usize) -> Option<BufferPermit> {
        let units = self.units(bytes);
        let own = Arc::clone(&self.own).try_acquire_many_owned(units).ok()?;
        let all = Arc::clone(&self.all).try_acquire_many_owned(units).ok()?;
        Some(BufferPermit { own, all })
    }

    /// Changes the size of a permit, without waiting. Returns `false`, and changes nothing, if it
    /// grows by more than there is.
    pub(crate) fn try_resize(&self, held: &mut Option<BufferPermit>, bytes: usize) -> bool {
        let before = held.as_ref().map_or(0, BufferPermit::units);
        let after = bytes.div_ceil(UNIT);
        if after > self.most_units {
            return false;
        }
        if after > before {
            let Some(more) = self.try_acquire((after - before) * UNIT) else {
                return false;
            };
            match held {
                Some(held) => held.merge(more),
                None => *held = Some(more),
            }
        } else if after == 0 {
            *held = None;
        } else if let Some(held) = held {
            held.split(before - after);
        }
        true
    }

    fn units(&self, bytes: usize) -> u32 {
        let units = bytes.div_ceil(UNIT).min(self.most_units);
        u32::try_from(units).unwrap_or(u32::MAX)
    }
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

    #[test]
    fn a_permit_grows_as_far_as_there_is_room_and_always_shrinks() {
        let budget = BufferBudget::new(8 * UNIT);
        let client = budget.client(A);
        let (mut first, mut second) = (None, None);
        assert!(client.try_resize(&mut first, 3 * UNIT));
        assert!(client.try_resize(&mut second, 1));
        assert!(!client.try_resize(&mut second, UNIT + 1));
        assert!(
            !client.try_resize(&mut None, 4 * UNIT + 1),
            "more than half"
        );
        assert!(client.try_resize(&mut first, UNIT));
        assert!(client.try_resize(&mut second, 3 * UNIT));
        assert_eq!(budget.free(), 4 * UNIT);
        assert!(client.try_resize(&mut first, 0) && first.is_none());
        drop(second);
        assert_eq!(budget.free(), 8 * UNIT);
    }
}
