//! Whether the load can be served, and by which ring.

use super::outcome::Outcome;
use super::search::{KEPT, MARGIN};
use super::shortfall::Shortfall;
use super::trial::Trial;
use crate::threshold::Threshold;
use crate::units::{bytes, grouped, percent, time};

/// What came of a run of `tune`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// A ring is recommended, and nothing speaks against it.
    Recommended,
    /// A ring is recommended, and is good except for these.
    WithReservations,
    /// A ring is recommended, and misses the goal for latency.
    MissesGoal,
    /// Every ring that ran was dry at times, or none ran for long enough to tell.
    NoRing,
    /// The IDs could not be taken when they were due, whatever the ring.
    NotServed(Shortfall),
    /// No ID was due in the runs that there was time for.
    NotMeasured,
}

/// How good that is: the colour of a page, and the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grade {
    Good,
    /// Good, and read the warnings.
    Caution,
    Bad,
}

/// From fewer takes than this nothing follows.
const FEW: u64 = 100;

/// What speaks against a recommended ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reservation {
    /// It did not run: smaller ones did.
    DidNotRun,
    /// It did not run for as long as a proof takes.
    NotProven,
    /// Less than [`KEPT`] of it was left at its lowest level.
    LowLevel,
    /// It carries less than [`MARGIN`] times what is needed.
    SmallMargin,
    /// The load takes more than its nodes have.
    FewNodes,
    /// The runs were shorter than the load's period.
    ShortRuns,
    /// Fewer than [`FEW`] IDs were taken from it.
    FewTakes,
    /// IDs were taken long after they were due, for want of a core and not of an ID.
    Late,
}

impl Reservation {
    /// All that speaks against the recommended ring of `outcome`, if one is.
    pub(super) fn all_of(outcome: &Outcome) -> Vec<Self> {
        let findings = &outcome.findings;
        if findings.recommended.is_none() {
            return Vec::new();
        }
        let trial = findings.trial_of_recommended();
        let is_low = |trial: &Trial| trial.headroom() < KEPT;
        let is_small = |margin: f64| margin < MARGIN as f64;
        let period = outcome.load.period().unwrap_or_default();
        let longest = findings.trials.values().map(|trial| trial.longest).max();
        let checks = [
            (Self::DidNotRun, trial.is_none()),
            (Self::NotProven, trial.is_some() && !findings.is_proven),
            (Self::LowLevel, trial.is_some_and(is_low)),
            (Self::SmallMargin, findings.margin().is_some_and(is_small)),
            (Self::FewNodes, outcome.budget.warning().is_some()),
            (Self::ShortRuns, longest < Some(period)),
            (Self::FewTakes, trial.is_some_and(|it| it.takes() < FEW)),
            (Self::Late, trial.is_some_and(Trial::is_late)),
        ];
        let found = checks.into_iter().filter(|&(_, applies)| applies);
        found.map(|(reservation, _)| reservation).collect()
    }

    /// Why, and what to do; `None` where the outcome's other warnings say it.
    pub(super) fn in_words(self, outcome: &Outcome) -> Option<String> {
        let findings = &outcome.findings;
        let longer = "give a longer --seconds";
        Some(match self {
            Self::DidNotRun => {
                format!("there was no time for the recommended ring to run: {longer}")
            }
            Self::NotProven => {
                format!("the time was too short to prove the recommended ring: {longer}")
            }
            Self::LowLevel => low_level(outcome)?,
            Self::SmallMargin => format!(
                "{} IDs lie below the recommended threshold, {:.1} times the {} that are needed, \
                 instead of {MARGIN} times: a longer wake-up than those that were met may empty the \
                 ring",
                grouped(findings.carried(findings.recommended?) as u64),
                findings.margin()?,
                grouped(findings.needed(findings.minimum?) as u64)
            ),
            Self::ShortRuns => format!(
                "no run lasted for a whole period of {}, so no ring met a second burst: {longer}",
                time(outcome.load.period()?.as_secs_f64())
            ),
            Self::FewTakes => format!(
                "only {} IDs were due in the runs of the recommended ring, too few to prove it: \
                 {longer}",
                grouped(findings.trial_of_recommended()?.takes())
            ),
            Self::Late => late(outcome)?,
            Self::FewNodes => return None,
        })
    }

    /// As it stands in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DidNotRun => "did_not_run",
            Self::NotProven => "not_proven",
            Self::LowLevel => "low_level",
            Self::SmallMargin => "small_margin",
            Self::FewNodes => "few_nodes",
            Self::ShortRuns => "short_runs",
            Self::FewTakes => "few_takes",
            Self::Late => "late",
        }
    }
}

