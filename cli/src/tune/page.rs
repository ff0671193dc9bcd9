//! Turns what a run found out into the page of the report.

use ringflake::plan::Load;

use super::outcome::Outcome;
use super::reasons::reasons;
use super::report::{Borrowed, Cell, CellOutcome, Fact, Grid, LatencyRow, Level, Page};
use super::setting::Setting;
use super::trial::Trial;
use crate::drive::measurement::Sample;
use crate::load::BORROW_LIMIT;
use crate::timestamp;

pub(super) fn page(outcome: &Outcome, command: &str, machine: Vec<Fact>) -> Page {
    let recommended = outcome.findings.trial_of_recommended();
    // Where nothing is recommended, the longest trial is shown.
    let longest = || {
        let trials = outcome.findings.trials.values();
        trials.max_by(|one, other| one.seconds().total_cmp(&other.seconds()))
    };
    let shown = recommended.or_else(longest);
    Page {
        title: outcome.load.to_string(),
        made_at: timestamp::in_words(outcome.now_unix_ms),
        verdict: outcome.verdict(),
        warnings: outcome.warnings(),
        choice: outcome.choice(),
        snippet: outcome
            .recipe()
            .map_or(String::new(), |recipe| recipe.code()),
        reasons: reasons(outcome),
        level: shown.map(level),
        latency: outcome.ranked().into_iter().map(latency).collect(),
        grid: grid(outcome),
        borrowed: shown.map(|trial| borrowed(trial, outcome)),
        command: command.to_owned(),
        machine,
    }
}

fn level(trial: &Trial) -> Level {
    let window = window(&trial.total.samples);
    let mut thresholds: Vec<(f64, f64)> = Vec::new();
    for sample in window {
        let threshold = sample.threshold as f64;
        if thresholds.last().is_none_or(|last| last.1 != threshold) {
            thresholds.push((sample.seconds, threshold));
        }
    }
    let points = |value: fn(&Sample) -> f64| {
        let points = window.iter().map(|sample| (sample.seconds, value(sample)));
        points.collect()
    };
    let counts = |count: fn(&Sample) -> u64| {
        let before = window.first().map_or(0, count);
        let since = window
            .iter()
            .map(|it| (it.seconds, (count(it) - before) as f64));
        since.collect()
    };
    Level {
        of: trial.setting.to_string(),
        capacity: trial.setting.capacity,
        thresholds,
        levels: points(|sample| sample.level as f64),
        fills: counts(|sample| sample.fills),
        empties: counts(|sample| sample.empties),
    }
}

/// The time around the lowest level: as much of it as has so few fills that each
/// can be seen.
fn window(samples: &[Sample]) -> &[Sample] {
    const MOST_MARKS: usize = 60;
    const LEAST: f64 = 0.02;
    let lowest = samples.iter().min_by_key(|sample| sample.level);
    let Some(lowest) = lowest.map(|sample| sample.seconds) else {
        return samples;
    };
    let mut around = 1.1;
    loop {
        let start = samples.partition_point(|sample| sample.seconds < lowest - around);
        let end = samples.partition_point(|sample| sample.seconds <= lowest + around);
        let window = &samples[start..end];
        let marks = window
            .windows(2)
            .filter(|pair| pair[1].fills > pair[0].fills);
        if marks.count() <= MOST_MARKS || around < LEAST {
            return window;
        }
        around *= 0.8;
    }
}

fn latency(trial: &Trial) -> LatencyRow {
    LatencyRow {
        name: trial.setting.to_string(),
        seconds: trial.latencies(),
        takes: trial.total.taken,
        empties: trial.total.empties,
    }
}

