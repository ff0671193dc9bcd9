//! Which settings run, and which one is recommended.
//!
//! 1. **Bisect.** For each threshold the smallest capacity without empties is found by
//!    halving, from where the model expects it. Each decision is one short run, which
//!    can miss what is rare.
//! 2. **Margin.** The smallest of these settings is the *minimum*. What is needed is
//!    what it carries, or what the model says, if that is more: the model knows the
//!    longest wake-up of this machine, and the short runs may not have met one. The
//!    recommended setting carries [`MARGIN`] times what is needed.
//! 3. **Proof.** The recommended setting runs for much longer. Where the time is over before
//!    that, runs of those that carry no more count, too. If it has empties, the search goes on
//!    above it. If its level falls below [`KEPT`], the next one is proven,
//!    and where none keeps as much, the one that kept the most is recommended. Where takes
//!    assisted the level stays at their mark, however late a producer is: no ring beyond
//!    [`LARGER`] times as many slots is tried for what it keeps.
//!
//! Only a run without empties, in which the IDs were taken when they were due, speaks for a
//! setting. Without one nothing is recommended.
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

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;

use super::goal::Goal;
use super::model::minimum_capacity;
use super::setting::{Choices, Setting};
use super::trial::Trial;
use crate::drive::measurement::Measurement;
use crate::threshold::Threshold;

/// How many times what is needed the recommended setting carries.
pub(super) const MARGIN: usize = 2;

/// The share of its slots that the recommended ring keeps at its lowest level.
pub(super) const KEPT: f64 = 0.25;

/// How many times as large a ring may be only because it keeps more than one that takes
/// have kept from running dry.
const LARGER: usize = 4;

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

/// What was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub(super) trials: BTreeMap<Setting, Trial>,
    /// What a setting has to carry by the model, if any number is enough.
    pub(super) modelled: Option<usize>,
    /// The smallest viable setting.
    pub(super) minimum: Option<Setting>,
    pub(super) recommended: Option<Setting>,
    /// Whether the recommended setting, and others that carry no more, ran for as long as it
    /// should.
    pub(super) is_proven: bool,
}

impl Findings {
    pub(super) fn trial(&self, setting: Setting) -> Option<&Trial> {
        self.trials.get(&setting)
    }

    /// Of those without empties the one that ran for the longest.
    pub(super) fn longest_clean(&self) -> Option<&Trial> {
        let clean = self.trials.values().filter(|trial| trial.is_clean());
        clean.max_by_key(|trial| trial.total.took)
    }

    pub(super) fn trial_of_recommended(&self) -> Option<&Trial> {
        self.trial(self.recommended?)
    }

    /// What has to be carried if this is the minimum.
    pub(super) fn needed(&self, minimum: Setting) -> usize {
        self.carried(minimum).max(self.modelled.unwrap_or(0))
    }

    /// IDs below its threshold, as measured if it ran.
    pub(super) fn carried(&self, setting: Setting) -> usize {
        let trial = self.trial(setting);
        trial.map_or_else(|| setting.carries(), Trial::carried)
    }

    /// How many times what is needed the recommended setting carries.
    pub(super) fn margin(&self) -> Option<f64> {
        let needed = self.needed(self.minimum?);
        Some(self.carried(self.recommended?) as f64 / needed.max(1) as f64)
    }

    /// For how long this setting, if it ran, and those that carry no more were without
    /// empties: what has not emptied these would not have emptied it.
    fn clean_seconds(&self, setting: Setting) -> f64 {
        let covers = |it: Setting| match setting.threshold {
            threshold if threshold == it.threshold => it.capacity <= setting.capacity,
            Threshold::Percent(_) => {
                it.capacity <= setting.capacity && it.carries() <= setting.carries()
            }
            Threshold::Adaptive => false,
        };
        let clean = (self.trials.values())
            .filter(|trial| covers(trial.setting) && trial.is_clean() && trial.kept_pace());
        match self.trial(setting) {
            Some(_) => clean.map(Trial::seconds).sum(),
            None => 0.0,
        }
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
        underrun.filter(covers).max_by_key(|trial| trial.total.took)
    }
}

