//! Consumers that wait for a dry ring to be filled.
//!
//! # State
//!
//! An event count with a sequence number (D. Vyukov's eventcounts). A consumer
//! announces itself in `count`, notes `sequence`, looks at what it waits for, and
//! sleeps as long as the sequence is the one noted. A producer publishes, and if
//! anybody is announced raises the sequence and wakes as many as there are IDs.
//!
//! ```text
//!   consumer: count + 1, note sequence, fence, attempt ---> gate: sequence as noted? sleep
//!   producer: publish, fence, count > 0? ---> gate: sequence + 1; wake
//! ```
//!
//! The gate is held for the comparison and the raising alone: no attempt is made
//! under it, so a user's clock that is slow or panics in one keeps up nobody else.
//!
//! # Why no wake-up is lost
//!
//! *Of the two fences one comes first.* If the producer's, the consumer's attempt
//! sees what was published. If the consumer's, the producer sees it counted and
//! raises the sequence: before the consumer compares, which then does not sleep, or
//! while it sleeps, having let go of the gate.
//!
//! *The note is not too new.* A consumer that notes a sequence which the producer
//! has raised already read it before its fence, and the producer wrote it after its
//! own: the attempt sees what was published.
//!
//! *No ID lies there while somebody sleeps.* Take the last moment at which the ring
//! was empty. Each ID published since then has woken one that slept, if any did,
//! and whoever is woken, or gives up by the time, makes an attempt. An attempt in a
//! ring that is not empty takes at least one ID. So as many are taken as were
//! published, or nobody is asleep any more.
//!
//! A well-kept crate for this, `event-listener`, keeps its listeners in a list under
//! a lock, also when they are dropped. An attempt runs a user's clock; if that forks,
//! the child drops a listener of a list whose lock another thread of the parent may
//! have held, and waits for ever. Here only a count is dropped.

use std::fmt;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::sync::atomic::{AtomicU64, AtomicUsize, fence};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Consumers asleep until something is published.
pub(crate) struct Waiters {
    /// How many are announced.
    count: CachePadded<AtomicUsize>,
    /// Changes with each wake-up, under the gate.
    sequence: AtomicU64,
    gate: Mutex<()>,
    bell: Condvar,
}

