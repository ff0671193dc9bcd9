//! Which settings run, and which one is recommended.
//!
//! 1. **Bisect.** For each threshold the smallest capacity without empties is found by
//!    halving, from where the model expects it. Each decision is one short run, which
//!    can miss what is rare.
//! 2. **Margin.** The smallest of these settings is the *minimum*. What is needed is
//!    what it carries, or what the model says, if that is more: the model knows the
//!    longest wake-up of this machine, and the short runs may not have met one. The
//!    recommended setting carries [`MARGIN`] times what is needed.
//! 3. **Proof.** The recommended setting runs for much longer. If it has empties, the
//!    search goes on above it.
//!
//! # Underruns
//!
//! A setting *carries* as many IDs as lie below its threshold: so many can be taken
//! while a producer is away. What has emptied one ring would have emptied every ring
//! that carries no more. All of these count as *underrun*, and need not run. So a rare
//! event, such as a wake-up that takes milliseconds, has to be met only once.
//!
//! An adaptive threshold is underrun with fixed ones at its upper bound. An empty of its
//! own rules out only smaller adaptive ones, because it may have come down.

use std::collections::BTreeMap;

use anyhow::Result;

use super::goal::Goal;
use super::model::minimum_capacity;
use super::setting::Setting;
use super::trial::Trial;
use crate::drive::measurement::Measurement;
use crate::threshold::Threshold;

/// How many times what is needed the recommended setting carries.
pub(super) const MARGIN: usize = 2;

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// To find the minimum.
    Search,
    /// To prove the recommended setting.
    Proof,
}

/// Runs the load.
pub(super) trait Runner {
    /// Runs it on a new ring, or returns `None` if the time of the stage is over.
    fn run(&mut self, setting: Setting, stage: Stage) -> Result<Option<Measurement>>;

    /// For how many seconds a setting has to run until it counts as proven.
    fn proof_seconds(&self) -> f64;
}

/// The grid.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    /// In ascending order, not empty.
    pub(super) capacities: Vec<usize>,
    /// In the order in which they are tried, not empty.
    pub(super) thresholds: Vec<Threshold>,
}

impl Choices {
    /// The largest capacity below this one.
    pub(super) fn next_smaller(&self, capacity: usize) -> Option<usize> {
        self.capacities.iter().copied().rfind(|&it| it < capacity)
    }

    fn settings(&self, capacity: usize) -> impl Iterator<Item = Setting> {
        let thresholds = self.thresholds.iter();
        thresholds.map(move |&threshold| Setting::new(capacity, threshold))
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub(super) trials: BTreeMap<Setting, Trial>,
    /// What a setting has to carry by the model, if any number is enough.
    pub(super) modelled: Option<usize>,
    /// The smallest viable setting.
    pub(super) minimum: Option<Setting>,
    pub(super) recommended: Option<Setting>,
    /// Whether the recommended setting ran for as long as it should.
    pub(super) is_proven: bool,
}

impl Findings {
    pub(super) fn trial(&self, setting: Setting) -> Option<&Trial> {
        self.trials.get(&setting)
    }

    pub(super) fn trial_of_recommended(&self) -> Option<&Trial> {
        self.trial(self.recommended?)
    }

    /// What has to be carried if this is the minimum.
    pub(super) fn needed(&self, minimum: Setting) -> usize {
        minimum.carries().max(self.modelled.unwrap_or(0))
    }

    /// How many times what is needed the recommended setting carries.
    pub(super) fn margin(&self) -> Option<f64> {
        let needed = self.needed(self.minimum?);
        Some(self.recommended?.carries() as f64 / needed as f64)
    }

    /// Whether it had empties, or one did that carries no less.
    pub(super) fn is_underrun(&self, setting: Setting) -> bool {
        self.witness(setting).is_some()
    }

