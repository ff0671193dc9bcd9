//! All runs of one setting together.

use std::time::Duration;

use super::goal::Goal;
use super::setting::Setting;
use crate::drive::measurement::Measurement;
use crate::load::PERCENTILES;
use crate::threshold::Threshold;

/// The share of the IDs that may be left when a run ends.
const LEFT: f64 = 0.02;

/// How many may be left in any case: some are due at the very end.
const FEW_LEFT: u64 = 20;

/// An ID that is taken later than this is late. A wait for the processor is shorter, unless
/// other work takes most of it.
const LATE: Duration = Duration::from_millis(20);

/// The share of the IDs that must not be late.
const IN_TIME: f64 = 0.99;

/// How far one run came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Progress {
    /// IDs that were due.
    pub(super) due: u64,
    /// IDs that had been taken by the end.
    pub(super) taken: u64,
    pub(super) span: Duration,
}

impl Progress {
    pub(super) fn share(self) -> f64 {
        self.taken as f64 / self.due.max(1) as f64
    }
}

/// One setting, and what is known of it.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) setting: Setting,
    pub(super) runs: u32,
    /// The sum of all runs, with the samples of the longest.
    pub(super) total: Measurement,
    /// How long the longest run was.
    pub(super) longest: Duration,
    /// The run that came the least far.
    pub(super) least: Option<Progress>,
    /// As far as the samples show it.
    pub(super) lowest_level: usize,
    /// The lowest threshold in the samples, in slots; an adaptive one moves.
    pub(super) lowest_threshold: Option<usize>,
    /// The sum of all sampled levels, and their number.
    levels: (f64, u64),
    pub(super) most_borrowed: f64,
}

impl Trial {
    pub(super) fn new(setting: Setting) -> Self {
        Self {
            setting,
            runs: 0,
            total: Measurement::nothing(),
            longest: Duration::ZERO,
            least: None,
            lowest_threshold: None,
            lowest_level: setting.capacity,
            levels: (0.0, 0),
            most_borrowed: 0.0,
        }
    }

    pub(super) fn add(&mut self, run: Measurement) {
        self.runs += 1;
        let progress = Progress {
            due: run.demanded,
            taken: run.by_end,
            span: run.took,
        };
        if (self.least).is_none_or(|least| progress.share() < least.share()) {
            self.least = Some(progress);
        }
        self.longest = self.longest.max(run.took);
        let total = &mut self.total;
        total.demanded += run.demanded;
        total.by_end += run.by_end;
        total.away += run.away;
        total.refusal = run.refusal.or(total.refusal.take());
        total.taken += run.taken;
        total.refused += run.refused;
        total.missed += run.missed;
        total.empties += run.empties;
        total.fills += run.fills;
        total.assists += run.assists;
        total.took += run.took;
        total.latency += &run.latency;
        let lowest = run.lowest_level().unwrap_or(self.lowest_level);
        self.lowest_level = self.lowest_level.min(lowest);
        if run.empties > 0 {
            self.lowest_level = 0;
        }
        self.most_borrowed = self.most_borrowed.max(run.most_borrowed());
        for sample in &run.samples {
            self.levels.0 += sample.level as f64;
            self.levels.1 += 1;
            let lowest = self.lowest_threshold.get_or_insert(sample.threshold);
            *lowest = sample.threshold.min(*lowest);
        }
        if run.samples.len() >= total.samples.len() {
            total.samples = run.samples;
        }
    }

    /// For how long it ran.
    pub(super) fn seconds(&self) -> f64 {
        self.total.took.as_secs_f64()
    }

    pub(super) fn takes(&self) -> u64 {
        self.total.taken + self.total.refused
    }

    /// Takes that found the ring empty, or got nothing.
    pub(super) fn not_served(&self) -> u64 {
        self.total.empties + self.total.refused
    }

    /// Whether every take found an ID in the ring, and there were some.
    pub(super) fn is_clean(&self) -> bool {
        self.takes() > 0 && self.not_served() == 0
    }

    /// Whether the takes kept pace with what was due. If not, the ring met less than the load,
    /// and shows nothing.
    pub(super) fn kept_pace(&self) -> bool {
        let (due, taken) = (self.total.demanded, self.total.by_end);
        let few = FEW_LEFT * u64::from(self.runs);
        let left = due.saturating_sub(taken).saturating_sub(few);
        self.total.missed == 0 && left as f64 <= LEFT * due as f64
    }

