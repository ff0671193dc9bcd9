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

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;
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

    /// While the returned guard lives, [`busy_handler`] waits on this thread until
    /// `deadline` for the lock.
    pub(super) fn wait_until(&self, deadline: Instant) -> BusyWait {
        BusyWait {
            previous: replace_current(Some((self.clone(), deadline))),
            not_send: PhantomData,
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

thread_local! {
    /// The queue and the deadline of the transaction that this thread has open.
    static CURRENT: RefCell<Option<(Queue, Instant)>> = const { RefCell::new(None) };
}

/// Returns what was there. While the thread ends, there is nothing and nothing is kept, so that
/// the store fails at once when it finds the lock taken.
fn replace_current(wait: Option<(Queue, Instant)>) -> Option<(Queue, Instant)> {
    let replaced = CURRENT.try_with(|current| current.replace(wait));
    replaced.ok().flatten()
}

/// Guard of [`Queue::wait_until`]. It stays on its thread, and guards must be dropped in
/// reverse order of creation.
#[derive(Debug)]
pub(super) struct BusyWait {
    previous: Option<(Queue, Instant)>,
    not_send: PhantomData<*const ()>,
}

impl Drop for BusyWait {
    fn drop(&mut self) {
        replace_current(self.previous.take());
    }
}

/// SQLite's busy handler: waits after the lock was found taken, and returns whether to try
/// again. Older versions of rusqlite accept only a plain `fn`, so queue and deadline come from
/// this thread's [`BusyWait`].
pub(super) fn busy_handler(_attempt: i32) -> bool {
    let current = CURRENT.try_with(|current| current.borrow().clone());
    current.ok().flatten().is_some_and(|(queue, deadline)| {
        queue.seen().taken = Some(Instant::now());
        wait(deadline)
    })
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

    #[test]
    fn busy_handler_uses_the_deadline_of_the_innermost_transaction() {
        let queue = Queue::default();
        assert!(!busy_handler(0), "no transaction is open");
        let outer = queue.wait_until(Instant::now() + Duration::from_secs(60));
        let inner = queue.wait_until(Instant::now());
        assert!(!busy_handler(0), "the inner deadline has passed");
        drop(inner);
        assert!(busy_handler(0), "the outer deadline has not");
        assert!(queue.seen().taken.is_some());
        drop(outer);
        assert!(!busy_handler(0), "no transaction is open any more");
    }
}
