//! The threshold that takes read, and how producers move it.
//!
//! Takes only read it, from a cache line that nobody writes while the threshold
//! stays. Only producers move it, at the end of a fill, by the
//! [`ThresholdController`]. A producer that finds the controller locked by another
//! leaves the threshold to that one.
//!
//! # Why a threshold that moves loses no wake-up (R4)
//!
//! A take that should have asked by the new threshold may have read the old, lower
//! one. It is not overlooked: the producer first stores the new threshold and then
//! settles. `RingBuffer::settled_level` either counts that take, and the level is
//! compared with the new threshold right then, or comes before it; then the take
//! acquires what was stored before, and reads the new threshold itself.
//!
//! The producer reads the threshold after it has settled. So of two producers the one
//! that settles last, and counts everything that is published, reads what both have
//! stored.

use crossbeam_utils::CachePadded;

use super::adaptive::{FillSample, Targets, ThresholdController};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Mutex, Stopwatch};

/// The threshold of takes and the goal of fills.
#[derive(Debug)]
pub(super) struct Watermark {
    /// A take that leaves fewer than this asks for a fill; 0: no take does.
    threshold: AtomicU64,
    /// How far above the threshold a fill goes. Changes with nearly every fill, so
    /// it does not lie on the cache line that takes read.
    above: CachePadded<AtomicU64>,
    /// Used by producers alone. None if the threshold is fixed.
    controller: Option<CachePadded<Mutex<Moving>>>,
}

/// IDs that have left the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    /// All of them.
    pub(super) taken: u64,
    /// Those that were dropped, for their age or by a recall.
    pub(super) retired: u64,
    /// Runs that takes made for the ring.
    pub(super) assists: u64,
}

#[derive(Debug)]
struct Moving {
    controller: ThresholdController,
    clock: Stopwatch,
}

impl Watermark {
    /// A fixed threshold; a fill ends when the ring is full.
    pub(super) fn fixed(threshold: usize) -> Self {
        Self {
            threshold: AtomicU64::new(threshold as u64),
            above: CachePadded::new(AtomicU64::new(u64::MAX)),
            controller: None,
        }
    }

    /// A threshold that `controller` moves.
    pub(super) fn moving(controller: ThresholdController) -> Self {
        let Targets { threshold, above } = controller.targets();
        Self {
            threshold: AtomicU64::new(threshold),
            above: CachePadded::new(AtomicU64::new(above)),
            controller: Some(CachePadded::new(Mutex::new(Moving {
                controller,
                clock: Stopwatch::start(),
            }))),
        }
    }

    #[inline]
    pub(super) fn threshold(&self) -> u64 {
        // Relaxed: a take acquires through the ring's `cursor` the value that it must
        // read, see above.
        self.threshold.load(Relaxed)
    }

    pub(super) fn targets(&self) -> Targets {
        // Relaxed, and not in one step: whichever two values are read, the goal is
        // not below the threshold.
        Targets {
            threshold: self.threshold(),
            above: self.above.load(Relaxed),
        }
    }

    pub(super) fn moves(&self) -> bool {
        self.controller.is_some()
    }

    /// Moves the threshold by the lowest level that a fill met, and the threshold
    /// when it began. `totals` gives the numbers of IDs taken and retired so far; it
    /// is called by one producer at a time. Never waits.
    pub(super) fn follow(&self, threshold: u64, lowest: u64, totals: impl FnOnce() -> Totals) {
        let Some(mut moving) = self
            .controller
            .as_ref()
            .and_then(|controller| controller.try_lock().ok())
        else {
            return;
        };
        let Totals {
            taken,
            retired,
            assists,
        } = totals();
        let targets = {
            let at = moving.clock.elapsed();
            moving.controller.observe(FillSample {
                at,
                taken,
                retired,
                assists,
                threshold,
                lowest,
            })
        };
        // Written only if it changes: each write takes the cache line from the
        // consumers. Relaxed: released by `settled_level`, which comes after.
        if targets.threshold != self.threshold.load(Relaxed) {
            self.threshold.store(targets.threshold, Relaxed);
        }
        if targets.above != self.above.load(Relaxed) {
            self.above.store(targets.above, Relaxed);
        }
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod placement {
    use super::*;
    use crate::placement::assert_apart;

    /// Takes read the threshold alone.
    #[test]
    fn a_watermark() {
        assert_apart!(Watermark { [threshold] [above] [controller] });
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests {
    use super::*;
    use ringflake_kit::eventually;

    const HIGH: u64 = 1 << 40;

    fn nothing() -> Totals {
        Totals {
            taken: 0,
            retired: 0,
            assists: 0,
        }
    }

    #[test]
    fn without_a_controller_the_threshold_stays() {
        let fixed = Watermark::fixed(7);
        assert!(!fixed.moves());
        fixed.follow(7, 0, || panic!("nobody needs to know"));
        assert_eq!(fixed.threshold(), 7);
        assert_eq!(fixed.targets().goal(100), 100);
    }

    #[test]
    fn the_threshold_goes_where_the_controller_says() {
        let moving = Watermark::moving(ThresholdController::new(1..=HIGH, 2 * HIGH, 0));
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
        let moving = Watermark::moving(ThresholdController::new(1..=HIGH, 2 * HIGH, 0));
        let before = moving.targets().above;
        let mut taken = 0;
        eventually("it goes up", || {
            // So many that the rate is high also where a poll takes a second.
            taken += 16 * HIGH;
            moving.follow(HIGH, HIGH, || Totals { taken, ..nothing() });
            moving.targets().above > before
        });
    }

    #[test]
    fn a_controller_that_another_has_locked_is_left_alone() {
        let moving = Watermark::moving(ThresholdController::new(1..=HIGH, 2 * HIGH, 0));
        let controller = moving.controller.as_ref().unwrap().lock();
        moving.follow(HIGH, HIGH, || panic!("it waits"));
        drop(controller);
    }
}
