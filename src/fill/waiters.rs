//! Consumers that wait for a dry ring to be filled.
//!
//! An event count: a consumer announces itself, looks once more and sleeps; a
//! producer publishes, then looks whether anybody is announced. The fences in
//! between make sure that at least one of the two sees the other, and the gate
//! that the one who was seen to wait is woken.

use std::fmt;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::sync::atomic::fence;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Consumers asleep until something is published.
pub(crate) struct Waiters {
    /// How many are announced.
    count: CachePadded<AtomicU32>,
    /// Held from the announcement until the sleep begins.
    gate: Mutex<()>,
    bell: Condvar,
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self {
            count: CachePadded::new(AtomicU32::new(0)),
            gate: Mutex::new(()),
            bell: Condvar::new(),
        }
    }

    /// Wakes everybody who waits. To be called after each publication.
    ///
    /// Costs a fence and a load while nobody does.
    pub(crate) fn notify(&self) {
        // SeqCst: pairs with the fence in `wait`. Relaxed: ordered by it.
        fence(SeqCst);
        if self.count.load(Relaxed) > 0 {
            drop(self.lock());
            self.bell.notify_all();
        }
    }

    /// Tries `attempt` until it gives something, between sleeps, for at most `timeout`.
    pub(crate) fn wait<T>(
        &self,
        timeout: Duration,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let started = Instant::now();
        let mut gate = self.lock();
        self.count.fetch_add(1, Relaxed);
        let result = loop {
            // SeqCst: pairs with the fence in `notify`.
            fence(SeqCst);
            if let Some(value) = attempt() {
                break Some(value);
            }
            let Some(left) = timeout.checked_sub(started.elapsed()) else {
                break None;
            };
            (gate, _) = self
                .bell
                .wait_timeout(gate, left)
                .unwrap_or_else(PoisonError::into_inner);
        };
        self.count.fetch_sub(1, Relaxed);
        drop(gate);
        result
    }

    /// The gate guards no data, so a panic under it has spoiled nothing.
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Waiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters").finish_non_exhaustive()
    }
}
