//! Consumers that wait for an empty ring to be filled.
//!
//! # State
//!
//! An event count with a sequence number (D. Vyukov's eventcounts). A consumer
//! announces itself in `count`, notes `sequence`, attempts to take, and
//! sleeps as long as the sequence is the one noted. A producer publishes, and if
//! any consumer is announced, raises the sequence and wakes one. A consumer that leaves
//! wakes the next, if there are IDs left. So as many wake up as there are IDs, and the
//! producer pays for one wake-up.
//!
//! ```text
//!   consumer: count + 1, note sequence, fence, attempt ---> gate: sequence as noted? sleep
//!             leaving: count - 1, more in the ring? ------> as a producer
//!   producer: publish, fence, count > 0? ---> gate: sequence + 1; wake one
//! ```
//!
//! The gate is held only to compare and to raise the sequence. No attempt is made
//! under it, so a user's clock that is slow or panics in an attempt holds up nobody else.
//!
//! # Why no wake-up is lost
//!
//! *One of the two fences comes first.* If it is the producer's, the consumer's attempt
//! sees the published IDs. If it is the consumer's, the producer sees it counted and
//! raises the sequence: before the consumer compares, which then does not sleep, or
//! while it sleeps and so has released the gate.
//!
//! *The note is not too new.* A consumer that notes a sequence which the producer
//! has raised already read it before its fence, and the producer wrote it after its
//! own: the attempt sees the published IDs.
//!
//! *No ID is left in the ring while a consumer sleeps.* Consider the first publication
//! after the last moment at which the ring was empty. It has woken a consumer, if any
//! slept. This consumer makes an attempt, also if its time is over by then, and as the
//! ring is not empty it takes at least one ID. When it leaves, also by a panic, it sees
//! everything that was published before it was woken, and wakes the next consumer if any
//! of that is left; later publications have woken others. So the chain ends when
//! no consumer is asleep or the ring is empty.
//!
//! # What comes last
//!
//! A consumer for which nothing more can be made sleeps only for what others have in their
//! hands. That may be less than one for each that waits, and those who get none have to give
//! up, so waking one at a time is not enough. Such a consumer sets a flag in its attempt, and
//! the next notification clears the flag under the gate, before it raises the sequence there,
//! and wakes all. So it finds the flag of each consumer that has passed the gate before. One
//! that passes it later with an older sequence does not sleep, and sets the flag again. One
//! that has noted the raised sequence sets it after it was cleared, for the notification after
//! this.
//!
//! The crate `event-listener` does the same, and keeps its listeners in a list under
//! a lock, which it also takes when they are dropped. An attempt runs a user's clock. If
//! that forks, the child drops a listener of a list whose lock another thread of the
//! parent may have held, and waits for ever. Here a drop only lowers a count.

use std::fmt;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Consumers asleep until something is published.
pub(crate) struct Waiters {
    /// The number of announced consumers.
    count: CachePadded<AtomicUsize>,
    /// Changes with each wake-up, under the gate. The filler's tests read it too.
    pub(super) sequence: AtomicU64,
    /// Whether some sleep only for what others have in their hands.
    for_the_last: AtomicBool,
    gate: Mutex<()>,
    condvar: Condvar,
}

/// A consumer that is announced. The drop counts it out, also after a panic.
struct Announced<'a, M: Fn() -> bool> {
    waiters: &'a Waiters,
    more: M,
}