/// Searches from what the model says a setting has to carry, if any number is enough.
pub(super) fn search<R: Runner>(
    runner: &mut R,
    choices: &Choices,
    goal: Option<&Goal>,
    modelled: Option<usize>,
) -> Result<Findings> {
    let mut search = Search {
        runner,
        choices,
        goal,
        findings: Findings {
            modelled,
            ..Findings::default()
        },
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
        trial.is_clean()
            && trial.total.missed == 0
            && self.goal.is_none_or(|goal| trial.keeps(goal))
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
        boundary(self.choices.capacities.len(), start, |index| {
            let setting = Setting::new(self.choices.capacities[index], threshold);
            if !self.findings.is_underrun(setting) && !self.run(setting, Stage::Search)? {
                return Ok(None);
            }
            Ok(Some(!self.findings.is_underrun(setting)))
        })
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
            if self.recommend_above(minimum)? {
                return Ok(true);
            }
            // What was tried is underrun, and so is the minimum, or it has missed the goal.
            above = minimum.capacity;
        }
        Ok(false)
    }

    /// Recommends a setting with the margin over `minimum`; whether one passes its proof.
    fn recommend_above(&mut self, minimum: Setting) -> Result<bool> {
        // Those that pass, and keep too little.
        let mut low = Vec::new();
        while let Some(setting) = self.with_margin(minimum, &low) {
            if !low.is_empty() && (self.is_low(setting) || self.is_too_large(setting, &low)) {
                break;
            }
            let proof = self.prove(setting)?;
            if proof == Proof::Failed {
                return Ok(false);
            }
            if self.findings.trial(setting).is_none() && !low.is_empty() {
                // What ran counts for more than what did not.
                break;
            }
            if !self.is_measured_low(setting) {
                return Ok(self.accept(minimum, setting, proof));
            }
            low.push(setting);
        }
        let kept = |setting: &Setting| self.findings.trial(*setting).map_or(0.0, Trial::headroom);
        let best = (low.into_iter()).max_by(|one, other| kept(one).total_cmp(&kept(other)));
        let Some(best) = best else {
            return Ok(false);
        };
        let proof = self.prove_for_long(best)?;
        Ok(proof != Proof::Failed && self.accept(minimum, best, proof))
    }

    /// Whether this setting is much larger than one of `low` that takes have kept up.
    fn is_too_large(&self, setting: Setting, low: &[Setting]) -> bool {
        low.iter().any(|low| {
            let trial = self.findings.trial(*low);
            trial.is_some_and(|trial| trial.total.assists > 0)
                && setting.capacity > low.capacity.saturating_mul(LARGER)
        })
    }

    /// Whether runs speak for this recommendation, which is noted then. Those of the setting
    /// do or, if it did not run, those of the minimum. That takes fell behind counts only
    /// here: in a short run it may be chance.
    fn accept(&mut self, minimum: Setting, setting: Setting, proof: Proof) -> bool {
        let trial = self
            .findings
            .trial(setting)
            .or(self.findings.trial(minimum));
        if !trial.is_some_and(Trial::kept_pace) {
            return false;
        }
        self.findings.minimum = Some(minimum);
        self.findings.recommended = Some(setting);
        self.findings.is_proven = match proof {
            Proof::Passed => true,
            // Where the time is over before it has run for long enough by itself.
            _ => self.findings.clean_seconds(setting) >= self.runner.proof_seconds(),
        };
        true
    }

    fn is_measured_low(&self, setting: Setting) -> bool {
        let trial = self.findings.trial(setting);
        trial.is_some_and(|trial| trial.headroom() < KEPT)
    }

    /// Whether less than [`KEPT`] of this setting would be left, as far as is known.
    fn is_low(&self, setting: Setting) -> bool {
        let served = || {
            let trials = self.findings.trials.values();
            trials.filter(|trial| trial.is_clean() && trial.total.missed == 0)
        };
        let most = setting.carries();
        self.is_measured_low(setting)
            || match setting.threshold {
                Threshold::Percent(_) => {
                    let fixed = served().filter(|it| it.setting.threshold != Threshold::Adaptive);
                    let drawdown = fixed.map(|it| it.carried().saturating_sub(it.lowest_level));
                    // At least one, because a fill begins below the threshold.
                    let left = most.saturating_sub(drawdown.max().unwrap_or(0).max(1));
                    (left as f64) < KEPT * setting.capacity as f64
                }
                // Once it has come down it stays there in a larger ring, too.
                Threshold::Adaptive => served().any(|trial| {
                    trial.setting.threshold == Threshold::Adaptive
                        && trial.setting.capacity <= setting.capacity
                        && trial.carried() < trial.setting.carries()
                        && trial.lowest_level < (KEPT * setting.capacity as f64) as usize
                }),
            }
    }

    fn has_failed(&self, setting: Setting) -> bool {
        let trial = self.findings.trial(setting);
        trial.is_some_and(|trial| !self.passes(trial))
    }

    /// The viable setting with the fewest slots, and more than `above`. Among equals
    /// one that ran comes first, and the one with the most left in its ring; then a fixed
    /// threshold, since takes that assist leave all rings of a size the same, and only a fixed
    /// one carries in a longer run what it did in this one.
    fn minimum(&self, above: usize, may_not_have_run: bool) -> Option<Setting> {
        let is_next_to_underrun = |setting| {
            let smaller = self.choices.next_smaller(setting);
            smaller.is_some_and(|smaller| self.findings.is_underrun(smaller))
        };
        let worth = |setting: Setting| match self.findings.trial(setting) {
            Some(trial) => self.passes(trial).then(|| 1.0 + trial.headroom()),
            None => (may_not_have_run && is_next_to_underrun(setting))
                .then(|| f64::from(setting.threshold.lowest_percent()) / 100.0),
        };
        let settings = self.choices.settings();
        let viable = settings.filter(|&it| it.capacity > above && !self.findings.is_underrun(it));
        let best = viable
            .filter_map(|setting| Some((worth(setting)?, setting)))
            .max_by(|(one_worth, one), (other_worth, other)| {
                let place =
                    |it: &Setting| (Reverse(it.capacity), it.threshold != Threshold::Adaptive);
                let (one, other) = (place(one), place(other));
                (one.0.cmp(&other.0))
                    .then(one_worth.total_cmp(other_worth))
                    .then(one.1.cmp(&other.1))
            });
        best.map(|(_, setting)| setting)
    }

    /// The fewest slots that carry the margin, without those of `tried`; one that keeps
    /// enough at its lowest level comes first. Another fixed threshold may need fewer
    /// than that of the minimum. An adaptive one carries what it has learnt to, so it
    /// is compared with itself before others.
    fn with_margin(&self, minimum: Setting, tried: &[Setting]) -> Option<Setting> {
        let wanted = self.findings.needed(minimum).saturating_mul(MARGIN);
        let is_fixed = |threshold| threshold != Threshold::Adaptive;
        let is_comparable = |threshold| {
            threshold == minimum.threshold || is_fixed(threshold) && is_fixed(minimum.threshold)
        };
        let settings = self.choices.settings();
        let found = settings
            .filter(|it| it.capacity >= minimum.capacity && it.carries() >= wanted)
            .filter(|&it| !self.has_failed(it) && !self.findings.is_underrun(it))
            .filter(|it| !tried.contains(it))
            .filter(|&it| is_comparable(it.threshold) || self.is_low(minimum))
            .min_by_key(|&it| {
                let place = (self.is_low(it), !is_comparable(it.threshold));
                (place, it.capacity, it.carries())
            });
        let largest = || Setting {
            capacity: (self.choices.capacities.last()).map_or(minimum.capacity, |&it| it),
            ..minimum
        };
        found.or_else(|| tried.is_empty().then(largest))
    }

    /// Runs a setting until it has run for long enough, or fails, or is known to keep too
    /// little.
    fn prove(&mut self, setting: Setting) -> Result<Proof> {
        self.prove_until(setting, Self::is_measured_low)
    }

    /// The same, whatever it keeps.
    fn prove_for_long(&mut self, setting: Setting) -> Result<Proof> {
        self.prove_until(setting, |_, _| false)
    }

    fn prove_until(
        &mut self,
        setting: Setting,
        is_enough: fn(&Self, Setting) -> bool,
    ) -> Result<Proof> {
        loop {
            let trial = self.findings.trial(setting);
            if self.has_failed(setting) {
                return Ok(Proof::Failed);
            }
            if is_enough(self, setting) {
                return Ok(Proof::Unfinished);
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

/// The first of `count` places that is clean, where all above a clean one are, too, and
/// none below one that is not; `count` if none is. `None` if `is_clean` can't say.
///
/// From `start` on in steps that double, and then by halving.
fn boundary(
    count: usize,
    start: usize,
    mut is_clean: impl FnMut(usize) -> Result<Option<bool>>,
) -> Result<Option<usize>> {
    // All below `dirty` are not clean; `clean` is, unless it is `count`.
    let (mut dirty, mut clean, mut step) = (0, count, 1);
    while dirty < clean {
        let index = match (dirty == 0, clean == count) {
            (true, true) => start.min(count - 1),
            (true, false) => clean.saturating_sub(step),
            (false, true) => (dirty + step - 1).min(clean - 1),
            (false, false) => dirty + (clean - dirty) / 2,
        };
        if dirty == 0 || clean == count {
            step *= 2;
        }
        match is_clean(index)? {
            Some(true) => clean = index,
            Some(false) => dirty = index + 1,
            None => return Ok(None),
        }
    }
    Ok(Some(clean))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tune::trial::tests::measurement;

    /// A machine on which a ring needs so many slots below its threshold.
    struct FakeMachine {
        /// Slots that are needed in the n-th run of a setting.
        needs: fn(u32) -> usize,
        /// Runs that takes make for a ring that carries less than is needed; then it is not
        /// empty, and a tenth of it is left.
        assists: u64,
        /// Nanoseconds that all takes last.
        nanos: fn(Setting, Stage) -> u64,
        /// Whether all IDs that are due are taken by the end of a run.
        keeps_pace: fn(Stage) -> bool,
        runs: BTreeMap<Setting, u32>,
        /// Runs of each stage that are left.
        left: [u32; 2],
    }

    impl FakeMachine {
        fn new(needs: fn(u32) -> usize) -> Self {
            Self {
                needs,
                assists: 0,
                nanos: |_, _| 100,
                keeps_pace: |_| true,
                runs: BTreeMap::new(),
                left: [1000; 2],
            }
        }

        fn find(&mut self, thresholds: &[Threshold], goal: Option<&str>, model: usize) -> Findings {
            let choices = Choices {
                capacities: (6..=24).map(|shift| 1 << shift).collect(),
                thresholds: thresholds.to_vec(),
            };
            let goal = goal.map(|goal| goal.parse().unwrap());
            search(self, &choices, goal.as_ref(), Some(model)).unwrap()
        }
    }

    impl Runner for FakeMachine {
        fn run(&mut self, setting: Setting, stage: Stage) -> Result<Option<Measurement>> {
            let left = &mut self.left[stage as usize];
            if *left == 0 {
                return Ok(None);
            }
            *left -= 1;
            let runs = self.runs.entry(setting).or_default();
            *runs += 1;
            let needs = (self.needs)(*runs);
            let empties = needs.saturating_sub(setting.carries()) as u64;
            let lowest = setting.carries().saturating_sub(needs);
            let assists = if empties > 0 { self.assists } else { 0 };
            let (empties, lowest) = match assists {
                0 => (empties, lowest),
                _ => (0, setting.capacity / 10),
            };
            let nanos = (self.nanos)(setting, stage);
            let mut run = measurement(empties, nanos, lowest);
            if !(self.keeps_pace)(stage) {
                run.by_end /= 2;
            }
            run.assists = assists;
            for sample in &mut run.samples {
                sample.threshold = setting.carries();
            }
            Ok(Some(run))
        }

        fn proof_seconds(&self) -> f64 {
            10.0
        }
    }

    const LOW: Threshold = Threshold::Percent(50);
    const HIGH: Threshold = Threshold::Percent(75);
    const ADAPTIVE: Threshold = Threshold::Adaptive;

    #[test]
    fn twice_what_the_minimum_or_the_model_needs_is_recommended() {
        for (thresholds, modelled, minimum, recommended) in [
            // 75 % of 4,096 are 3,072, and twice that 6,144.
            ([LOW, HIGH], 32, HIGH, (8192, HIGH)),
            ([LOW, HIGH], 3072, HIGH, (8192, HIGH)),
            // 8,000.
            ([LOW, HIGH], 4000, HIGH, (16_384, LOW)),
            ([LOW, HIGH], 8000, HIGH, (32_768, LOW)),
            // For want of a larger one.
            ([LOW, HIGH], usize::MAX, HIGH, (1 << 24, HIGH)),
            // Compared only with itself.
            ([ADAPTIVE, LOW], 3000, ADAPTIVE, (8192, ADAPTIVE)),
        ] {
            let mut machine = FakeMachine::new(|_| 3000);
            let findings = machine.find(&thresholds, None, modelled);
            let recommended = Setting::new(recommended.0, recommended.1);
            assert_eq!(findings.minimum, Some(Setting::new(4096, minimum)));
            assert_eq!(findings.recommended, Some(recommended), "{modelled}");
            assert!(findings.is_proven);
            assert!(findings.is_underrun(Setting::new(2048, minimum)));
            let runs: u32 = machine.runs.values().sum();
            assert!(runs < 50, "{runs} runs from {modelled}");
        }
    }

    #[test]
    fn an_empty_in_the_proof_sends_the_search_on_above_it() {
        // The third run of a setting meets something that the first ones do not.
        let mut machine = FakeMachine::new(|run| if run == 3 { 12_000 } else { 3000 });
        let findings = machine.find(&[LOW, HIGH], None, 3000);
        assert!(findings.is_underrun(Setting::new(8192, HIGH)));
        assert_eq!(findings.minimum, Some(Setting::new(16_384, HIGH)));
        assert_eq!(findings.recommended, Some(Setting::new(32_768, HIGH)));
        assert!(findings.is_proven && findings.trial_of_recommended().unwrap().is_clean());
    }

    #[test]
    fn an_empty_counts_for_every_ring_that_carries_no_more() {
        let quarter = Threshold::Percent(25);
        // 50 % of 65,536 slots are 32,768, where the upper bound of an adaptive threshold is
        // 90 %.
        for (underrun, capacity, threshold, is_underrun) in [
            (LOW, 32_768, HIGH, true),
            (LOW, 131_072, quarter, true),
            (LOW, 32_768, ADAPTIVE, true),
            (LOW, 65_536, HIGH, false),
            (LOW, 131_072, LOW, false),
            (LOW, 65_536, ADAPTIVE, false),
            (ADAPTIVE, 32_768, ADAPTIVE, true),
            (ADAPTIVE, 1024, quarter, false),
        ] {
            let underrun = Setting::new(65_536, underrun);
            let mut trial = Trial::new(underrun);
            trial.add(measurement(1, 100, 0));
            let findings = Findings {
                trials: BTreeMap::from([(underrun, trial)]),
                ..Findings::default()
            };
            let setting = Setting::new(capacity, threshold);
            let witness = findings.witness(setting).map(|witness| witness.setting);
            assert_eq!(witness, is_underrun.then_some(underrun), "{setting}");
        }
    }

    #[test]
    fn a_goal_decides_among_settings_without_empties() {
        let mut machine = FakeMachine::new(|_| 2048);
        machine.nanos = |setting, _| if setting.threshold == HIGH { 9000 } else { 100 };
        let findings = machine.find(&[HIGH, LOW], Some("p99=1us"), 2048);
        assert_eq!(findings.recommended, Some(Setting::new(8192, LOW)));
        // One that no setting keeps is no reason to recommend nothing.
        let findings = machine.find(&[HIGH, LOW], Some("p99=1ns"), 2048);
        assert_eq!(findings.minimum, Some(Setting::new(4096, HIGH)));
        assert_eq!(findings.recommended, Some(Setting::new(8192, HIGH)));
        // Nor is one that only the proof misses.
        let mut machine = FakeMachine::new(|_| 3000);
        machine.nanos = |_, stage| if stage == Stage::Search { 100 } else { 9000 };
        let findings = machine.find(&[HIGH, LOW], Some("max=1us"), 3000);
        assert_eq!(findings.recommended.unwrap().capacity, 8192);
        let goal = "max=1us".parse().unwrap();
        assert!(!findings.trial_of_recommended().unwrap().keeps(&goal));
    }

    #[test]
    fn where_the_time_is_short_what_ran_counts_for_more_and_nothing_is_proven() {
        let find = |needs, thresholds: [Threshold; 2], left, modelled| {
            let mut machine = FakeMachine::new(needs);
            machine.left = left;
            let findings = machine.find(&thresholds, None, modelled);
            assert!(!findings.is_proven);
            findings
        };
        let nothing = [
            (
                "every ring runs dry",
                find(|_| 1 << 30, [LOW, HIGH], [1000; 2], 3000),
            ),
            ("no time", find(|_| 3000, [LOW, HIGH], [0; 2], 3000)),
        ];
        for (case, findings) in nothing {
            assert_eq!(
                (findings.minimum, findings.recommended),
                (None, None),
                "{case}"
            );
        }
        let no_proof = find(|_| 3000, [LOW, HIGH], [1000, 3], 3000);
        assert_eq!(no_proof.recommended.unwrap().capacity, 8192);

        // Enough for the first threshold alone: half of it might do, but did not run.
        let one_threshold = find(|_| 3000, [HIGH, ADAPTIVE], [2, 0], 3000);
        assert_eq!(one_threshold.minimum, Some(Setting::new(4096, HIGH)));
        let half = Setting::new(2048, ADAPTIVE);
        assert!(!one_threshold.is_underrun(half) && one_threshold.trial(half).is_none());

        // Three runs, all of rings that are too small: none speaks for a larger one.
        let too_small = find(|_| 3000, [LOW, HIGH], [3, 0], 32);
        assert_eq!(too_small.trials.len(), 3);
        assert_eq!((too_small.minimum, too_small.recommended), (None, None));
    }

    #[test]
    fn a_quarter_of_the_recommended_ring_is_left_at_its_lowest_level() {
        // 4,096 slots do, and 75 % of 8,192 carry the margin; but the proof meets what
        // leaves 144 of them.
        let mut machine = FakeMachine::new(|run| if run == 1 { 3000 } else { 6000 });
        let findings = machine.find(&[LOW, HIGH], None, 3000);
        let low = Setting::new(8192, HIGH);
        assert_eq!(findings.trial(low).unwrap().lowest_level, 144);
        assert!(findings.trial(low).unwrap().is_clean());
        let recommended = findings.trial_of_recommended().unwrap();
        assert_eq!(recommended.setting, Setting::new(16_384, HIGH));
        assert!(recommended.headroom() >= KEPT && findings.is_proven);
    }

    #[test]
    fn where_no_ring_keeps_a_quarter_the_one_that_keeps_most_is_recommended() {
        let quarter = Threshold::Percent(25);
        let mut machine = FakeMachine::new(|_| 3000);
        let findings = machine.find(&[quarter], None, 3000);
        let recommended = findings.trial_of_recommended().unwrap();
        assert_eq!(recommended.setting, Setting::new(32_768, quarter));
        assert!(recommended.headroom() < KEPT && findings.is_proven);
        // With another threshold there is one that does, and it costs no more.
        let findings = FakeMachine::new(|_| 3000).find(&[quarter, LOW], None, 3000);
        assert_eq!(findings.recommended, Some(Setting::new(16_384, LOW)));
    }

    #[test]
    fn a_ring_that_takes_keep_up_is_not_left_for_one_of_any_size() {
        // A producer is so late that a million are taken meanwhile.
        let mut machine = FakeMachine::new(|_| 1_000_000);
        machine.assists = 5;
        let findings = machine.find(&[LOW, HIGH], None, 1024);
        let recommended = findings.trial_of_recommended().unwrap();
        // Twice the 1,024 lie below half of 4,096 slots.
        assert!(recommended.is_clean() && findings.is_proven);
        let capacity = recommended.setting.capacity;
        assert!((4096..=4 * 4096).contains(&capacity), "{capacity}");
        let largest = findings.trials.keys().map(|setting| setting.capacity).max();
        assert!(largest <= Some(4 * 4096), "{largest:?}");
    }

    #[test]
    fn of_rings_that_takes_keep_up_alike_a_fixed_one_is_the_minimum() {
        let mut machine = FakeMachine::new(|_| 1_000_000);
        machine.assists = 5;
        for thresholds in [[HIGH, ADAPTIVE], [ADAPTIVE, HIGH]] {
            let findings = machine.find(&thresholds, None, 1024);
            let minimum = findings.minimum.unwrap();
            assert_eq!(minimum.threshold, HIGH, "{thresholds:?}");
        }
    }

    #[test]
    fn runs_of_rings_that_carry_no_more_are_part_of_a_proof() {
        // 8,192 slots have too little left in one run of their proof, and then there is time
        // for a single run of twice as many.
        let proven = |needs, runs| {
            let mut machine = FakeMachine::new(needs);
            machine.left = [1000, runs];
            let findings = machine.find(&[HIGH], None, 3000);
            assert_eq!(findings.recommended, Some(Setting::new(16_384, HIGH)));
            assert_eq!(findings.trial_of_recommended().unwrap().runs, 1);
            findings.is_proven
        };
        // Each run is a second long, of which a proof takes ten.
        assert!(proven(|run| if run < 8 { 3000 } else { 6000 }, 9));
        assert!(!proven(|run| if run < 3 { 3000 } else { 6000 }, 4));
    }

    #[test]
    fn a_ring_that_met_less_than_the_load_is_not_recommended() {
        // By the end of each run half of the IDs that were due had been taken.
        let mut machine = FakeMachine::new(|_| 3000);
        machine.keeps_pace = |_| false;
        let findings = machine.find(&[LOW, HIGH], None, 3000);
        assert_eq!((findings.minimum, findings.recommended), (None, None));
        assert!(findings.trials.values().any(Trial::is_clean));
        // In a short run it may be chance: the proof decides.
        machine.keeps_pace = |stage| stage == Stage::Proof;
        let findings = machine.find(&[HIGH], None, 3000);
        assert_eq!(findings.recommended, Some(Setting::new(8192, HIGH)));
    }

    proptest! {
        #[test]
        fn halving_finds_the_boundary(count in 1..30_usize, start in 0..40_usize, at in 0..31_usize) {
            let at = at.min(count);
            let mut runs = 0;
            let found = boundary(count, start, |index| {
                assert!(index < count);
                runs += 1;
                assert!(runs <= 12);
                Ok(Some(index >= at))
            });
            prop_assert_eq!(found.unwrap(), Some(at));
        }
    }
}
