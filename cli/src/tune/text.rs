//! The answer, for people.

use std::io::{self, Write};

use super::answer::Answer;
use super::replay::{Replay, latencies};
use super::snippet;
use crate::load::PERCENTILES;
use crate::units::{grouped, time};

pub(super) fn print(
    answer: &Answer,
    replay: Option<&Replay>,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "{}", answer.headline())?;
    if let Some(replay) = replay {
        writeln!(out, "{}", replay.in_words(answer))?;
    }
    writeln!(out)?;
    for (name, text) in answer.facts() {
        writeln!(out, "{name:<8} {text}")?;
    }
    let rows = rows(answer, replay);
    if !rows.is_empty() {
        writeln!(out)?;
        let head = heads(replay.is_some())
            .into_iter()
            .map(str::to_owned)
            .collect();
        for row in std::iter::once(head).chain(rows) {
            let cells: Vec<_> = row.iter().map(|cell| format!("{cell:>12}")).collect();
            writeln!(out, "{}", cells.join("").trim_end())?;
        }
        let worst = "lowest level and empties in the worst case, as computed";
        match replay {
            Some(_) => writeln!(out, "(worst, empties: {worst}; measured: by a run of each)")?,
            None => writeln!(out, "(worst, empties: {worst}; --run measures them)")?,
        }
    }
    if let Some(code) = snippet::code(answer) {
        writeln!(out, "\n{}", code.trim_end())?;
    }
    Ok(())
}

/// The columns of the table of thresholds.
pub(super) fn heads(has_run: bool) -> Vec<&'static str> {
    let mut heads = vec!["threshold", "worst", "empties"];
    if has_run {
        heads.extend(["measured", "empties"]);
        heads.extend(PERCENTILES.map(|(name, _)| name));
    }
    heads
}

/// The thresholds: their lowest level and their empties on the load, and their latencies.
pub(super) fn rows(answer: &Answer, replay: Option<&Replay>) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (setting, level) in answer.levels() {
        let empties = match level.empties {
            empties if empties.is_finite() => grouped(empties as u64),
            _ => "always".to_owned(),
        };
        let threshold = setting.threshold.to_string();
        let mut row = vec![threshold, grouped(level.lowest as u64), empties];
        if let Some(replay) = replay {
            match replay.run_of(setting) {
                Some(run) => {
                    row.extend([run.lowest() as u64, run.measured.empties].map(grouped));
                    row.extend(latencies(&run.measured).map(time));
                }
                None => row.extend(vec!["-".to_owned(); 2 + PERCENTILES.len()]),
            }
        }
        rows.push(row);
    }
    rows
}
