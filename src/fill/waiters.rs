//! Consumers that wait for an empty ring to be filled: threads, and futures.
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
//! The gate is held only to compare and to raise the sequence, and to change the list of
//! wakers. No attempt is made under it, so a user's clock that is slow or panics in an
//! attempt holds up nobody else. No waker is called under it either.
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
//! # Futures
//!
//! A future does over several polls what a thread does in one call. It is announced from
//! its first poll until it leaves, and where a thread sleeps it enters its waker in a list.
//!
//! ```text
//!   poll: count + 1 if it is the first, note sequence, fence, attempt
//!           |-- an ID ---> leaving
//!           `-- none ----> gate: sequence as noted? enter the waker, or replace it: pending
//!                                a newer one? ---> note it, and so on
//!   drop, unless it has left ---> leaving
//!   leaving: gate: take the waker out; count - 1, more in the ring? ---> as a producer
//!   producer: ... ---> gate: sequence + 1, take the oldest waker out; wake it, and one thread
//! ```
//!
//! *A waker in the list is a sleeping thread.* The sequence is compared and the waker
//! entered in one hold of the gate. A notification comes before, and the future looks
//! again, or after, and finds the waker.
//!
//! *The waker of the last poll is the one that counts.* If a notification has taken out an
//! older one, it has raised the sequence: before the poll has noted it, whose attempt then
//! sees the published IDs, or after, and the poll looks again before it enters its own.
//!
//! *No wake-up ends with a future that is dropped.* It passes the gate when it leaves. If a
//! notification has taken its waker out before, then the future sees what was published
//! before that, and wakes the next one if any of it is left. If not, later ones find the
//! wakers of others, since its own is gone. So the waker goes before the future looks at the
//! ring. A future that is polled without having been woken, takes an ID and leaves, does
//! the same.
//!
//! *A waker may poll its future in place.* The future that leaves there wakes the next one when
//! the waker has returned ([`wakers`]). That is later and not lost, unless the waker never
//! returns. No stack grows with the number of those that wait.
//!
//! *Threads and futures don't wait for each other.* A notification wakes one of each, since
//! nothing says how soon a runtime polls. One of the two may look in vain. The chain of
//! either kind does not depend on the other, but on this: a future that was woken is polled
//! or dropped. One that its owner holds and does not poll keeps the wake-up, until the next
//! publication. One that is forgotten (`mem::forget`) stays counted, and costs each
//! publication a pass of the gate.
//!
//! # What comes last
//!
//! A consumer for which nothing more can be made sleeps only for IDs that others have in hand.
//! There may be fewer of these than waiting consumers, and those who get none have to give up. So
//! waking one at a time is not enough. Such a consumer sets a flag in its attempt. The next
//! notification clears the flag under the gate, before it raises the sequence there, and wakes all.
//! So it finds the flag of each consumer that has passed the gate before. A consumer that passes
//! the gate later with an older sequence does not sleep, and sets the flag again. A consumer that
//! has noted the raised sequence sets the flag after it was cleared, for the notification after
//! this.
//!
//! # Forks
//!
//! The crate `event-listener` does the same, and keeps its listeners in a list under
//! a lock, which it also takes when they are dropped. An attempt runs a user's clock. If
//! that forks, the child drops a listener of a list whose lock another thread of the
//! parent may have held, and waits for ever. Here a thread that leaves only lowers a count.
//! A future that leaves takes the gate, but for a child of a fork, where it does nothing at
//! all. The list stays as the fork has found it, and nobody drops it there: it is the
//! filler's, which each producer's thread owns, too, and a child has none of these threads.

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;
mod waiting;

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::describe::opaque_debug;
use crate::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::wakers::{self, Wakers};

pub(crate) use self::waiting::{Supply, Waiting};

/// Consumers that wait until something is published.
pub(crate) struct Waiters {
    /// The number of announced consumers.
    count: CachePadded<AtomicUsize>,
    /// Changes with each wake-up, under the gate. The filler's tests read it too.
    pub(super) sequence: AtomicU64,
    /// Whether some sleep only for what others have in their hands.
    for_the_last: AtomicBool,
    /// Holds the wakers of futures.
    gate: Mutex<Wakers>,
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
            gate: Mutex::new(Wakers::default()),
            condvar: Condvar::new(),
        }
    }

    /// Wakes one waiting thread and one future, which then wake the next; or all, if some wait
    /// for the last. To be called after each publication.
    ///
    /// Costs a fence and a load while no consumer waits.
    pub(crate) fn notify(&self) {
        if self.anybody_waits() {
            self.raise(false);
        }
    }

    /// Wakes all waiting consumers: there may be nothing to wait for.
    pub(crate) fn notify_all(&self) {
        if self.anybody_waits() {
            self.raise(true);
        }
    }

    /// To be called by an attempt after which the consumer sleeps though nothing more can be
    /// made, because others have some in their hands.
    pub(crate) fn wait_for_the_last(&self) {
        // Relaxed: ordered before the next notification by the gate, and after the last one by
        // the fence in `wait`.
        self.for_the_last.store(true, Relaxed);
    }

    /// Whether nobody is counted, and no waker is in the list: for tests.
    #[cfg(any(test, feature = "loom"))]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Relaxed) == 0 && self.lock().is_empty()
    }

    fn anybody_waits(&self) -> bool {
        // SeqCst: pairs with the fence in `wait`. Relaxed: ordered by it.
        fence(SeqCst);
        self.count.load(Relaxed) > 0
    }

    /// Raises the sequence, and wakes one thread and one future; or `all`, which it does also
    /// where some wait for the last.
    #[cold]
    fn raise(&self, all: bool) {
        let mut gate = self.lock();
        // Relaxed: ordered by the gate, and by the next line.
        let for_the_last = self.for_the_last.swap(false, Relaxed);
        // Release: pairs with the fences in `wait` and `Waiting::poll`. A consumer that notes
        // this sequence sets the flag after it was cleared.
        self.sequence.fetch_add(1, Release);
        if all || for_the_last {
            let futures = gate.take_all();
            drop(gate);
            self.condvar.notify_all();
            wakers::wake(futures);
        } else {
            let future = gate.take_oldest();
            drop(gate);
            self.condvar.notify_one();
            wakers::wake(future);
        }
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

    /// No code of a user runs under the gate, so a panic under it has spoiled nothing.
    fn lock(&self) -> MutexGuard<'_, Wakers> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

opaque_debug!(Waiters);

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
