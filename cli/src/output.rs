//! Answers, as a table or as JSON.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};

use anyhow::Result;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::format::Format;
use crate::report::forgive_closed_pipe;
use crate::units::{grouped, time};

/// Prints with `print`, to stdout.
pub(crate) fn answer(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    forgive_closed_pipe(print(&mut out).and_then(|()| out.flush()))
}

/// One answer in two forms: rows for people, and an object for programs.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    rows: Vec<(String, String)>,
    object: Map<String, Value>,
}

impl Answer {
    /// Adds a row that programs get in another form, or not at all.
    pub(crate) fn row(&mut self, title: impl Into<String>, text: impl Display) {
        self.rows.push((title.into(), text.to_string()));
    }

    /// Adds a value that people get in another form, or not at all.
    pub(crate) fn field(&mut self, name: &str, value: impl Into<Value>) {
        self.object.insert(name.to_owned(), value.into());
    }

    /// Adds a text that both get, under the same name.
    pub(crate) fn text(&mut self, name: &str, text: impl Display) {
        self.row(name, &text);
        self.field(name, text.to_string());
    }

    pub(crate) fn count(&mut self, title: &str, name: &str, count: u64) {
        self.row(title, grouped(count));
        self.field(name, count);
    }

    pub(crate) fn time(&mut self, title: &str, name: &str, seconds: f64) {
        self.row(title, time(seconds));
        self.field(name, seconds);
    }

    pub(crate) fn show(&self, format: Format) -> Result<()> {
        answer(|out| self.print(out, format))
    }

    pub(crate) fn print(&self, out: &mut dyn Write, format: Format) -> io::Result<()> {
        let rows = self.rows.iter().map(|(title, text)| (&**title, text));
        print(out, format, &self.object, rows)
    }
}

/// Prints `object` as JSON, or these rows as a table.
pub(crate) fn print<'a, T: Display>(
    out: &mut dyn Write,
    format: Format,
    object: &impl Serialize,
    rows: impl IntoIterator<Item = (&'a str, T)>,
) -> io::Result<()> {
    if format == Format::Json {
        return json(out, object);
    }
    let rows: Vec<_> = rows.into_iter().collect();
    let widths = rows.iter().map(|(title, _)| title.len());
    let width = widths.max().unwrap_or(0).max(12);
    for (title, text) in rows {
        writeln!(out, "{title:<width$}  {text}")?;
    }
    Ok(())
}

pub(crate) fn json(mut out: &mut dyn Write, object: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut out, object)?;
    writeln!(out)
}

/// Prints rows under their titles, each column as wide as it must be.
pub(crate) fn columns<const N: usize>(
    out: &mut dyn Write,
    titles: [&str; N],
    rows: &[[String; N]],
) -> io::Result<()> {
    let titles = titles.map(str::to_owned);
    let width_of = |column: usize| {
        let cells = rows.iter().chain([&titles]).map(|row| row[column].len());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width_of);
    for row in [&titles].into_iter().chain(rows) {
        let cells = row.iter().zip(widths);
        let cells: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}
