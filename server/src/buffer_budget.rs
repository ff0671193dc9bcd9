//! Memory that waits for clients, in permits.
//!
//! A client, which is an address or a user on a Unix socket, may hold a part of a budget: half, so
//! one client can't use it up, or a sixteenth before it is authenticated, so a few can't. Each queue
//! is first in, first out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clients::Client;
use crate::lock::lock;

const STRANGER_PARTS: usize = 16;

/// A permit stands for as many bytes.
const UNIT: usize = 1 << 10;

#[derive(Debug)]
pub(crate) struct BufferBudget {
    all: Arc<Semaphore>,
    units_per_client: usize,
    parts: Parts,
}

/// The parts of clients that have connections.
type Parts = Arc<Mutex<HashMap<Client, Weak<Part>>>>;

/// What one client may use.
#[derive(Debug)]
struct Part {
    client: Client,
    free: Arc<Semaphore>,
    parts: Parts,
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut parts = lock(&self.parts);
        // The client may have come back meanwhile, with a new one.
        if parts
            .get(&self.client)
            .is_some_and(|it| it.strong_count() == 0)
        {
            parts.remove(&self.client);
        }
    }
}

/// The budget as one client sees it.
#[derive(Clone, Debug)]
pub(crate) struct ClientBudget {
    part: Arc<Part>,
    all: Arc<Semaphore>,
    most_units: usize,
}

/// A part of the budget, returned on drop.
#[derive(Debug)]
pub(crate) struct BufferPermit {
    own: OwnedSemaphorePermit,
    all: OwnedSemaphorePermit,
    /// The client's part stays the same one until its last permit is returned.
    _part: Arc<Part>,
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
            parts: Parts::default(),
        }
    }

    /// What nobody holds, in bytes.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.all.available_permits() * UNIT
    }

    /// What this client may use. All its connections share it.
    pub(crate) fn client(&self, client: Client) -> ClientBudget {
        let mut parts = lock(&self.parts);
        let known = parts.get(&client).and_then(Weak::upgrade);
        let part = known.unwrap_or_else(|| {
            let part = Arc::new(Part {
                client,
                free: Arc::new(Semaphore::new(self.units_per_client)),
                parts: Arc::clone(&self.parts),
            });
            parts.insert(client, Arc::downgrade(&part));
            part
        });
        ClientBudget {
            part,
            all: Arc::clone(&self.all),
            most_units: self.units_per_client,
        }
    }
}

impl ClientBudget {
    pub(crate) fn client(&self) -> Client {
        self.part.client
    }

    /// Waits for memory of this size. `None` only if the server ends.
    pub(crate) async fn acquire(&self, bytes: usize) -> Option<BufferPermit> {
        let units = self.units(bytes);
        let free = Arc::clone(&self.part.free);
        let own = free.acquire_many_owned(units).await.ok()?;
        let all = Arc::clone(&self.all).acquire_many_owned(units).await.ok()?;
        Some(self.permit(own, all))
    }

    /// The same without waiting.
    pub(crate) fn try_acquire(&self, bytes: usize) -> Option<BufferPermit> {
        let units = self.units(bytes);
        let free = Arc::clone(&self.part.free);
        let own = free.try_acquire_many_owned(units).ok()?;
        let all = Arc::clone(&self.all).try_acquire_many_owned(units).ok()?;
        Some(self.permit(own, all))
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

    fn permit(&self, own: OwnedSemaphorePermit, all: OwnedSemaphorePermit) -> BufferPermit {
        BufferPermit {
            own,
            all,
            _part: Arc::clone(&self.part),
        }
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
    fn a_client_is_forgotten_with_its_last_permit() {
        let budget = BufferBudget::new(4 * UNIT);
        let permit = budget.client(A).try_acquire(2 * UNIT);
        assert!(permit.is_some());
        assert!(budget.client(A).try_acquire(1).is_none());
        assert!(budget.client(B).try_acquire(1).is_some());
        assert_eq!(lock(&budget.parts).len(), 1);
        drop(permit);
        assert_eq!(lock(&budget.parts).len(), 0);
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
