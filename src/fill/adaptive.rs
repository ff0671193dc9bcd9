//! The law by which an adaptive threshold moves.
//!
//! # What it is after
//!
//! The level must not reach 0 while a producer wakes up, and no more IDs should
//! lie in the ring than that takes: each waits there for all those before it, so
//! a lower level means fresher IDs (mean age = mean level / rate).
//!
//! # What it sees
//!
//! Once a fill is through, the producer tells it some numbers that it has had to
//! look at anyway: the time, how many IDs have been taken so far, the lowest level
//! that it met, at the beginning or at the end, and the threshold as it was when it
//! began. Of the takes it asks nothing.
//!
//! The request was made at the threshold. So `threshold - lowest` is what was taken
//! from there until the fill caught up: the *dip*, which is rate x latency, in
//! slots, with all that delayed the producer in it. No clock is needed for that.
//! Two producers that met the same dip may both tell of it, one of them when the
//! threshold has moved for it; it is the same dip by the threshold of then.
//!
//! A level that was lowered by what was retired or recalled, or that is 0 because the
//! ring was never filled, tells nothing of the consumers, and nothing is learnt from
//! it.
//!
//! # What it does
//!
//! ```text
//! peak      = max(dip, peak halved each minute)      dip counts double at level 0,
//! guess     = the upper bound, halved each second    where its depth is not known
//! threshold = max(1.75 x peak, guess), within the bounds
//!
//! pace      = max(rate, pace halved each second)
//! goal      = threshold + pace x 10 ms               a 16th of the ring to an 8th
//! ```
//!
//! A dip raises the threshold at once, and is forgotten slowly: what came once in
//! the last minutes can come again. Three quarters more are kept in reserve. It
//! starts at the upper bound, and comes down while there is nothing to be seen.
//!
//! A fill goes up to the goal and not to the brim. As long as the rate stays, the
//! next one comes 10 ms later, and 100 wake-ups a second cost little; where an
//! eighth of the ring does not last so long, they come sooner. If the rate jumps,
//! the level meets the threshold sooner, as it would with a fixed one; then the
//! pace is known, and the next goal is the higher for it.
//!
//! # Why it does not swing
//!
//! The dip does not depend on the threshold, as long as the level stays above 0:
//! it is what is taken during a latency. So there is no loop to be unstable: the
//! threshold is a function of what the consumers do. At level 0 it doubles at
//! the least with each fill, and so comes to its bound, or to where it is seen how
//! deep the dips are.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::sync;

/// The threshold, as a multiple of the peak.
const RESERVE: f64 = 1.75;

/// In how much time half of a peak is forgotten.
const PEAK_HALF_LIFE: Duration = Duration::from_secs(60);

/// The same for what was only guessed, at the start.
const GUESS_HALF_LIFE: Duration = Duration::from_secs(1);

/// The same for the rate.
const PACE_HALF_LIFE: Duration = Duration::from_secs(1);

/// Over less time no rate is measured.
const SHORTEST: Duration = Duration::from_millis(1);

/// How long what lies above the threshold should last.
const BETWEEN_FILLS: Duration = Duration::from_millis(10);

/// What lies above the threshold after a fill is at least the capacity divided
/// by the first, and at most divided by the second.
const LEAST_ABOVE: u64 = 16;
const MOST_ABOVE: u64 = 8;

/// Where the threshold stands, and what it has seen.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    low: u64,
    high: u64,
    capacity: u64,
    /// The deepest dip, less what is forgotten of it.
    peak: f64,
    /// A threshold that does for anything, less what is forgotten of it.
    guess: f64,
    /// The highest rate in IDs a second, less what is forgotten of it.
    pace: f64,
    last: Option<Seen>,
    targets: Targets,
}

/// What a producer has seen of one fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// When it was through, since any fixed moment.
    pub(crate) at: Duration,
    /// IDs taken since any fixed moment, those retired among them.
    pub(crate) taken: u64,
    /// IDs retired or recalled since then.
    pub(crate) retired: u64,
    /// The threshold when it began.
    pub(crate) threshold: u64,
    /// The lowest level that it met.
    pub(crate) lowest: u64,
}

impl Seen {
    /// How far the level fell below the threshold. Where it fell to 0 its depth is
    /// not known.
    fn dip(self) -> u64 {
        match self.lowest {
            0 => self.threshold * 2,
            lowest => self.threshold.saturating_sub(lowest),
        }
    }
}

/// What fills are to keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Targets {
    /// A take that leaves fewer than this asks for a fill.
    pub(crate) threshold: u64,
    /// How far above the threshold a fill goes, at least 1. May be more than
    /// there is room for.
    pub(crate) above: u64,
}

