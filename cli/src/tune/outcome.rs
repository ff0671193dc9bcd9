//! Everything that a run found out, and what follows from it.

use std::time::Duration;

use ringflake::Layout;
use ringflake::plan::Load;

use super::goal::Goal;
use super::lease::{LeasePlan, lifetime};
use super::machine::Machine;
use super::search::{Choices, Findings};
use super::setting::{Setting, Threshold};
use super::snippet::{Recipe, Schedule};
use super::stage::BORROW_LIMIT;
use super::trial::Trial;
use crate::units::{bytes, grouped, short, time};

/// What a run found out.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) load: Load,
    /// What of it was played.
    pub(super) played: Load,
    /// Of a trace that is too long to be played whole: from when on, and for
    /// how many seconds it was.
    pub(super) part: Option<(f64, f64)>,
    pub(super) layout: Layout,
    pub(super) lease: LeasePlan,
    pub(super) machine: Machine,
    pub(super) cores: usize,
    pub(super) consumers: usize,
    pub(super) producers: usize,
    pub(super) goal: Option<Goal>,
    /// How old an ID may become in the ring.
    pub(super) max_age: Duration,
    pub(super) choices: Choices,
    /// The least capacity by arithmetic alone, for each of the thresholds.
    pub(super) predicted: Vec<usize>,
    pub(super) findings: Findings,
    /// Whether it was broken off.
    pub(super) is_interrupted: bool,
    pub(super) took: Duration,
    pub(super) now_unix_ms: u64,
}

impl Outcome {
    /// What to tell the builder, if anything can be recommended.
    pub(super) fn recipe(&self) -> Option<Recipe> {
        Some(Recipe {
            layout: self.layout,
            nodes: self.lease.nodes.clone(),
            setting: self.findings.pick?,
            schedule: self.schedule(),
            producers: self.producers,
        })
    }

    /// Whether the goal was kept by the pick; true if there is none.
    pub(super) fn keeps_goal(&self) -> bool {
        let pick = self.findings.trial_of_pick();
        let goal = self.goal.as_ref();
        goal.is_none_or(|goal| pick.is_some_and(|pick| pick.keeps(goal)))
    }

