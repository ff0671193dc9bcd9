//! `ringflake inspect`: takes IDs apart.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringflake::{Clock, Inspector, Parts, SystemClock};

use self::lines::Lines;
use self::printer::Printer;
use crate::args::{KeyArgs, LayoutArgs, has_store_variable, namespace_name};
use crate::data_dir::DataDir;
use crate::format::FormatArgs;
use crate::ids::InputFormat;
use crate::leases::StoreTarget;
use crate::report::warn;
use crate::secret::{self, Key};
use crate::timestamp::in_words;

mod lines;
mod printer;

const DETAILS: &str = "Examples:
  ringflake inspect 4p9zvbq                  # one ID of this data directory
  ringflake inspect --plain --input u64 5    # one that is not encrypted
  ringflake generate | ringflake inspect     # IDs from stdin, one a line

An invalid ID is reported on stderr, and the exit status is 1. A wrong secret or
layout can't be detected: it gives wrong times. A warning reports times more than a
day in the future.

JSON, a line for each ID: id (base32hex), timestamp_unix_ms, timestamp (RFC 3339;
null after the year 9999), node, sequence";

/// Show the time, the node and the sequence number of IDs
#[derive(Debug, Args)]
#[command(after_long_help = DETAILS)]
pub(crate) struct InspectArgs {
    /// The IDs; none to read them from stdin
    #[arg(value_name = "ID", allow_negative_numbers = true)]
    ids: Vec<String>,
    /// How they are written
    ///
    /// Under auto, 2 to 13 digits may be base32hex or a decimal number. They are read as the
    /// IDs before them are written. Where none came before, or both kinds did, they are
    /// reported as wrong. In scripts, give --input u64 or --input base32hex.
    #[arg(long, value_enum, default_value_t = InputFormat::Auto)]
    input: InputFormat,
    #[command(flatten)]
    output: FormatArgs,
    /// The ID space that the IDs were made in, whose secret is in the data directory;
    /// with RINGFLAKE_STORE, that store's, and the secret is given as usual
    #[arg(long, value_name = "NS", value_parser = namespace_name)]
    namespace: Option<String>,
    #[command(flatten, next_help_heading = "Form of the IDs")]
    layout: LayoutArgs,
    #[command(flatten, next_help_heading = "Form of the IDs")]
    key: KeyArgs,
}

pub(crate) fn run(args: &InspectArgs, data_dir: &DataDir) -> Result<ExitCode> {
    let layout = args.layout.layout;
    secret::check_width(&args.key, &layout)?;
    let mut lines = Lines::new(io::stdin());
    let reads_a_pipe = args.ids.is_empty() && !io::stdin().is_terminal();
    let key = match key(args, data_dir) {
        // `generate | inspect`: the secret is there before the first ID.
        Err(_) if reads_a_pipe && lines.wait()? => key(args, data_dir),
        found => found,
    }?;
    let mut reader = Reader {
        input: args.input,
        inspector: Inspector::new(layout, key.cipher()?),
        printer: Printer::new(
            args.output.format,
            &layout,
            BufWriter::new(io::stdout().lock()),
        ),
        faults_out: io::stderr(),
        unit: if args.ids.is_empty() {
            "line"
        } else {
            "argument"
        },
        spelling: None,
        closed: false,
        faults: 0,
        in_the_future: 0,
        likely_cause: args.likely_cause(),
    };
    reader.print(Printer::header)?;
    if args.ids.is_empty() {
        reader.take_lines(lines)?;
    } else {
        for (number, id) in (1_u64..).zip(&args.ids) {
            reader.take(number, Ok(id))?;
        }
    }
    reader.print(Printer::flush)?;
    if reader.in_the_future > 1 {
        let count = reader.in_the_future;
        warn(format_args!("{count} IDs have times in the future"));
    }
    Ok(ExitCode::from(u8::from(reader.faults > 0)))
}

fn key(args: &InspectArgs, data_dir: &DataDir) -> Result<Key> {
    match &args.namespace {
        Some(_) if has_store_variable() => secret::kept_or_refused(&args.key, data_dir),
        Some(name) => StoreTarget::key_of(name, &args.key, &args.layout.layout, data_dir),
        None => secret::unnamed_or_refused(&args.key, data_dir),
    }
}