impl Targets {
    /// The level at which a fill ends.
    pub(crate) fn goal(self, capacity: u64) -> u64 {
        self.threshold.saturating_add(self.above).min(capacity)
    }
}

impl Law {
    /// For a threshold within `bounds`, in slots, which are at least 1 and at most
    /// `capacity`.
    pub(crate) fn new(bounds: RangeInclusive<u64>, capacity: u64) -> Self {
        let (low, high) = bounds.into_inner();
        // In a model it begins where it can rise.
        let guess = sync::size(high as usize, low as usize) as u64;
        Self {
            low,
            high,
            capacity,
            peak: 0.0,
            guess: guess as f64,
            pace: 0.0,
            last: None,
            targets: Targets {
                threshold: guess,
                above: least_above(capacity),
            },
        }
    }

    pub(crate) fn targets(&self) -> Targets {
        self.targets
    }

    /// Moves the targets by what was seen of a fill.
    pub(crate) fn observe(&mut self, seen: Seen) -> Targets {
        let is_by_takes = match self.last {
            Some(last) => seen.retired == last.retired,
            None => seen.retired == 0 && seen.lowest > 0,
        };
        let last = *self.last.get_or_insert(seen);
        let passed = seen.at.saturating_sub(last.at);
        if passed >= SHORTEST {
            self.peak *= left_after(passed, PEAK_HALF_LIFE);
            self.guess *= left_after(passed, GUESS_HALF_LIFE);
            self.pace *= left_after(passed, PACE_HALF_LIFE);
            if is_by_takes {
                let taken = seen.taken.saturating_sub(last.taken);
                self.pace = self.pace.max(taken as f64 / passed.as_secs_f64());
            }
            self.last = Some(seen);
        }
        if is_by_takes {
            self.peak = self.peak.max(seen.dip() as f64);
        }
        let wanted = (self.peak * RESERVE).max(self.guess).ceil() as u64;
        let lasting = (self.pace * BETWEEN_FILLS.as_secs_f64()) as u64;
        self.targets = Targets {
            threshold: wanted.clamp(self.low, self.high),
            above: lasting.clamp(least_above(self.capacity), most_above(self.capacity)),
        };
        self.targets
    }
}

fn least_above(capacity: u64) -> u64 {
    (capacity / LEAST_ABOVE).max(1)
}

fn most_above(capacity: u64) -> u64 {
    (capacity / MOST_ABOVE).max(1)
}

