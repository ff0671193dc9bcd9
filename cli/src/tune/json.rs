//! `--format json`: what a run found out, for machines.
//!
//! One object on one line. What it means is written down in the library's page
//! `plan::guide`; names are only ever added.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::outcome::{Outcome, Schedule};
use super::reasons::reasons;
use super::shortfall::Limit;
use super::snippet;
use super::trial::Trial;
use super::verdict::{Reservation, Verdict};
use super::warnings::warnings;
use crate::load::PERCENTILES;
use crate::threshold::Threshold;

/// Grows when a name changes its meaning or goes.
const VERSION: u32 = 2;

pub(super) fn object(outcome: &Outcome, command: &str) -> Value {
    let budget = &outcome.budget;
    let load = &outcome.load;
    json!({
        "version": VERSION,
        "command": command,
        "interrupted": outcome.is_interrupted,
        "took_s": outcome.took.as_secs_f64(),
        "machine": {
            "cores": outcome.cores,
            "fill_ids_per_s": outcome.machine.fill_rate.round(),
            "wake_p50_ns": nanos(outcome.machine.wake_usual),
            "wake_p99_ns": nanos(outcome.machine.wake_slow),
            "wake_max_ns": nanos(outcome.machine.wake_longest),
            "take_ns": outcome.machine.take_cost * 1e9,
        },
        "load": {
            "text": load.to_string(),
            "mean_ids_per_s": load.mean(),
            "peak_ids_per_s": load.peak(),
            "consumers": outcome.consumers,
            "part": outcome.part_at.map(|(from, length)| json!({
                "from_s": from, "seconds": length,
            })),
        },
        "goal": outcome.goal.as_ref().map(|goal| json!({
            "quantile": goal.share,
            "limit_ns": nanos(goal.limit.as_secs_f64()),
            "kept": outcome.keeps_goal(),
        })),
        "lease": {
            "layout": outcome.layout.to_string(),
            "nodes": [budget.nodes.start, budget.nodes.end],
            "sustained_ids_per_s": budget.sustained,
            "share": budget.share(),
            "most_borrowed_s": budget.borrowing.most,
            "used_up_after_s": budget.borrowing.used_up_at,
        },
        "verdict": verdict(outcome),
        "recommendation": recommendation(outcome),
        "baseline": outcome.baseline.as_ref().map(|baseline| json!({
            "ran_s": baseline.total.took.as_secs_f64(),
            "taken": baseline.total.taken,
            "missed": baseline.total.missed,
            "latency_ns": latency(baseline.latencies()),
        })),
        "warnings": warnings(outcome),
        "reasons": reasons(outcome),
        "settings": outcome.ranked().into_iter().map(setting).collect::<Vec<_>>(),
    })
}

fn verdict(outcome: &Outcome) -> Value {
    let verdict = Verdict::of(outcome);
    let shortfall = match &verdict {
        Verdict::NotServed(shortfall) => json!({
            "due": shortfall.progress.due,
            "taken_by_end": shortfall.progress.taken,
            "span_s": shortfall.progress.span.as_secs_f64(),
            "reached_s": shortfall.reached,
            "late_p99_ns": nanos(shortfall.late_by),
            "limits": shortfall.limits.iter().map(limit).collect::<Vec<_>>(),
        }),
        _ => Value::Null,
    };
    let reservations = Reservation::all_of(outcome);
    json!({
        "kind": verdict.name(),
        "text": verdict.in_words(outcome),
        "reservations": reservations.into_iter().map(Reservation::name).collect::<Vec<_>>(),
        "shortfall": shortfall,
    })
}

fn limit(limit: &Limit) -> Value {
    json!({
        "kind": limit.kind.name(),
        "ids_per_s": limit.ids_per_second.map(f64::round),
        "text": limit.text,
    })
}

fn recommendation(outcome: &Outcome) -> Value {
    let Some(setting) = outcome.findings.recommended else {
        return Value::Null;
    };
    let minimum = outcome.findings.minimum;
    let trial = outcome.findings.trial_of_recommended();
    json!({
        "capacity": setting.capacity,
        "bytes": setting.bytes(),
        "threshold": threshold(setting.threshold),
        "schedule": outcome.schedule().map(|Schedule { period, max_age }| json!({
            "period_s": period.as_secs_f64(),
            "max_age_s": max_age.as_secs_f64(),
        })),
        "producers": outcome.producers,
        "nodes": [outcome.budget.nodes.start, outcome.budget.nodes.end],
        "minimum_capacity": minimum.map(|minimum| minimum.capacity),
        "minimum_threshold": minimum.map(|minimum| threshold(minimum.threshold)),
        "predicted_capacity": minimum.and_then(|minimum| outcome.predicted_for(minimum.threshold)),
        "margin": outcome.findings.margin(),
        "ran_s": trial.map(Trial::seconds),
        "lowest_level": trial.map(|trial| trial.lowest_level),
        "lowest_threshold": trial.map(Trial::carried),
        "proven": outcome.findings.is_proven,
        "builder": snippet::code(outcome),
    })
}

fn setting(trial: &Trial) -> Value {
    json!({
        "capacity": trial.setting.capacity,
        "threshold": threshold(trial.setting.threshold),
        "runs": trial.runs,
        "ran_s": trial.seconds(),
        "due": trial.total.demanded,
        "taken": trial.total.taken,
        "taken_by_end": trial.total.by_end,
        "empties": trial.total.empties,
        "refused": trial.total.refused,
        "missed": trial.total.missed,
        "fills": trial.total.fills,
        "assists": trial.total.assists,
        "lowest_level": trial.lowest_level,
        "lowest_threshold": trial.carried(),
        "mean_level": trial.mean_level().round(),
        "most_borrowed_s": trial.most_borrowed,
        "latency_ns": latency(trial.latencies()),
    })
}

/// A percentage as a number, or a word.
fn threshold(threshold: Threshold) -> Value {
    match threshold {
        Threshold::Percent(percent) => percent.into(),
        Threshold::Adaptive => "adaptive".into(),
    }
}

/// By the names of the percentiles.
fn latency(seconds: [f64; PERCENTILES.len()]) -> BTreeMap<&'static str, u64> {
    let named = PERCENTILES.iter().zip(seconds);
    named
        .map(|((name, _), seconds)| (*name, nanos(seconds)))
        .collect()
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