impl Verdict {
    pub(super) fn of(outcome: &Outcome) -> Self {
        let findings = &outcome.findings;
        if findings.recommended.is_some() {
            return match Reservation::all_of(outcome).is_empty() {
                _ if !outcome.keeps_goal() => Self::MissesGoal,
                true => Self::Recommended,
                false => Self::WithReservations,
            };
        }
        let mut measured = findings.trials.values().filter(|it| it.takes() > 0);
        let was_served = match findings.longest_clean() {
            Some(trial) => outcome.is_served(trial),
            None => measured.clone().any(|trial| outcome.is_served(trial)),
        };
        match Shortfall::of(outcome) {
            Some(shortfall) if measured.next().is_some() => match was_served {
                true => Self::NoRing,
                false => Self::NotServed(shortfall),
            },
            _ => Self::NotMeasured,
        }
    }

    pub(super) fn grade(&self) -> Grade {
        match self {
            Self::Recommended => Grade::Good,
            Self::WithReservations => Grade::Caution,
            Self::MissesGoal | Self::NoRing | Self::NotServed(_) | Self::NotMeasured => Grade::Bad,
        }
    }

    /// As it stands in JSON.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Recommended => "recommended",
            Self::WithReservations => "with_reservations",
            Self::MissesGoal => "misses_goal",
            Self::NoRing => "no_ring",
            Self::NotServed(_) => "not_served",
            Self::NotMeasured => "not_measured",
        }
    }

    /// In a sentence or two, about the same outcome.
    pub(super) fn in_words(&self, outcome: &Outcome) -> String {
        match self {
            Self::Recommended | Self::WithReservations | Self::MissesGoal => recommended(outcome),
            Self::NoRing => no_ring(outcome),
            Self::NotServed(shortfall) => format!(
                "This load was not served as due, so nothing is recommended: {}.",
                shortfall.in_words()
            ),
            Self::NotMeasured => {
                let text = "Nothing was measured, so nothing can be recommended: no ID was due in \
                            the runs that there was time for. Give a longer --seconds.";
                text.to_owned()
            }
        }
    }
}

fn recommended(outcome: &Outcome) -> String {
    let Some(setting) = outcome.findings.recommended else {
        return String::new();
    };
    let bytes = bytes(setting.bytes());
    match outcome.findings.trial(setting) {
        Some(trial) => format!(
            "{setting} ({bytes}): no empties in {} under this load.",
            time(trial.seconds())
        ),
        None => format!("{setting} ({bytes}): concluded from smaller rings; it did not run."),
    }
}

fn no_ring(outcome: &Outcome) -> String {
    let findings = &outcome.findings;
    let largest = findings.trials.keys().map(|setting| setting.capacity).max();
    let text = format!(
        "Nothing can be recommended: {} rings of up to {} slots were tried, and none went without \
         empties for long enough",
        findings.trials.len(),
        grouped(largest.unwrap_or_default() as u64),
    );
    let limits = Shortfall::of(outcome).map(|shortfall| shortfall.limits_in_words());
    match limits.filter(|limits| !limits.is_empty()) {
        Some(limits) => format!("{text}. {limits}."),
        None => format!("{text}; give larger ones with --capacity, or a longer --seconds."),
    }
}

/// How late takes were although the ring had IDs.
fn late(outcome: &Outcome) -> Option<String> {
    let trial = outcome.findings.trial_of_recommended()?;
    Some(format!(
        "1 ID in 100 was taken {} or more after it was due, although the ring was never empty: the \
         threads that take were kept from running for {} % of the time; no ring helps against that, \
         free cores do",
        time(trial.late_by()),
        percent(trial.away_share(outcome.consumers))
    ))
}

