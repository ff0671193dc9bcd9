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
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{}", answer.headline())?;
    if let Some(replay) = replay {
        writeln!(out, "{}", replay.in_words(answer))?;
    }
    writeln!(out)?;
    for (name, text) in answer.facts() {
        writeln!(out, "{name:<8} {text}")?;
    }
    let table = table(answer, replay);
    if !table.is_empty() {
        writeln!(out)?;
        for row in table {
            let cells: String = row.iter().map(|cell| format!("{cell:>12}")).collect();
            writeln!(out, "{}", cells.trim_end())?;
        }
        let worst = "worst, empties: lowest level and empties in the worst case, as computed";
        let measured = match replay {
            Some(_) => "measured: by a run of each",
            None => "--run measures them",
        };
        writeln!(out, "({worst}; {measured})")?;
    }
    if let Some(code) = snippet::code(answer) {
        writeln!(out, "\n{}", code.trim_end())?;
    }
    Ok(())
}

/// The thresholds under their heads: their lowest level and their empties on the load, and their
/// latencies. Empty if no ring serves the load.
pub(super) fn table(answer: &Answer, replay: Option<&Replay>) -> Vec<Vec<String>> {
    let mut heads = vec!["threshold", "worst", "empties"];
    if replay.is_some() {
        heads.extend(["measured", "empties"]);
        heads.extend(PERCENTILES.map(|(name, _)| name));
    }
    let levels = answer.levels();
    if levels.is_empty() {
        return Vec::new();
    }
    let mut table = vec![heads.into_iter().map(str::to_owned).collect()];
    for (setting, level) in levels {
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
        table.push(row);
    }
    table
}
