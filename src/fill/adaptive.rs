//! How an adaptive threshold moves.
//!
//! # Aim
//!
//! The level must not reach 0 while a producer wakes up, and the ring should hold no
//! more IDs than that takes. Each ID waits in the ring for all those before it, so a
//! lower level means fresher IDs (mean age = mean level / rate).
//!
//! # Input
//!
//! After a fill the producer reports numbers that it has had to look at anyway, as a
//! [`FillSample`]: the time, the number of IDs taken so far, the lowest level that it
//! met, at the beginning or at the end, and the threshold at the beginning. Takes
//! report nothing.
//!
//! The request was made at the threshold. So `threshold - lowest` is the number of
//! IDs that were taken from there until the fill caught up: the *drawdown*, which is
//! rate x latency, in slots, with every delay of the producer in it. It takes no clock
//! to measure. Two producers that met the same drawdown may both report it, one of
//! them after it has moved the threshold; measured from the threshold at the beginning
//! it is the same drawdown in both reports.
//!
//! Where takes assist, the level comes to rest at their *low mark*: below it takes make
//! what a producer did not make in time. So the drawdown ends there, and how many IDs
//! were taken below it is not asked: they were no shortfall, since each was made by a take
//! before the ring was empty. A threshold that bridged them as well would hold IDs for a
//! wake-up that nobody waits for. A fill before which takes assisted counts as one that met
//! the low mark, because a run may just have lifted the level. Without assists the low
//! mark is 0.
//!
//! A level that was lowered by a retirement or a recall, or that is 0 because the ring
//! was never filled, says nothing about the consumers, and is not learnt from. Nor is the
//! first fill if takes assisted before it: they do in a ring that was never filled, too.
//!
//! # Rule
//!
//! ```text
//! peak      = max(drawdown, peak halved each minute)   counts double at level 0,
//! guess     = the upper bound, halved each second      where its depth is not known
//! threshold = max(low mark + 1.75 x peak, guess), within the bounds
//!
//! rate      = max(rate seen, rate halved each second)
//! goal      = threshold + rate x 10 ms                 a 16th of the ring to an 8th
//! ```
//!
//! A drawdown raises the threshold at once, and is forgotten slowly: a burst of the
//! last minutes can come again. Three quarters more are kept in reserve. The threshold
//! starts at the upper bound, and comes down as long as no drawdown is seen.
//!
//! A fill ends at the goal, and not when the ring is full. While the rate stays, the
//! next fill follows 10 ms later, and 100 wake-ups a second cost little. Where an
//! eighth of the ring lasts less than that, fills follow sooner. If the rate jumps, the
//! level meets the threshold sooner, as it would with a fixed one; then the new rate is
//! known, and the next goal is higher.
//!
//! # Why it does not swing
//!
//! As long as the level stays above 0, the drawdown does not depend on the threshold:
//! it is the number of IDs taken during a latency. So there is no loop to be unstable,
//! and the threshold is a function of what the consumers do. At level 0 it at least
//! doubles with each fill, until it reaches its bound or a value at which the depth of
//! the drawdowns is seen. At the low mark it grows likewise, but by three quarters of what
//! lies above the mark: the depth is not known there either, and less depends on it. One
//! late wake-up moves it by no more; a load whose usual wake-ups need assists raises it
//! until they do not.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::sync;

/// The threshold, as a multiple of the peak drawdown.
const RESERVE: f64 = 1.75;

/// The time in which half of a peak drawdown is forgotten.
const PEAK_HALF_LIFE: Duration = Duration::from_secs(60);

/// The same for the threshold that was guessed at the start.
const GUESS_HALF_LIFE: Duration = Duration::from_secs(1);

/// The same for the rate.
const RATE_HALF_LIFE: Duration = Duration::from_secs(1);

/// The shortest time over which a rate is measured.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// How long the IDs above the threshold should last.
const BETWEEN_FILLS: Duration = Duration::from_millis(10);

/// A fill goes above the threshold by at least the capacity divided by this.
const MIN_ABOVE_DIVISOR: u64 = 16;

/// A fill goes above the threshold by at most the capacity divided by this.
const MAX_ABOVE_DIVISOR: u64 = 8;

/// The targets of fills, and the history that they follow from.
#[derive(Clone, Debug)]
pub(crate) struct ThresholdController {
    low: u64,
    high: u64,
    capacity: u64,
    /// Takes that leave fewer than this assist; 0 if none does.
    low_mark: u64,
    /// The deepest drawdown, decayed.
    peak: f64,
    /// The threshold to start with, decayed: high enough for any load.
    guess: f64,
    /// The highest rate in IDs a second, decayed.
    rate: f64,
    last: Option<FillSample>,
    targets: Targets,
}