/// A consumer that is announced. Also one that panics takes its leave.
struct Announced<'a>(&'a AtomicUsize);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        // Relaxed: one that is counted too long costs a producer a wake-up.
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self {
            count: CachePadded::new(AtomicUsize::new(0)),
            sequence: AtomicU64::new(0),
            gate: Mutex::new(()),
            bell: Condvar::new(),
        }
    }

    /// Wakes up to `most` of those who wait. To be called after each publication.
    ///
    /// Costs a fence and a load while nobody does.
    pub(crate) fn notify(&self, most: usize) {
        // SeqCst: pairs with the fence in `wait`. Relaxed: ordered by it.
        fence(SeqCst);
        let waiting = self.count.load(Relaxed);
        if waiting > 0 && most > 0 {
            self.wake(most, waiting);
        }
    }

    #[cold]
    fn wake(&self, most: usize, waiting: usize) {
        let gate = self.lock();
        // Relaxed: compared under the gate.
        self.sequence.fetch_add(1, Relaxed);
        drop(gate);
        if most < waiting {
            (0..most).for_each(|_| self.bell.notify_one());
        } else {
            self.bell.notify_all();
        }
    }

    /// Tries `attempt` until it gives something, between sleeps, for at most
    /// `timeout`; at least once after that is over.
    pub(crate) fn wait<T>(
        &self,
        timeout: Duration,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let started = Instant::now();
        // Relaxed: ordered by the fence.
        self.count.fetch_add(1, Relaxed);
        let _announced = Announced(&self.count);
        let mut left = Some(timeout);
        loop {
            // Relaxed: see "the note is not too new".
            let noted = self.sequence.load(Relaxed);
            // SeqCst: pairs with the fence in `notify`.
            fence(SeqCst);
            if let Some(value) = attempt() {
                return Some(value);
            }
            self.sleep(noted, left?);
            left = timeout.checked_sub(started.elapsed());
        }
    }

    /// Sleeps while the sequence is the one noted, for at most `longest`.
    fn sleep(&self, noted: u64, longest: Duration) {
        let gate = self.lock();
        // Relaxed: written under the gate.
        if self.sequence.load(Relaxed) == noted {
            // One that wakes without a reason looks again.
            drop(
                self.bell
                    .wait_timeout(gate, longest)
                    .unwrap_or_else(PoisonError::into_inner),
            );
        }
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

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const MINUTE: Duration = Duration::from_secs(60);

    fn announced(waiters: &Waiters) -> usize {
        waiters.count.load(Relaxed)
    }

    #[test]
    fn whoever_has_waited_is_not_counted_any_more() {
        let waiters = Waiters::new();
        let seen = waiters.wait(HOUR, || Some(announced(&waiters)));
        assert_eq!(seen, Some(1));
        assert_eq!(waiters.wait(Duration::ZERO, || None::<()>), None);
        assert_eq!(announced(&waiters), 0);
    }

    #[test]
    fn a_panic_in_an_attempt_leaves_nobody_counted() {
        let waiters = Waiters::new();
        let died = catch_unwind(AssertUnwindSafe(|| {
            waiters.wait(HOUR, || -> Option<()> { panic!("the clock breaks") })
        }));
        assert!(died.is_err());
        assert_eq!(announced(&waiters), 0);
        waiters.notify(1);
        assert_eq!(waiters.wait(HOUR, || Some(1)), Some(1));
    }

    #[test]
    fn an_attempt_is_made_when_the_time_is_over() {
        let waiters = Waiters::new();
        let mut attempts = 0;
        let outcome = waiters.wait(Duration::from_millis(1), || {
            attempts += 1;
            None::<()>
        });
        assert_eq!(outcome, None);
        assert!(attempts >= 2, "{attempts}");
    }

    #[test]
    fn an_attempt_that_takes_long_keeps_nobody_else_up() {
        let waiters = Waiters::new();
        let (entered, is_in) = mpsc::channel();
        let (let_go, wait_for) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let waiters = &waiters;
            scope.spawn(move || {
                waiters.wait(HOUR, || {
                    entered.send(()).unwrap();
                    wait_for.recv().ok()
                })
            });
            is_in.recv_timeout(MINUTE).unwrap();
            // Neither a wait nor a notification stops at the slow one.
            let (through, comes) = mpsc::channel();
            scope.spawn(move || {
                waiters.notify(1);
                through.send(waiters.wait(HOUR, || Some(7))).unwrap();
            });
            let passed = comes.recv_timeout(MINUTE);
            let_go.send(()).unwrap();
            assert_eq!(passed, Ok(Some(7)));
        });
    }

    /// Counts wake-ups of ten that sleep.
    #[test]
    fn no_more_are_woken_than_there_are_ids() {
        let waiters = Waiters::new();
        let attempts = AtomicUsize::new(0);
        let over = AtomicBool::new(false);
        let eventually = |what: &str, wanted: usize| {
            let deadline = Instant::now() + MINUTE;
            while attempts.load(Relaxed) < wanted {
                assert!(Instant::now() < deadline, "{what}");
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| {
                    waiters.wait(HOUR, || {
                        attempts.fetch_add(1, Relaxed);
                        over.load(Relaxed).then_some(())
                    })
                });
            }
            eventually("all have looked once", 10);
            // Until each of them sleeps, whoever is on the way there looks again.
            let mut settled = 0;
            while settled < 1000 {
                let before = attempts.load(Relaxed);
                std::thread::yield_now();
                settled = if attempts.load(Relaxed) == before {
                    settled + 1
                } else {
                    0
                };
            }
            let before = attempts.load(Relaxed);
            waiters.notify(3);
            eventually("three are woken", before + 3);
            let woken = attempts.load(Relaxed) - before;
            over.store(true, Relaxed);
            waiters.notify(usize::MAX);
            assert!((3..10).contains(&woken), "{woken} woken for three IDs");
        });
        assert_eq!(announced(&waiters), 0);
    }
}
