//! `ringflake tune`: which ring a load needs on this machine.
//!
//! ```text
//! machine   what a producer and a take can do here
//! model     what the library's model says of it, where the search begins
//! search    which settings run, and which is recommended
//! runner    runs the load on real rings, within the time there is
//! baseline  the same load without a ring
//! outcome   the result
//! verdict   whether it serves the load, and what speaks against it: text, json, report
//! ```

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use ringflake::plan::Load;
use ringflake::{Cipher, Clock, Secret, SystemClock};

use self::baseline::Baseline;
use self::goal::Goal;
use self::machine::Machine;
use self::nodes::NodeBudget;
use self::outcome::Outcome;
use self::output::Output;
use self::runner::RealRings;
use self::setting::{Choices, capacity};
use self::verdict::{Grade, Verdict};
use crate::args::{LayoutArgs, NodeRange, time};
use crate::count::count;
use crate::format::{Format, FormatArgs};
use crate::interrupt::Interrupt;
use crate::load::LoadArgs;
use crate::report::{forgive_closed_pipe, say};
use crate::threads::ThreadCount;
use crate::threshold::Threshold;
use crate::usage::Misuse;

mod baseline;
mod goal;
mod host;
mod json;
mod machine;
mod model;
mod nodes;
mod outcome;
mod output;
mod reasons;
mod report;
mod runner;
mod search;
mod setting;
mod shortfall;
mod snippet;
mod text;
mod trial;
mod verdict;
mod warnings;

/// The smallest and the largest ring that are tried unless capacities are given.
const CAPACITIES: std::ops::RangeInclusive<u32> = 6..=24;

/// Find the ring that a load needs on this machine
///
/// Measures what the machine can do, runs the load on real rings of several
/// capacities and thresholds, and recommends the smallest one with a margin of 2: it
/// carries twice what the smallest ring without empties does, or twice what the model
/// asks for if that is more. The recommended ring then runs for much longer; one empty
/// sends the search on, and so does a level below a quarter of the ring, to rings that are
/// up to four times as large where takes make IDs themselves in time.
///
/// IDs are taken at the moments when they are due, whatever came of those before.
/// They are thrown away; no lease is taken and no secret is read. The machine
/// should be as busy as it will be. Ctrl-C ends the measuring and prints what is
/// known by then. A load that was not taken when it was due, whatever the ring, ends
/// with how far it came and what limits it. The exit status is 1 then, if no ring can be
/// recommended, and if the goal is not kept; and 0 otherwise, also after Ctrl-C.
#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// Threads that take IDs [default: one a core, but for one core that is left
    /// to the producer]
    #[arg(long, value_name = "N")]
    consumers: Option<ThreadCount>,
    /// Threads that fill the ring [default: as many as the peak needs]
    #[arg(long, value_name = "P", value_parser = count::<u16>(1..=64))]
    producers: Option<u16>,
    /// How long takes may last, such as p99.99=2us or max=1ms [default: any time,
    /// as long as the ring does not run dry]
    #[arg(long, value_name = "PERCENTILE=TIME")]
    goal: Option<Goal>,
    /// For how many seconds to search; the proof takes up to as long again
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = count::<u32>(1..=86_400))]
    seconds: u32,
    /// Only rings of so many slots, a power of two; may be given more than once
    /// [default: those that the model does not rule out]
    #[arg(long, value_name = "C", value_parser = capacity)]
    capacity: Vec<usize>,
    /// Only this threshold, such as 75%, or adaptive; may be given more than once
    /// [default: 25%, 50%, 75% and adaptive]
    #[arg(long, value_name = "P%")]
    threshold: Vec<Threshold>,
    /// How old an ID may become in the ring; if it would be older, a schedule is
    /// recommended
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s")]
    max_age: Duration,
    /// The nodes to use, from A up to but not including B [default: from 0 on, as
    /// many as the load needs]
    #[arg(long, value_name = "A..B")]
    nodes: Option<NodeRange>,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    format: FormatArgs,
    /// Write a page with pictures, too: one HTML file that needs nothing else
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

pub(crate) fn run(args: &TuneArgs) -> Result<ExitCode> {
    let Some(load) = args.load.load()? else {
        let text = "there is no load: give --rate, with or without --burst, or --trace";
        return Err(Misuse(text.to_owned()).into());
    };
    let layout = args.layout.layout;
    let nodes = args.nodes.as_ref().map(|NodeRange(nodes)| nodes.clone());
    let budget = NodeBudget::new(&load, &layout, nodes)?;
    layout.check_alive(SystemClock.unix_ms())?;
    let output = args.report.as_deref().map(Output::new).transpose()?;
    let interrupt = Interrupt::listen().context("signals can't be listened to")?;
    if let Some(warning) = budget.warning() {
        say(warning);
    }

    let outcome = measure(args, load, budget, &interrupt)?;
    let command = host::command();
    let written = match output {
        Some(output) => write_report(output, &outcome, &command),
        None => Ok(()),
    };
    let printed = print(args, &outcome, &command);
    written?;
    forgive_closed_pipe(printed)?;
    Ok(match Verdict::of(&outcome).grade() {
        Grade::Good | Grade::Caution => ExitCode::SUCCESS,
        Grade::Bad => ExitCode::FAILURE,
    })
}

