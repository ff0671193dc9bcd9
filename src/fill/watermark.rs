//! The threshold that takes read, and whoever moves it.
//!
//! Takes only read it, from a line that nobody writes as long as it stays where
//! it is. Only producers move it, at the end of a fill, by the [`Law`]; the one that
//! finds the law in another's hands leaves it to that one.
//!
//! # Why a threshold that moves loses no wake-up (R4)
//!
//! A take that should have asked by the new threshold may have looked at the old,
//! lower one. It is not overlooked: the producer first stores the new one and then
//! settles. `RingBuffer::settled_level` either counts that take, and the level is
//! held against the new threshold right then, or comes before it; then the take
//! acquires what was stored before, and sees the new threshold itself.
//!
//! The producer reads the threshold after it has settled, so that of two producers
//! the one that settles last, and counts all that is published, has what both
//! have stored.

use crossbeam_utils::CachePadded;

use super::adaptive::{Law, Seen, Targets};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Mutex, Stopwatch};

/// When to fill, and how far.
#[derive(Debug)]
pub(super) struct Watermark {
    /// A take that leaves fewer than this asks for a fill; 0 for never.
    threshold: AtomicU64,
    /// How far above the threshold a fill goes. Moves with nearly every fill, so
    /// it is not on the line that takes read.
    above: CachePadded<AtomicU64>,
    /// Touched by producers alone. None if the threshold stays.
    law: Option<CachePadded<Mutex<Moving>>>,
}

/// IDs that have left the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    /// All of them.
    pub(super) taken: u64,
    /// Those that nobody was given.
    pub(super) retired: u64,
}

#[derive(Debug)]
struct Moving {
    law: Law,
    time: Stopwatch,
}

impl Watermark {
    /// A threshold that stays, and fills to the brim.
    pub(super) fn fixed(threshold: usize) -> Self {
        Self {
            threshold: AtomicU64::new(threshold as u64),
            above: CachePadded::new(AtomicU64::new(u64::MAX)),
            law: None,
        }
    }

    pub(super) fn moving(law: Law) -> Self {
        let Targets { threshold, above } = law.targets();
        Self {
            threshold: AtomicU64::new(threshold),
            above: CachePadded::new(AtomicU64::new(above)),
            law: Some(CachePadded::new(Mutex::new(Moving {
                law,
                time: Stopwatch::start(),
            }))),
        }
    }

    #[inline]
    pub(super) fn threshold(&self) -> u64 {
        // Relaxed: what a take must see it acquires through the ring's `cursor`.
        self.threshold.load(Relaxed)
    }

    pub(super) fn targets(&self) -> Targets {
        // Relaxed, and not together: whatever two values meet, the goal is not
        // below the threshold.
        Targets {
            threshold: self.threshold(),
            above: self.above.load(Relaxed),
        }
    }

    pub(super) fn moves(&self) -> bool {
        self.law.is_some()
    }

    /// Moves the threshold by the lowest level that a fill met, and the threshold
    /// when it began. `totals` says how many IDs were taken and retired so far; it
    /// is asked in turn. Never waits.
    pub(super) fn follow(&self, threshold: u64, lowest: u64, totals: impl FnOnce() -> Totals) {
        let Some(mut moving) = self.law.as_ref().and_then(|law| law.try_lock().ok()) else {
            return;
        };
        let Totals { taken, retired } = totals();
        let targets = {
            let at = moving.time.elapsed();
            moving.law.observe(Seen {
                at,
                taken,
                retired,
                threshold,
                lowest,
            })
        };
        // Written only if it moves: each write takes the line from the consumers.
        // Relaxed: released by `settled_level`, which comes after.
        if targets.threshold != self.threshold.load(Relaxed) {
            self.threshold.store(targets.threshold, Relaxed);
        }
        if targets.above != self.above.load(Relaxed) {
            self.above.store(targets.above, Relaxed);
        }
    }
}