    /// A schedule, if IDs grow older than they may.
    fn schedule(&self) -> Option<Schedule> {
        let setting = self.findings.pick?;
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
    fn oldest(&self, capacity: usize) -> f64 {
        const PIECES: usize = 1000;
        let starts = self.load.pieces().take(PIECES).map(|piece| piece.from);
        let ages = starts.map(|from| {
            let ids = self.load.demanded_by(from) + capacity as f64;
            let until = self.load.due_at(ids).or_else(|| self.end_of_load());
            until.unwrap_or(f64::INFINITY) - from
        });
        ages.fold(0.0, f64::max)
    }

    fn end_of_load(&self) -> Option<f64> {
        self.load.duration().map(|whole| whole.as_secs_f64())
    }

    /// What was recommended, in a sentence.
    pub(super) fn verdict(&self) -> String {
        let Some(pick) = self.findings.pick else {
            let most = self.choices.capacities.last().copied().unwrap_or_default();
            let tried = self.findings.trials.len();
            return match tried {
                0 => "Nothing was played, so nothing can be recommended.".to_owned(),
                _ => format!(
                    "Nothing can be recommended: of {tried} rings of up to {} slots that were \
                     played, none went without empties for long enough.",
                    grouped(most as u64)
                ),
            };
        };
        let bytes = bytes(pick.bytes());
        match self.findings.trial(pick) {
            Some(trial) => format!(
                "{pick} ({bytes}): no empties in {} of play.",
                time(trial.seconds)
            ),
            None => format!("{pick} ({bytes}), by what smaller ones did: it was not played."),
        }
    }

    /// Names and values of what is recommended.
    pub(super) fn choice(&self) -> Vec<(String, String)> {
        let Some(recipe) = self.recipe() else {
            return Vec::new();
        };
        let setting = recipe.setting;
        let schedule = match recipe.schedule {
            Some(Schedule { period, max_age }) => format!(
                "every {}, retires what is older than {}",
                time(period.as_secs_f64()),
                time(max_age.as_secs_f64())
            ),
            None => "none".to_owned(),
        };
        let nodes = &recipe.nodes;
        let facts = [
            (
                "capacity",
                format!(
                    "{} slots, {}",
                    grouped(setting.capacity as u64),
                    bytes(setting.bytes())
                ),
            ),
            ("threshold", setting.threshold.to_string()),
            ("schedule", schedule),
            ("producers", recipe.producers.to_string()),
            (
                "nodes",
                format!(
                    "{}..{}, or {} of a store's blocks of 32",
                    nodes.start,
                    nodes.end,
                    (nodes.end - nodes.start).div_ceil(32)
                ),
            ),
        ];
        let owned = facts.map(|(name, value)| (name.to_owned(), value));
        owned.to_vec()
    }

    /// What the reader has to know before anything else.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::from_iter(self.lease.warning());
        if self.consumers + self.producers > self.cores {
            warnings.push(format!(
                "{} consumers and {} producers share {} cores: they are in each other's way",
                self.consumers, self.producers, self.cores
            ));
        }
        let missed = self
            .findings
            .trials
            .values()
            .map(|it| it.missed)
            .sum::<u64>();
        if missed > 0 {
            warnings.push(format!(
                "the consumers did not come to {} IDs that were due: this machine can't take \
                 them so fast, so the figures are about less than the load",
                short(missed as f64)
            ));
        }
        if let (Some(goal), Some(pick)) = (&self.goal, self.findings.trial_of_pick())
            && !pick.keeps(goal)
        {
            warnings.push(format!(
                "no ring without empties kept the goal, {goal}: the recommended one had {} at {}",
                time(pick.latency_at(goal.share)),
                goal.name()
            ));
        }
        if self.is_interrupted {
            warnings.push("the run was broken off: this is what was measured so far".to_owned());
        } else if self.findings.pick.is_some() && !self.findings.is_proven {
            warnings.push(
                "the time was too short to play the recommended ring for as long as it should \
                 be: a longer --seconds tells more"
                    .to_owned(),
            );
        }
        warnings
    }

    /// Why it is recommended, a sentence each.
    pub(super) fn reasons(&self) -> Vec<String> {
        let mut reasons = vec![self.about_load(), self.about_machine()];
        if let Some(pick) = self.findings.pick {
            reasons.push(self.about_burst(pick));
            reasons.extend(self.about_margin(pick));
            reasons.extend(self.about_model());
            reasons.extend(self.about_adaptive(pick));
            reasons.push(self.about_age(pick));
        }
        let capacity = self.findings.pick.map_or(0, |pick| pick.capacity);
        reasons.push(self.about_lease(capacity));
        reasons.push(format!(
            "{}.",
            lifetime(&self.layout, &self.lease, self.now_unix_ms)
        ));
        reasons
    }

    fn about_load(&self) -> String {
        let part = match self.part {
            Some((from, length)) => format!(
                " Too long to be played whole: {} from second {from:.1} on was, the busiest part.",
                time(length)
            ),
            None => String::new(),
        };
        format!(
            "The load: {}; {} IDs/s on average, {} IDs/s at its peak.{part}",
            self.load,
            short(self.load.mean()),
            short(self.load.peak()),
        )
    }

    fn about_machine(&self) -> String {
        let machine = &self.machine;
        format!(
            "This machine: a producer makes {} IDs/s; it has woken up after {}, 1 time in 100 \
             after {}, at the longest after {}; a take costs {}.",
            short(machine.fill_rate),
            time(machine.wake_usual),
            time(machine.wake_slow),
            time(machine.wake_longest),
            time(machine.take_cost)
        )
    }

