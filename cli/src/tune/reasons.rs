//! Why a setting is recommended, a sentence or two for each reason.

use super::outcome::Outcome;
use super::search::MARGIN;
use super::setting::Setting;
use super::trial::Trial;
use crate::load::BORROW_LIMIT;
use crate::threshold::Threshold;
use crate::units::{grouped, percent, short, time};

/// All of them.
pub(super) fn reasons(outcome: &Outcome) -> Vec<String> {
    let mut reasons = vec![load(outcome), machine(outcome)];
    if let Some(recommended) = outcome.findings.recommended {
        reasons.push(wake_up(outcome, recommended));
        reasons.extend(margin(outcome, recommended));
        reasons.extend(model(outcome));
        reasons.extend(adaptive(outcome, recommended));
        reasons.push(age(outcome, recommended));
    }
    reasons.extend([nodes(outcome), lifetime(outcome)]);
    reasons
}

fn load(outcome: &Outcome) -> String {
    let part = match outcome.part_at {
        Some((from, length)) => format!(
            " It is too long to run whole: its busiest {}, from second {from:.1} on, ran.",
            time(length)
        ),
        None => String::new(),
    };
    format!(
        "The load: {}; {} IDs/s on average, {} IDs/s at its peak.{part}",
        outcome.load,
        short(outcome.load.mean()),
        short(outcome.load.peak()),
    )
}

fn machine(outcome: &Outcome) -> String {
    let machine = &outcome.machine;
    format!(
        "This machine: a producer makes {} IDs/s; it woke up after {} as a rule, after {} 1 time in \
         100, after {} at the longest; a take costs {}.",
        short(machine.fill_rate),
        time(machine.wake_usual),
        time(machine.wake_slow),
        time(machine.wake_longest),
        time(machine.take_cost)
    )
}

/// Peak x wake-up against the slots below the threshold.
fn wake_up(outcome: &Outcome, recommended: Setting) -> String {
    let (peak, wake) = (outcome.load.peak(), outcome.machine.wake_longest);
    let (needed, carries) = (peak * wake, outcome.findings.carried(recommended));
    let filled = outcome.machine.fill_rate * outcome.producers as f64;
    let then = match filled > peak {
        true => format!("fills by {} IDs/s", short(filled - peak)),
        false => format!(
            "still empties by {} IDs/s, until the peak is over",
            short(peak - filled)
        ),
    };
    let assisted = match outcome.findings.trial(recommended) {
        Some(trial) if trial.total.assists > 0 => format!(
            " Takes that left very few IDs made some themselves {} times, so that no wake-up has to be \
             bridged.",
            grouped(trial.total.assists)
        ),
        _ => " Where that is not enough, takes make IDs themselves in time.".to_owned(),
    };
    format!(
        "At the peak {} IDs are taken during the longest wake-up ({} IDs/s x {}); below the \
         threshold{} lie {}, {} times as many. From then on the ring {then}.{assisted}",
        short(needed),
        short(peak),
        time(wake),
        lowest_threshold(outcome, recommended),
        grouped(carries as u64),
        short(carries as f64 / needed.max(1.0))
    )
}

/// Which one is spoken of where it moves.
fn lowest_threshold(outcome: &Outcome, setting: Setting) -> &'static str {
    match (setting.threshold, outcome.findings.trial(setting)) {
        (Threshold::Percent(_), _) => "",
        (Threshold::Adaptive, Some(_)) => ", where it was measured to be lowest,",
        (Threshold::Adaptive, None) => ", if it stays at its upper bound,",
    }
}

