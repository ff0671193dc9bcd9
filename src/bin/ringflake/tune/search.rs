//! Which settings are played, and which one is picked.
//!
//! # What an empty tells
//!
//! A ring runs dry when more is taken while a producer is away than lay below the
//! threshold. So whatever emptied one ring would have emptied all with no more
//! slots below theirs, had it met them at the same level: these count as *dry*, too,
//! and are not played. What is rare, such as a producer that is away for
//! milliseconds, has to be met once by any of the plays, and not once by each ring.
//!
//! (An adaptive threshold is dry with the fixed ones at its upper bound, but an
//! empty of its own tells about smaller adaptive ones alone: it may have come down.)
//!
//! # The search
//!
//! For each threshold more slots only help, so the least capacity without
//! empties is found by halving, from where the model says that it lies: cells far
//! from the boundary are never played. One short play decides there; it is wrong
//! where empties are rare.
//!
//! # The proof
//!
//! So the smallest setting that is not dry is then played for much longer. An empty
//! sends the search to the next one. What stands is *the least*.
//!
//! # The pick
//!
//! The smallest ring that bears twice as much as the least: a margin for what the
//! plays did not meet. Up to four times as much, if the model asks for it: then
//! wake-ups were seen on this machine that would empty less at the peak, and the
//! plays had the luck not to meet one there. It is played in turn, and should it
//! have empties, it is dry, and so is the least. So whatever was picked was never
//! seen empty, and half of the least is dry, unless the time or the capacities ran
//! out, which is told.

use std::collections::BTreeMap;

use anyhow::Result;

use super::goal::Goal;
use super::setting::{Setting, Threshold};
use super::trial::Trial;
use crate::load::Played;

/// How many times as much as the least the pick bears.
pub(super) const MARGIN: u64 = 2;

/// The same, if the model asks for more.
const MARGIN_AT_MOST: u64 = 4;

/// What a play is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// To find the boundary.
    Search,
    /// To put the least setting to the proof.
    Proof,
    /// To put the pick to the proof.
    Pick,
}

/// Who plays the load.
pub(super) trait Player {
    /// Plays it against a new ring, or does not, because the time for this
    /// stage is over.
    fn play(&mut self, setting: Setting, stage: Stage) -> Result<Option<Played>>;

    /// For how many seconds a setting is played until it counts as proven.
    fn proof(&self, stage: Stage) -> f64;
}

/// The grid.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    /// In ascending order, not empty.
    pub(super) capacities: Vec<usize>,
    /// In the order in which they are tried, not empty.
    pub(super) thresholds: Vec<Threshold>,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub(super) trials: BTreeMap<Setting, Trial>,
    /// The smallest setting that is not dry.
    pub(super) least: Option<Setting>,
    pub(super) pick: Option<Setting>,
    /// Whether the least setting was played for as long as it should be.
    pub(super) is_proven: bool,
}

impl Findings {
    pub(super) fn trial(&self, setting: Setting) -> Option<&Trial> {
        self.trials.get(&setting)
    }

    pub(super) fn trial_of_pick(&self) -> Option<&Trial> {
        self.trial(self.pick?)
    }

    /// By which factor the pick bears more than the least.
    pub(super) fn margin(&self) -> Option<f64> {
        Some(self.pick?.bears() as f64 / self.least?.bears() as f64)
    }

    /// Whether it ran dry, or one that can bear no less did.
    pub(super) fn is_dry(&self, setting: Setting) -> bool {
        self.witness(setting).is_some()
    }

    /// What shows that a setting is dry: the longest play of one with empties that
    /// can bear no less.
    pub(super) fn witness(&self, setting: Setting) -> Option<&Trial> {
        let tells = |trial: &Trial| match trial.setting.threshold {
            threshold if threshold == setting.threshold => {
                trial.setting.capacity >= setting.capacity
            }
            Threshold::Percent(_) => trial.setting.bears() >= setting.bears(),
            Threshold::Adaptive => false,
        };
        let dry = self.trials.values().filter(|trial| !trial.is_clean());
        dry.filter(|trial| tells(trial))
            .max_by(|one, other| one.seconds.total_cmp(&other.seconds))
    }
}

