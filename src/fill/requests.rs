//! The wants of the consumers, each asked for once.

use std::sync::OnceLock;

use crossbeam_utils::CachePadded;

use super::FillCause;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::thread::Thread;

/// What the producers are asked to do: one bit a cause, and one to stop.
///
/// A word of bits is a queue that is bounded and deduplicated by itself.
#[derive(Debug)]
pub(crate) struct Requests {
    wanted: CachePadded<AtomicU32>,
    /// Set once, before the first consumer exists.
    producers: OnceLock<Box<[Thread]>>,
}

/// A copy of the requests at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted(u32);

impl Wanted {
    const STOP: u32 = 1 << 31;

    pub(crate) fn stop(self) -> bool {
        self.0 & Self::STOP != 0
    }

    /// These requests and one for `cause`.
    pub(crate) fn with(self, cause: FillCause) -> Self {
        Self(self.0 | cause.bit())
    }

    /// The most pressing cause, if there is any.
    pub(crate) fn cause(self) -> Option<FillCause> {
        FillCause::ALL
            .into_iter()
            .find(|cause| self.0 & cause.bit() != 0)
    }
}

impl FillCause {
    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl Requests {
    pub(crate) fn new() -> Self {
        Self {
            wanted: CachePadded::new(AtomicU32::new(0)),
            producers: OnceLock::new(),
        }
    }

    /// Names the threads to be woken; the first call counts.
    pub(crate) fn wake_these(&self, threads: Box<[Thread]>) {
        // A second call would come from a second set of producers, which
        // nothing in this crate starts.
        let _ = self.producers.set(threads);
    }

    /// Asks for a fill, unless one is asked for already.
    ///
    /// Lock-free: a load while a request is open. The first request of a
    /// crossing wakes the producers, with one futex call for each that sleeps.
    #[inline]
    pub(crate) fn request(&self, cause: FillCause) {
        // Relaxed: a caller whose take the producer did not count has
        // acquired the cleared bit through the ring's `cursor`.
        if self.wanted.load(Relaxed) & cause.bit() == 0 {
            self.raise(cause.bit());
        }
    }

    /// Tells the producers to end.
    pub(crate) fn stop(&self) {
        self.raise(Wanted::STOP);
    }

    #[cold]
    fn raise(&self, bit: u32) {
        // AcqRel: pairs with `wanted`; what led to the request is seen by the
        // producer that serves it.
        if self.wanted.fetch_or(bit, AcqRel) & bit == 0
            && let Some(threads) = self.producers.get()
        {
            for thread in threads {
                thread.unpark();
            }
        }
    }

    /// What is wanted. May miss what is raised at this moment; its raiser
    /// unparks afterwards.
    pub(crate) fn wanted(&self) -> Wanted {
        // Acquire: pairs with `raise`.
        Wanted(self.wanted.load(Acquire))
    }

    /// Marks the requests of `served` as done. The caller must look at the
    /// level afterwards.
    pub(crate) fn settle(&self, served: Wanted) {
        let mask = !(served.0 & !Wanted::STOP);
        // AcqRel: released to the takes by `settled_level`, which follows.
        self.wanted.fetch_and(mask, AcqRel);
    }

    /// Puts back requests that could not be served, without waking anybody:
    /// the caller tries again itself.
    pub(crate) fn reopen(&self, unserved: Wanted) {
        self.wanted.fetch_or(unserved.0, AcqRel);
    }
}
