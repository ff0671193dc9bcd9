//! Answers, as a table or as JSON.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use serde::Serialize;

use crate::format::Format;
use crate::report::forgive_closed_pipe;

/// Prints with `print`, to stdout.
pub(crate) fn answer(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    forgive_closed_pipe(print(&mut out).and_then(|()| out.flush()))
}

/// Prints `object` as JSON, or these rows as a table.
pub(crate) fn print<'a>(
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
pub(crate) fn json(out: &mut dyn Write, object: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, object)?;
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