impl<M: Fn() -> bool> Drop for Announced<'_, M> {
    fn drop(&mut self) {
        // Relaxed: a consumer that is counted too long costs a producer a wake-up.
        self.waiters.count.fetch_sub(1, Relaxed);
        if (self.more)() {
            self.waiters.notify();
        }
    }
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self {
            count: CachePadded::new(AtomicUsize::new(0)),
            sequence: AtomicU64::new(0),
            for_the_last: AtomicBool::new(false),
            gate: Mutex::new(()),
            condvar: Condvar::new(),
        }
    }

    /// Wakes one waiting consumer, which then wakes the next; or all, if some wait for the
    /// last. To be called after each publication.
    ///
    /// Costs a fence and a load while no consumer waits.
    pub(crate) fn notify(&self) {
        if self.anybody_waits() {
            if self.raise() {
                self.condvar.notify_all();
            } else {
                self.condvar.notify_one();
            }
        }
    }

    /// Wakes all waiting consumers: there may be nothing to wait for.
    pub(crate) fn notify_all(&self) {
        if self.anybody_waits() {
            self.raise();
            self.condvar.notify_all();
        }
    }

    /// To be called by an attempt after which the consumer sleeps though nothing more can be
    /// made, because others have some in their hands.
    pub(crate) fn wait_for_the_last(&self) {
        // Relaxed: ordered before the next notification by the gate, and after the last one by
        // the fence in `wait`.
        self.for_the_last.store(true, Relaxed);
    }

    fn anybody_waits(&self) -> bool {
        // SeqCst: pairs with the fence in `wait`. Relaxed: ordered by it.
        fence(SeqCst);
        self.count.load(Relaxed) > 0
    }

    /// Raises the sequence. Returns whether some wait for the last.
    #[cold]
    fn raise(&self) -> bool {
        let gate = self.lock();
        // Relaxed: ordered by the gate, and by the next line.
        let for_the_last = self.for_the_last.swap(false, Relaxed);
        // Release: pairs with the fence in `wait`. A consumer that notes this sequence sets
        // the flag after it was cleared.
        self.sequence.fetch_add(1, Release);
        drop(gate);
        for_the_last
    }

    /// Calls `attempt` until it gives a value, and sleeps in between, for at most
    /// `timeout`; the last call comes after that is over. `more` says whether there is
    /// something for another consumer.
    pub(crate) fn wait<T>(
        &self,
        timeout: Duration,
        mut attempt: impl FnMut() -> Option<T>,
        more: impl Fn() -> bool,
    ) -> Option<T> {
        let started = Instant::now();
        // Relaxed: ordered by the fence.
        self.count.fetch_add(1, Relaxed);
        let _announced = Announced {
            waiters: self,
            more,
        };
        let mut left = Some(timeout);
        loop {
            // Relaxed: see "the note is not too new".
            let noted = self.sequence.load(Relaxed);
            // SeqCst: pairs with the fence in `notify`, and as an Acquire with `raise`.
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
            // A consumer that wakes without a reason looks again.
            drop(
                self.condvar
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
mod placement {
    use super::*;
    use crate::placement::assert_apart;

    /// Each publication looks at the count, and most find nobody.
    #[test]
    fn waiters() {
        assert_apart!(Waiters { [count] [sequence, for_the_last, gate, condvar] });
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;

    use super::*;
    use ringflake_kit::eventually;

    const HOUR: Duration = Duration::from_secs(3600);
    const MINUTE: Duration = Duration::from_secs(60);

    fn announced(waiters: &Waiters) -> usize {
        waiters.count.load(Relaxed)
    }

    fn no_more() -> bool {
        false
    }

    /// The number of attempts in a wait of this length for nothing.
    fn attempts_in(limit: Duration) -> usize {
        let mut attempts = 0;
        let attempt = || {
            attempts += 1;
            None::<()>
        };
        assert_eq!(Waiters::new().wait(limit, attempt, no_more), None);
        attempts
    }

    #[test]
    fn a_consumer_that_has_waited_is_not_counted_any_more() {
        let waiters = Waiters::new();
        let seen = waiters.wait(HOUR, || Some(announced(&waiters)), no_more);
        assert_eq!(seen, Some(1));
        assert_eq!(waiters.wait(Duration::ZERO, || None::<()>, no_more), None);
        assert_eq!(announced(&waiters), 0);
    }

    #[test]
    fn a_notification_counts_only_where_somebody_waits() {
        let waiters = Waiters::new();
        let noted = || waiters.sequence.load(Relaxed);
        let ways: [fn(&Waiters); 2] = [Waiters::notify, Waiters::notify_all];
        for notify in ways {
            let before = noted();
            notify(&waiters);
            assert_eq!(noted(), before);
            let attempt = || {
                notify(&waiters);
                Some(noted())
            };
            assert_eq!(waiters.wait(HOUR, attempt, no_more), Some(before + 1));
        }
    }

    #[test]
    fn a_waiting_consumer_sleeps_between_attempts() {
        let attempts = attempts_in(Duration::from_millis(50));
        assert!(attempts < 100, "{attempts}");
    }

    #[test]
    fn a_notification_before_the_sleep_is_not_missed() {
        let waiters = Waiters::new();
        let mut attempts = 0;
        let attempt = || {
            attempts += 1;
            // Comes between the attempt and the sleep.
            waiters.notify();
            (attempts == 3).then_some(attempts)
        };
        assert_eq!(waiters.wait(MINUTE, attempt, no_more), Some(3));
    }

    #[test]
    fn a_panic_in_an_attempt_leaves_nobody_counted() {
        let waiters = Waiters::new();
        let died = catch_unwind(AssertUnwindSafe(|| {
            waiters.wait(
                HOUR,
                || -> Option<()> { panic!("the clock breaks") },
                no_more,
            )
        }));
        assert!(died.is_err());
        assert_eq!(announced(&waiters), 0);
        waiters.notify();
        assert_eq!(waiters.wait(HOUR, || Some(1), no_more), Some(1));
    }

    #[test]
    fn the_last_attempt_is_made_when_the_time_is_over() {
        let attempts = attempts_in(Duration::from_millis(1));
        assert!(attempts >= 2, "{attempts}");
    }

    #[test]
    fn a_slow_attempt_holds_up_nobody_else() {
        let waiters = Waiters::new();
        let (entered, is_in) = mpsc::channel();
        let (let_go, wait_for) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let waiters = &waiters;
            scope.spawn(move || {
                let attempt = || {
                    entered.send(()).unwrap();
                    wait_for.recv().ok()
                };
                waiters.wait(HOUR, attempt, no_more)
            });
            is_in.recv_timeout(MINUTE).unwrap();
            // Neither a wait nor a notification stops at the slow one.
            let (through, comes) = mpsc::channel();
            scope.spawn(move || {
                waiters.notify();
                through
                    .send(waiters.wait(HOUR, || Some(7), no_more))
                    .unwrap();
            });
            let passed = comes.recv_timeout(MINUTE);
            let_go.send(()).unwrap();
            assert_eq!(passed, Ok(Some(7)));
        });
    }

    /// Consumers that wait for the IDs that `ids` counts.
    #[derive(Default)]
    struct Consumers {
        ids: AtomicUsize,
        attempts: AtomicUsize,
        served: AtomicUsize,
        over: AtomicBool,
    }

    impl Consumers {
        fn take(&self) -> Option<()> {
            self.attempts.fetch_add(1, Relaxed);
            let taken = self
                .ids
                .fetch_update(Relaxed, Relaxed, |ids| ids.checked_sub(1));
            if taken.is_ok() {
                self.served.fetch_add(1, Relaxed);
            }
            (taken.is_ok() || self.over.load(Relaxed)).then_some(())
        }

        fn wait(&self, waiters: &Waiters) {
            waiters.wait(HOUR, || self.take(), || self.ids.load(Relaxed) > 0);
        }

        /// Returns when all `count` have looked once and nobody moves.
        fn until_asleep(&self, count: usize) {
            eventually("all have looked", || self.attempts.load(Relaxed) >= count);
            let mut quiet = 0;
            while quiet < 1000 {
                let before = self.attempts.load(Relaxed);
                std::thread::yield_now();
                quiet = if self.attempts.load(Relaxed) == before {
                    quiet + 1
                } else {
                    0
                };
            }
        }
    }

    #[test]
    fn one_publication_serves_as_many_as_it_has_ids() {
        let waiters = Waiters::new();
        let consumers = Consumers::default();
        std::thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| consumers.wait(&waiters));
            }
            consumers.until_asleep(10);
            let before = consumers.attempts.load(Relaxed);
            consumers.ids.store(3, Relaxed);
            waiters.notify();
            eventually("each wakes the next", || {
                consumers.served.load(Relaxed) == 3
            });
            let attempts = consumers.attempts.load(Relaxed) - before;
            consumers.over.store(true, Relaxed);
            waiters.notify_all();
            assert!(attempts < 10, "{attempts} woken for three IDs");
        });
        assert_eq!(announced(&waiters), 0);
    }

    #[test]
    fn all_are_woken_where_there_may_be_nothing_to_wait_for() {
        let waiters = Waiters::new();
        let consumers = Consumers::default();
        std::thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| consumers.wait(&waiters));
            }
            consumers.until_asleep(10);
            consumers.over.store(true, Relaxed);
            waiters.notify_all();
            let left = || announced(&waiters) == 0;
            let deadline = Instant::now() + MINUTE;
            while !left() && Instant::now() < deadline {
                std::thread::yield_now();
            }
            let all = left();
            // Lets the test end, also if one was not woken.
            while !left() {
                waiters.notify();
            }
            assert!(all, "some were not woken");
        });
    }
}