/// How little is left of the recommended ring, why, and what a better one costs.
fn low_level(outcome: &Outcome) -> Option<String> {
    let trial = outcome.findings.trial_of_recommended()?;
    let setting = trial.setting;
    let left = format!(
        "the recommended ring had {} IDs left at its lowest level, {:.0} % of it, where {:.0} % should \
         be kept",
        grouped(trial.lowest_level as u64),
        (100.0 * trial.headroom()).floor(),
        100.0 * KEPT,
    );
    let advice = match setting.threshold {
        Threshold::Adaptive if trial.carried() < setting.carries() => format!(
            "its threshold came down to {} slots, three quarters more than was taken during a fill: \
             so it is meant to be, and a fixed one, such as --threshold 50%, keeps more",
            grouped(trial.carried() as u64)
        ),
        Threshold::Percent(percent) if f64::from(percent) <= 100.0 * KEPT => format!(
            "with a threshold of {percent} % no ring keeps more: allow a higher one, such as \
             --threshold 50%"
        ),
        _ if trial.total.assists > 0 => format!(
            "a producer was late, and takes made IDs themselves in time, {} times in {}: that is what \
             they are for, and a larger ring only lets them do it less often",
            grouped(trial.total.assists),
            time(trial.seconds())
        ),
        _ => format!(
            "a ring twice as large keeps more, and costs {} more: there was no time for one, or none \
             among the choices",
            bytes(setting.bytes())
        ),
    };
    Some(format!("{left}: {advice}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::drive::measurement::Measurement;
    use crate::tune::baseline::Baseline;
    use crate::tune::outcome::tests::outcome;
    use crate::tune::search::Findings;
    use crate::tune::setting::Setting;
    use crate::tune::shortfall::LimitKind;
    use crate::tune::warnings::warnings;

    /// The outcome of rings that all came no further than `run` did, on a machine that makes
    /// 40 M IDs/s.
    fn unserved(run: &Measurement) -> Outcome {
        let mut outcome = outcome();
        outcome.findings.recommended = None;
        outcome.findings.trials.clear();
        for shift in [10, 12] {
            let setting = Setting::new(1 << shift, Threshold::Percent(50));
            let mut trial = Trial::new(setting);
            trial.add(run.clone());
            outcome.findings.trials.insert(setting, trial);
        }
        outcome
    }

    /// Half of what was due in a second, and that late.
    fn half() -> Measurement {
        let mut run = Measurement {
            demanded: 1_000_000,
            taken: 600_000,
            by_end: 500_000,
            missed: 400_000,
            took: Duration::from_secs(1),
            ..Measurement::nothing()
        };
        run.latency.saturating_record_n(300_000_000, 600_000);
        run
    }

    #[test]
    fn a_ring_that_is_recommended_without_reservations_is_good() {
        let mut outcome = outcome();
        outcome.findings.minimum = Some(outcome.findings.recommended.unwrap());
        outcome.findings.minimum.as_mut().unwrap().capacity /= 2;
        outcome.load = outcome.load.with_burst("20M:100ms/1s".parse().unwrap());
        assert_eq!(Reservation::all_of(&outcome), []);
        assert_eq!(Verdict::of(&outcome), Verdict::Recommended);
        assert_eq!(Verdict::of(&outcome).grade(), Grade::Good);

        outcome.findings.is_proven = false;
        outcome.load = outcome.load.with_burst("20M:100ms/3s".parse().unwrap());
        let reservations = [Reservation::NotProven, Reservation::ShortRuns];
        assert_eq!(Reservation::all_of(&outcome), reservations);
        assert_eq!(Verdict::of(&outcome), Verdict::WithReservations);
        assert_eq!(Verdict::of(&outcome).grade(), Grade::Caution);
        let warnings = warnings(&outcome).join("\n");
        assert!(warnings.contains("too short to prove"), "{warnings}");
        assert!(warnings.contains("a whole period of 3 s"), "{warnings}");

        outcome.goal = Some("max=1ns".parse().unwrap());
        assert_eq!(Verdict::of(&outcome), Verdict::MissesGoal);
        assert_eq!(Verdict::of(&outcome).grade(), Grade::Bad);
    }

    #[test]
    fn a_load_that_was_not_served_as_due_says_how_far_it_got_and_what_limits_it() {
        let mut outcome = unserved(&half());
        outcome.load = "0,1000000\n1,1000000\n"
            .parse::<ringflake::plan::Trace>()
            .unwrap()
            .into();
        outcome.part = outcome.load.clone();
        // A thread takes 100 k IDs/s, and three of them 300 k; producers make half of it.
        outcome.machine.take_cost = 1e-5;
        outcome.machine.fill_rate = 0.5e6;
        let mut alone = half();
        alone.by_end = 900_000;
        let late = Measurement {
            by_end: 999_000,
            ..alone.clone()
        };
        outcome.baseline = Baseline::of([alone]);
        let verdict = Verdict::of(&outcome);
        assert_eq!(verdict.grade(), Grade::Bad);
        let Verdict::NotServed(shortfall) = &verdict else {
            panic!("{verdict:?}");
        };
        assert!((shortfall.reached - 0.5).abs() < 1e-9, "{shortfall:?}");
        let kinds: Vec<_> = shortfall.limits.iter().map(|it| it.kind).collect();
        let lowest_first = [LimitKind::Takes, LimitKind::Producers, LimitKind::Driver];
        assert_eq!(kinds, lowest_first);
        // Where the threads were no slower alone, but late, it is not the driver.
        let mut other = unserved(&half());
        other.baseline = Baseline::of([late]);
        other.machine.take_cost = 1e-5;
        let Verdict::NotServed(of_other) = Verdict::of(&other) else {
            panic!("it is not served either");
        };
        assert!(
            of_other
                .limits
                .iter()
                .all(|it| it.kind != LimitKind::Driver)
        );
        let text = verdict.in_words(&outcome);
        for part in [
            "of 1,000,000 IDs that were due in 1 s 500,000 were taken by then, 50.000 %",
            "those due in its first 500 ms",
            "a thread takes at most 100 k IDs/s one by one, and there are 3 threads",
            "1 producer of this machine (avx2 backend) can make 500 k IDs/s, where 1 M",
            "with 3 threads it asks for at most 900 k IDs/s",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn threads_that_do_not_run_are_a_limit_of_their_own() {
        let mut run = half();
        run.away = Duration::from_millis(1500);
        let mut outcome = unserved(&run);
        let limits = |outcome: &Outcome| match Verdict::of(outcome) {
            Verdict::NotServed(shortfall) => shortfall.limits,
            other => panic!("{other:?}"),
        };
        // Of the three seconds of three consumers.
        assert!(limits(&outcome)[0].text.contains("for 50 % of the time"));
        assert_eq!(limits(&outcome)[0].kind, LimitKind::Processor);
        outcome.cores = 2;
        assert_eq!(limits(&outcome)[0].kind, LimitKind::Cores);
        // Where each of them could do it there is still what came of all together.
        let outcome = unserved(&half());
        assert_eq!(limits(&outcome)[0].ids_per_second, Some(500_000.0));
    }

    #[test]
    fn rings_that_are_too_small_are_the_limit_where_takes_make_their_ids() {
        let mut run = half();
        run.empties = 500_000;
        let outcome = unserved(&run);
        let Verdict::NotServed(shortfall) = Verdict::of(&outcome) else {
            panic!("half of the IDs were late");
        };
        assert_eq!(shortfall.limits[0].kind, LimitKind::Capacity);
        assert!(
            shortfall
                .in_words()
                .contains("allow larger ones with --capacity")
        );
    }

    #[test]
    fn late_takes_are_a_reservation_unless_the_peak_is_too_fast_for_the_threads() {
        let mut outcome = outcome();
        let recommended = outcome.findings.recommended.unwrap();
        let mut trial = Trial::new(recommended);
        trial.add(crate::tune::trial::tests::measurement(
            0, 30_000_000, 60_000,
        ));
        outcome.findings.trials.insert(recommended, trial);
        assert!(Reservation::all_of(&outcome).contains(&Reservation::Late));
        let text = warnings(&outcome).join("\n");
        assert!(text.contains("free cores do"), "{text}");
        let trial = &outcome.findings.trials[&recommended];
        assert!(outcome.is_served(trial));
        // Three threads of 5 M IDs/s each, and a peak of 20 M/s.
        outcome.machine.take_cost = 2e-7;
        assert!(!outcome.is_served(&outcome.findings.trials[&recommended]));
    }

    #[test]
    fn a_level_below_a_quarter_is_a_reservation_with_what_a_better_ring_costs() {
        let mut outcome = outcome();
        let recommended = outcome.findings.recommended.unwrap();
        let low = |outcome: &mut Outcome, setting: Setting, level| {
            let mut trial = Trial::new(setting);
            trial.add(crate::tune::trial::tests::measurement(0, 100, level));
            outcome.findings.trials.insert(setting, trial);
            outcome.findings.recommended = Some(setting);
            let has_it = Reservation::all_of(outcome).contains(&Reservation::LowLevel);
            has_it.then(|| Reservation::LowLevel.in_words(outcome).unwrap())
        };
        let slots = recommended.capacity;
        assert_eq!(low(&mut outcome, recommended, slots / 4), None);
        for (threshold, advice) in [
            (recommended.threshold, "costs 1 MiB more"),
            (Threshold::Percent(25), "allow a higher one"),
            (Threshold::Adaptive, "its threshold came down to 1 slots"),
        ] {
            let setting = Setting::new(slots, threshold);
            let text = low(&mut outcome, setting, slots / 20).unwrap();
            assert!(text.contains(advice), "{text}");
            assert!(text.contains("6,553 IDs left"), "{text}");
            assert!(text.contains("where 25 % should be kept"), "{text}");
        }
    }

    #[test]
    fn a_load_that_is_served_by_no_ring_and_one_without_ids_are_told_apart() {
        let mut outcome = unserved(&crate::tune::trial::tests::measurement(5, 100, 0));
        assert_eq!(Verdict::of(&outcome), Verdict::NoRing);
        let text = Verdict::of(&outcome).in_words(&outcome);
        assert!(text.contains("2 rings of up to 4,096 slots"), "{text}");
        outcome.findings.modelled = None;
        let text = Verdict::of(&outcome).in_words(&outcome);
        assert!(text.contains("the largest ring there can be"), "{text}");

        let nothing = unserved(&Measurement::nothing());
        assert_eq!(Verdict::of(&nothing), Verdict::NotMeasured);
        outcome.findings = Findings::default();
        assert_eq!(Verdict::of(&outcome), Verdict::NotMeasured);
        let text = Verdict::of(&outcome).in_words(&outcome);
        assert!(text.contains("longer --seconds"), "{text}");
    }
}