    /// What shows that a setting is underrun: the longest trial with empties of one
    /// that carries no less.
    pub(super) fn witness(&self, setting: Setting) -> Option<&Trial> {
        let covers = |trial: &&Trial| match trial.setting.threshold {
            threshold if threshold == setting.threshold => {
                trial.setting.capacity >= setting.capacity
            }
            Threshold::Percent(_) => trial.setting.carries() >= setting.carries(),
            Threshold::Adaptive => false,
        };
        let underrun = self.trials.values().filter(|trial| !trial.is_clean());
        underrun
            .filter(covers)
            .max_by(|one, other| one.seconds().total_cmp(&other.seconds()))
    }
}

/// Searches from what the model says a setting has to carry, if any number is enough.
pub(super) fn search<R: Runner>(
    runner: &mut R,
    choices: &Choices,
    goal: Option<&Goal>,
    modelled: Option<usize>,
) -> Result<Findings> {
    let findings = Findings {
        modelled,
        ..Findings::default()
    };
    let mut search = Search {
        runner,
        choices,
        goal,
        findings,
    };
    search.find_boundaries()?;
    // A goal that no viable setting keeps is no reason to recommend nothing.
    let mut trials = search.findings.trials.values();
    if !trials.any(|trial| search.passes(trial)) {
        search.goal = None;
    }
    if !search.recommend()? && search.goal.take().is_some() {
        search.recommend()?;
    }
    Ok(search.findings)
}

struct Search<'a, R> {
    runner: &'a mut R,
    choices: &'a Choices,
    /// What a trial has to keep to pass.
    goal: Option<&'a Goal>,
    findings: Findings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Passed,
    Failed,
    /// The time ran out, and nothing had failed.
    Unfinished,
}

impl<R: Runner> Search<'_, R> {
    fn passes(&self, trial: &Trial) -> bool {
        trial.is_clean() && self.goal.is_none_or(|goal| trial.keeps(goal))
    }

    /// Runs once; whether the stage had the time for it.
    fn run(&mut self, setting: Setting, stage: Stage) -> Result<bool> {
        let Some(run) = self.runner.run(setting, stage)? else {
            return Ok(false);
        };
        let trials = &mut self.findings.trials;
        let trial = trials.entry(setting).or_insert_with(|| Trial::new(setting));
        trial.add(run);
        Ok(true)
    }

    fn find_boundaries(&mut self) -> Result<()> {
        // By how many places the model was wrong so far.
        let mut places = 0;
        for &threshold in &self.choices.thresholds {
            let from =
                (self.findings.modelled).map_or(1, |slots| minimum_capacity(slots, threshold));
            let modelled = self.choices.capacities.partition_point(|&it| it < from);
            let start = modelled.saturating_add_signed(places);
            let Some(found) = self.find_boundary(threshold, start)? else {
                return Ok(());
            };
            places = found as isize - modelled as isize;
        }
        Ok(())
    }

    /// The index of the smallest capacity that is clean with this threshold; the
    /// number of capacities if none is. `None` if the time ran out.
    fn find_boundary(&mut self, threshold: Threshold, start: usize) -> Result<Option<usize>> {
        let mut boundary = Boundary::new(self.choices.capacities.len(), start);
        while let Some(index) = boundary.next() {
            let setting = Setting::new(self.choices.capacities[index], threshold);
            if !self.findings.is_underrun(setting) && !self.run(setting, Stage::Search)? {
                return Ok(None);
            }
            boundary.learn(index, !self.findings.is_underrun(setting));
        }
        Ok(Some(boundary.clean))
    }

    /// Finds a setting that passes its proof; whether there is one.
    fn recommend(&mut self) -> Result<bool> {
        let mut above = 0;
        while let Some(mut minimum) = self.minimum(above, true) {
            if self.findings.trial(minimum).is_none() && !self.run(minimum, Stage::Proof)? {
                // No time is left: what ran counts for more than what did not.
                minimum = self.minimum(above, false).unwrap_or(minimum);
            }
            if self.has_failed(minimum) {
                continue;
            }
            let recommended = self.with_margin(minimum);
            let proof = self.prove(recommended)?;
            if proof == Proof::Failed {
                // It is underrun, and so is the minimum, or it has missed the goal.
                above = minimum.capacity;
                continue;
            }
            self.findings.minimum = Some(minimum);
            self.findings.recommended = Some(recommended);
            self.findings.is_proven = proof == Proof::Passed;
            return Ok(true);
        }
        Ok(false)
    }

    fn has_failed(&self, setting: Setting) -> bool {
        let trial = self.findings.trial(setting);
        trial.is_some_and(|trial| !self.passes(trial))
    }

    /// The viable setting with the fewest slots, and more than `above`. Among equals
    /// one that ran comes first, and the one with the most left in its ring.
    fn minimum(&self, above: usize, may_not_have_run: bool) -> Option<Setting> {
        let worth = |setting: Setting| match self.findings.trial(setting) {
            Some(trial) => self.passes(trial).then(|| 1.0 + trial.headroom()),
            None => (may_not_have_run && self.is_next_to_underrun(setting))
                .then(|| f64::from(setting.threshold.lowest_percent()) / 100.0),
        };
        let capacities = self.choices.capacities.iter().copied();
        capacities.filter(|&it| it > above).find_map(|capacity| {
            let settings = self.choices.settings(capacity);
            settings
                .filter(|&it| !self.findings.is_underrun(it))
                .filter_map(|setting| Some((worth(setting)?, setting)))
                .max_by(|(one, _), (other, _)| one.total_cmp(other))
                .map(|(_, setting)| setting)
        })
    }

    /// Whether the next smaller ring with that threshold is underrun.
    fn is_next_to_underrun(&self, setting: Setting) -> bool {
        let smaller = self.choices.next_smaller(setting.capacity);
        smaller.is_some_and(|capacity| {
            let smaller = Setting {
                capacity,
                ..setting
            };
            self.findings.is_underrun(smaller)
        })
    }

    /// The fewest slots that carry the margin. Another fixed threshold may need fewer
    /// than that of the minimum. An adaptive one carries what it has learnt to, so it
    /// is compared only with itself.
    fn with_margin(&self, minimum: Setting) -> Setting {
        let wanted = self.findings.needed(minimum).saturating_mul(MARGIN);
        let is_fixed = |threshold| threshold != Threshold::Adaptive;
        let is_comparable = |threshold| {
            threshold == minimum.threshold || is_fixed(threshold) && is_fixed(minimum.threshold)
        };
        let larger = self.choices.capacities.iter().copied();
        let found = larger
            .filter(|&it| it >= minimum.capacity)
            .find_map(|capacity| {
                let settings = self.choices.settings(capacity);
                settings
                    .filter(|it| is_comparable(it.threshold) && it.carries() >= wanted)
                    .filter(|&it| !self.has_failed(it))
                    .min_by_key(|setting| setting.carries())
            });
        found.unwrap_or(Setting {
            capacity: (self.choices.capacities.last()).map_or(minimum.capacity, |&it| it),
            ..minimum
        })
    }

    /// Runs a setting until it has run for long enough, or fails.
    fn prove(&mut self, setting: Setting) -> Result<Proof> {
        loop {
            let trial = self.findings.trial(setting);
            if self.has_failed(setting) {
                return Ok(Proof::Failed);
            }
            if trial.is_some_and(|trial| trial.seconds() >= self.runner.proof_seconds()) {
                return Ok(Proof::Passed);
            }
            if !self.run(setting, Stage::Proof)? {
                return Ok(Proof::Unfinished);
            }
        }
    }
}