fn grid(outcome: &Outcome) -> Grid {
    let capacities = outcome.capacities();
    let thresholds = outcome.thresholds();
    let mut cells = Vec::new();
    for &capacity in &capacities {
        for (index, &threshold) in thresholds.iter().enumerate() {
            let setting = Setting {
                capacity,
                threshold,
            };
            cells.push(Cell {
                capacity,
                threshold: index,
                outcome: cell(outcome, setting),
                is_recommended: outcome.findings.recommended == Some(setting),
            });
        }
    }
    Grid {
        capacities,
        thresholds: thresholds.iter().map(ToString::to_string).collect(),
        cells,
    }
}

fn cell(outcome: &Outcome, setting: Setting) -> CellOutcome {
    let Some(trial) = outcome.findings.trial(setting) else {
        return CellOutcome::LeftOut(outcome.why_not_run(setting).to_owned());
    };
    let goal = outcome.goal.as_ref();
    CellOutcome::Ran {
        seconds: trial.seconds(),
        takes: trial.total.taken + trial.total.refused,
        empties: trial.total.empties + trial.total.refused,
        goal: goal.map(|goal| (trial.latency_at(goal.share), trial.keeps(goal))),
        lowest_level: trial.lowest_level,
    }
}

fn borrowed(trial: &Trial, outcome: &Outcome) -> Borrowed {
    let samples = trial.total.samples.iter();
    Borrowed {
        of: trial.setting.to_string(),
        calculated: calculated(trial, &outcome.part, outcome.budget.sustained),
        borrowed: samples.map(|it| (it.seconds, it.borrowed)).collect(),
        limit: BORROW_LIMIT.as_secs_f64(),
    }
}

/// The seconds borrowed by arithmetic: IDs made beyond what the nodes have are a debt in
/// seconds, which grows when the ring is filled and shrinks as time goes by.
fn calculated(trial: &Trial, load: &Load, sustained: f64) -> Vec<(f64, f64)> {
    let mut made_before = 0.0;
    let mut seconds_before = 0.0;
    let mut debt = 0.0_f64;
    let mut points = Vec::with_capacity(trial.total.samples.len());
    for sample in &trial.total.samples {
        let made = load.demanded_by(sample.seconds) + sample.level as f64;
        let more = (made - made_before) / sustained;
        debt = (debt + more - (sample.seconds - seconds_before)).max(0.0);
        points.push((sample.seconds, debt));
        (made_before, seconds_before) = (made, sample.seconds);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threshold::Threshold;

    fn samples(fills_each: u64) -> Vec<Sample> {
        let sample = |index: u64| Sample {
            seconds: index as f64 / 1000.0,
            level: if index == 3000 { 1 } else { 10 },
            threshold: 5,
            borrowed: 0.0,
            fills: index * fills_each,
            empties: 0,
        };
        (0..5000).map(sample).collect()
    }

    #[test]
    fn the_picture_is_about_the_lowest_level() {
        let all = samples(0);
        let window = window(&all);
        assert_eq!(window.first().unwrap().seconds, 1.9);
        assert_eq!(window.last().unwrap().seconds, 4.1);
    }

    #[test]
    fn it_is_as_short_as_it_takes_to_see_each_fill() {
        let all = samples(1);
        let window = window(&all);
        assert!(window.len() <= 61, "{}", window.len());
        assert!(window.iter().any(|sample| sample.level == 1));
    }

    #[test]
    fn a_debt_grows_by_what_is_made_and_is_paid_back_by_time() {
        let mut trial = Trial::new(Setting {
            capacity: 1000,
            threshold: Threshold::Percent(50),
        });
        trial.total.samples = samples(0);
        // 10 IDs in the ring, of 100 a second; then half as many as there are.
        let load = Load::steady("50/s".parse().unwrap());
        let points = calculated(&trial, &load, 100.0);
        assert!((points[0].1 - 0.1).abs() < 1e-9);
        assert!((points[100].1 - 0.05).abs() < 1e-9);
        assert_eq!(points[1000].1, 0.0);
        let load = Load::steady("300/s".parse().unwrap());
        let points = calculated(&trial, &load, 100.0);
        assert!((points[1000].1 - 2.1).abs() < 1e-9, "{:?}", points[1000]);
    }
}
