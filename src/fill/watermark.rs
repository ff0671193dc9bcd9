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

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests {
    use super::*;
    use crate::eventually::eventually;

    const HIGH: u64 = 1 << 40;

    fn nothing() -> Totals {
        Totals {
            taken: 0,
            retired: 0,
        }
    }

    #[test]
    fn one_without_a_law_stays() {
        let fixed = Watermark::fixed(7);
        assert!(!fixed.moves());
        fixed.follow(7, 0, || panic!("nobody needs to know"));
        assert_eq!(fixed.threshold(), 7);
        assert_eq!(fixed.targets().goal(100), 100);
    }

    #[test]
    fn the_threshold_goes_where_the_law_says() {
        let moving = Watermark::moving(Law::new(1..=HIGH, 2 * HIGH));
        assert!(moving.moves());
        assert_eq!(moving.threshold(), HIGH);
        eventually("it comes down", || {
            moving.follow(HIGH, HIGH, nothing);
            moving.threshold() < HIGH
        });
        assert_eq!(moving.targets().threshold, moving.threshold());
    }

    #[test]
    fn so_does_the_goal_above_it() {
        let moving = Watermark::moving(Law::new(1..=HIGH, 2 * HIGH));
        let before = moving.targets().above;
        let mut taken = 0;
        eventually("it goes up", || {
            taken += HIGH;
            moving.follow(HIGH, HIGH, || Totals { taken, retired: 0 });
            moving.targets().above > before
        });
    }

    #[test]
    fn what_is_in_another_hand_is_left_there() {
        let moving = Watermark::moving(Law::new(1..=HIGH, 2 * HIGH));
        let law = moving.law.as_ref().unwrap().lock();
        moving.follow(HIGH, HIGH, || panic!("it waits"));
        drop(law);
    }
}
