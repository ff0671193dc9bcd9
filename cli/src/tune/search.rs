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
//! The smallest ring that bears twice as much as the least, with the lowest
//! threshold that does: a margin for what the plays did not meet. And half as much
//! again as is taken at the peak during the longest wake-up that this machine was
//! seen to have, if that is more, for the plays may have had the luck not to meet
//! it there; but no more than four times the least, or eight times if there was no
//! time to prove that. It is played in turn, and should it have empties, it is dry,
//! and so is the least. So whatever was picked was never seen empty, and half of the
//! least is dry, unless the time or the capacities ran out, which is told.

use std::collections::BTreeMap;

use anyhow::Result;

use super::goal::Goal;
use super::model::least_capacity;
use super::setting::{Setting, Threshold};
use super::trial::Trial;
use crate::load::Played;

/// How many times as much as the least the pick bears.
const MARGIN: u64 = 2;

/// How many times what the model asks for, in hundredths.
const MARGIN_OF_MODEL: u64 = 150;

/// What the pick bears at the most on the word of the model, as a multiple of the
/// least; and where the least was not played for as long as it should be.
const MARGIN_AT_MOST: u64 = 4;
const MARGIN_ABOVE_UNPROVEN: u64 = 8;

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
    /// How much the pick was to bear.
    pub(super) wanted: Option<Wanted>,
    /// Whether both were played for as long as they should be.
    pub(super) is_proven: bool,
}

/// How much a pick has to bear, as [`Setting::bears`] has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) bears: u64,
    /// Whether it is the longest wake-up that asks for so much.
    pub(super) by_model: bool,
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

/// Searches from what the model says: how many slots have to lie below a threshold,
/// if any number is enough.
pub(super) fn search<P: Player>(
    player: &mut P,
    choices: &Choices,
    goal: Option<&Goal>,
    modelled: Option<usize>,
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

struct Search<'a, P> {
    player: &'a mut P,
    choices: &'a Choices,
    goal: Option<&'a Goal>,
    modelled: Option<usize>,
    findings: Findings,
}