/// Between which capacities the boundary lies, by index.
#[derive(Debug)]
struct Boundary {
    count: usize,
    start: usize,
    /// All below this one have empties.
    dirty: usize,
    /// This one and all above it have none; `count` if that is not known of any.
    clean: usize,
    /// How far to go while only one side is known.
    step: usize,
}

impl Boundary {
    fn new(count: usize, start: usize) -> Self {
        Self {
            count,
            start: start.min(count.saturating_sub(1)),
            dirty: 0,
            clean: count,
            step: 1,
        }
    }

    /// Which one to run next; `None` once the boundary is known.
    fn next(&self) -> Option<usize> {
        if self.dirty >= self.clean {
            return None;
        }
        Some(match (self.dirty, self.clean) {
            (0, clean) if clean == self.count => self.start,
            (0, clean) => clean.saturating_sub(self.step),
            (dirty, clean) if clean == self.count => (dirty + self.step - 1).min(clean - 1),
            (dirty, clean) => dirty + (clean - dirty) / 2,
        })
    }

    fn learn(&mut self, index: usize, is_clean: bool) {
        let was_one_sided = self.dirty == 0 || self.clean == self.count;
        if is_clean {
            self.clean = index;
        } else {
            self.dirty = index + 1;
        }
        if was_one_sided {
            self.step *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tune::trial::tests::measurement;

    /// A machine on which a ring needs so many slots below its threshold.
    struct FakeMachine<'a> {
        /// Slots that are needed in the n-th run of this setting.
        needs: Box<dyn FnMut(Setting, u32) -> usize + 'a>,
        /// Nanoseconds that all takes last.
        nanos: fn(Setting, Stage) -> u64,
        runs: BTreeMap<Setting, u32>,
        /// Runs of each stage that are left.
        left: [u32; 2],
    }

    impl<'a> FakeMachine<'a> {
        fn new(needs: impl FnMut(Setting, u32) -> usize + 'a) -> Self {
            Self {
                needs: Box::new(needs),
                nanos: |_, _| 100,
                runs: BTreeMap::new(),
                left: [1000; 2],
            }
        }
    }

    impl Runner for FakeMachine<'_> {
        fn run(&mut self, setting: Setting, stage: Stage) -> Result<Option<Measurement>> {
            let left = &mut self.left[stage as usize];
            if *left == 0 {
                return Ok(None);
            }
            *left -= 1;
            let runs = self.runs.entry(setting).or_default();
            *runs += 1;
            let needs = (self.needs)(setting, *runs);
            let empties = needs.saturating_sub(setting.carries()) as u64;
            let lowest = setting.carries().saturating_sub(needs);
            let nanos = (self.nanos)(setting, stage);
            Ok(Some(measurement(empties, nanos, lowest)))
        }

        fn proof_seconds(&self) -> f64 {
            10.0
        }
    }

