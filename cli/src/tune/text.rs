//! What a run found out, for people.

use std::io::{self, Write};

use super::outcome::Outcome;
use super::reasons::reasons;
use super::snippet;
use crate::units::{grouped, short, time};

pub(super) fn print(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", outcome.verdict())?;
    for (name, value) in outcome.choice() {
        writeln!(out, "  {name:<10}  {value}")?;
    }
    for warning in outcome.warnings() {
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
    let head = [
        "capacity",
        "threshold",
        "ran for",
        "empties",
        "lowest",
        "p50",
        "p99",
        "p99.99",
        "max",
    ];
    writeln!(out, "\n{}", row(head.map(str::to_owned)))?;
    for trial in outcome.findings.trials.values() {
        let mark = match Some(trial.setting) {
            setting if setting == outcome.findings.recommended => "  <- recommended",
            setting if setting == outcome.findings.minimum => "  <- minimum",
            _ => "",
        };
        let latency = |share| time(trial.latency_at(share));
        let cells = [
            grouped(trial.setting.capacity as u64),
            trial.setting.threshold.to_string(),
            time(trial.seconds()),
            short(trial.total.empties as f64),
            grouped(trial.lowest_level as u64),
            latency(0.5),
            latency(0.99),
            latency(0.9999),
            latency(1.0),
        ];
        writeln!(out, "{}{mark}", row(cells))?;
    }
    Ok(())
}

fn row(cells: [String; 9]) -> String {
    let widths = [11, 9, 8, 8, 11, 9, 9, 9, 9];
    let cells = cells.iter().zip(widths);
    let cells: Vec<_> = cells
        .map(|(cell, width)| format!("{cell:>width$}"))
        .collect();
    cells.join("  ")
}
