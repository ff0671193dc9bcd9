//! What the plays of one setting came to, all together.

use crate::load::{Histogram, Played, Sample};

use super::goal::Goal;
use super::report::PERCENTILES;
use super::setting::Setting;

/// One setting, and what is known of it.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) setting: Setting,
    pub(super) plays: u32,
    pub(super) seconds: f64,
    pub(super) taken: u64,
    pub(super) refused: u64,
    /// IDs that were due and that the consumers did not come to.
    pub(super) missed: u64,
    pub(super) empties: u64,
    pub(super) fills: u64,
    pub(super) latency: Histogram,
    /// As far as the samples show it.
    pub(super) lowest_level: usize,
    /// The sum of all sampled levels, and their number.
    levels: (f64, u64),
    pub(super) most_borrowed: f64,
    /// Of the longest play.
    pub(super) samples: Vec<Sample>,
}

impl Trial {
    pub(super) fn new(setting: Setting) -> Self {
        Self {
            setting,
            plays: 0,
            seconds: 0.0,
            taken: 0,
            refused: 0,
            missed: 0,
            empties: 0,
            fills: 0,
            latency: Histogram::new(),
            lowest_level: setting.capacity,
            levels: (0.0, 0),
            most_borrowed: 0.0,
            samples: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, played: Played) {
        self.plays += 1;
        self.seconds += played.took.as_secs_f64();
        self.taken += played.taken;
        self.refused += played.refused;
        self.missed += played.missed;
        self.empties += played.empties;
        self.fills += played.fills;
        self.latency.add(&played.latency);
        let lowest = played.lowest_level().unwrap_or(self.lowest_level);
        self.lowest_level = self.lowest_level.min(lowest);
        if played.empties > 0 {
            self.lowest_level = 0;
        }
        self.most_borrowed = self.most_borrowed.max(played.most_borrowed());
        for sample in &played.samples {
            self.levels.0 += sample.level as f64;
            self.levels.1 += 1;
        }
        if played.samples.len() >= self.samples.len() {
            self.samples = played.samples;
        }
    }

    /// Whether every take found an ID in the ring.
    pub(super) fn is_clean(&self) -> bool {
        self.plays > 0 && self.empties == 0 && self.refused == 0
    }

    pub(super) fn keeps(&self, goal: &Goal) -> bool {
        self.plays > 0 && goal.is_kept_by(self.latency_at(goal.share))
    }

    /// Seconds that a share of the takes did not exceed.
    pub(super) fn latency_at(&self, share: f64) -> f64 {
        let nanos = if share >= 1.0 {
            self.latency.max()
        } else {
            self.latency.quantile(share)
        };
        nanos as f64 / 1e9
    }

    /// Seconds, for each of the named percentiles.
    pub(super) fn latencies(&self) -> [f64; PERCENTILES.len()] {
        PERCENTILES.map(|(_, share)| self.latency_at(share))
    }

    /// IDs in the ring on average, as sampled.
    pub(super) fn mean_level(&self) -> f64 {
        self.levels.0 / self.levels.1.max(1) as f64
    }

    /// How much of the ring was left at its lowest level.
    pub(super) fn headroom(&self) -> f64 {
        self.lowest_level as f64 / self.setting.capacity as f64
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tune::setting::Threshold;

    /// A play of a second in which everything is as said.
    pub(in super::super) fn played(empties: u64, nanos: u64, lowest: usize) -> Played {
        let mut latency = Histogram::new();
        latency.record(nanos, 1000);
        let sample = |seconds, level| Sample {
            seconds,
            level,
            threshold: 1,
            borrowed: seconds,
            fills: 1,
            empties,
        };
        Played {
            demanded: 1000,
            taken: 1000,
            refused: 0,
            refusal: None,
            missed: 0,
            empties,
            in_place: empties,
            fills: 1,
            latency,
            samples: vec![sample(0.0, lowest + 10), sample(1.0, lowest)],
            took: Duration::from_secs(1),
        }
    }

    #[test]
    fn plays_add_up() {
        let setting = Setting {
            capacity: 64,
            threshold: Threshold::Percent(50),
        };
        let mut trial = Trial::new(setting);
        assert!(!trial.is_clean(), "nothing is known");
        trial.add(played(0, 100, 20));
        assert!(trial.is_clean());
        assert_eq!((trial.lowest_level, trial.headroom()), (20, 20.0 / 64.0));
        trial.add(played(3, 5000, 30));
        assert!(!trial.is_clean());
        assert_eq!((trial.plays, trial.taken, trial.empties), (2, 2000, 3));
        // A ring that ran dry was empty, whatever the samples show.
        assert_eq!(trial.lowest_level, 0);
        assert_eq!(trial.mean_level(), 30.0);
        assert_eq!(trial.most_borrowed, 1.0);
        let goal: Goal = "p50=1us".parse().unwrap();
        assert!(trial.keeps(&goal));
        let goal: Goal = "p99=1us".parse().unwrap();
        assert!(!trial.keeps(&goal));
    }
}
