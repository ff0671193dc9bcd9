//! Everything that a run of `tune` found out.

use std::time::Duration;

use ringflake::plan::Load;
use ringflake::{Backend, Layout};

use super::baseline::Baseline;
use super::goal::Goal;
use super::machine::Machine;
use super::model::minimum_capacity;
use super::nodes::NodeBudget;
use super::search::Findings;
use super::setting::{Choices, Setting};
use super::trial::Trial;
use crate::threshold::Threshold;
use crate::units::{bytes, grouped, time};

/// A name and what it stands for.
pub(super) type Fact = (&'static str, String);

/// A scheduled fill that retires old IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    pub(super) period: Duration,
    pub(super) max_age: Duration,
}

/// What a run found out.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) load: Load,
    /// The part of it that ran.
    pub(super) part: Load,
    /// Of a trace that was too long to run whole: when that part begins, and its
    /// length, in seconds.
    pub(super) part_at: Option<(f64, f64)>,
    pub(super) layout: Layout,
    pub(super) budget: NodeBudget,
    pub(super) machine: Machine,
    pub(super) cores: usize,
    pub(super) consumers: usize,
    pub(super) producers: usize,
    pub(super) goal: Option<Goal>,
    /// How old an ID may become in the ring.
    pub(super) max_age: Duration,
    /// The encryption that producers make IDs with.
    pub(super) backend: Backend,
    pub(super) choices: Choices,
    pub(super) findings: Findings,
    /// The load without a ring, if there was time for it.
    pub(super) baseline: Option<Baseline>,
    pub(super) is_interrupted: bool,
    pub(super) took: Duration,
    pub(super) now_unix_ms: u64,
}

impl Outcome {
    /// Whether the recommended setting keeps the goal; true if there is none.
    pub(super) fn keeps_goal(&self) -> bool {
        let trial = self.findings.trial_of_recommended();
        let goal = self.goal.as_ref();
        goal.is_none_or(|goal| trial.is_some_and(|trial| trial.keeps(goal)))
    }

    /// IDs a second that the consumers take one by one, at the most.
    pub(super) fn take_rate(&self) -> f64 {
        self.consumers as f64 / self.machine.take_cost.max(1e-12)
    }

    /// Whether the IDs were taken when they were due. Those that are late because other work
    /// had the processor count as served, and those of a peak that is too fast do not.
    pub(super) fn is_served(&self, trial: &Trial) -> bool {
        trial.kept_pace() && !(trial.is_late() && self.take_rate() < self.part.peak())
    }

    /// A schedule, if IDs grow older than they may.
    pub(super) fn schedule(&self) -> Option<Schedule> {
        let setting = self.findings.recommended?;
        if self.oldest(setting.capacity) <= self.max_age.as_secs_f64() {
            return None;
        }
        let tick = Duration::from_millis(self.layout.tick_ms());
        let max_age = self.max_age.max(tick);
        // An ID can reach the age and one period more.
        let period = Duration::from_millis((max_age.as_millis() / 6).max(1) as u64);
        Some(Schedule { period, max_age })
    }

    /// How many seconds an ID can lie in a ring of `capacity` slots.
    pub(super) fn oldest(&self, capacity: usize) -> f64 {
        const PIECES: usize = 1000;
        let end = self.load.duration().map(|whole| whole.as_secs_f64());
        let starts = self.load.pieces().take(PIECES).map(|piece| piece.from);
        let ages = starts.map(|from| {
            let ids = self.load.demanded_by(from) + capacity as f64;
            self.load.due_at(ids).or(end).unwrap_or(f64::INFINITY) - from
        });
        ages.fold(0.0, f64::max)
    }

    /// Names and values of what is recommended.
    pub(super) fn choice(&self) -> Vec<Fact> {
        let Some(setting) = self.findings.recommended else {
            return Vec::new();
        };
        let (slots, bytes) = (grouped(setting.capacity as u64), bytes(setting.bytes()));
        let schedule = match self.schedule() {
            Some(Schedule { period, max_age }) => format!(
                "every {}, retires what is older than {}",
                time(period.as_secs_f64()),
                time(max_age.as_secs_f64())
            ),
            None => "none".to_owned(),
        };
        let nodes = &self.budget.nodes;
        let blocks = (nodes.end - nodes.start).div_ceil(32);
        let nodes = format!("{nodes:?}, or {blocks} of a store's blocks of 32");
        vec![
            ("capacity", format!("{slots} slots, {bytes}")),
            ("threshold", setting.threshold.to_string()),
            ("schedule", schedule),
            ("producers", self.producers.to_string()),
            ("nodes", nodes),
        ]
    }

    /// The smallest capacity by the model alone.
    pub(super) fn predicted_for(&self, threshold: Threshold) -> Option<usize> {
        Some(minimum_capacity(self.findings.modelled?, threshold))
    }