    /// Burst x fill latency against the slots below the threshold.
    fn about_burst(&self, pick: Setting) -> String {
        let peak = self.load.peak();
        let needed = peak * self.machine.wake_longest;
        let below = pick.slots_below();
        let filled = self.machine.fill_rate * self.producers as f64;
        let filling = if filled > peak {
            format!(
                "From then on the ring fills faster than it empties, by {} IDs/s.",
                short(filled - peak)
            )
        } else {
            format!(
                "From then on it still empties by {} IDs/s, until the peak is over.",
                short(peak - filled)
            )
        };
        format!(
            "At the peak {} IDs are taken while a producer wakes up late ({} IDs/s x {}); below the \
             threshold lie {}, {:.1} times as many. {filling}",
            short(needed),
            short(peak),
            time(self.machine.wake_longest),
            grouped(below as u64),
            below as f64 / needed.max(1.0)
        )
    }

    fn about_margin(&self, pick: Setting) -> Option<String> {
        let least = self.findings.least?;
        let seconds = self
            .findings
            .trial(least)
            .map_or(0.0, |trial| trial.seconds);
        let smaller = self.about_smaller(least);
        let level = self.findings.trial(pick).map(|trial| {
            format!(
                " At the lowest level that was seen it held {} IDs, {:.0} %.",
                grouped(trial.lowest_level as u64),
                100.0 * trial.headroom()
            )
        });
        let margin = self.findings.margin()?;
        let wanted = self.findings.wanted?;
        let why = if pick.bears() < wanted.bears {
            ", for want of a larger ring"
        } else if wanted.by_model {
            ", for half as much again as the longest wake-up takes at the peak"
        } else {
            ""
        };
        let margin = short(margin);
        Some(format!(
            "The margin is {margin}{why}: before it is dry, {margin} times as much can be taken \
             from it as from the least ring without empties. That has {least}, and was played \
             for {}; {smaller}.{}",
            time(seconds),
            level.unwrap_or_default()
        ))
    }

    /// What is known of the next smaller ring.
    fn about_smaller(&self, least: Setting) -> String {
        let mut smaller = self.choices.capacities.iter().copied();
        let Some(capacity) = smaller.rfind(|&it| it < least.capacity) else {
            return "a smaller one was not among the choices".to_owned();
        };
        let smaller = Setting { capacity, ..least };
        let slots = grouped(capacity as u64);
        match (self.findings.witness(smaller), self.findings.trial(smaller)) {
            (Some(dry), _) if dry.setting == smaller => format!(
                "with {slots} it had {} empties in {}",
                grouped(dry.empties),
                time(dry.seconds)
            ),
            (Some(dry), _) => format!(
                "with {slots} it bears no more than {} ({} below its threshold), which had {} \
                 empties in {}",
                dry.setting,
                grouped(dry.setting.slots_below() as u64),
                grouped(dry.empties),
                time(dry.seconds)
            ),
            (None, Some(_)) => format!("with {slots} it missed the goal"),
            (None, None) => format!("with {slots} it was not played"),
        }
    }

    /// The least capacity by arithmetic alone.
    pub(super) fn predicted_for(&self, threshold: Threshold) -> Option<usize> {
        let mut thresholds = self.choices.thresholds.iter();
        let index = thresholds.position(|&it| it == threshold)?;
        self.predicted.get(index).copied()
    }

    fn about_model(&self) -> Option<String> {
        let least = self.findings.least?;
        let predicted = self.predicted_for(least.threshold)?;
        let verdict = match predicted as f64 / least.capacity as f64 {
            factor if factor > 1.0 => format!("{} times as many", short(factor)),
            factor if factor < 1.0 => format!("{} of that", short(factor)),
            _ => "the same".to_owned(),
        };
        Some(format!(
            "The model, from the figures of the machine alone, says that the least has {} slots \
             with that threshold, where {} were measured: {verdict}.",
            grouped(predicted as u64),
            grouped(least.capacity as u64),
        ))
    }

    /// The adaptive threshold beside the one of the pick.
    fn about_adaptive(&self, pick: Setting) -> Option<String> {
        if pick.threshold == Threshold::Adaptive {
            return None;
        }
        let mut trials = self.findings.trials.values();
        let adaptive = trials.find(|it| {
            it.setting.threshold == Threshold::Adaptive && !self.findings.is_dry(it.setting)
        })?;
        let fixed = Setting {
            threshold: pick.threshold,
            ..adaptive.setting
        };
        let beside = match self.findings.trial(fixed) {
            Some(fixed) => format!(
                "; the fixed one held {} there, and had {} empties",
                grouped(fixed.mean_level() as u64),
                grouped(fixed.empties)
            ),
            None => String::new(),
        };
        Some(format!(
            "An adaptive threshold had no empties with {} slots in {} of play. Its ring held {} \
             IDs on average{beside}.",
            grouped(adaptive.setting.capacity as u64),
            time(adaptive.seconds),
            grouped(adaptive.mean_level() as u64),
        ))
    }

