//! The wait until there is an ID in a stripe or a stock.

use std::task::{Poll, Waker};

use super::Filler;
use crate::fill::waiters::Waiting;
use crate::timeline::Refused;

/// The wait of one future until there is an ID to take. Takes none.
#[derive(Debug)]
pub(crate) struct FilledWait<'a> {
    filler: &'a Filler,
    waiting: Waiting<'a, Filler>,
}

impl<'a> FilledWait<'a> {
    pub(crate) fn new(filler: &'a Filler) -> Self {
        Self {
            filler,
            waiting: filler.waiting(),
        }
    }

    /// Whether there is an ID, or false if none can come. Asks for fills, and wakes `waker`
    /// after the next publication. `is_leased` is the state of the lease: `Some(true)` if
    /// one is in force, `None` if it may still come, which the caller waits for.
    pub(crate) fn poll(&mut self, is_leased: Option<bool>, waker: &Waker) -> Poll<bool> {
        if is_leased != Some(true) {
            // The place in the list goes: a wake-up there is for another consumer now.
            self.waiting = self.filler.waiting();
            return is_leased.map_or(Poll::Pending, Poll::Ready);
        }
        let filler = self.filler;
        self.waiting.poll(waker, || {
            if !filler.is_empty() {
                return Some(true);
            }
            filler.ask_for_what_is_missing();
            match filler.source().timeline().refused_now()? {
                Refused::BorrowLimit { .. } | Refused::NoLease { .. } => None,
                _ => Some(false),
            }
        })
    }
}