fn measure(
    args: &TuneArgs,
    load: Load,
    budget: NodeBudget,
    interrupt: &Interrupt,
) -> Result<Outcome> {
    let started = Instant::now();
    let time = Duration::from_secs(u64::from(args.seconds));
    let bar = progress_bar(time);
    bar.set_message("this machine");
    let machine = Machine::measure(time.mul_f64(0.1).min(Duration::from_secs(2)))?;
    let cores = ThreadCount::cores().get();
    let consumers = args.consumers.map_or(cores - 1, ThreadCount::get).max(1);
    let producers = match args.producers {
        Some(count) => usize::from(count),
        None => producers_for(&load, &machine, cores.saturating_sub(consumers)),
    };
    let mut choices = choices(args);
    let threads = model::Threads {
        producers,
        consumers,
        cores,
    };
    let slots = model::slots_needed(&load, &machine, threads);
    if let (true, Some(slots)) = (args.capacity.is_empty(), slots) {
        model::prune(&mut choices, slots);
    }

    let run = runner::run_length(&load, time);
    let busiest = runner::busiest_part(&load, run)?;
    let mut rings = RealRings {
        load: busiest.as_ref().map_or(&load, |(_, part)| part),
        layout: args.layout.layout,
        nodes: &budget,
        producers,
        consumers,
        interrupt,
        bar: &bar,
        // A machine that is slow to measure has as long as the others.
        started: Instant::now(),
        time,
        run,
    };
    // Before the rings and after them, since a machine is not always as busy.
    let first = rings.run_without_ring(runner::SEARCH_ENDS)?;
    let findings = search::search(&mut rings, &choices, args.goal.as_ref(), slots)?;
    let last = rings.run_without_ring(runner::ALL_ENDS)?;
    bar.finish_and_clear();
    let mut outcome = Outcome {
        part_at: busiest.as_ref().map(|(from, _)| (*from, run.as_secs_f64())),
        part: busiest.map_or_else(|| load.clone(), |(_, part)| part),
        layout: args.layout.layout,
        machine,
        cores,
        consumers,
        producers,
        goal: args.goal.clone(),
        max_age: args.max_age,
        backend: Cipher::sparx64(&Secret::generate()?).backend(),
        choices,
        baseline: Baseline::of(first.into_iter().chain(last)),
        findings,
        is_interrupted: interrupt.came(),
        took: started.elapsed(),
        now_unix_ms: SystemClock.unix_ms(),
        load,
        budget,
    };
    // A ring that met a slower peak than the load's is none for the load.
    let recommended = outcome.findings.trial_of_recommended();
    if recommended.is_some_and(|trial| !outcome.is_served(trial)) {
        outcome.findings.minimum = None;
        outcome.findings.recommended = None;
    }
    Ok(outcome)
}

/// The grid that was asked for.
fn choices(args: &TuneArgs) -> Choices {
    let mut capacities = args.capacity.clone();
    if capacities.is_empty() {
        capacities.extend(CAPACITIES.map(|shift| 1 << shift));
    }
    capacities.sort_unstable();
    capacities.dedup();
    let mut thresholds = args.threshold.clone();
    if thresholds.is_empty() {
        thresholds.extend([75, 50, 25].map(Threshold::Percent));
        thresholds.push(Threshold::Adaptive);
    }
    let mut seen = HashSet::new();
    thresholds.retain(|&threshold| seen.insert(threshold));
    Choices {
        capacities,
        thresholds,
    }
}

/// One, or as many as it takes to fill faster than the peak empties, if there are
/// cores for them.
fn producers_for(load: &Load, machine: &Machine, spare_cores: usize) -> usize {
    /// A producer that has to work more than this share of the time is not enough.
    const BUSY: f64 = 0.8;
    let wanted = (load.peak() / (machine.fill_rate * BUSY)).ceil() as usize;
    wanted.clamp(1, spare_cores.clamp(1, 64))
}

/// Drawn on a terminal only.
fn progress_bar(time: Duration) -> ProgressBar {
    let bar = ProgressBar::new((time * 2).as_millis() as u64);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar
}

fn write_report(output: Output, outcome: &Outcome, command: &str) -> Result<()> {
    let facts = host::facts(outcome.cores, &Secret::generate()?);
    output.write(&report::html(outcome, command, &facts)?)
}

fn print(args: &TuneArgs, outcome: &Outcome, command: &str) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    if args.format.format == Format::Json {
        serde_json::to_writer(&mut out, &json::object(outcome, command))?;
        writeln!(out)?;
    } else {
        text::print(outcome, &mut out)?;
    }
    Ok(out.flush()?)
}