/// Searches from what the model says, a capacity for each threshold.
pub(super) fn search<P: Player>(
    player: &mut P,
    choices: &Choices,
    goal: Option<&Goal>,
    modelled: impl Fn(Threshold) -> usize,
) -> Result<Findings> {
    let mut search = Search {
        player,
        choices,
        goal,
        modelled,
        findings: Findings::default(),
    };
    search.find_boundaries()?;
    search.settle()?;
    Ok(search.findings)
}

struct Search<'a, P, M> {
    player: &'a mut P,
    choices: &'a Choices,
    goal: Option<&'a Goal>,
    modelled: M,
    findings: Findings,
}

impl<P: Player, M: Fn(Threshold) -> usize> Search<'_, P, M> {
    /// Plays once; whether the stage had the time for it.
    fn play(&mut self, setting: Setting, stage: Stage) -> Result<bool> {
        let Some(played) = self.player.play(setting, stage)? else {
            return Ok(false);
        };
        let trials = &mut self.findings.trials;
        let trial = trials.entry(setting).or_insert_with(|| Trial::new(setting));
        trial.add(played);
        Ok(true)
    }

    fn find_boundaries(&mut self) -> Result<()> {
        // By how many places the model was wrong so far.
        let mut places = 0;
        for &threshold in &self.choices.thresholds {
            let from = (self.modelled)(threshold);
            let modelled = self.choices.capacities.partition_point(|&it| it < from);
            let start = modelled.saturating_add_signed(places);
            let Some(least) = self.find_boundary(threshold, start)? else {
                return Ok(());
            };
            places = least as isize - modelled as isize;
        }
        Ok(())
    }

    /// The index of the least capacity that is clean with this threshold; the
    /// number of capacities if none is. `None` if the time ran out.
    fn find_boundary(&mut self, threshold: Threshold, start: usize) -> Result<Option<usize>> {
        let count = self.choices.capacities.len();
        let mut boundary = Boundary::new(count, start);
        while let Some(index) = boundary.next() {
            let setting = Setting {
                capacity: self.choices.capacities[index],
                threshold,
            };
            if !self.findings.is_dry(setting) && !self.play(setting, Stage::Search)? {
                return Ok(None);
            }
            boundary.learn(index, !self.findings.is_dry(setting));
        }
        Ok(Some(boundary.clean))
    }

    /// Finds the least setting and the pick, and puts them to the proof.
    fn settle(&mut self) -> Result<()> {
        let goal = self.goal.filter(|goal| {
            let mut trials = self.findings.trials.values();
            trials.any(|trial| !self.findings.is_dry(trial.setting) && trial.keeps(goal))
        });
        let keeps_goal = |trial: &Trial| goal.is_none_or(|goal| trial.keeps(goal));
        // A goal that nobody keeps is no reason to recommend nothing.
        if !self.settle_among(&keeps_goal)? && goal.is_some() {
            self.settle_among(&|_| true)?;
        }
        Ok(())
    }

    /// The same among those that are good enough; whether there was any.
    fn settle_among(&mut self, is_good: &impl Fn(&Trial) -> bool) -> Result<bool> {
        let passes = |trial: &Trial| trial.is_clean() && is_good(trial);
        let mut above = 0;
        while let Some(mut least) = self.candidate(above, true, &passes) {
            let proven = self.prove(least, Stage::Proof, &passes)?;
            if proven == Proof::Failed {
                continue;
            }
            if self.findings.trial(least).is_none() {
                // There was no time for it: what was played counts for more.
                least = self.candidate(above, false, &passes).unwrap_or(least);
            }
            let pick = self.with_margin(least, &passes);
            let picked = self.prove(pick, Stage::Pick, &passes)?;
            if picked == Proof::Failed {
                // If it is not dry, and the least neither, it has missed the goal.
                above = least.capacity;
                continue;
            }
            self.findings.least = Some(least);
            self.findings.pick = Some(pick);
            self.findings.is_proven = proven == Proof::Stands && picked == Proof::Stands;
            return Ok(true);
        }
        Ok(false)
    }

    /// The setting with the fewest slots, and more than `above`, that may be the
    /// least. Where several are as small: one that was played, before one that was
    /// not; and the one with the most left in its ring.
    fn candidate(
        &self,
        above: usize,
        may_be_unplayed: bool,
        passes: &impl Fn(&Trial) -> bool,
    ) -> Option<Setting> {
        let capacities = self.choices.capacities.iter().copied();
        capacities.filter(|&it| it > above).find_map(|capacity| {
            let settings = self.choices.thresholds.iter().map(|&threshold| Setting {
                capacity,
                threshold,
            });
            let wet = settings.filter(|&it| !self.findings.is_dry(it));
            let worth = |setting: Setting| match self.findings.trial(setting) {
                Some(trial) => passes(trial).then(|| 1.0 + trial.headroom()),
                // Of those not played the one that bears the most for certain.
                None => (may_be_unplayed && self.is_next_to_dry(setting))
                    .then(|| f64::from(setting.threshold.percent_that_stays()) / 100.0),
            };
            wet.filter_map(|setting| Some((worth(setting)?, setting)))
                .max_by(|(one, _), (other, _)| one.total_cmp(other))
                .map(|(_, setting)| setting)
        })
    }

    /// Whether the next smaller ring with that threshold is dry.
    fn is_next_to_dry(&self, setting: Setting) -> bool {
        let mut smaller = self.choices.capacities.iter().copied();
        let smaller = smaller.rfind(|&it| it < setting.capacity);
        smaller.is_some_and(|capacity| {
            self.findings.is_dry(Setting {
                capacity,
                ..setting
            })
        })
    }

    /// The fewest slots with the margin. Another fixed threshold may need fewer than
    /// that of the least does; an adaptive one bears what it has learnt to, so it
    /// is only held against itself.
    fn with_margin(&self, least: Setting, passes: &impl Fn(&Trial) -> bool) -> Setting {
        let is_comparable = |threshold| {
            let both_fixed =
                least.threshold != Threshold::Adaptive && threshold != Threshold::Adaptive;
            both_fixed || threshold == least.threshold
        };
        let thresholds = self.choices.thresholds.iter().copied();
        let comparable: Vec<_> = thresholds.filter(|&it| is_comparable(it)).collect();
        let bears = |setting: Setting| {
            let times = |margin| setting.bears() >= margin * least.bears();
            let is_bad = self.findings.trial(setting).is_some_and(|it| !passes(it));
            let is_modelled = setting.capacity >= (self.modelled)(setting.threshold);
            !is_bad && times(MARGIN) && (is_modelled || times(MARGIN_AT_MOST))
        };
        let larger = self.choices.capacities.iter().copied();
        let pick = larger
            .filter(|&it| it >= least.capacity)
            .find_map(|capacity| {
                let settings = comparable.iter().map(|&threshold| Setting {
                    capacity,
                    threshold,
                });
                settings
                    .filter(|&setting| bears(setting))
                    .max_by_key(|setting| (setting.threshold == least.threshold, setting.bears()))
            });
        pick.unwrap_or(Setting {
            capacity: self
                .choices
                .capacities
                .last()
                .map_or(least.capacity, |&it| it),
            ..least
        })
    }

    /// Plays a setting until it has been played for long enough, or fails.
    fn prove(
        &mut self,
        setting: Setting,
        stage: Stage,
        passes: &impl Fn(&Trial) -> bool,
    ) -> Result<Proof> {
        let needed = self.player.proof(stage);
        loop {
            let trial = self.findings.trial(setting);
            let seconds = trial.map_or(0.0, |trial| trial.seconds);
            if trial.is_some_and(|trial| !passes(trial)) {
                return Ok(Proof::Failed);
            }
            if seconds >= needed {
                return Ok(Proof::Stands);
            }
            if !self.play(setting, stage)? {
                return Ok(Proof::Unfinished);
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Stands,
    Failed,
    /// The time ran out, and nothing had failed.
    Unfinished,
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

    /// Which one to play next; `None` once the boundary is known.
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
    use crate::tune::trial::tests::played;

    /// A machine on which a ring needs so many slots below its threshold.
    struct Fake {
        /// Slots needed in a short play, and in the n-th play of a setting.
        needs: fn(play: u32) -> usize,
        plays: BTreeMap<Setting, u32>,
        /// Plays of each stage that are left.
        left: [u32; 3],
    }

    impl Fake {
        fn new(needs: fn(u32) -> usize) -> Self {
            Self {
                needs,
                plays: BTreeMap::new(),
                left: [1000; 3],
            }
        }
    }

    impl Player for Fake {
        fn play(&mut self, setting: Setting, stage: Stage) -> Result<Option<Played>> {
            let left = &mut self.left[stage as usize];
            if *left == 0 {
                return Ok(None);
            }
            *left -= 1;
            let plays = self.plays.entry(setting).or_default();
            *plays += 1;
            let percent = setting.threshold.percent_at_most();
            let below = setting.capacity * percent as usize / 100;
            let needs = (self.needs)(*plays);
            let empties = needs.saturating_sub(below) as u64;
            Ok(Some(played(empties, 100, below.saturating_sub(needs))))
        }

        fn proof(&self, _stage: Stage) -> f64 {
            10.0
        }
    }

    fn choices(thresholds: &[u32]) -> Choices {
        Choices {
            capacities: (6..=24).map(|shift| 1 << shift).collect(),
            thresholds: thresholds
                .iter()
                .map(|&it| Threshold::Percent(it))
                .collect(),
        }
    }

    fn find(fake: &mut Fake, guess: usize) -> Findings {
        search(fake, &choices(&[50, 75]), None, |_| guess).unwrap()
    }

    #[test]
    fn the_pick_is_twice_the_least_or_what_the_model_asks_for() {
        for (guess, picked) in [
            (64, 8192),
            (4096, 8192),
            (16_384, 16_384),
            (1 << 24, 16_384),
        ] {
            let mut fake = Fake::new(|_| 3000);
            let findings = find(&mut fake, guess);
            let least = findings.least.unwrap();
            // 75 % of 4,096 are 3,072.
            assert_eq!(least.capacity, 4096);
            assert_eq!(least.threshold, Threshold::Percent(75));
            let pick = findings.pick.unwrap();
            assert_eq!(pick.capacity, picked);
            assert!(findings.is_proven);
            let half = Setting {
                capacity: least.capacity / 2,
                ..least
            };
            assert!(findings.is_dry(half));
            let plays: u32 = fake.plays.values().sum();
            assert!(plays < 50, "{plays} plays from {guess}");
        }
    }

    #[test]
    fn rare_empties_are_found_by_the_proof() {
        // The third play of a setting meets something that the first ones do not.
        let mut fake = Fake::new(|play| if play == 3 { 12_000 } else { 3000 });
        let findings = find(&mut fake, 4096);
        assert_eq!(findings.least.unwrap().capacity, 16_384);
        assert_eq!(findings.pick.unwrap().capacity, 32_768);
        assert!(findings.is_proven);
    }

    #[test]
    fn a_pick_that_fails_begins_it_again_above() {
        // Rarer than the least setting's proof is long, and met by the pick.
        static PICKS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let mut fake = Fake::new(|_| {
            let all = PICKS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if all == 25 { 20_000 } else { 3000 }
        });
        let findings = find(&mut fake, 4096);
        let pick = findings.pick.unwrap();
        assert!(findings.trials[&pick].is_clean());
        assert!(
            findings
                .trials
                .values()
                .any(|trial| trial.setting.capacity < pick.capacity && !trial.is_clean())
        );
    }

    #[test]
    fn an_empty_counts_for_every_ring_that_bears_no_more() {
        let setting = |capacity, threshold| Setting {
            capacity,
            threshold,
        };
        let percent = |capacity, percent| setting(capacity, Threshold::Percent(percent));
        let adaptive = |capacity| setting(capacity, Threshold::Adaptive);
        let after = |dry: Setting| {
            let mut findings = Findings::default();
            let mut trial = Trial::new(dry);
            trial.add(played(1, 100, 0));
            findings.trials.insert(dry, trial);
            findings
        };
        // 32,768 slots below its threshold, where the upper bound of an adaptive
        // one is 90 %.
        let findings = after(percent(65_536, 50));
        for dry in [percent(32_768, 75), percent(131_072, 25), adaptive(32_768)] {
            assert!(findings.is_dry(dry), "{dry}");
            assert_eq!(findings.witness(dry).unwrap().setting, percent(65_536, 50));
        }
        for wet in [percent(65_536, 75), percent(131_072, 50), adaptive(65_536)] {
            assert!(!findings.is_dry(wet), "{wet}");
        }
        let findings = after(adaptive(65_536));
        assert!(findings.is_dry(adaptive(32_768)));
        assert!(!findings.is_dry(percent(1024, 25)));
    }

    #[test]
    fn the_pick_is_the_smallest_ring_with_the_margin() {
        let mut choices = choices(&[75, 50]);
        choices.thresholds.push(Threshold::Adaptive);
        // 5,000 slots are needed, by the model.
        let modelled = |threshold| match threshold {
            Threshold::Percent(50) => 16_384,
            _ => 8192,
        };
        let pick = |capacity, threshold| {
            let least = Setting {
                capacity,
                threshold,
            };
            let search = Search {
                player: &mut Fake::new(|_| 0),
                choices: &choices,
                goal: None,
                modelled,
                findings: Findings::default(),
            };
            let pick = search.with_margin(least, &Trial::is_clean);
            (pick.capacity, pick.threshold)
        };
        let [higher, lower] = [75, 50].map(Threshold::Percent);
        // 4,096 slots are twice as many and not enough; 6,144 are.
        assert_eq!(pick(4096, lower), (8192, higher));
        // 8,192 are twice as many and enough.
        assert_eq!(pick(8192, lower), (16_384, lower));
        // More than four times as many are not asked for.
        assert_eq!(pick(1024, higher), (4096, higher));
        assert_eq!(pick(4096, Threshold::Adaptive), (8192, Threshold::Adaptive));
        assert_eq!(pick(1 << 24, higher), (1 << 24, higher));
    }

    #[test]
    fn a_pick_is_not_one_that_is_known_to_miss_the_goal() {
        let setting = |percent| Setting {
            capacity: 8192,
            threshold: Threshold::Percent(percent),
        };
        let mut slow = Trial::new(setting(50));
        slow.add(played(0, 9000, 7));
        let search = Search {
            player: &mut Fake::new(|_| 0),
            choices: &choices(&[75, 50]),
            goal: None,
            modelled: |_| 1,
            findings: Findings {
                trials: BTreeMap::from([(slow.setting, slow)]),
                ..Findings::default()
            },
        };
        let least = Setting {
            capacity: 4096,
            ..setting(50)
        };
        let goal: Goal = "p99=1us".parse().unwrap();
        let pick = search.with_margin(least, &|trial: &Trial| trial.keeps(&goal));
        assert_eq!(pick, setting(75));
        assert_eq!(search.with_margin(least, &Trial::is_clean), setting(50));
    }

    #[test]
    fn what_was_played_counts_for_more_than_what_was_not() {
        let mut choices = choices(&[75]);
        choices.thresholds.push(Threshold::Adaptive);
        let mut fake = Fake::new(|_| 3000);
        // Enough for the first threshold alone.
        fake.left = [2, 0, 0];
        let findings = search(&mut fake, &choices, None, |_| 4096).unwrap();
        let least = Setting {
            capacity: 4096,
            threshold: Threshold::Percent(75),
        };
        assert_eq!(findings.least, Some(least));
        // Half of it with an adaptive threshold might do, and nobody has seen it.
        let half = Setting {
            capacity: 2048,
            threshold: Threshold::Adaptive,
        };
        assert!(!findings.is_dry(half) && findings.trial(half).is_none());
        assert!(!findings.is_proven);
    }

    #[test]
    fn a_goal_that_is_missed_in_the_end_is_no_reason_to_recommend_nothing() {
        struct SlowLater(Fake);
        impl Player for SlowLater {
            fn play(&mut self, setting: Setting, stage: Stage) -> Result<Option<Played>> {
                let empties = self.0.play(setting, stage)?.map_or(0, |it| it.empties);
                let nanos = if stage == Stage::Search { 100 } else { 9000 };
                Ok(Some(played(empties, nanos, 7)))
            }
            fn proof(&self, stage: Stage) -> f64 {
                self.0.proof(stage)
            }
        }
        let goal: Goal = "max=1us".parse().unwrap();
        let mut slow = SlowLater(Fake::new(|_| 3000));
        let findings = search(&mut slow, &choices(&[75, 50]), Some(&goal), |_| 4096).unwrap();
        assert_eq!(findings.least.unwrap().capacity, 4096);
        assert_eq!(findings.pick.unwrap().capacity, 8192);
        assert!(!findings.trial_of_pick().unwrap().keeps(&goal));
    }

    #[test]
    fn nothing_is_picked_where_every_ring_runs_dry() {
        let mut fake = Fake::new(|_| 1 << 30);
        let findings = find(&mut fake, 4096);
        assert_eq!((findings.least, findings.pick), (None, None));
        assert!(!findings.is_proven);
    }

    #[test]
    fn where_nothing_stood_in_time_it_is_what_lies_above_the_failures() {
        let mut fake = Fake::new(|_| 3000);
        // Three plays, all of rings that are too small.
        fake.left = [3, 0, 0];
        let findings = find(&mut fake, 64);
        let least = findings.least.unwrap();
        assert!(
            findings
                .trials
                .values()
                .all(|it| it.setting.slots_below() < least.slots_below())
        );
        assert_eq!(findings.trial(least).map(|it| it.plays), None);
        assert_eq!(
            findings.pick.unwrap().capacity,
            least.capacity * MARGIN as usize
        );
        assert!(!findings.is_proven);
    }

    #[test]
    fn what_time_is_left_decides_how_much_is_known() {
        let mut fake = Fake::new(|_| 3000);
        fake.left = [1000, 3, 0];
        let findings = find(&mut fake, 4096);
        assert_eq!(findings.pick.unwrap().capacity, 8192);
        assert!(!findings.is_proven);
        let mut fake = Fake::new(|_| 3000);
        fake.left = [0; 3];
        assert_eq!(find(&mut fake, 4096).pick, None);
    }

    #[test]
    fn a_goal_decides_among_clean_settings() {
        struct Slow(Fake);
        impl Player for Slow {
            fn play(&mut self, setting: Setting, stage: Stage) -> Result<Option<Played>> {
                let _ = self.0.play(setting, stage)?;
                let is_slow = setting.threshold == Threshold::Percent(75);
                let clean = setting.capacity >= 4096;
                let nanos = if is_slow { 9000 } else { 100 };
                Ok(Some(played(u64::from(!clean), nanos, 7)))
            }
            fn proof(&self, stage: Stage) -> f64 {
                self.0.proof(stage)
            }
        }
        let goal: Goal = "p99=1us".parse().unwrap();
        let mut slow = Slow(Fake::new(|_| 0));
        let choices = choices(&[75, 50]);
        let findings = search(&mut slow, &choices, Some(&goal), |_| 4096).unwrap();
        assert_eq!(findings.pick.unwrap().threshold, Threshold::Percent(50));
        // One that nobody keeps is no reason to recommend nothing.
        let goal: Goal = "p99=1ns".parse().unwrap();
        let findings = search(&mut slow, &choices, Some(&goal), |_| 4096).unwrap();
        assert_eq!(findings.pick.unwrap().capacity, 8192);
    }

    proptest! {
        #[test]
        fn halving_finds_the_boundary(count in 1..30_usize, start in 0..40_usize, at in 0..31_usize) {
            let at = at.min(count);
            let mut boundary = Boundary::new(count, start);
            let mut plays = 0;
            while let Some(index) = boundary.next() {
                prop_assert!(index < count);
                boundary.learn(index, index >= at);
                plays += 1;
                prop_assert!(plays <= 12);
            }
            prop_assert_eq!(boundary.clean, at);
        }
    }
}
