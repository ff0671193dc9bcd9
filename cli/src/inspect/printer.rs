//! The parts of IDs, as a table or as JSON.

use std::io::{self, Write};

use ringflake::{Id, Layout, Parts};
use serde::Serialize;

use crate::format::Format;
use crate::output;
use crate::timestamp::rfc3339;

const TITLES: [&str; 5] = ["id", "timestamp", "unix_seconds", "node", "sequence"];

/// Prints one line an ID.
pub(super) struct Printer<W> {
    format: Format,
    with_ms: bool,
    /// Of columns that every ID of a layout fits, so that rows can be printed as they come.
    widths: [usize; 5],
    out: W,
}

/// As JSON shows an ID.
#[derive(Debug, Serialize)]
struct Object {
    id: Id,
    timestamp_unix_ms: u64,
    timestamp: Option<String>,
    node: u64,
    sequence: u64,
}

impl<W: Write> Printer<W> {
    pub(super) fn new(format: Format, layout: &Layout, out: W) -> Self {
        let with_ms =
            !layout.tick_ms().is_multiple_of(1000) || !layout.epoch_unix_ms().is_multiple_of(1000);
        // The widest cells of each column.
        let widest = [
            "0".repeat(13),
            "0".repeat(if with_ms { 24 } else { 20 }),
            unix_seconds(layout.end_unix_ms(), with_ms),
            (layout.nodes() - 1).to_string(),
            (layout.sequences() - 1).to_string(),
        ];
        let width = |column: usize| widest[column].len().max(TITLES[column].len());
        Self {
            format,
            with_ms,
            widths: std::array::from_fn(width),
            out,
        }
    }

    pub(super) fn header(&mut self) -> io::Result<()> {
        match self.format {
            Format::Text => self.cells(TITLES),
            Format::Json => Ok(()),
        }
    }

    pub(super) fn row(&mut self, id: Id, parts: &Parts) -> io::Result<()> {
        let timestamp = rfc3339(parts.unix_ms, self.with_ms);
        match self.format {
            Format::Text => self.cells([
                &id.to_string(),
                timestamp.as_deref().unwrap_or("after 9999"),
                &unix_seconds(parts.unix_ms, self.with_ms),
                &parts.node.to_string(),
                &parts.sequence.to_string(),
            ]),
            Format::Json => {
                let object = Object {
                    id,
                    timestamp_unix_ms: parts.unix_ms,
                    timestamp,
                    node: parts.node,
                    sequence: parts.sequence,
                };
                output::json(&mut self.out, &object)
            }
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn cells(&mut self, [id, timestamp, seconds, node, sequence]: [&str; 5]) -> io::Result<()> {
        let [i, t, u, n, s] = self.widths;
        writeln!(
            self.out,
            "{id:i$}  {timestamp:t$}  {seconds:>u$}  {node:>n$}  {sequence:>s$}"
        )
    }
}

fn unix_seconds(unix_ms: u64, with_ms: bool) -> String {
    let (seconds, ms) = (unix_ms / 1000, unix_ms % 1000);
    match with_ms {
        true => format!("{seconds}.{ms:03}"),
        false => seconds.to_string(),
    }
}
