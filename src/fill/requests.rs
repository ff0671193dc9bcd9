//! The wants of the consumers, each asked for once.

use std::sync::OnceLock;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::FillCause;
use crate::sync;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use crate::sync::atomic::{AtomicU32, AtomicU64};
use crate::sync::thread::Thread;

/// What the producers are asked to do: one bit a cause, and one to stop.
///
/// A word of bits is a queue that is bounded and deduplicated by itself.
#[derive(Debug)]
pub(crate) struct Requests {
    wanted: CachePadded<AtomicU32>,
    /// The producers that sleep until something is wanted: one bit each.
    idle: CachePadded<AtomicU64>,
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

    pub(crate) fn includes(self, cause: FillCause) -> bool {
        self.0 & cause.bit() != 0
    }

    /// These requests and one for `cause`.
    pub(crate) fn with(self, cause: FillCause) -> Self {
        Self(self.0 | cause.bit())
    }

    /// The most pressing cause, if there is any.
    pub(crate) fn cause(self) -> Option<FillCause> {
        FillCause::ALL
            .into_iter()
            .find(|&cause| self.includes(cause))
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
            idle: CachePadded::new(AtomicU64::new(0)),
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
    /// crossing wakes one producer that sleeps, with one futex call; that one
    /// wakes another if there is more to do than a block.
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
        self.wanted.fetch_or(Wanted::STOP, AcqRel);
        self.nudge();
    }

    /// Wakes every producer, also those that rest after a refusal.
    pub(crate) fn nudge(&self) {
        for thread in self.producers() {
            thread.unpark();
        }
    }

    #[cold]
    fn raise(&self, bit: u32) {
        // AcqRel: pairs with `rest`.
        if self.wanted.fetch_or(bit, AcqRel) & bit == 0 {
            self.wake_one();
        }
    }

    /// Wakes one of the producers that sleep, to look at what is wanted.
    pub(crate) fn wake_one(&self) {
        // Relaxed: ordered by the word of requests, see `rest`. Of those that
        // are awake each looks at it before it sleeps.
        let idle = self.idle.load(Relaxed);
        if let Some(thread) = self.producers().get(idle.trailing_zeros() as usize) {
            thread.unpark();
        }
    }

    /// Puts producer `index` to sleep until something is wanted, or for `nap`.
    pub(crate) fn rest(&self, index: usize, nap: Option<Duration>) {
        let bit = 1 << index;
        // Relaxed: ordered by the next line.
        self.idle.fetch_or(bit, Relaxed);
        // Read by adding nothing: a request that was raised before is seen
        // here, and whoever raises one after this sees the idle bit.
        if self.wanted.fetch_or(0, AcqRel) == 0 {
            sync::park(nap);
        }
        // Relaxed: until this is seen, a wake-up may be spent on this thread,
        // which is about to look anyway.
        self.idle.fetch_and(!bit, Relaxed);
    }

    fn producers(&self) -> &[Thread] {
        self.producers.get().map_or(&[], |threads| threads)
    }

    /// What is wanted. May miss what is raised at this moment; `rest` will not.
    pub(crate) fn wanted(&self) -> Wanted {
        // Relaxed: only says what to do; what is done is ordered by the ring.
        Wanted(self.wanted.load(Relaxed))
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