impl InspectArgs {
    /// The likely cause to name in a warning about IDs from the future.
    fn likely_cause(&self) -> &'static str {
        match &self.namespace {
            _ if self.key.plain => "the IDs are encrypted, or were made with another --layout",
            Some(_) => "the IDs were made in another --namespace, or with another --layout",
            None => {
                "the IDs were made with another secret (--namespace, --secret-file) or --layout"
            }
        }
    }
}

/// How far ahead of the clock an ID may lie without a warning, besides a tick: longer than
/// any limit that makes sense, and a clock that is wrong by hours.
const PLAUSIBLE_MS: u64 = 86_400_000;

/// Reads IDs and prints their parts.
struct Reader<W: Write, E: Write> {
    input: InputFormat,
    inspector: Inspector,
    printer: Printer<W>,
    faults_out: E,
    /// The unit that messages number the texts by: "line" or "argument".
    unit: &'static str,
    /// How the IDs so far are written that can be read in one way only: auto if not all
    /// of them in the same.
    spelling: Option<InputFormat>,
    /// Whether the reader of the answers went away.
    closed: bool,
    faults: u64,
    /// IDs whose time can't be that of their making.
    in_the_future: u64,
    /// The likely reason of that.
    likely_cause: &'static str,
}

impl<W: Write, E: Write> Reader<W, E> {
    fn take_lines(&mut self, mut lines: Lines<impl Read>) -> Result<()> {
        loop {
            // Show what is known before waiting for more. What has come in when
            // the reader is gone is looked at for its faults, the rest is not.
            if lines.would_wait() {
                if self.closed {
                    return Ok(());
                }
                self.print(Printer::flush)?;
            }
            match lines.next()? {
                None => return Ok(()),
                Some((_, Ok(""))) => {}
                Some((number, text)) => self.take(number, text)?,
            }
        }
    }

    /// Shows the parts of the ID that `text` is, or reports why there is none.
    fn take(&mut self, number: u64, text: Result<&str, String>) -> Result<()> {
        let text = match text {
            Ok(text) => text,
            Err(fault) => {
                self.refuse(number, fault);
                return Ok(());
            }
        };
        let mut input = self.input;
        if input.is_ambiguous(text) {
            input = self.spelling.unwrap_or(input);
        } else if let Some(shown) = input.shown_by(text) {
            self.spelling = match self.spelling {
                Some(before) if before != shown => Some(InputFormat::Auto),
                _ => Some(shown),
            };
        }
        match input.read(text) {
            Err(error) => self.refuse(number, error),
            Ok(id) => match self.inspector.inspect(id) {
                Err(error) => self.refuse(number, error),
                Ok(parts) => {
                    self.print(|printer| printer.row(id, &parts))?;
                    self.check_time(number, &parts);
                }
            },
        }
        Ok(())
    }

    /// Prints for as long as somebody reads.
    fn print(&mut self, print: impl FnOnce(&mut Printer<W>) -> io::Result<()>) -> Result<()> {
        if !self.closed {
            match print(&mut self.printer) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// Warns of the first time that no ID can have, and counts the others.
    fn check_time(&mut self, number: u64, parts: &Parts) {
        let latest = SystemClock
            .unix_ms()
            .saturating_add(PLAUSIBLE_MS)
            .saturating_add(self.inspector.layout().tick_ms());
        if parts.unix_ms <= latest {
            return;
        }
        self.in_the_future += 1;
        if self.in_the_future == 1 {
            let _ = writeln!(
                self.faults_out,
                "ringflake: warning: {} {number}: {} lies in the future, so most likely {}",
                self.unit,
                in_words(parts.unix_ms),
                self.likely_cause
            );
        }
    }

    fn refuse(&mut self, number: u64, reason: impl Display) {
        self.faults += 1;
        // A stderr that can't be written to is no reason to stop.
        let _ = writeln!(self.faults_out, "{} {number}: {reason}", self.unit);
    }
}

#[cfg(test)]
mod tests;
