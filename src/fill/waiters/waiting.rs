//! The wait of one future. The head of `waiters` has the proof.

use std::fmt;
use std::task::{Poll, Waker};

use super::Waiters;
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::sync::atomic::fence;
use crate::wakers::{self, Ticket};

/// What futures wait for.
pub(crate) trait Supply {
    /// Whether there is something for another consumer.
    fn has_some(&self) -> bool;

    /// Whether this is a forked child's copy.
    fn is_forked(&self) -> bool;
}

/// A future that waits until something is published. The drop counts it out.
pub(crate) struct Waiting<'a, S: Supply> {
    waiters: &'a Waiters,
    supply: &'a S,
    is_announced: bool,
    /// Its place in the list of wakers.
    ticket: Ticket,
}

impl<'a, S: Supply> Waiting<'a, S> {
    /// Not announced yet.
    pub(crate) fn new(waiters: &'a Waiters, supply: &'a S) -> Self {
        Self {
            waiters,
            supply,
            is_announced: false,
            ticket: Ticket::default(),
        }
    }

    /// Whether the future waits: it was polled, and had to.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_announced
    }

    /// Calls `attempt` until it gives a value, or nothing was published meanwhile; then
    /// `waker` is woken by the next publication.
    pub(crate) fn poll<T>(
        &mut self,
        waker: &Waker,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Poll<T> {
        if !self.is_announced {
            // Relaxed: ordered by the fence.
            self.waiters.count.fetch_add(1, Relaxed);
            self.is_announced = true;
        }
        // A runtime's code, so before the attempt, which looks for a fork when it has failed:
        // a child must not pass the gate.
        let mut fresh = waker.clone();
        loop {
            // Relaxed: see "the note is not too new".
            let noted = self.waiters.sequence.load(Relaxed);
            // SeqCst: pairs with the fence in `notify`, and as an Acquire with `raise`.
            fence(SeqCst);
            if let Some(value) = attempt() {
                self.leave();
                wakers::discard(Some(fresh));
                return Poll::Ready(value);
            }
            match self.enter(noted, fresh) {
                Ok(replaced) => {
                    wakers::discard(replaced);
                    return Poll::Pending;
                }
                Err(again) => fresh = again,
            }
        }
    }

    /// Enters the waker if the sequence is the one noted, and returns the one that it
    /// replaces; else gives it back.
    fn enter(&mut self, noted: u64, waker: Waker) -> Result<Option<Waker>, Waker> {
        let mut gate = self.waiters.lock();
        // Relaxed: written under the gate.
        if self.waiters.sequence.load(Relaxed) == noted {
            Ok(gate.enter(&mut self.ticket, waker))
        } else {
            Err(waker)
        }
    }

    /// Counts the future out, and passes on what there is for others.
    fn leave(&mut self) {
        if !std::mem::take(&mut self.is_announced) || self.supply.is_forked() {
            return;
        }
        let mut own = None;
        if self.ticket.is_drawn() {
            own = self.waiters.lock().leave(&mut self.ticket);
        }
        // Relaxed: a consumer that is counted too long costs a producer a wake-up.
        self.waiters.count.fetch_sub(1, Relaxed);
        // After the waker was taken out: what wakes it no more wakes another.
        if self.supply.has_some() {
            self.waiters.notify();
        }
        wakers::discard(own);
    }
}

impl<S: Supply> Drop for Waiting<'_, S> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<S: Supply> fmt::Debug for Waiting<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting")
            .field("is_announced", &self.is_announced)
            .finish_non_exhaustive()
    }
}
