//! Answers, as a table or as JSON.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use ringflake::Layout;
use ringflake::lease::{Block, Quarantined, StoreLimits};
use serde::Serialize;

use crate::format::Format;
use crate::report::forgive_closed_pipe;
use crate::timestamp::rfc3339;

/// A tick and when it begins, as JSON shows them together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Moment {
    pub(super) tick: u64,
    pub(super) unix_ms: u64,
    /// RFC 3339; null after the year 9999.
    pub(super) time: Option<String>,
}

impl Moment {
    pub(super) fn new(layout: &Layout, tick: u64) -> Self {
        let unix_ms = layout.tick_start_unix_ms(tick);
        Self {
            tick,
            unix_ms,
            time: time(unix_ms),
        }
    }

    /// For a table.
    pub(super) fn in_words(&self) -> String {
        match &self.time {
            Some(time) => format!("{time} (tick {})", self.tick),
            None => format!("tick {}", self.tick),
        }
    }
}

/// A record that can't be true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Damage {
    /// Null where it is of no block.
    pub(super) block: Option<u64>,
    pub(super) reason: String,
}

impl Damage {
    pub(super) fn new(found: &Quarantined) -> Self {
        Self {
            block: found.block.map(Block::index),
            reason: found.reason.clone(),
        }
    }
}

/// RFC 3339, with milliseconds where there are any; none after the year 9999.
pub(super) fn time(unix_ms: u64) -> Option<String> {
    rfc3339(unix_ms, !unix_ms.is_multiple_of(1000))
}

/// Limits, for a table.
pub(super) fn limits(limits: &StoreLimits) -> String {
    let [horizon, failover, skew] =
        [limits.horizon(), limits.failover(), limits.skew()].map(humantime::format_duration);
    format!("horizon {horizon}, failover {failover}, skew {skew}")
}

/// Prints with `print`, to stdout.
pub(super) fn answer(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    forgive_closed_pipe(print(&mut out).and_then(|()| out.flush()))
}

/// Prints `object` as JSON, or these rows as a table.
pub(super) fn print<'a>(
    out: &mut dyn Write,
    format: Format,
    object: &impl Serialize,
    rows: impl IntoIterator<Item = (&'a str, String)>,
) -> io::Result<()> {
    if format == Format::Json {
        return json(out, object);
    }
    for (title, value) in rows {
        writeln!(out, "{title:<12}  {value}")?;
    }
    Ok(())
}

/// Prints `object` on a line.
pub(super) fn json(out: &mut dyn Write, object: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, object)?;
    writeln!(out)
}

/// Prints rows under their titles, each column as wide as it must be.
pub(super) fn columns<const N: usize>(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let mut out = Vec::new();
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        let rows = [row(["1", "long", "x"]), row(["22", "", ""])];
        columns(&mut out, ["a", "b", "c"], &rows).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "a   b     c\n1   long  x\n22\n");
    }
}