fn margin(outcome: &Outcome, recommended: Setting) -> Option<String> {
    let findings = &outcome.findings;
    let minimum = findings.minimum?;
    let needed = findings.needed(minimum);
    let by = match needed > minimum.carries() {
        true => "the model asks for",
        false => "the smallest ring without empties carries",
    };
    let carries = findings.carried(recommended);
    let short_of = match carries < needed.saturating_mul(MARGIN) {
        true if carries < recommended.carries() => ", because the threshold came down",
        true => ", for want of a larger ring",
        false => "",
    };
    let level = findings.trial(recommended).map(|trial| {
        format!(
            " At its lowest level the recommended one held {} IDs, {:.0} %.",
            grouped(trial.lowest_level as u64),
            (100.0 * trial.headroom()).floor()
        )
    });
    let ran = match findings.trial(minimum) {
        Some(trial) => format!("ran for {}", time(trial.seconds())),
        None => "did not run itself".to_owned(),
    };
    Some(format!(
        "The margin is {}{short_of}: before the ring is empty {} IDs can be taken, where {by} {}. That \
         smallest ring has {minimum}, and {ran}; {}.{}",
        short(findings.margin()?),
        grouped(carries as u64),
        grouped(needed as u64),
        next_smaller(outcome, minimum),
        level.unwrap_or_default()
    ))
}

/// What is known of the next smaller ring.
fn next_smaller(outcome: &Outcome, minimum: Setting) -> String {
    let Some(smaller) = outcome.choices.next_smaller(minimum) else {
        return "a smaller one was not among the choices".to_owned();
    };
    let findings = &outcome.findings;
    let misses_goal = |trial: &Trial| outcome.goal.as_ref().is_some_and(|goal| !trial.keeps(goal));
    let result = match (findings.witness(smaller), findings.trial(smaller)) {
        (Some(witness), _) => {
            let other = match witness.setting == smaller {
                true => String::new(),
                false => format!("carries no more than {}, which ", witness.setting),
            };
            format!(
                "{other}had {} empties in {}",
                grouped(witness.total.empties),
                time(witness.seconds())
            )
        }
        (None, Some(trial)) if misses_goal(trial) => "missed the goal".to_owned(),
        (None, Some(trial)) => format!(
            "had none in {}, but nothing with the margin over it could be recommended",
            time(trial.seconds())
        ),
        (None, None) => "did not run".to_owned(),
    };
    format!("one of {} {result}", grouped(smaller.capacity as u64))
}

fn model(outcome: &Outcome) -> Option<String> {
    let minimum = outcome.findings.minimum?;
    let predicted = outcome.predicted_for(minimum.threshold)?;
    let verdict = match predicted as f64 / minimum.capacity as f64 {
        factor if factor > 1.0 => format!("{} times as many", short(factor)),
        factor if factor < 1.0 => format!("{} of that", short(factor)),
        _ => "the same".to_owned(),
    };
    Some(format!(
        "The model, from the figures of the machine alone, expects {} slots with that threshold, \
         where {} were measured: {verdict}.",
        grouped(predicted as u64),
        grouped(minimum.capacity as u64),
    ))
}

/// The adaptive threshold beside the recommended one.
fn adaptive(outcome: &Outcome, recommended: Setting) -> Option<String> {
    if recommended.threshold == Threshold::Adaptive {
        return None;
    }
    let findings = &outcome.findings;
    let mut trials = findings.trials.values();
    let adaptive = trials.find(|it| {
        it.setting.threshold == Threshold::Adaptive && !findings.is_underrun(it.setting)
    })?;
    let fixed = Setting::new(adaptive.setting.capacity, recommended.threshold);
    let fixed = findings.trial(fixed);
    let beside = fixed.map(|fixed| {
        format!(
            "; the fixed one held {} there, and had {} empties",
            grouped(fixed.mean_level() as u64),
            grouped(fixed.total.empties)
        )
    });
    Some(format!(
        "An adaptive threshold had no empties with {} slots in {}. Its ring held {} IDs on \
         average{}.",
        grouped(adaptive.setting.capacity as u64),
        time(adaptive.seconds()),
        grouped(adaptive.mean_level() as u64),
        beside.unwrap_or_default()
    ))
}

fn age(outcome: &Outcome, recommended: Setting) -> String {
    let oldest = outcome.oldest(recommended.capacity);
    let max_age = time(outcome.max_age.as_secs_f64());
    let age = match oldest.is_finite() {
        true => format!("An ID lies in the ring for {} at the most", time(oldest)),
        false => "An ID can lie in the ring for ever".to_owned(),
    };
    match outcome.schedule() {
        Some(_) => format!("{age}, which is more than {max_age}: so the schedule."),
        None => format!(
            "{age} while the load lasts, which is less than {max_age}: no schedule is needed."
        ),
    }
}

