//! `--report`: what a run found, as one page that needs nothing beside itself.
//!
//! No script, no font, no picture from elsewhere, so it can be mailed and kept.
//! Every text in it is escaped where it is written. The pictures are drawn once
//! for wide pages and once for narrow ones, in the light colours; the style
//! sheet chooses, and puts the dark colours in place where they are preferred.

use std::fmt::{self, Write as _};

use anyhow::Result;

use self::escape::Escaped;
use self::figure::Figure;
use self::heat::Grid;
use super::outcome::{Fact, Outcome};
use super::reasons::reasons;
use super::snippet;
use super::trial::Trial;
use crate::timestamp;

mod borrowed;
mod canvas;
mod demand;
mod escape;
mod figure;
mod heat;
mod latency;
mod level;
#[cfg(test)]
mod overlap_tests;
mod palette;
mod summary;
#[cfg(test)]
mod tests;
mod time_chart;

/// The page as HTML.
///
/// # Errors
/// If a picture can't be drawn.
pub(super) fn html(outcome: &Outcome, command: &str, machine: &[Fact]) -> Result<String> {
    let mut html = String::new();
    write_head(&mut html, outcome)?;
    write_advice(&mut html, outcome)?;
    for figure in figures(outcome)? {
        write!(html, "{figure}")?;
    }
    write_origin(&mut html, command, machine)?;
    Ok(html)
}

/// The trial that is shown: of the recommended ring, or else the longest.
fn shown(outcome: &Outcome) -> Option<&Trial> {
    let findings = &outcome.findings;
    let longest = || findings.trials.values().max_by_key(|it| it.total.took);
    findings.trial_of_recommended().or_else(longest)
}

fn figures(outcome: &Outcome) -> Result<Vec<Figure>> {
    let shown = shown(outcome);
    let mut figures = vec![demand::figure(outcome)?];
    if let Some(trial) = shown {
        figures.push(level::figure(trial)?);
    }
    figures.push(latency::figure(
        &outcome.ranked(),
        outcome.baseline.as_ref(),
    )?);
    figures.push(Grid::new(outcome).figure()?);
    if let Some(trial) = shown {
        figures.push(borrowed::figure(trial, outcome)?);
    }
    Ok(figures)
}

fn write_head(html: &mut String, outcome: &Outcome) -> fmt::Result {
    let title = outcome.load.to_string();
    let title = Escaped(&title);
    write!(
        html,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>ringflake tune: {title}</title>\n<style>\n{}{}\
         </style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n<p class=\"quiet\">Made by ringflake tune, {}</p>\n\
         </header>\n<main>\n",
        palette::rules(),
        include_str!("report/style.css"),
        timestamp::in_words(outcome.now_unix_ms),
    )
}

fn write_advice(html: &mut String, outcome: &Outcome) -> fmt::Result {
    summary::write(html, outcome, shown(outcome))?;
    if let Some(code) = snippet::code(outcome) {
        writeln!(html, "<section>\n<h2>The recommended generator</h2>")?;
        write_facts(html, &outcome.choice())?;
        write_code(html, "The program", &code)?;
        writeln!(html, "</section>")?;
    }
    writeln!(html, "<section>\n<h2>Why</h2>\n<ul>")?;
    for reason in reasons(outcome) {
        writeln!(html, "<li>{}</li>", Escaped(&reason))?;
    }
    writeln!(html, "</ul>\n</section>")
}

fn write_origin(html: &mut String, command: &str, machine: &[Fact]) -> fmt::Result {
    writeln!(html, "<section>\n<h2>How this was measured</h2>")?;
    write_code(html, "The command", command)?;
    write_facts(html, machine)?;
    writeln!(html, "</section>\n</main>\n</body>\n</html>")
}

fn write_code(html: &mut String, label: &str, code: &str) -> fmt::Result {
    let code = Escaped(code);
    // Whoever scrolls by keyboard has to reach the box first.
    writeln!(
        html,
        "<pre tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><code>{code}</code></pre>"
    )
}

fn write_facts(html: &mut String, facts: &[Fact]) -> fmt::Result {
    if facts.is_empty() {
        return Ok(());
    }
    writeln!(html, "<dl>")?;
    for (name, value) in facts {
        let value = Escaped(value);
        writeln!(html, "<dt>{name}</dt><dd>{value}</dd>")?;
    }
    writeln!(html, "</dl>")
}