/// What is left of 1 after a time.
fn left_after(passed: Duration, half_life: Duration) -> f64 {
    (-passed.as_secs_f64() / half_life.as_secs_f64()).exp2()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn law() -> Law {
        Law::new(100..=6000, 8192)
    }

    /// Tells of a fill, which is the only one under way.
    fn observe(law: &mut Law, seconds: u64, taken: u64, lowest: u64) -> Targets {
        law.observe(Seen {
            at: Duration::from_secs(seconds),
            taken,
            retired: 0,
            threshold: law.targets().threshold,
            lowest,
        })
    }

    #[test]
    fn it_starts_high_and_comes_down_to_what_is_needed() {
        let mut law = law();
        assert_eq!(law.targets().threshold, 6000);
        let mut thresholds = Vec::new();
        for second in 0..20 {
            // 200 are taken while the producer wakes up.
            let lowest = law.targets().threshold - 200;
            thresholds.push(observe(&mut law, second, 0, lowest).threshold);
        }
        assert_eq!(thresholds[..7], [6000, 3000, 1500, 750, 375, 350, 350]);
        assert_eq!(thresholds[19], 350);
    }

    #[test]
    fn a_dip_raises_it_at_once_and_is_forgotten_in_minutes() {
        let mut law = Law::new(100..=6000, 8192);
        for minute in 0..20 {
            let threshold = law.targets().threshold;
            observe(&mut law, minute * 60, 0, threshold);
        }
        assert_eq!(law.targets().threshold, 100);
        assert_eq!(observe(&mut law, 1200, 0, 20).threshold, 140);
        let at_the_bottom = observe(&mut law, 1201, 0, 0).threshold;
        assert_eq!(at_the_bottom, 490);
        let later = observe(&mut law, 1261, 0, 490).threshold;
        assert_eq!(later, 245);
    }

    /// At 100, where it has come to rest: what two fills tell that began there.
    fn told_twice(first: Seen, second: Seen) -> u64 {
        let mut law = Law::new(100..=6000, 8192);
        for minute in 0..20 {
            let threshold = law.targets().threshold;
            observe(&mut law, minute * 60, 0, threshold);
        }
        assert_eq!(law.targets().threshold, 100);
        law.observe(first);
        law.observe(second).threshold
    }

    #[test]
    fn a_dip_that_two_producers_tell_of_is_one() {
        let seen = |lowest| Seen {
            at: Duration::from_secs(1141),
            taken: 0,
            retired: 0,
            threshold: 100,
            lowest,
        };
        assert_eq!(told_twice(seen(0), seen(0)), 350);
        assert_eq!(told_twice(seen(20), seen(20)), 140);
    }

    #[test]
    fn what_was_retired_is_no_dip() {
        let seen = |seconds, retired| Seen {
            at: Duration::from_secs(seconds),
            taken: retired,
            retired,
            threshold: 100,
            lowest: 0,
        };
        assert_eq!(told_twice(seen(1141, 5000), seen(1142, 9000)), 100);
        // The next one is the takes' own.
        assert_eq!(told_twice(seen(1141, 5000), seen(1142, 5000)), 350);
    }

    #[test]
    fn a_ring_that_was_never_filled_has_no_dip() {
        let mut law = law();
        observe(&mut law, 0, 0, 0);
        for second in 1..20 {
            let lowest = law.targets().threshold;
            observe(&mut law, second, 0, lowest);
        }
        assert_eq!(law.targets().threshold, 100);
    }

    /// The threshold twenty seconds after the first fill, of which no other is left.
    fn after_a_first_fill(retired: u64, lowest: u64) -> u64 {
        let mut law = law();
        law.observe(Seen {
            at: Duration::ZERO,
            taken: 0,
            retired,
            threshold: 6000,
            lowest,
        });
        let threshold = law.targets().threshold;
        let later = Seen {
            at: Duration::from_secs(20),
            taken: 0,
            retired,
            threshold,
            lowest: threshold,
        };
        law.observe(later).threshold
    }

    #[test]
    fn the_first_fill_counts_if_takes_alone_led_to_it() {
        // A third of the half-life later, with the reserve.
        let remembered =
            (2000.0 * RESERVE * left_after(Duration::from_secs(20), PEAK_HALF_LIFE)).ceil();
        assert_eq!(after_a_first_fill(0, 4000), remembered as u64);
        assert_eq!(after_a_first_fill(1, 4000), 100, "some were retired");
        assert_eq!(after_a_first_fill(0, 0), 100, "it was never filled");
    }

    #[test]
    fn the_pace_is_per_second_whatever_the_time_between_fills() {
        for (seconds, taken) in [(1, 80_000), (2, 160_000), (4, 320_000)] {
            let mut law = law();
            observe(&mut law, 0, 0, 6000);
            assert_eq!(observe(&mut law, seconds, taken, 6000).above, 800);
        }
    }

    #[test]
    fn a_ring_that_runs_dry_comes_to_the_upper_bound() {
        let mut law = Law::new(1..=6000, 8192);
        for minute in 0..30 {
            let threshold = law.targets().threshold;
            observe(&mut law, minute * 60, 0, threshold);
        }
        assert_eq!(law.targets().threshold, 1);
        for _ in 0..9 {
            observe(&mut law, 1800, 0, 0);
        }
        assert_eq!(law.targets().threshold, 6000);
    }

    #[test]
    fn a_fill_goes_as_far_as_ten_milliseconds_take() {
        let mut law = law();
        observe(&mut law, 0, 0, 6000);
        assert_eq!(law.targets().above, 512);
        // 100,000 a second.
        let targets = observe(&mut law, 1, 100_000, 6000);
        assert_eq!(targets.above, 1000);
        // Half of that is remembered a second later.
        assert_eq!(observe(&mut law, 2, 100_000, 6000).above, 512);
        // An eighth of the ring at the most, as far as there is room.
        let targets = observe(&mut law, 3, 100_000_000, 6000);
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
            let mut law = Law::new(bounds.clone(), capacity);
            for (micros, taken, lowest) in fills {
                let at = Duration::from_micros(micros);
                let threshold = law.targets().threshold;
                let retired = taken % 2;
                let targets = law.observe(Seen { at, taken, retired, threshold, lowest });
                prop_assert!(bounds.contains(&targets.threshold));
                prop_assert!(targets.above >= 1);
                let goal = targets.goal(capacity);
                prop_assert!(targets.threshold <= goal && goal <= capacity);
            }
        }

        #[test]
        fn a_deeper_dip_never_lowers_it(lowest in 1..6000_u64, less in 0..6000_u64) {
            let threshold = |lowest| {
                let mut law = law();
                observe(&mut law, 0, 0, 6000);
                observe(&mut law, 600, 0, lowest).threshold
            };
            prop_assert!(threshold(lowest.saturating_sub(less)) >= threshold(lowest));
        }
    }
}