/// The report of one fill, by its producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FillSample {
    /// When the fill ended, since any fixed moment.
    pub(crate) at: Duration,
    /// IDs taken since any fixed moment, those retired among them.
    pub(crate) taken: u64,
    /// IDs retired or recalled since then.
    pub(crate) retired: u64,
    /// Runs that takes made since then.
    pub(crate) assists: u64,
    /// The threshold when the fill began.
    pub(crate) threshold: u64,
    /// The lowest level that the fill met.
    pub(crate) lowest: u64,
}

impl FillSample {
    /// How far the level fell from the threshold towards `low_mark`; double where it fell
    /// to 0, since the depth is not known.
    fn drawdown(self, low_mark: u64, has_assisted: bool) -> u64 {
        let most = self.threshold.saturating_sub(low_mark);
        match self.lowest {
            0 => most.max(1) * 2,
            // At least one, so that a threshold at the low mark can rise.
            _ if has_assisted => most.max(1),
            lowest => self.threshold.saturating_sub(lowest).min(most),
        }
    }
}

/// When a fill begins and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Targets {
    /// A take that leaves fewer than this asks for a fill.
    pub(crate) threshold: u64,
    /// How far above the threshold a fill goes, at least 1. May exceed the capacity.
    pub(crate) above: u64,
}

impl Targets {
    /// The level at which a fill ends.
    pub(crate) fn goal(self, capacity: u64) -> u64 {
        self.threshold.saturating_add(self.above).min(capacity)
    }
}

impl ThresholdController {
    /// A controller for a threshold within `bounds`, in slots, where takes that leave fewer
    /// than `low_mark` assist. The bounds are at least 1 and at most `capacity`.
    pub(crate) fn new(bounds: RangeInclusive<u64>, capacity: u64, low_mark: u64) -> Self {
        let (low, high) = bounds.into_inner();
        // In a model the threshold starts where it can rise.
        let guess = sync::size(high as usize, low as usize) as u64;
        Self {
            low,
            high,
            capacity,
            low_mark,
            peak: 0.0,
            guess: guess as f64,
            rate: 0.0,
            last: None,
            targets: Targets {
                threshold: guess,
                above: min_above(capacity),
            },
        }
    }

    pub(crate) fn targets(&self) -> Targets {
        self.targets
    }

    /// Moves the targets by the report of a fill.
    pub(crate) fn observe(&mut self, sample: FillSample) -> Targets {
        let by_takes_alone = match self.last {
            Some(last) => sample.retired == last.retired,
            None => sample.retired == 0 && sample.lowest > 0 && sample.assists == 0,
        };
        let has_assisted = sample.assists > self.last.map_or(0, |last| last.assists);
        let last = *self.last.get_or_insert(sample);
        let passed = sample.at.saturating_sub(last.at);
        if passed >= MIN_INTERVAL {
            self.peak *= decay(passed, PEAK_HALF_LIFE);
            self.guess *= decay(passed, GUESS_HALF_LIFE);
            self.rate *= decay(passed, RATE_HALF_LIFE);
            if by_takes_alone {
                let taken = sample.taken.saturating_sub(last.taken);
                self.rate = self.rate.max(taken as f64 / passed.as_secs_f64());
            }
            self.last = Some(sample);
        }
        if by_takes_alone {
            let drawdown = sample.drawdown(self.low_mark, has_assisted);
            self.peak = self.peak.max(drawdown as f64);
        }
        let bridged = self.low_mark as f64 + self.peak * RESERVE;
        let wanted = bridged.max(self.guess).ceil() as u64;
        let until_next = (self.rate * BETWEEN_FILLS.as_secs_f64()) as u64;
        self.targets = Targets {
            threshold: wanted.clamp(self.low, self.high),
            above: until_next.clamp(min_above(self.capacity), max_above(self.capacity)),
        };
        self.targets
    }
}

fn min_above(capacity: u64) -> u64 {
    (capacity / MIN_ABOVE_DIVISOR).max(1)
}

fn max_above(capacity: u64) -> u64 {
    (capacity / MAX_ABOVE_DIVISOR).max(1)
}

