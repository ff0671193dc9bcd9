//! Which settings are played, and which one is picked.
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
//! So the least setting is then played for much longer. The first empty sends it
//! one capacity up. What stands is *the least*: it had no empties for all of that
//! time, and half of it had some.
//!
//! # The pick
//!
//! Twice the least: a margin for what the plays did not meet. It is played in
//! turn, and should it have empties, all begins again above it. So whatever was
//! picked, it was never seen empty, and a quarter of it was, unless the time or
//! the capacities ran out, which is told.

use std::collections::BTreeMap;

use anyhow::Result;

use super::goal::Goal;
use super::setting::{Setting, Threshold};
use super::trial::Trial;
use crate::load::Played;

/// How many times as large as the least capacity the pick is.
pub(super) const MARGIN: usize = 2;

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
    /// The smallest setting that was never seen empty.
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
}

/// Searches from `guess`, a capacity for each threshold.
pub(super) fn search<P: Player>(
    player: &mut P,
    choices: &Choices,
    goal: Option<&Goal>,
    guess: impl Fn(Threshold) -> usize,
) -> Result<Findings> {
    let mut search = Search {
        player,
        choices,
        goal,
        findings: Findings::default(),
    };
    search.find_boundaries(guess)?;
    search.settle()?;
    Ok(search.findings)
}

struct Search<'a, P> {
    player: &'a mut P,
    choices: &'a Choices,
    goal: Option<&'a Goal>,
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

    fn is_clean(&self, setting: Setting) -> bool {
        self.findings.trial(setting).is_some_and(Trial::is_clean)
    }

    fn find_boundaries(&mut self, guess: impl Fn(Threshold) -> usize) -> Result<()> {
        // By how many places the model was wrong so far.
        let mut places = 0;
        for &threshold in &self.choices.thresholds {
            let from = guess(threshold);
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
            if !self.play(setting, Stage::Search)? {
                return Ok(None);
            }
            boundary.learn(index, self.is_clean(setting));
        }
        Ok(Some(boundary.clean))
    }

    /// Finds the least setting and the pick, and puts them to the proof.
    fn settle(&mut self) -> Result<()> {
        // A goal that nobody keeps can't be a reason to choose.
        let mut trials = self.findings.trials.values();
        let goal = self
            .goal
            .filter(|goal| trials.any(|trial| trial.is_clean() && trial.keeps(goal)));
        let passes = |findings: &Findings, setting| {
            let trial = findings.trial(setting);
            trial.is_some_and(|it| it.is_clean() && goal.is_none_or(|goal| it.keeps(goal)))
        };
        let mut above = 0;
        while let Some(least) = self.candidate(above, &passes)? {
            let proven = self.prove(least, Stage::Proof, &passes)?;
            if proven == Proof::Failed {
                continue;
            }
            let pick = self.with_margin(least);
            let picked = self.prove(pick, Stage::Pick, &passes)?;
            if picked == Proof::Failed {
                above = pick.capacity;
                continue;
            }
            self.findings.least = Some(least);
            self.findings.pick = Some(pick);
            self.findings.is_proven = proven == Proof::Stands && picked == Proof::Stands;
            return Ok(());
        }
        self.settle_by_what_failed();
        Ok(())
    }

    /// Where the time ran out before anything stood: the smallest ring above all
    /// that had empties. Nobody played it for long, if at all, so it is not proven.
    fn settle_by_what_failed(&mut self) {
        let trials = &self.findings.trials;
        let above_failures = self.choices.thresholds.iter().filter_map(|&threshold| {
            let of_it = || (trials.values()).filter(|it| it.setting.threshold == threshold);
            let failed = of_it().filter(|it| !it.is_clean());
            let most = failed.map(|it| it.setting.capacity).max()?;
            let mut larger = self.choices.capacities.iter().filter(|&&it| it > most);
            let capacity = *larger.next()?;
            Some(Setting {
                capacity,
                threshold,
            })
        });
        if let Some(least) = above_failures.min_by_key(|setting| setting.capacity) {
            self.findings.pick = Some(self.with_margin(least));
            self.findings.least = Some(least);
        }
    }

    /// The setting with the fewest slots, and more than `above`, that passes.
    /// Where several are as small, the one with the most left in its ring.
    fn candidate(
        &mut self,
        above: usize,
        passes: &impl Fn(&Findings, Setting) -> bool,
    ) -> Result<Option<Setting>> {
        let capacities = self.choices.capacities.iter().copied();
        for capacity in capacities.filter(|&it| it > above) {
            let mut best: Option<(f64, Setting)> = None;
            for &threshold in &self.choices.thresholds {
                let setting = Setting {
                    capacity,
                    threshold,
                };
                // The next one up was never played where one play was enough.
                let is_next = self.is_worth_a_play(setting);
                if is_next && !self.play(setting, Stage::Proof)? {
                    continue;
                }
                if passes(&self.findings, setting) {
                    let headroom = self.findings.trials[&setting].headroom();
                    if best.is_none_or(|(most, _)| headroom > most) {
                        best = Some((headroom, setting));
                    }
                }
            }
            if let Some((_, setting)) = best {
                return Ok(Some(setting));
            }
        }
        Ok(None)
    }

    /// Whether it was not played, half of it had empties, and no larger one had.
    fn is_worth_a_play(&self, setting: Setting) -> bool {
        let mut trials = self.findings.trials.values();
        let is_beaten = trials.any(|it| {
            let larger = it.setting.capacity > setting.capacity;
            larger && it.setting.threshold == setting.threshold && !it.is_clean()
        });
        if is_beaten {
            return false;
        }
        let half = Setting {
            capacity: setting.capacity / 2,
            ..setting
        };
        let half = self.findings.trial(half);
        self.findings.trial(setting).is_none() && half.is_some_and(|it| !it.is_clean())
    }

    fn with_margin(&self, least: Setting) -> Setting {
        let wanted = least.capacity * MARGIN;
        let mut smaller = self.choices.capacities.iter().filter(|&&it| it <= wanted);
        Setting {
            capacity: smaller.next_back().copied().unwrap_or(least.capacity),
            ..least
        }
    }

    /// Plays a setting until it has been played for long enough, or fails.
    fn prove(
        &mut self,
        setting: Setting,
        stage: Stage,
        passes: &impl Fn(&Findings, Setting) -> bool,
    ) -> Result<Proof> {
        let needed = self.player.proof(stage);
        loop {
            let trial = self.findings.trial(setting);
            let seconds = trial.map_or(0.0, |trial| trial.seconds);
            if trial.is_some() && !passes(&self.findings, setting) {
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
    fn the_pick_is_twice_the_least_and_a_quarter_of_it_has_empties() {
        for guess in [64, 4096, 1 << 24] {
            let mut fake = Fake::new(|_| 3000);
            let findings = find(&mut fake, guess);
            let least = findings.least.unwrap();
            // 75 % of 4,096 are 3,072.
            assert_eq!(least.capacity, 4096);
            assert_eq!(least.threshold, Threshold::Percent(75));
            let pick = findings.pick.unwrap();
            assert_eq!(pick.capacity, 8192);
            assert!(findings.is_proven);
            let quarter = Setting {
                capacity: pick.capacity / 4,
                ..pick
            };
            assert!(findings.trials[&quarter].empties > 0);
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
                .all(|it| it.setting.capacity < least.capacity)
        );
        assert_eq!(findings.pick.unwrap().capacity, least.capacity * MARGIN);
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