fn nodes(outcome: &Outcome) -> String {
    let budget = &outcome.budget;
    let limit = BORROW_LIMIT.as_secs();
    let end = match budget.borrowing.used_up_at {
        Some(at) => format!("they are used up after {}", time(at)),
        None => "they are never used up".to_owned(),
    };
    let by_load = match budget.borrowing.most > 0.0 {
        true => format!(
            "It borrows up to {} ahead of the clock",
            time(budget.borrowing.most)
        ),
        false => "It borrows nothing".to_owned(),
    };
    let by_ring = match outcome.findings.recommended {
        Some(setting) => {
            let borrowed = time(budget.borrowed_by_ring(setting.capacity));
            format!(", and a full ring {borrowed} on top")
        }
        None => String::new(),
    };
    format!(
        "The lease: {}, and the load takes {} % of that. {by_load}{by_ring}; {limit} s may be \
         borrowed, and {end}. A restart on the same nodes waits for what was borrowed.",
        budget.in_words(),
        percent(budget.share()),
    )
}

/// How long the layout lasts, and what the load does to it.
fn lifetime(outcome: &Outcome) -> String {
    let left = outcome.layout.remaining_lifetime(outcome.now_unix_ms);
    let left = time(left.as_secs_f64());
    let share = outcome.budget.share();
    if share > 1.0 {
        return format!(
            "The layout lasts for {left} more, but not at this rate: it asks for {} % of \
             what its nodes have, and nothing makes up for that.",
            percent(share)
        );
    }
    format!(
        "The layout lasts for {left} more. This rate does not shorten that: it takes {} % of \
         the IDs that its nodes have in each tick, and what is left of a tick is not kept.",
        percent(share)
    )
}

#[cfg(test)]
mod tests {
    use ringflake::plan::Load;

    use super::*;
    use crate::tune::nodes::NodeBudget;
    use crate::tune::outcome::tests::outcome;

    #[test]
    fn the_threshold_that_is_explained_is_the_one_that_was_measured() {
        let mut outcome = outcome();
        let adaptive = Setting::new(1 << 17, Threshold::Adaptive);
        outcome.findings.minimum = Some(Setting::new(1 << 16, Threshold::Adaptive));
        outcome.findings.recommended = Some(adaptive);
        let samples = &outcome.findings.trials[&adaptive].total.samples;
        let lowest = samples.iter().map(|sample| sample.threshold).min().unwrap();
        assert!(lowest < adaptive.carries() / 2);
        let text = reasons(&outcome).join("\n");
        let expected = format!(
            "below the threshold, where it was measured to be lowest, lie {},",
            grouped(lowest as u64)
        );
        assert!(text.contains(&expected), "{text}");
        let upper_bound = grouped(adaptive.carries() as u64);
        assert!(!text.contains(&upper_bound), "{text}");

        // A fixed one does not move, whatever the samples say.
        let fixed = Setting::new(1 << 17, Threshold::Percent(50));
        outcome.findings.recommended = Some(fixed);
        let text = reasons(&outcome).join("\n");
        assert!(text.contains("below the threshold lie 65,536,"), "{text}");
    }

    #[test]
    fn nothing_lasts_no_time_and_takes_no_share() {
        let mut outcome = outcome();
        outcome.load = Load::steady("1/s".parse().unwrap());
        outcome.budget = NodeBudget::new(&outcome.load, &outcome.layout, None).unwrap();
        outcome
            .findings
            .trials
            .remove(&outcome.findings.minimum.unwrap());
        for recommended in [outcome.findings.recommended, None] {
            outcome.findings.recommended = recommended;
            let text = reasons(&outcome).join("\n");
            assert!(!text.contains(" 0 ns"), "{text}");
            assert!(text.contains("It borrows nothing"), "{text}");
            assert!(text.contains("the load takes <0.01 % of that"), "{text}");
        }
    }
}
