//! The wait of a generator that ends for the release of its leases.
//!
//! A release is optional: a block comes free by itself when its end has passed. So it
//! must not hold up an exit, however many generators there are and whatever their stores
//! do. Dropping a generator waits for its worker, but all drops of a process together
//! wait for no more than [`TOGETHER`]. A second of waiting is forgotten after a minute.
//! Shutting a generator down waits for as long as the caller says.
//!
//! The worker goes on whether it is waited for or not, and ends with the store's answer
//! or with the process.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long all drops of a process wait together.
const TOGETHER: Duration = Duration::from_secs(1);

/// How much longer it takes for a wait to be forgotten than it lasted.
const FORGETS: u32 = 60;

/// Whether a worker is done with a client.
#[derive(Debug, Default)]
pub(super) struct Completion {
    /// Whether all leases were released, once it has ended.
    outcome: Mutex<Option<bool>>,
    ended: Condvar,
}

impl Completion {
    /// The worker is done, and whether all leases were released.
    pub(super) fn complete(&self, released: bool) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(released);
        self.ended.notify_all();
    }

    /// Waits for it, and returns whether all leases were released; none if that takes
    /// longer.
    pub(super) fn wait(&self, patience: Duration) -> Option<bool> {
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .ended
            .wait_timeout_while(outcome, patience, |outcome| outcome.is_none());
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The same for as long as a drop may.
    pub(super) fn wait_in_a_drop(&self) -> Option<bool> {
        static START: OnceLock<Instant> = OnceLock::new();
        static PATIENCE: Patience = Patience::new();
        let start = START.get_or_init(Instant::now);
        let begun = start.elapsed();
        let outcome = self.wait(PATIENCE.left(begun));
        PATIENCE.spend(begun, start.elapsed());
        outcome
    }
}

/// The remaining time that all drops may wait. Moments count from any start.
#[derive(Debug)]
struct Patience {
    /// When all of it is there again, in microseconds.
    whole_at: AtomicU64,
}

impl Patience {
    const fn new() -> Self {
        Self {
            whole_at: AtomicU64::new(0),
        }
    }

    fn left(&self, now: Duration) -> Duration {
        // Relaxed: two that wait at once may both use the rest.
        let whole_at = Duration::from_micros(self.whole_at.load(Relaxed));
        TOGETHER.saturating_sub(whole_at.saturating_sub(now) / FORGETS)
    }

    /// Records a wait from `begun` until `now`.
    fn spend(&self, begun: Duration, now: Duration) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let cost = micros(now.saturating_sub(begun).saturating_mul(FORGETS));
        let (now, max) = (micros(now), micros(TOGETHER * FORGETS));
        let spent = |whole_at: u64| Some(whole_at.max(now).saturating_add(cost).min(now + max));
        // The update never fails, so there is no error to handle.
        let _ = self.whole_at.fetch_update(Relaxed, Relaxed, spent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn all_drops_wait_a_second_together_and_forget_it_in_a_minute() {
        let patience = Patience::new();
        assert_eq!(patience.left(secs(0)), TOGETHER);
        let half = Duration::from_millis(500);
        patience.spend(secs(10), secs(10) + half);
        assert_eq!(patience.left(secs(10) + half), half);
        patience.spend(secs(10) + half, secs(11));
        assert!(patience.left(secs(11)) < Duration::from_millis(10));
        assert!(patience.left(secs(41)) > half);
        assert_eq!(patience.left(secs(80)), TOGETHER);
    }
}