    /// All trials: the recommended setting, the minimum, then those nearest to it in
    /// size; without a recommendation the largest first.
    pub(super) fn ranked(&self) -> Vec<&Trial> {
        let mut trials: Vec<_> = self.findings.trials.values().collect();
        let place = |trial: &Trial| match Some(trial.setting) {
            setting if setting == self.findings.recommended => 0,
            setting if setting == self.findings.minimum => 1,
            _ => 2,
        };
        let centre = (self.findings.recommended).map_or(usize::BITS, |it| it.capacity.ilog2());
        let distance = |trial: &Trial| trial.setting.capacity.ilog2().abs_diff(centre);
        trials.sort_by_key(|trial| (place(trial), distance(trial), trial.setting));
        trials
    }

    /// Why a setting did not run.
    pub(super) fn why_not_run(&self, setting: Setting) -> &'static str {
        let is_smaller_and_clean = |trial: &Trial| {
            let Setting {
                capacity,
                threshold,
            } = trial.setting;
            capacity < setting.capacity && threshold == setting.threshold && trial.is_clean()
        };
        let findings = &self.findings;
        if findings.is_underrun(setting) {
            "one that carries no less had empties"
        } else if findings.trials.values().any(is_smaller_and_clean) {
            "a smaller ring had none"
        } else if (findings.minimum).is_some_and(|it| it.capacity <= setting.capacity) {
            "one that is no larger was chosen"
        } else if self.is_interrupted {
            "the run was interrupted"
        } else {
            "the time was over"
        }
    }

    /// The capacities that the grid is about: from the smallest to the largest that ran.
    pub(super) fn capacities(&self) -> Vec<usize> {
        let ran = || self.findings.trials.keys().map(|setting| setting.capacity);
        let (Some(smallest), Some(largest)) = (ran().min(), ran().max()) else {
            return Vec::new();
        };
        let all = self.choices.capacities.iter().copied();
        all.filter(|capacity| (smallest..=largest).contains(capacity))
            .collect()
    }

    /// The thresholds, in the order of the grid.
    pub(super) fn thresholds(&self) -> Vec<Threshold> {
        let mut thresholds = self.choices.thresholds.clone();
        thresholds.sort();
        thresholds
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::drive::measurement::{Measurement, Sample};

    /// A run of some rings, of which one is recommended.
    pub(in super::super) fn outcome() -> Outcome {
        let load = Load::steady("1M".parse().unwrap()).with_burst("20M:100ms/1s".parse().unwrap());
        let low = Threshold::Percent(25);
        let high = Threshold::Percent(50);
        let setting = |shift: u32, threshold| Setting::new(1 << shift, threshold);
        let trial = |setting, empties, nanos| {
            let mut trial = Trial::new(setting);
            trial.add(run(setting, empties, nanos));
            (setting, trial)
        };
        let trials = [
            trial(setting(15, low), 123_456, 900),
            trial(setting(15, high), 12, 800),
            trial(setting(16, low), 12, 500),
            trial(setting(16, high), 0, 3000),
            trial(setting(16, Threshold::Adaptive), 0, 100),
            trial(setting(17, high), 0, 200),
            trial(setting(17, Threshold::Adaptive), 0, 400),
        ];
        Outcome {
            part: load.clone(),
            part_at: None,
            layout: Layout::RANDFLAKE,
            budget: NodeBudget::new(&load, &Layout::RANDFLAKE, None).unwrap(),
            load,
            machine: Machine {
                fill_rate: 40e6,
                running_fill_rate: 40e6,
                wake_usual: 1e-5,
                wake_slow: 5e-4,
                wake_longest: 1e-3,
                take_cost: 5e-9,
            },
            cores: 4,
            consumers: 3,
            producers: 1,
            goal: Some("p99=50us".parse().unwrap()),
            max_age: Duration::from_secs(60),
            backend: Backend::Avx2,
            choices: Choices {
                capacities: (12..=20).map(|shift| 1 << shift).collect(),
                thresholds: vec![high, low, Threshold::Adaptive],
            },
            findings: Findings {
                trials: trials.into(),
                modelled: Some(20_000),
                minimum: Some(setting(16, high)),
                recommended: Some(setting(17, high)),
                is_proven: true,
            },
            baseline: Baseline::of([run(setting(16, high), 0, 90)]),
            is_interrupted: false,
            took: Duration::from_secs(30),
            now_unix_ms: 1_763_640_000_000,
        }
    }

    /// Two seconds, in which the level goes up and down and empties come at the end.
    fn run(setting: Setting, empties: u64, nanos: u64) -> Measurement {
        let sample = |at: u32| Sample {
            seconds: f64::from(at) / 1000.0,
            level: setting.capacity
                - setting.carries() * (at as usize % 50) / (80 - at as usize / 100),
            threshold: setting.carries() * (1 + at as usize / 700) / 3,
            borrowed: f64::from(at % 7),
            fills: u64::from(at / 50),
            empties: if at > 1500 { empties } else { 0 },
        };
        let mut run = Measurement {
            demanded: 1_000_000,
            taken: 1_000_000,
            by_end: 1_000_000,
            empties,
            fills: 40,
            samples: (0..2000).map(sample).collect(),
            took: Duration::from_millis(2000 + empties.min(99)),
            ..Measurement::nothing()
        };
        for (index, count) in [700_000, 200_000, 90_000, 9_000, 900, 100]
            .into_iter()
            .enumerate()
        {
            run.latency
                .saturating_record_n(nanos * 10_u64.pow(index as u32), count);
        }
        run
    }
}
