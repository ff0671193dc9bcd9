//! `--format json`: the answer, for machines.
//!
//! One object on one line. What it means is written down in the library's page
//! `guide::tuning`; names are only ever added.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::answer::Answer;
use super::replay::{Replay, Run, latencies};
use super::snippet;
use crate::load::PERCENTILES;

/// Grows when a name changes its meaning or goes.
const VERSION: u32 = 4;

pub(super) fn object(answer: &Answer, replay: Option<&Replay>, command: &str) -> Value {
    let (load, lease, measured) = (&answer.load, &answer.lease, &answer.measured);
    let text = |replay: &Replay| format!("{} {}", answer.headline(), replay.in_words(answer));
    json!({
        "version": VERSION,
        "command": command,
        "text": replay.map_or_else(|| answer.headline(), text),
        "machine": {
            "cores": answer.threads.cores,
            "fill_ids_per_s": measured.fill_rate.round(),
            "wake_p50_ns": nanos(measured.wake_median),
            "wake_max_ns": nanos(measured.wake_longest),
            "take_ns": measured.take_cost * 1e9,
        },
        "load": {
            "text": load.to_string(),
            "mean_ids_per_s": load.mean(),
            "peak_ids_per_s": load.peak(),
            "consumers": answer.threads.consumers,
        },
        "lease": {
            "layout": answer.layout.to_string(),
            "nodes": [lease.nodes.start, lease.nodes.end],
            "enough_nodes": lease.enough,
            "sustained_ids_per_s": lease.sustained,
            "share": lease.share,
            "most_borrowed_s": lease.borrowing.most,
            "used_up_after_s": lease.borrowing.used_up_at,
        },
        "ring": answer.setting().ok().map(|setting| json!({
            "capacity": setting.capacity,
            "bytes": setting.bytes(),
            "threshold": setting.threshold.0,
            "producers": answer.threads.producers,
            "builder": snippet::code(answer),
        })),
        "thresholds": answer.levels().into_iter().map(|(setting, level)| json!({
            "threshold": setting.threshold.0,
            "worst_level": level.lowest.round(),
            "worst_empties": level.empties.is_finite().then(|| level.empties.round()),
            "assisted": level.assisted,
        })).collect::<Vec<_>>(),
        "run": replay.map(|replay| json!({
            "finding": replay.finding,
            "rings": replay.runs.iter().chain(&replay.thresholds).map(ring).collect::<Vec<_>>(),
        })),
    })
}

fn ring(run: &Run) -> Value {
    let measured = &run.measured;
    let named = PERCENTILES.iter().zip(latencies(measured));
    let latency: BTreeMap<_, _> = named
        .map(|((name, _), seconds)| (*name, nanos(seconds)))
        .collect();
    json!({
        "capacity": run.setting.capacity,
        "threshold": run.setting.threshold.0,
        "ran_s": measured.took.as_secs_f64(),
        "due": measured.demanded,
        "taken": measured.taken,
        "taken_by_end": measured.by_end,
        "missed": measured.missed,
        "empties": measured.empties,
        "refused": measured.refused,
        "fills": measured.fills,
        "assists": measured.assists,
        "lowest_level": run.lowest(),
        "most_borrowed_s": measured.most_borrowed(),
        "latency_ns": latency,
    })
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
