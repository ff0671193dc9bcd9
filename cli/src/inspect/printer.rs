//! The parts of IDs, as a table or as JSON.

use std::io::{self, Write};

use ringflake::{Id, Layout, Parts};
use serde::Serialize;

use crate::format::Format;
use crate::output;
use crate::timestamp::rfc3339;

/// Prints one line an ID.
pub(super) struct Printer<W> {
    format: Format,
    columns: Columns,
    out: W,
}

/// Widths that every ID of a layout fits, so that rows can be printed as they come.
#[derive(Clone, Copy, Debug)]
struct Columns {
    with_ms: bool,
    time: usize,
    seconds: usize,
    node: usize,
    sequence: usize,
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

/// The longest text of an ID.
const ID_WIDTH: usize = 13;

impl<W: Write> Printer<W> {
    pub(super) fn new(format: Format, layout: &Layout, out: W) -> Self {
        let with_ms =
            !layout.tick_ms().is_multiple_of(1000) || !layout.epoch_unix_ms().is_multiple_of(1000);
        let columns = Columns {
            with_ms,
            time: if with_ms { 24 } else { 20 },
            seconds: unix_seconds(layout.end_unix_ms(), with_ms)
                .len()
                .max("unix_seconds".len()),
            node: (layout.nodes() - 1).to_string().len().max("node".len()),
            sequence: (layout.sequences() - 1)
                .to_string()
                .len()
                .max("sequence".len()),
        };
        Self {
            format,
            columns,
            out,
        }
    }

    pub(super) fn header(&mut self) -> io::Result<()> {
        match self.format {
            Format::Text => self.cells(["id", "timestamp", "unix_seconds", "node", "sequence"]),
            Format::Json => Ok(()),
        }
    }

    pub(super) fn row(&mut self, id: Id, parts: &Parts) -> io::Result<()> {
        let with_ms = self.columns.with_ms;
        let timestamp = rfc3339(parts.unix_ms, with_ms);
        match self.format {
            Format::Text => self.cells([
                &id.to_string(),
                timestamp.as_deref().unwrap_or("after 9999"),
                &unix_seconds(parts.unix_ms, with_ms),
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

    fn cells(&mut self, cells: [&str; 5]) -> io::Result<()> {
        let [id, timestamp, seconds, node, sequence] = cells;
        let Columns {
            time: t,
            seconds: u,
            node: n,
            sequence: s,
            ..
        } = self.columns;
        writeln!(
            self.out,
            "{id:ID_WIDTH$}  {timestamp:t$}  {seconds:>u$}  {node:>n$}  {sequence:>s$}"
        )
    }
}

fn unix_seconds(unix_ms: u64, with_ms: bool) -> String {
    let (seconds, ms) = (unix_ms / 1000, unix_ms % 1000);
    if with_ms {
        format!("{seconds}.{ms:03}")
    } else {
        seconds.to_string()
    }
}