/// The share that is left after `passed`.
fn decay(passed: Duration, half_life: Duration) -> f64 {
    (-passed.as_secs_f64() / half_life.as_secs_f64()).exp2()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn controller() -> ThresholdController {
        ThresholdController::new(100..=6000, 8192, 0)
    }

    /// Reports a fill, the only one under way.
    fn observe(
        controller: &mut ThresholdController,
        seconds: u64,
        taken: u64,
        lowest: u64,
    ) -> Targets {
        controller.observe(FillSample {
            at: Duration::from_secs(seconds),
            taken,
            retired: 0,
            assists: 0,
            threshold: controller.targets().threshold,
            lowest,
        })
    }

    #[test]
    fn it_starts_high_and_comes_down_to_the_need() {
        let mut controller = controller();
        assert_eq!(controller.targets().threshold, 6000);
        let mut thresholds = Vec::new();
        for second in 0..20 {
            // 200 are taken while the producer wakes up.
            let lowest = controller.targets().threshold - 200;
            thresholds.push(observe(&mut controller, second, 0, lowest).threshold);
        }
        assert_eq!(thresholds[..7], [6000, 3000, 1500, 750, 375, 350, 350]);
        assert_eq!(thresholds[19], 350);
    }

    #[test]
    fn a_drawdown_raises_it_at_once_and_fades_in_minutes() {
        let mut controller = ThresholdController::new(100..=6000, 8192, 0);
        for minute in 0..20 {
            let threshold = controller.targets().threshold;
            observe(&mut controller, minute * 60, 0, threshold);
        }
        assert_eq!(controller.targets().threshold, 100);
        assert_eq!(observe(&mut controller, 1200, 0, 20).threshold, 140);
        let at_the_bottom = observe(&mut controller, 1201, 0, 0).threshold;
        assert_eq!(at_the_bottom, 490);
        let later = observe(&mut controller, 1261, 0, 490).threshold;
        assert_eq!(later, 245);
    }

    /// The threshold after the reports of two fills that began at 100, where it had
    /// come to rest.
    fn after_two_reports(first: FillSample, second: FillSample) -> u64 {
        let mut controller = ThresholdController::new(100..=6000, 8192, 0);
        for minute in 0..20 {
            let threshold = controller.targets().threshold;
            observe(&mut controller, minute * 60, 0, threshold);
        }
        assert_eq!(controller.targets().threshold, 100);
        controller.observe(first);
        controller.observe(second).threshold
    }

    #[test]
    fn a_drawdown_that_two_producers_report_counts_once() {
        let sample = |lowest| FillSample {
            at: Duration::from_secs(1141),
            taken: 0,
            retired: 0,
            assists: 0,
            threshold: 100,
            lowest,
        };
        assert_eq!(after_two_reports(sample(0), sample(0)), 350);
        assert_eq!(after_two_reports(sample(20), sample(20)), 140);
    }

    /// The threshold after each of so many fills, a second apart, that found `lowest` IDs
    /// and so many runs made by takes; the low mark is 800.
    fn assisted(fills: u64, lowest: u64, assists: u64) -> Vec<u64> {
        let mut controller = ThresholdController::new(100..=6000, 8192, 800);
        let sample = |second, threshold, lowest, assists| FillSample {
            at: Duration::from_secs(second),
            taken: 0,
            retired: 0,
            assists,
            threshold,
            lowest,
        };
        for second in 0..3600 {
            let threshold = controller.targets().threshold;
            controller.observe(sample(second, threshold, threshold, 0));
        }
        let report = |fill| {
            let threshold = controller.targets().threshold;
            let fill_sample = sample(3600, threshold, lowest, fill * assists);
            controller.observe(fill_sample).threshold
        };
        (1..=fills).map(report).collect()
    }

    #[test]
    fn a_drawdown_ends_at_the_low_mark() {
        // Where nothing is drawn the mark is kept free.
        assert_eq!(assisted(1, 6000, 0), [800]);
        // One late wake-up, of whatever length: one more than the mark, which is then
        // three quarters more.
        assert_eq!(assisted(1, 700, 1), [802]);
        assert_eq!(assisted(1, 1, 1), assisted(1, 790, 1));
        // A run of a take has lifted the level, and the fill met the mark all the same.
        assert_eq!(assisted(1, 1300, 1), [802]);
        // Until takes no longer assist it grows, up to its bound.
        assert_eq!(assisted(4, 700, 1), [802, 804, 807, 813]);
        assert_eq!(assisted(20, 700, 1)[19], 6000);
        // An empty ring counts double.
        assert_eq!(assisted(1, 0, 1), [804]);
    }

    #[test]
    fn retired_ids_are_no_drawdown() {
        let sample = |seconds, retired| FillSample {
            at: Duration::from_secs(seconds),
            taken: retired,
            retired,
            assists: 0,
            threshold: 100,
            lowest: 0,
        };
        assert_eq!(
            after_two_reports(sample(1141, 5000), sample(1142, 9000)),
            100
        );
        // The second drawdown is by takes alone.
        assert_eq!(
            after_two_reports(sample(1141, 5000), sample(1142, 5000)),
            350
        );
    }

    #[test]
    fn a_ring_that_was_never_filled_has_no_drawdown() {
        let mut controller = controller();
        observe(&mut controller, 0, 0, 0);
        for second in 1..20 {
            let lowest = controller.targets().threshold;
            observe(&mut controller, second, 0, lowest);
        }
        assert_eq!(controller.targets().threshold, 100);
    }

    /// The threshold twenty seconds after the first fill, when the guess is forgotten.
    fn after_a_first_fill(retired: u64, lowest: u64) -> u64 {
        let mut controller = controller();
        controller.observe(FillSample {
            at: Duration::ZERO,
            taken: 0,
            retired,
            assists: 0,
            threshold: 6000,
            lowest,
        });
        let threshold = controller.targets().threshold;
        let later = FillSample {
            at: Duration::from_secs(20),
            taken: 0,
            retired,
            assists: 0,
            threshold,
            lowest: threshold,
        };
        controller.observe(later).threshold
    }

    #[test]
    fn the_first_fill_counts_if_takes_alone_led_to_it() {
        // A third of the half-life later, with the reserve.
        let remembered = (2000.0 * RESERVE * decay(Duration::from_secs(20), PEAK_HALF_LIFE)).ceil();
        assert_eq!(after_a_first_fill(0, 4000), remembered as u64);
        assert_eq!(after_a_first_fill(1, 4000), 100, "some were retired");
        assert_eq!(after_a_first_fill(0, 0), 100, "it was never filled");
        let mut controller = controller();
        controller.observe(FillSample {
            at: Duration::ZERO,
            taken: 0,
            retired: 0,
            assists: 1,
            threshold: 6000,
            lowest: 10,
        });
        assert_eq!(controller.peak, 0.0, "only takes have made IDs");
    }

    #[test]
    fn the_rate_is_per_second_whatever_the_time_between_fills() {
        for (seconds, taken) in [(1, 80_000), (2, 160_000), (4, 320_000)] {
            let mut controller = controller();
            observe(&mut controller, 0, 0, 6000);
            assert_eq!(observe(&mut controller, seconds, taken, 6000).above, 800);
        }
    }

    #[test]
    fn a_ring_that_runs_empty_comes_to_the_upper_bound() {
        let mut controller = ThresholdController::new(1..=6000, 8192, 0);
        for minute in 0..30 {
            let threshold = controller.targets().threshold;
            observe(&mut controller, minute * 60, 0, threshold);
        }
        assert_eq!(controller.targets().threshold, 1);
        for _ in 0..9 {
            observe(&mut controller, 1800, 0, 0);
        }
        assert_eq!(controller.targets().threshold, 6000);
    }

    #[test]
    fn a_fill_makes_as_much_as_ten_milliseconds_take() {
        let mut controller = controller();
        observe(&mut controller, 0, 0, 6000);
        assert_eq!(controller.targets().above, 512);
        // 100,000 a second.
        let targets = observe(&mut controller, 1, 100_000, 6000);
        assert_eq!(targets.above, 1000);
        // Half of that is remembered a second later.
        assert_eq!(observe(&mut controller, 2, 100_000, 6000).above, 512);
        // At most an eighth of the ring, if there is room.
        let targets = observe(&mut controller, 3, 100_000_000, 6000);
        assert_eq!(targets.above, 1024);
        let goal = |threshold| {
            let above = targets.above;
            Targets { threshold, above }.goal(8192)
        };
        assert_eq!((goal(100), goal(6000), goal(8000)), (1124, 7024, 8192));
    }

    proptest! {
        #[test]
        fn it_keeps_its_bounds(
            capacity in 1..1_u64 << 30,
            low in 1..=100_u64,
            more in 0..=99_u64,
            fills in prop::collection::vec((0..1_u64 << 20, 0..1_u64 << 30, 0..1_u64 << 30), 0..50),
        ) {
            let share = |percent: u64| (capacity * percent.min(100)).div_ceil(100);
            let bounds = share(low)..=share(low + more);
            let mut controller = ThresholdController::new(bounds.clone(), capacity, 0);
            for (micros, taken, lowest) in fills {
                let at = Duration::from_micros(micros);
                let threshold = controller.targets().threshold;
                let retired = taken % 2;
                let targets = controller.observe(FillSample { at, taken, retired, assists: 0, threshold, lowest });
                prop_assert!(bounds.contains(&targets.threshold));
                prop_assert!(targets.above >= 1);
                let goal = targets.goal(capacity);
                prop_assert!(targets.threshold <= goal && goal <= capacity);
            }
        }

        #[test]
        fn a_deeper_drawdown_never_lowers_it(lowest in 1..6000_u64, less in 0..6000_u64) {
            let threshold = |lowest| {
                let mut controller = controller();
                observe(&mut controller, 0, 0, 6000);
                observe(&mut controller, 600, 0, lowest).threshold
            };
            prop_assert!(threshold(lowest.saturating_sub(less)) >= threshold(lowest));
        }
    }
}
