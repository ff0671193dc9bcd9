//! Waiting for the lock, so that nobody starves.
//!
//! SQLite's lock has no queue: the store that asks while it is free has it. Two things
//! keep that fair among stores that all want it all the time.
//!
//! * A store that finds it taken asks again after 1 to 9 ms, at random, however long
//!   it has waited. The waits of SQLite's own time-out get longer instead, and the
//!   store that has waited longest gets the lock least.
//! * A store that gives it back and wants it again at once would always find it
//!   free, while the others sleep. So a store that has found the lock taken within the
//!   last second waits first, like all the others. A store that is alone never
//!   does.
//!
//! After each change everyone then has the same chance.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// For how long a lock that was found taken counts as sought after.
const SOUGHT: Duration = Duration::from_secs(1);

/// The longest wait between two attempts.
const PAUSE: Duration = Duration::from_millis(9);

/// The lock, as one store has found it.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// When it was last found taken.
    taken: Option<Instant>,
    /// When it was last given back.
    given_back: Option<Instant>,
}

impl Queue {
    /// Waits if this store would otherwise push in.
    pub(super) fn join(&self, deadline: Instant) {
        if self.seen().pushes_in(Instant::now()) {
            wait(deadline);
        }
    }

    /// Waits after the lock was found taken; answers whether to try again.
    pub(super) fn handler(&self, deadline: Instant) -> impl FnMut(i32) -> bool + Send + 'static {
        let queue = self.clone();
        move |_| {
            queue.seen().taken = Some(Instant::now());
            wait(deadline)
        }
    }

    /// Takes note that the lock was given back.
    pub(super) fn leave(&self) {
        self.seen().given_back = Some(Instant::now());
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Two times, each right by itself.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn pushes_in(&self, now: Instant) -> bool {
        let within = |then: Option<Instant>, time| {
            then.is_some_and(|then| now.saturating_duration_since(then) < time)
        };
        within(self.taken, SOUGHT) && within(self.given_back, PAUSE)
    }
}

/// Sleeps for a moment; false after the deadline.
fn wait(deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return false;
    }
    let random = RandomState::new().hash_one(0);
    let pause = Duration::from_micros(1000 + random % (PAUSE.as_micros() as u64 - 1000));
    thread::sleep(pause.min(left));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_had_the_lock_while_others_sought_it_pushes_in() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        for (taken, given_back, now, expected) in [
            (Some(0), Some(500), 505, true),
            // It was alone.
            (None, Some(500), 505, false),
            (Some(0), Some(1500), 1505, false),
            // It has not had the lock yet, or let others go first.
            (Some(0), None, 505, false),
            (Some(0), Some(500), 600, false),
        ] {
            let seen = Seen {
                taken: taken.map(at),
                given_back: given_back.map(at),
            };
            assert_eq!(
                seen.pushes_in(at(now)),
                expected,
                "{taken:?} {given_back:?}"
            );
        }
    }

    #[test]
    fn a_wait_ends_with_the_deadline() {
        let deadline = Instant::now() + Duration::from_millis(20);
        while wait(deadline) {}
        assert!(Instant::now() >= deadline);
        assert!(!wait(deadline));
    }
}