    const LOW: Threshold = Threshold::Percent(50);
    const HIGH: Threshold = Threshold::Percent(75);

    fn choices(thresholds: &[Threshold]) -> Choices {
        Choices {
            capacities: (6..=24).map(|shift| 1 << shift).collect(),
            thresholds: thresholds.to_vec(),
        }
    }

    const fn setting(capacity: usize, threshold: Threshold) -> Setting {
        Setting::new(capacity, threshold)
    }

    fn find(machine: &mut FakeMachine<'_>, modelled: usize) -> Findings {
        search(machine, &choices(&[LOW, HIGH]), None, Some(modelled)).unwrap()
    }

    #[test]
    fn twice_what_the_minimum_or_the_model_needs_is_recommended() {
        for (modelled, recommended) in [
            // 75 % of 4,096 are 3,072, and twice that 6,144.
            (32, setting(8192, HIGH)),
            (3072, setting(8192, HIGH)),
            // 8,000.
            (4000, setting(16_384, LOW)),
            (8000, setting(32_768, LOW)),
            // For want of a larger one.
            (usize::MAX, setting(1 << 24, HIGH)),
        ] {
            let mut machine = FakeMachine::new(|_, _| 3000);
            let findings = find(&mut machine, modelled);
            assert_eq!(findings.minimum, Some(setting(4096, HIGH)));
            assert_eq!(findings.recommended, Some(recommended), "{modelled}");
            assert!(findings.is_proven);
            assert!(findings.is_underrun(setting(2048, HIGH)));
            let runs: u32 = machine.runs.values().sum();
            assert!(runs < 50, "{runs} runs from {modelled}");
        }
    }

    #[test]
    fn an_empty_in_the_proof_sends_the_search_on_above_it() {
        // The third run of a setting meets something that the first ones do not.
        let mut machine = FakeMachine::new(|_, run| if run == 3 { 12_000 } else { 3000 });
        let findings = find(&mut machine, 3000);
        assert!(findings.is_underrun(setting(8192, HIGH)));
        assert_eq!(findings.minimum, Some(setting(16_384, HIGH)));
        assert_eq!(findings.recommended, Some(setting(32_768, HIGH)));
        assert!(findings.is_proven && findings.trial_of_recommended().unwrap().is_clean());
    }

    #[test]
    fn an_empty_counts_for_every_ring_that_carries_no_more() {
        let after = |underrun: Setting| {
            let mut trial = Trial::new(underrun);
            trial.add(measurement(1, 100, 0));
            Findings {
                trials: BTreeMap::from([(underrun, trial)]),
                ..Findings::default()
            }
        };
        // 32,768 slots below its threshold, where the upper bound of an adaptive
        // one is 90 %.
        let findings = after(setting(65_536, LOW));
        let quarter = Threshold::Percent(25);
        for underrun in [
            setting(32_768, HIGH),
            setting(131_072, quarter),
            setting(32_768, Threshold::Adaptive),
        ] {
            let witness = findings.witness(underrun).unwrap();
            assert_eq!(witness.setting, setting(65_536, LOW), "{underrun}");
        }
        for viable in [
            setting(65_536, HIGH),
            setting(131_072, LOW),
            setting(65_536, Threshold::Adaptive),
        ] {
            assert!(!findings.is_underrun(viable), "{viable}");
        }
        let findings = after(setting(65_536, Threshold::Adaptive));
        assert!(findings.is_underrun(setting(32_768, Threshold::Adaptive)));
        assert!(!findings.is_underrun(setting(1024, quarter)));
    }