    fn about_age(&self, pick: Setting) -> String {
        let oldest = self.oldest(pick.capacity);
        let max_age = time(self.max_age.as_secs_f64());
        let age = match oldest.is_finite() {
            true => format!("An ID lies in the ring for {} at the most", time(oldest)),
            false => "An ID can lie in the ring for ever".to_owned(),
        };
        match self.schedule() {
            Some(_) => format!("{age}, which is more than {max_age}: so the schedule."),
            None => format!(
                "{age} while the load lasts, which is less than {max_age}: no schedule is needed."
            ),
        }
    }

    fn about_lease(&self, capacity: usize) -> String {
        let lease = &self.lease;
        let count = lease.nodes.end - lease.nodes.start;
        let limit = BORROW_LIMIT.as_secs();
        let end = match lease.used_up_at {
            Some(at) => format!("they are used up after {}", time(at)),
            None => "they are never used up".to_owned(),
        };
        format!(
            "The lease: {count} {} {} IDs/s, and the load takes {:.0} % of that. It borrows up to \
             {} ahead of the clock, and a full ring {} on top; {limit} s may be borrowed, and \
             {end}. A restart on the same nodes waits for what was borrowed.",
            if count == 1 { "node has" } else { "nodes have" },
            short(lease.sustained),
            100.0 * lease.share(),
            time(lease.most_borrowed),
            time(lease.borrowed_by_ring(capacity)),
        )
    }

    /// All that were played: the pick, the least, then those nearest to it in size;
    /// without a pick the largest first.
    pub(super) fn ranked(&self) -> Vec<&Trial> {
        let mut trials: Vec<_> = self.findings.trials.values().collect();
        let place = |trial: &Trial| match Some(trial.setting) {
            setting if setting == self.findings.pick => 0,
            setting if setting == self.findings.least => 1,
            _ => 2,
        };
        let pick = self.findings.pick.map(|pick| pick.capacity);
        let centre = pick.map_or(usize::BITS, usize::ilog2);
        let distance = |trial: &Trial| trial.setting.capacity.ilog2().abs_diff(centre);
        trials.sort_by_key(|trial| (place(trial), distance(trial), trial.setting));
        trials
    }

    /// Why a setting was not played.
    pub(super) fn why_not_played(&self, setting: Setting) -> &'static str {
        let smaller_clean = || {
            self.findings.trials.values().any(|it| {
                let smaller = it.setting.capacity < setting.capacity;
                smaller && it.setting.threshold == setting.threshold && it.is_clean()
            })
        };
        if self.findings.is_dry(setting) {
            "one that bears no less had empties"
        } else if smaller_clean() {
            "a smaller ring had none"
        } else if (self.findings.least).is_some_and(|it| it.capacity <= setting.capacity) {
            "one that is no larger was chosen"
        } else if self.is_interrupted {
            "the run was broken off"
        } else {
            "the time was over"
        }
    }

    /// The capacities that the grid is about: those that were played.
    pub(super) fn capacities(&self) -> Vec<usize> {
        let played = self.findings.trials.keys().map(|setting| setting.capacity);
        let (least, most) = played.fold((usize::MAX, 0), |(least, most), capacity| {
            (least.min(capacity), most.max(capacity))
        });
        let all = self.choices.capacities.iter().copied();
        all.filter(|capacity| (least..=most).contains(capacity))
            .collect()
    }

    /// What the thresholds are called, in the order of the grid.
    pub(super) fn thresholds(&self) -> Vec<Threshold> {
        let mut thresholds = self.choices.thresholds.clone();
        thresholds.sort();
        thresholds
    }
}
