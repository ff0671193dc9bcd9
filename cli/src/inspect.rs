//! `ringflake inspect`: takes IDs apart.

use std::fmt::Display;
use std::io::{self, BufWriter, Read, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringflake::Inspector;

use self::lines::Lines;
use self::printer::Printer;
use crate::args::{KeyArgs, LayoutArgs, has_store_variable, namespace_name};
use crate::data_dir::DataDir;
use crate::format::FormatArgs;
use crate::ids::InputFormat;
use crate::leases::StoreTarget;
use crate::report::say;
use crate::secret;

mod lines;
mod printer;

/// Show when, on which node and as which number IDs were made
///
/// Takes IDs as arguments or, if there are none, one a line from stdin. One that
/// is wrong is reported on stderr by its number, the others go on, and the exit
/// status is 1. Inspecting is not authenticating: with most layouts any number
/// stands for something, also under a wrong secret.
///
/// JSON, a line for each ID: id (base32hex), timestamp_unix_ms, timestamp (RFC
/// 3339; null after the year 9999), node, sequence
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The IDs; none to read them from stdin
    #[arg(value_name = "ID", allow_negative_numbers = true)]
    ids: Vec<String>,
    /// How they are written
    ///
    /// Under auto, whatever generate prints by default is read back. A decimal number of
    /// up to 13 digits has to be named: --input u64.
    #[arg(long, value_enum, default_value_t = InputFormat::Auto)]
    input: InputFormat,
    #[command(flatten)]
    output: FormatArgs,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    key: KeyArgs,
    /// The ID space that the IDs were made in, whose secret is in the data directory;
    /// with RINGFLAKE_STORE, that store's, and the secret is given as usual
    #[arg(long, value_name = "NS", value_parser = namespace_name)]
    namespace: Option<String>,
}

pub(crate) fn run(args: &InspectArgs, data_dir: &DataDir) -> Result<ExitCode> {
    let layout = args.layout.layout;
    let key = match &args.namespace {
        Some(name) if !has_store_variable() => {
            StoreTarget::key_of(name, &args.key, &layout, data_dir)?
        }
        _ => secret::kept_or_refused(&args.key, data_dir)?,
    };
    let mut reader = Reader {
        input: args.input,
        inspector: Inspector::new(layout, key.cipher()),
        printer: Printer::new(
            args.output.format,
            &layout,
            BufWriter::new(io::stdout().lock()),
        ),
        closed: false,
        faults: 0,
    };
    reader.print(Printer::header)?;
    if args.ids.is_empty() {
        reader.answer_lines(Lines::new(io::stdin()))?;
    } else {
        if let Some(id) = args.ids.iter().find(|id| args.input.is_ambiguous(id)) {
            say(format_args!(
                "note: {id} is read as base32hex; --input u64 reads decimal numbers"
            ));
        }
        for (number, id) in (1_u64..).zip(&args.ids) {
            reader.answer(format_args!("argument {number}"), id)?;
        }
    }
    reader.print(Printer::flush)?;
    Ok(ExitCode::from(u8::from(reader.faults > 0)))
}

/// Reads IDs and prints their parts.
struct Reader<W: Write> {
    input: InputFormat,
    inspector: Inspector,
    printer: Printer<W>,
    /// Whether the reader of the answers went away.
    closed: bool,
    faults: u64,
}

impl<W: Write> Reader<W> {
    fn answer_lines(&mut self, mut lines: Lines<impl Read>) -> Result<()> {
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
                Some((number, Ok(id))) => self.answer(format_args!("line {number}"), id)?,
                Some((number, Err(fault))) => self.refuse(format_args!("line {number}"), fault),
            }
        }
    }

    fn answer(&mut self, place: impl Display, text: &str) -> Result<()> {
        match self.input.read(text) {
            Err(error) => self.refuse(place, error),
            Ok(id) => match self.inspector.inspect(id) {
                Err(error) => self.refuse(place, error),
                Ok(parts) => self.print(|printer| printer.row(id, &parts))?,
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

    fn refuse(&mut self, place: impl Display, reason: impl Display) {
        self.faults += 1;
        // A stderr that can't be written to is no reason to stop.
        let _ = writeln!(io::stderr(), "{place}: {reason}");
    }
}
