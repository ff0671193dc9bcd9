//! `ringflake tune`: which lease and which ring a load needs on this machine.
//!
//! ```text
//! machine   half a second of measuring: fill rate, wake-up, cost of a take
//! lease     nodes, and what the load borrows
//! answer    the ring, by the formula of `ringflake::plan`
//! replay    the load on a real ring, which confirms or corrects the answer
//! text, json, report, snippet
//! ```

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use ringflake::plan::Load;
use ringflake::shell_quoted as quoted;
use ringflake::{Clock, SystemClock};

use self::answer::{Answer, capacity};
use self::lease::LeasePlan;
use self::machine::{Measured, Threads};
use self::replay::Replay;
use crate::args::{LayoutArgs, node_range};
use crate::count::count;
use crate::format::{Format, FormatArgs};
use crate::interrupt::Interrupt;
use crate::load::LoadArgs;
use crate::output;
use crate::threads::{cores, thread_count};
use crate::threshold::Threshold;
use crate::units;
use crate::usage::Misuse;

mod answer;
mod json;
mod lease;
mod machine;
mod replay;
mod report;
mod snippet;
mod text;

/// How long each ring runs.
const RUN: Duration = Duration::from_secs(10);

/// The longest trace that runs to its end without --seconds.
const LONGEST_TRACE: Duration = Duration::from_secs(60);

const EXAMPLES: &str = "Examples:
  ringflake tune --rate 50k                  # a steady load
  ringflake tune --rate 1M --burst 20M:100ms/1s --run
  ringflake tune --trace load.csv --report tune.html

--run replays the load on a real ring; it needs no lease and no secret. The exit
status is 1 if no ring or lease serves the load, or a run did not confirm the answer,
and 130 after Ctrl-C.";

/// Recommend the lease and the ring for a load on this machine, with a safety factor of 2
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// Run the load on a real ring, too
    #[arg(long)]
    run: bool,
    /// Run each ring for so many seconds, as with --run; of a trace, its first ones
    /// [default: 10, or all of a trace of up to 60 s]
    #[arg(long, value_name = "S", value_parser = count::<u32>(1..=86_400))]
    seconds: Option<u32>,
    /// Run the load, and write a page with pictures: one HTML file that needs nothing else
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Judge a ring of so many slots, a power of two [default: 65536, or as many as are needed]
    #[arg(long, value_name = "C", value_parser = capacity)]
    capacity: Option<usize>,
    /// Fill the ring at this threshold, such as 75%
    #[arg(long, value_name = "P%", default_value = "50%")]
    threshold: Threshold,
    /// Threads that take IDs [default: one a core, but for one core that is left
    /// to the producer]
    #[arg(long, value_name = "N", value_parser = thread_count)]
    consumers: Option<usize>,
    /// The nodes to use, from A up to but not including B [default: from 0 on, as
    /// many as the load needs]
    #[arg(long, value_name = "A..B", value_parser = node_range)]
    nodes: Option<Range<u64>>,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(crate) fn run(args: &TuneArgs) -> Result<ExitCode> {
    let load = args.load.load()?;
    let layout = args.layout.layout;
    let lease = LeasePlan::new(&load, &layout, args.nodes.clone())?;
    let now_unix_ms = SystemClock.unix_ms();
    layout.check_alive(now_unix_ms)?;
    let is_run = args.run || args.seconds.is_some() || args.report.is_some();
    let time = is_run.then(|| run_time(args.seconds, &load)).transpose()?;
    if let Some(path) = &args.report {
        // Refused now rather than after the run.
        check_writable(path).with_context(|| not_written(path))?;
    }
    let interrupt = Interrupt::listen().context("signals can't be listened to")?;

    let measured = Measured::now()?;
    let mut answer = Answer {
        threads: threads(args, &load, &measured),
        layout,
        lease,
        measured,
        threshold: args.threshold,
        asked: args.capacity,
        capacity: Ok(0),
        now_unix_ms,
        load,
    };
    answer.compute();
    let replay = time
        .map(|time| Replay::new(&mut answer, time, &interrupt))
        .transpose()?;

    let command = command();
    let printed = output::answer(|out| match args.format.format {
        Format::Json => output::json(out, &json::object(&answer, replay.as_ref(), &command)),
        Format::Text => text::print(&answer, replay.as_ref(), out),
    });
    if let (Some(path), Some(replay)) = (&args.report, &replay) {
        let page = report::html(&answer, replay, &command);
        fs::write(path, page).with_context(|| not_written(path))?;
    }
    printed?;
    if interrupt.came() {
        return Ok(interrupt.exit_code());
    }
    let is_confirmed = replay.is_none_or(|it| it.finding.is_good());
    Ok(match answer.is_served() && is_confirmed {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// How long each ring runs, at most as long as the load lasts.
fn run_time(seconds: Option<u32>, load: &Load) -> Result<Duration> {
    let seconds = seconds.map(|it| Duration::from_secs(it.into()));
    match load.duration() {
        None => Ok(seconds.unwrap_or(RUN)),
        Some(whole) if seconds.is_some() || whole <= LONGEST_TRACE => {
            Ok(whole.min(seconds.unwrap_or(whole)))
        }
        Some(whole) => Err(Misuse(format!(
            "the trace lasts {}; only traces of up to {} run whole by default\n\
             help: give --seconds to run its beginning, or a file with its busiest part",
            units::time(whole.as_secs_f64()),
            units::time(LONGEST_TRACE.as_secs_f64())
        ))
        .into()),
    }
}

/// As many producers as fill faster than the peak empties, if there are cores for them.
fn threads(args: &TuneArgs, load: &Load, measured: &Measured) -> Threads {
    let cores = cores();
    let consumers = args.consumers.unwrap_or((cores - 1).max(1));
    let wanted = (load.peak() / measured.fill_rate).ceil() as usize;
    let spare = cores.saturating_sub(consumers).clamp(1, 64);
    Threads {
        cores,
        producers: wanted.clamp(1, spare),
        consumers,
    }
}

/// Checks that a file can be written, and leaves no new one behind.
fn check_writable(path: &Path) -> io::Result<()> {
    match File::create_new(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            opened.map(drop)
        }
        Err(error) => Err(error),
    }
}

fn not_written(path: &Path) -> String {
    format!("the report can't be written to {}", path.display())
}

/// The command as it could be given again.
fn command() -> String {
    let args = env::args_os().skip(1);
    let words = args.map(|arg| format!(" {}", quoted(arg.to_string_lossy())));
    format!("ringflake{}", words.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_trace_runs_to_its_end_and_seconds_cut_any() {
        let [short, long] = ["0,5\n15,5", "0,5\n40,5"].map(|text| Load::trace(text).unwrap());
        let steady = Load::steady("50k".parse().unwrap());
        for (seconds, load, time) in [
            (None, &short, 30),
            (Some(7), &short, 7),
            (Some(99), &short, 30),
            (Some(70), &long, 70),
            (Some(99), &long, 80),
            (None, &steady, 10),
            (Some(99), &steady, 99),
        ] {
            let found = run_time(seconds, load).unwrap();
            assert_eq!(found.as_secs(), time, "{load} for {seconds:?}");
        }
        assert!(run_time(None, &long).is_err());
    }

    #[test]
    fn a_check_makes_no_report_and_keeps_an_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tune.html");
        check_writable(&path).unwrap();
        assert!(!path.exists());
        fs::write(&path, "old").unwrap();
        check_writable(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        check_writable(folder.path()).unwrap_err();
    }
}
