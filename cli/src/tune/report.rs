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

mod borrowed;
mod canvas;
mod escape;
mod figure;
mod heat;
mod latency;
mod level;
mod palette;
#[cfg(test)]
mod tests;

pub(super) use self::borrowed::Borrowed;
pub(super) use self::heat::{Cell, CellOutcome, Grid};
pub(super) use self::latency::LatencyRow;
pub(super) use self::level::Level;

/// A name and what it stands for.
pub(super) type Fact = (String, String);

/// The contents of the page.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    /// The load.
    pub(super) title: String,
    /// When it was made.
    pub(super) made_at: String,
    /// The recommendation in a sentence.
    pub(super) verdict: String,
    pub(super) warnings: Vec<String>,
    /// The recommendation, value by value.
    pub(super) choice: Vec<Fact>,
    /// The builder's code; nothing if nothing is recommended.
    pub(super) snippet: String,
    /// Why, a sentence each.
    pub(super) reasons: Vec<String>,
    pub(super) level: Option<Level>,
    /// The most important ones first.
    pub(super) latency: Vec<LatencyRow>,
    pub(super) grid: Grid,
    pub(super) borrowed: Option<Borrowed>,
    /// How the page was made.
    pub(super) command: String,
    pub(super) machine: Vec<Fact>,
}

impl Page {
    /// The page as HTML.
    ///
    /// # Errors
    /// If a picture can't be drawn.
    pub(super) fn html(&self) -> Result<String> {
        let mut html = String::new();
        self.write_head(&mut html)?;
        self.write_advice(&mut html)?;
        for figure in self.figures()? {
            write!(html, "{figure}")?;
        }
        self.write_origin(&mut html)?;
        Ok(html)
    }

    fn figures(&self) -> Result<Vec<Figure>> {
        let mut figures = Vec::new();
        if let Some(level) = &self.level {
            figures.push(level.figure()?);
        }
        figures.push(latency::figure(&self.latency)?);
        figures.push(self.grid.figure()?);
        if let Some(borrowed) = &self.borrowed {
            figures.push(borrowed.figure()?);
        }
        Ok(figures)
    }

    fn write_head(&self, html: &mut String) -> fmt::Result {
        let title = Escaped(&self.title);
        write!(
            html,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
             <link rel=\"icon\" href=\"data:,\">\n\
             <title>ringflake tune: {title}</title>\n<style>\n{}\
             @media (prefers-color-scheme: dark) {{\n\
             :root {{ --paper: #14171A; --ink: #E8EAED; --quiet: #A4ACB5; --rule: #3A4149; \
             --raised: #1C2024; --link: #6CB6F5; }}\n{}}}\n</style>\n</head>\n<body>\n\
             <header>\n<h1>{title}</h1>\n<p class=\"quiet\">Made by ringflake tune, {}</p>\n\
             </header>\n<main>\n",
            include_str!("report/style.css"),
            palette::dark_rules(),
            Escaped(&self.made_at),
        )
    }

    fn write_advice(&self, html: &mut String) -> fmt::Result {
        writeln!(html, "<p class=\"verdict\">{}</p>", Escaped(&self.verdict))?;
        for warning in &self.warnings {
            let text = Escaped(warning);
            writeln!(
                html,
                "<p class=\"warning\"><strong>Warning:</strong> {text}</p>"
            )?;
        }
        write_facts(html, &self.choice)?;
        if !self.snippet.is_empty() {
            let code = Escaped(&self.snippet);
            writeln!(
                html,
                "<pre tabindex=\"0\" role=\"region\" aria-label=\"The builder\"><code>{code}</code></pre>"
            )?;
        }
        if !self.reasons.is_empty() {
            writeln!(html, "<section>\n<h2>Why</h2>\n<ul>")?;
            for reason in &self.reasons {
                writeln!(html, "<li>{}</li>", Escaped(reason))?;
            }
            writeln!(html, "</ul>\n</section>")?;
        }
        Ok(())
    }

    fn write_origin(&self, html: &mut String) -> fmt::Result {
        writeln!(
            html,
            "<section>\n<h2>How this was measured</h2>\n\
             <pre tabindex=\"0\" role=\"region\" aria-label=\"The command\"><code>{}</code></pre>",
            Escaped(&self.command)
        )?;
        write_facts(html, &self.machine)?;
        writeln!(html, "</section>\n</main>\n</body>\n</html>")
    }
}

fn write_facts(html: &mut String, facts: &[Fact]) -> fmt::Result {
    if facts.is_empty() {
        return Ok(());
    }
    writeln!(html, "<dl>")?;
    for (name, value) in facts {
        writeln!(
            html,
            "<dt>{}</dt><dd>{}</dd>",
            Escaped(name),
            Escaped(value)
        )?;
    }
    writeln!(html, "</dl>")
}
