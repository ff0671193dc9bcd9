//! What a run found out, for people.

use std::io::{self, Write};
use std::iter;

use super::outcome::Outcome;
use super::reasons::reasons;
use super::snippet;
use super::verdict::Verdict;
use super::warnings::warnings;
use crate::load::PERCENTILES;
use crate::units::{grouped, short, time};

pub(super) fn print(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", Verdict::of(outcome).in_words(outcome))?;
    for (name, value) in outcome.choice() {
        writeln!(out, "  {name:<10}  {value}")?;
    }
    for warning in warnings(outcome) {
        writeln!(out, "\nWarning: {warning}.")?;
    }
    writeln!(out, "\nWhy")?;
    for reason in reasons(outcome) {
        writeln!(out, "- {reason}")?;
    }
    print_trials(outcome, out)?;
    if let Some(code) = snippet::code(outcome) {
        writeln!(out, "\nThe builder\n\n{}", code.trim_end())?;
    }
    Ok(())
}

fn print_trials(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    if outcome.findings.trials.is_empty() {
        return Ok(());
    }
    let head = ["capacity", "threshold", "ran for", "empties", "lowest"];
    let shown = PERCENTILES.iter().filter(|(name, _)| is_shown(name));
    let names = shown.map(|(name, _)| (*name).to_owned());
    writeln!(out, "\n{}", row(head.map(str::to_owned), names))?;
    for trial in outcome.findings.trials.values() {
        let mark = match Some(trial.setting) {
            setting if setting == outcome.findings.recommended => "  <- recommended",
            setting if setting == outcome.findings.minimum => "  <- minimum",
            _ => "",
        };
        let cells = [
            grouped(trial.setting.capacity as u64),
            trial.setting.threshold.to_string(),
            time(trial.seconds()),
            short(trial.total.empties as f64),
            grouped(trial.lowest_level as u64),
        ];
        writeln!(out, "{}{mark}", row(cells, latencies(trial.latencies())))?;
    }
    if let Some(baseline) = &outcome.baseline {
        let ran = time(baseline.total.took.as_secs_f64());
        let cells = ["no ring", "", &ran, "", ""].map(str::to_owned);
        writeln!(out, "{}", row(cells, latencies(baseline.latencies())))?;
    }
    Ok(())
}

fn is_shown(percentile: &str) -> bool {
    percentile != "p90"
}

fn latencies(seconds: [f64; PERCENTILES.len()]) -> impl Iterator<Item = String> {
    let named = PERCENTILES.iter().zip(seconds);
    let shown = named.filter(|((name, _), _)| is_shown(name));
    shown.map(|(_, seconds)| time(seconds))
}

fn row(cells: [String; 5], latencies: impl Iterator<Item = String>) -> String {
    let widths = [11, 9, 8, 8, 11].into_iter().chain(iter::repeat(9));
    let cells: Vec<_> = (cells.into_iter().chain(latencies).zip(widths))
        .map(|(cell, width)| format!("{cell:>width$}"))
        .collect();
    cells.join("  ")
}