    #[test]
    fn an_adaptive_threshold_is_compared_only_with_itself() {
        let choices = choices(&[Threshold::Adaptive, LOW]);
        let mut machine = FakeMachine::new(|_, _| 3000);
        let findings = search(&mut machine, &choices, None, Some(3000)).unwrap();
        assert_eq!(findings.minimum, Some(setting(4096, Threshold::Adaptive)));
        assert_eq!(
            findings.recommended,
            Some(setting(8192, Threshold::Adaptive))
        );
    }

    #[test]
    fn a_setting_that_ran_counts_for_more_than_one_that_did_not() {
        let mut machine = FakeMachine::new(|_, _| 3000);
        // Enough for the first threshold alone.
        machine.left = [2, 0];
        let choices = choices(&[HIGH, Threshold::Adaptive]);
        let findings = search(&mut machine, &choices, None, Some(3000)).unwrap();
        assert_eq!(findings.minimum, Some(setting(4096, HIGH)));
        // Half of it with an adaptive threshold might do, but did not run.
        let half = setting(2048, Threshold::Adaptive);
        assert!(!findings.is_underrun(half) && findings.trial(half).is_none());
        assert!(!findings.is_proven);
    }

    #[test]
    fn a_goal_decides_among_settings_without_empties() {
        let mut machine = FakeMachine::new(|_, _| 2048);
        machine.nanos = |setting, _| if setting.threshold == HIGH { 9000 } else { 100 };
        let choices = choices(&[HIGH, LOW]);
        let goal: Goal = "p99=1us".parse().unwrap();
        let findings = search(&mut machine, &choices, Some(&goal), Some(2048)).unwrap();
        assert_eq!(findings.recommended, Some(setting(8192, LOW)));
        // One that no setting keeps is no reason to recommend nothing.
        let goal: Goal = "p99=1ns".parse().unwrap();
        let findings = search(&mut machine, &choices, Some(&goal), Some(2048)).unwrap();
        assert_eq!(findings.minimum, Some(setting(4096, HIGH)));
        assert_eq!(findings.recommended, Some(setting(8192, HIGH)));
    }

    #[test]
    fn a_goal_that_only_the_proof_misses_does_not_prevent_an_answer() {
        let mut machine = FakeMachine::new(|_, _| 3000);
        machine.nanos = |_, stage| if stage == Stage::Search { 100 } else { 9000 };
        let goal: Goal = "max=1us".parse().unwrap();
        let choices = choices(&[HIGH, LOW]);
        let findings = search(&mut machine, &choices, Some(&goal), Some(3000)).unwrap();
        assert_eq!(findings.recommended.unwrap().capacity, 8192);
        assert!(!findings.trial_of_recommended().unwrap().keeps(&goal));
    }

    #[test]
    fn nothing_is_recommended_where_every_ring_runs_dry() {
        let findings = find(&mut FakeMachine::new(|_, _| 1 << 30), 3000);
        assert_eq!((findings.minimum, findings.recommended), (None, None));
        assert!(!findings.is_proven);
    }

    #[test]
    fn without_a_clean_run_the_answer_lies_above_the_underruns() {
        let mut machine = FakeMachine::new(|_, _| 3000);
        // Three runs, all of rings that are too small.
        machine.left = [3, 0];
        let findings = find(&mut machine, 32);
        let minimum = findings.minimum.unwrap();
        let mut trials = findings.trials.values();
        assert!(trials.all(|it| it.setting.carries() < minimum.carries()));
        assert!(findings.trial(minimum).is_none() && !findings.is_proven);
        assert_eq!(
            findings.recommended.unwrap().capacity,
            minimum.capacity * MARGIN
        );
    }

    #[test]
    fn without_time_nothing_is_proven_or_recommended() {
        let mut machine = FakeMachine::new(|_, _| 3000);
        machine.left = [1000, 3];
        let findings = find(&mut machine, 3000);
        assert_eq!(findings.recommended.unwrap().capacity, 8192);
        assert!(!findings.is_proven);
        let mut machine = FakeMachine::new(|_, _| 3000);
        machine.left = [0; 2];
        assert_eq!(find(&mut machine, 3000).recommended, None);
    }

    proptest! {
        #[test]
        fn halving_finds_the_boundary(count in 1..30_usize, start in 0..40_usize, at in 0..31_usize) {
            let at = at.min(count);
            let mut boundary = Boundary::new(count, start);
            let mut runs = 0;
            while let Some(index) = boundary.next() {
                prop_assert!(index < count);
                boundary.learn(index, index >= at);
                runs += 1;
                prop_assert!(runs <= 12);
            }
            prop_assert_eq!(boundary.clean, at);
        }
    }
}