impl<P: Player> Search<'_, P> {
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
            let from = self
                .modelled
                .map_or(1, |slots| least_capacity(slots, threshold));
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
            let wanted = self.wanted(least, proven);
            let pick = self.with_margin(least, wanted, &passes);
            let picked = self.prove(pick, Stage::Pick, &passes)?;
            if picked == Proof::Failed {
                // If it is not dry, and the least neither, it has missed the goal.
                above = least.capacity;
                continue;
            }
            self.findings.least = Some(least);
            self.findings.pick = Some(pick);
            self.findings.wanted = Some(wanted);
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

    /// How much a ring with a margin above the least has to bear.
    fn wanted(&self, least: Setting, proven: Proof) -> Wanted {
        let at_most = match proven {
            Proof::Stands => MARGIN_AT_MOST,
            Proof::Failed | Proof::Unfinished => MARGIN_ABOVE_UNPROVEN,
        };
        let [twice, most] = [MARGIN, at_most].map(|margin| margin * least.bears());
        // `bears` counts in hundredths of a slot, too.
        let modelled = self
            .modelled
            .map_or(0, |slots| (slots as u64).saturating_mul(MARGIN_OF_MODEL));
        Wanted {
            bears: modelled.clamp(twice, most),
            by_model: modelled > twice,
        }
    }

    /// The fewest slots that bear as much. Another fixed threshold may need fewer than
    /// that of the least does; an adaptive one bears what it has learnt to, so it
    /// is only held against itself.
    fn with_margin(
        &self,
        least: Setting,
        wanted: Wanted,
        passes: &impl Fn(&Trial) -> bool,
    ) -> Setting {
        let is_fixed = |threshold| threshold != Threshold::Adaptive;
        let thresholds = self.choices.thresholds.iter().copied();
        let comparable: Vec<_> = thresholds
            .filter(|&it| it == least.threshold || is_fixed(it) && is_fixed(least.threshold))
            .collect();
        let is_bad = |setting| self.findings.trial(setting).is_some_and(|it| !passes(it));
        let larger = self.choices.capacities.iter().copied();
        let pick = larger
            .filter(|&it| it >= least.capacity)
            .find_map(|capacity| {
                let settings = comparable.iter().map(|&threshold| Setting {
                    capacity,
                    threshold,
                });
                settings
                    .filter(|&setting| setting.bears() >= wanted.bears && !is_bad(setting))
                    .min_by_key(|setting| setting.bears())
            });
        pick.unwrap_or(Setting {
            capacity: (self.choices.capacities.last()).map_or(least.capacity, |&it| it),
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
        search(fake, &choices(&[50, 75]), None, Some(guess)).unwrap()
    }

    #[test]
    fn the_pick_bears_twice_the_least_and_more_if_the_model_asks_for_it() {
        let [higher, lower] = [75, 50].map(Threshold::Percent);
        for (modelled, capacity, threshold) in [
            // 6,144 slots.
            (32, 8192, higher),
            (4000, 8192, higher),
            // 8,192, and not the 6,750 that are asked for.
            (4500, 16_384, lower),
            // 12,288, four times the 3,072 of the least.
            (usize::MAX, 16_384, higher),
        ] {
            let mut fake = Fake::new(|_| 3000);
            let findings = find(&mut fake, modelled);
            let least = findings.least.unwrap();
            // 75 % of 4,096 are 3,072.
            assert_eq!(least.capacity, 4096);
            assert_eq!(least.threshold, higher);
            let pick = findings.pick.unwrap();
            assert_eq!((pick.capacity, pick.threshold), (capacity, threshold));
            assert!(findings.is_proven);
            let half = Setting {
                capacity: least.capacity / 2,
                ..least
            };
            assert!(findings.is_dry(half));
            let plays: u32 = fake.plays.values().sum();
            assert!(plays < 50, "{plays} plays from {modelled}");
        }
    }

    #[test]
    fn the_model_has_more_of_a_say_where_the_least_is_not_proven() {
        // 20,000 slots are asked for, where the least has 3,072.
        for (left, capacity) in [(1000, 16_384), (0, 32_768)] {
            let mut fake = Fake::new(|_| 3000);
            fake.left = [1000, left, 1000];
            let findings = find(&mut fake, 20_000);
            assert_eq!(findings.least.unwrap().capacity, 4096);
            assert_eq!(findings.pick.unwrap().capacity, capacity, "{left}");
            assert_eq!(findings.is_proven, left > 0);
        }
    }

    #[test]
    fn rare_empties_are_found_by_the_proof() {
        // The third play of a setting meets something that the first ones do not.
        let mut fake = Fake::new(|play| if play == 3 { 12_000 } else { 3000 });
        let findings = find(&mut fake, 3000);
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
        let findings = find(&mut fake, 3000);
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
    fn the_pick_is_the_smallest_ring_that_bears_what_is_wanted() {
        let mut choices = choices(&[75, 50]);
        choices.thresholds.push(Threshold::Adaptive);
        let mut slow = Trial::new(Setting {
            capacity: 8192,
            threshold: Threshold::Percent(50),
        });
        slow.add(played(0, 9000, 7));
        let search = Search {
            player: &mut Fake::new(|_| 0),
            choices: &choices,
            goal: None,
            modelled: None,
            findings: Findings {
                trials: BTreeMap::from([(slow.setting, slow)]),
                ..Findings::default()
            },
        };
        let goal: Goal = "p99=1us".parse().unwrap();
        let pick_from = |capacity, threshold, passes: &dyn Fn(&Trial) -> bool| {
            let least = Setting {
                capacity,
                threshold,
            };
            let pick = search.with_margin(least, search.wanted(least, Proof::Stands), &|trial| {
                passes(trial)
            });
            (pick.capacity, pick.threshold)
        };
        let pick = |capacity, threshold| pick_from(capacity, threshold, &Trial::is_clean);
        let [higher, lower] = [75, 50].map(Threshold::Percent);
        assert_eq!(pick(4096, lower), (8192, lower));
        assert_eq!(pick(4096, higher), (8192, higher));
        // One that is known to miss the goal is passed over.
        assert_eq!(
            pick_from(4096, lower, &|trial: &Trial| trial.keeps(&goal)),
            (8192, higher)
        );
        assert_eq!(pick(4096, Threshold::Adaptive), (8192, Threshold::Adaptive));
        assert_eq!(pick(1 << 24, higher), (1 << 24, higher));
    }

    #[test]
    fn what_was_played_counts_for_more_than_what_was_not() {
        let mut choices = choices(&[75]);
        choices.thresholds.push(Threshold::Adaptive);
        let mut fake = Fake::new(|_| 3000);
        // Enough for the first threshold alone.
        fake.left = [2, 0, 0];
        let findings = search(&mut fake, &choices, None, Some(3000)).unwrap();
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
        let findings = search(&mut slow, &choices(&[75, 50]), Some(&goal), Some(3000)).unwrap();
        assert_eq!(findings.least.unwrap().capacity, 4096);
        assert_eq!(findings.pick.unwrap().capacity, 8192);
        assert!(!findings.trial_of_pick().unwrap().keeps(&goal));
    }

    #[test]
    fn nothing_is_picked_where_every_ring_runs_dry() {
        let mut fake = Fake::new(|_| 1 << 30);
        let findings = find(&mut fake, 3000);
        assert_eq!((findings.least, findings.pick), (None, None));
        assert!(!findings.is_proven);
    }

    #[test]
    fn where_nothing_stood_in_time_it_is_what_lies_above_the_failures() {
        let mut fake = Fake::new(|_| 3000);
        // Three plays, all of rings that are too small.
        fake.left = [3, 0, 0];
        let findings = find(&mut fake, 32);
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
        let findings = find(&mut fake, 3000);
        assert_eq!(findings.pick.unwrap().capacity, 8192);
        assert!(!findings.is_proven);
        let mut fake = Fake::new(|_| 3000);
        fake.left = [0; 3];
        assert_eq!(find(&mut fake, 3000).pick, None);
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
        let findings = search(&mut slow, &choices, Some(&goal), Some(2048)).unwrap();
        assert_eq!(findings.pick.unwrap().threshold, Threshold::Percent(50));
        // One that nobody keeps is no reason to recommend nothing.
        let goal: Goal = "p99=1ns".parse().unwrap();
        let findings = search(&mut slow, &choices, Some(&goal), Some(2048)).unwrap();
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
