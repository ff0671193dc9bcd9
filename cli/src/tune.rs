//! `ringflake tune`: which ring a load needs on this machine.
//!
//! ```text
//! machine   what a producer and a take can do here
//! model     the least capacity by arithmetic, where the search begins
//! search    which settings are played, and which is picked
//! stage     plays the load on real rings, within the time there is
//! outcome   what follows from it: text, json, page -> report
//! ```

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use ringflake::plan::Load;
use ringflake::{Clock, Secret, SystemClock};

use self::goal::Goal;
use self::lease::LeasePlan;
use self::machine::Machine;
use self::outcome::Outcome;
use self::output::Output;
use self::search::Choices;
use self::setting::{Threshold, capacity};
use self::stage::RealRings;
use crate::args::{LayoutArgs, NodeRange, time};
use crate::interrupt::Interrupt;
use crate::load::LoadArgs;
use crate::report::{forgive_closed_pipe, say};
use crate::threads::ThreadCount;
use crate::usage::Misuse;

mod goal;
mod host;
mod json;
mod lease;
mod machine;
mod model;
mod outcome;
mod output;
mod page;
mod report;
mod search;
mod setting;
mod snippet;
mod stage;
mod text;
mod trial;

/// The smallest and the largest ring that are tried unless capacities are given.
const CAPACITIES: std::ops::RangeInclusive<u32> = 6..=24;

/// Find the ring that a load needs on this machine
///
/// Measures what the machine can do, plays the load on real rings of several
/// capacities and thresholds, and recommends the one with the fewest slots that
/// never runs dry, with a margin of 2: twice as much can be taken from it, before it
/// is dry, as from the least one that had no empties in a long play. The margin is
/// larger where half as much again as is taken at the peak during the longest wake-up
/// of the machine asks for it.
///
/// IDs are taken at the moments when they are due, whatever came of those before.
/// They are thrown away; no lease is taken and no secret is read. The machine
/// should be as busy as it will be. Ctrl-C ends the measuring and prints what is
/// known by then. The exit status is 1 if nothing can be recommended, or if the
/// goal is not kept.
#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// Threads that take IDs [default: one a core, but for one core that is left
    /// to the producer]
    #[arg(long, value_name = "N")]
    consumers: Option<ThreadCount>,
    /// Threads that fill the ring [default: as many as the peak needs]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u16).range(1..=64))]
    producers: Option<u16>,
    /// How long takes may last, such as p99.99=2us or max=1ms [default: any time,
    /// as long as the ring does not run dry]
    #[arg(long, value_name = "PERCENTILE=TIME")]
    goal: Option<Goal>,
    /// For how long to search; proving what was found takes up to twice as long
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=86_400))]
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
    /// One object rather than text
    #[arg(long)]
    json: bool,
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
    let lease = LeasePlan::new(&load, &layout, nodes)?;
    layout.check_alive(SystemClock.unix_ms())?;
    let output = args.report.as_deref().map(Output::new).transpose()?;
    let interrupt = Interrupt::listen().context("signals can't be listened to")?;
    if let Some(warning) = lease.warning() {
        say(warning);
    }

    let outcome = measure(args, load, lease, &interrupt)?;
    let command = host::command();
    let written = match output {
        Some(output) => write_report(output, &outcome, &command),
        None => Ok(()),
    };
    let printed = print(args, &outcome, &command);
    written?;
    forgive_closed_pipe(printed)?;
    Ok(
        match outcome.findings.pick.is_some() && outcome.keeps_goal() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        },
    )
}

fn measure(
    args: &TuneArgs,
    load: Load,
    lease: LeasePlan,
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
    let slots = model::slots_needed(&load, &machine, producers);
    let predicted: Vec<_> = (choices.thresholds.iter())
        .filter_map(|&threshold| Some(model::least_capacity(slots?, threshold)))
        .collect();
    if args.capacity.is_empty() {
        choices.capacities = model::pruned(choices.capacities, &predicted);
    }

    let play = stage::play_length(&load, time);
    // So that a machine that is slow to measure is played on all the same.
    let measured = Instant::now();
    let worst = stage::worst_part(&load, play)?;
    let mut stage = RealRings {
        load: worst.as_ref().map_or(&load, |(_, part)| part),
        layout: args.layout.layout,
        lease: &lease,
        producers,
        consumers,
        interrupt,
        bar: &bar,
        started: measured,
        time,
        play,
    };
    let findings = search::search(&mut stage, &choices, args.goal.as_ref(), slots)?;
    bar.finish_and_clear();
    Ok(Outcome {
        part: worst.as_ref().map(|(from, _)| (*from, play.as_secs_f64())),
        played: worst.map_or_else(|| load.clone(), |(_, part)| part),
        layout: args.layout.layout,
        machine,
        cores,
        consumers,
        producers,
        goal: args.goal.clone(),
        max_age: args.max_age,
        predicted,
        choices,
        findings,
        is_interrupted: interrupt.came(),
        took: started.elapsed(),
        now_unix_ms: SystemClock.unix_ms(),
        load,
        lease,
    })
}

/// The grid that was asked for.
fn choices(args: &TuneArgs) -> Choices {
    let mut capacities = args.capacity.clone();
    if capacities.is_empty() {
        capacities = CAPACITIES.map(|shift| 1 << shift).collect();
    }
    capacities.sort_unstable();
    capacities.dedup();
    let mut thresholds = Vec::new();
    for &threshold in &args.threshold {
        if !thresholds.contains(&threshold) {
            thresholds.push(threshold);
        }
    }
    if thresholds.is_empty() {
        thresholds = [75, 50, 25].map(Threshold::Percent).to_vec();
        thresholds.push(Threshold::Adaptive);
    }
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
    let bar = ProgressBar::new((time * 5 / 2).as_millis() as u64);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar
}

fn write_report(output: Output, outcome: &Outcome, command: &str) -> Result<()> {
    let facts = host::facts(outcome.cores, &Secret::generate()?);
    let page = page::page(outcome, command, facts);
    output.write(&page.html()?)
}

fn print(args: &TuneArgs, outcome: &Outcome, command: &str) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        serde_json::to_writer(&mut out, &json::object(outcome, command))?;
        writeln!(out)?;
    } else {
        text::print(outcome, &mut out)?;
    }
    Ok(out.flush()?)
}