    /// Whether more than a few IDs were taken long after they were due.
    pub(super) fn is_late(&self) -> bool {
        self.late_by() > LATE.as_secs_f64()
    }

    /// Seconds by which 1 ID in 100 was late, or more.
    pub(super) fn late_by(&self) -> f64 {
        self.latency_at(IN_TIME)
    }

    /// The share of the time for which the consumers did not run, although they would have.
    pub(super) fn away_share(&self, consumers: usize) -> f64 {
        let time = self.seconds() * consumers as f64;
        (self.total.away.as_secs_f64() / time.max(1e-9)).min(1.0)
    }

    /// IDs that could be taken while a producer was away: those below the threshold. Of an
    /// adaptive one where it was measured to be lowest.
    pub(super) fn carried(&self) -> usize {
        let most = self.setting.carries();
        match (self.setting.threshold, self.lowest_threshold) {
            (Threshold::Adaptive, Some(lowest)) => lowest.min(most),
            _ => most,
        }
    }

    pub(super) fn keeps(&self, goal: &Goal) -> bool {
        self.runs > 0 && self.latency_at(goal.share) <= goal.limit.as_secs_f64()
    }

    /// Seconds that a share of the takes did not exceed.
    pub(super) fn latency_at(&self, share: f64) -> f64 {
        latency_at(&self.total, share)
    }

    /// Seconds, for each of the named percentiles.
    pub(super) fn latencies(&self) -> [f64; PERCENTILES.len()] {
        PERCENTILES.map(|(_, share)| self.latency_at(share))
    }

    /// IDs in the ring on average, as sampled.
    pub(super) fn mean_level(&self) -> f64 {
        self.levels.0 / self.levels.1.max(1) as f64
    }

    /// The share of the ring that was left at its lowest level.
    pub(super) fn headroom(&self) -> f64 {
        self.lowest_level as f64 / self.setting.capacity as f64
    }
}

/// Seconds that a share of the takes of a run did not exceed.
pub(super) fn latency_at(run: &Measurement, share: f64) -> f64 {
    run.latency.value_at_quantile(share) as f64 / 1e9
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::drive::measurement::Sample;

    /// A run of a second, in which all takes last `nanos`.
    pub(in super::super) fn measurement(empties: u64, nanos: u64, lowest: usize) -> Measurement {
        let sample = |seconds, level| Sample {
            seconds,
            level,
            threshold: 1,
            borrowed: seconds,
            fills: 1,
            empties,
        };
        let mut run = Measurement {
            demanded: 1000,
            taken: 1000,
            by_end: 1000,
            empties,
            in_place: empties,
            fills: 1,
            samples: vec![sample(0.0, lowest + 10), sample(1.0, lowest)],
            took: Duration::from_secs(1),
            ..Measurement::nothing()
        };
        run.latency.saturating_record_n(nanos, 1000);
        run
    }

    #[test]
    fn runs_add_up() {
        let setting = Setting::new(64, Threshold::Percent(50));
        let mut trial = Trial::new(setting);
        assert!(!trial.is_clean(), "nothing is known");
        trial.add(measurement(0, 100, 20));
        assert!(trial.is_clean());
        assert_eq!((trial.lowest_level, trial.headroom()), (20, 20.0 / 64.0));
        trial.add(measurement(3, 5000, 30));
        assert!(!trial.is_clean());
        let total = &trial.total;
        assert_eq!((trial.runs, total.taken, total.empties), (2, 2000, 3));
        // A ring that ran dry was empty, whatever the samples show.
        assert_eq!(trial.lowest_level, 0);
        assert_eq!(trial.mean_level(), 30.0);
        assert_eq!(trial.most_borrowed, 1.0);
        assert!(trial.kept_pace() && !trial.is_late());
        let goal: Goal = "p50=1us".parse().unwrap();
        assert!(trial.keeps(&goal));
        let goal: Goal = "p99=1us".parse().unwrap();
        assert!(!trial.keeps(&goal));
    }

    #[test]
    fn what_is_due_at_the_very_end_is_not_behind() {
        let kept_pace = |by_end, missed| {
            let mut trial = Trial::new(Setting::new(64, Threshold::Percent(50)));
            let mut run = measurement(0, 100, 20);
            (run.by_end, run.missed) = (by_end, missed);
            trial.add(run);
            trial.kept_pace()
        };
        // Of 1,000: 2 %, and 20.
        assert!(kept_pace(960, 0) && !kept_pace(959, 0));
        assert!(!kept_pace(1000, 1));
    }
}
