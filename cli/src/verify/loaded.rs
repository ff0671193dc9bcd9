//! `verify` under a load: does the ring keep up with it?

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use ringflake::plan::{self, Load};
use ringflake::{Id, Inspector, Layout, Lease};

use super::answer;
use super::args::VerifyArgs;
use super::backlog::Backlog;
use super::oracle::{Marker, Oracle};
use super::tally::Tally;
use crate::data_dir::DataDir;
use crate::drive::measurement::Measurement;
use crate::drive::open_loop::{OpenLoop, TakeObserver};
use crate::interrupt::Interrupt;
use crate::leases::{DemandEstimate, LeasedGenerator};
use crate::load::{BORROW_LIMIT, GROUPS_PER_SECOND, borrowing_in_words};
use crate::report::say;
use crate::threads::ThreadCount;
use crate::units::{counted, short};

/// How long a load without an end runs.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// Chunks of unchecked IDs that all consumers together may have, 256 MiB. Where
/// there are more, no pause was long enough, and they are checked at once.
const MOST_CHUNKS: usize = 8192;

pub(super) fn run(args: &VerifyArgs, load: &Load, data_dir: &DataDir) -> Result<ExitCode> {
    let layout = args.supply.target.layout.layout;
    let consumers = ThreadCount::or_all_but_one(args.consumers);
    let time = args.seconds.map(Duration::from_secs);
    let time = time.or(load.duration()).unwrap_or(DEFAULT_TIME);
    let time = load.duration().map_or(time, |whole| time.min(whole));
    let demanded = load.demanded_by(time.as_secs_f64()) as u64;
    let demand = DemandEstimate {
        ids: demanded.saturating_add(args.capacity as u64),
        span: time.saturating_add(BORROW_LIMIT),
    };
    let supply = LeasedGenerator::new(&args.supply, data_dir, demand, |it| args.shape(it))?;
    warn_of_borrowing(load, time, &layout, &supply.generator.leases());

    let oracle = Oracle::new(layout, supply.audit_log());
    let inspector = Inspector::new(layout, supply.key().cipher()?);
    let interrupt = Interrupt::listen().context("signals can't be listened to")?;
    let bar = ProgressBar::new(time.as_millis() as u64);
    let open_loop = OpenLoop {
        load,
        consumers,
        time,
        stop: interrupt.flag(),
        groups_per_second: GROUPS_PER_SECOND,
    };
    let most_chunks = MOST_CHUNKS / consumers;
    let checker = || Checker::new(&inspector, &oracle, most_chunks);
    let run = Measurement::run(open_loop, &supply.generator, &bar, checker);
    bar.finish_and_clear();
    let (run, checkers) = run.context("a thread can't be started")?;
    let tallies = checkers.into_iter().map(|checker| checker.tally);
    let tally = tallies.fold(Tally::default(), Tally::sum);
    if interrupt.came() {
        say("interrupted: this is what was verified until then");
    }
    let stats = supply.generator.stats();
    let level = run.lowest_level().unwrap_or(stats.level);
    let mut answer = answer::begun(&tally, run.took.as_secs_f64(), interrupt.came());
    answer.count("empties", "empties", run.empties);
    answer.count("made in place", "made_in_place", run.in_place);
    answer.count("assists", "assists", stats.fills.assist);
    answer.count("refused", "refused", run.refused);
    answer.count("not taken in time", "missed", run.missed);
    answer::add_latencies(&mut answer, &run.latency);
    answer.count("threshold fills", "fills", run.fills);
    answer.time("most borrowed", "most_borrowed_s", run.most_borrowed());
    answer::add_level(
        &mut answer,
        "lowest level seen",
        "lowest_level",
        level,
        &stats,
    );
    let printed = answer.show(args.format.format);
    explain(&run);
    tally.conclude(printed)?;
    Ok(interrupt.exit_code())
}

/// Checks a consumer's IDs between its takes.
struct Checker<'a> {
    inspector: &'a Inspector,
    marker: Marker<'a>,
    backlog: Backlog,
    most_chunks: usize,
    tally: Tally,
}

impl<'a> Checker<'a> {
    fn new(inspector: &'a Inspector, oracle: &'a Oracle<'a>, most_chunks: usize) -> Self {
        Self {
            inspector,
            marker: oracle.marker(),
            backlog: Backlog::default(),
            most_chunks,
            tally: Tally::default(),
        }
    }

    /// Checks some of what waits; whether there was any.
    fn check(&mut self, most: usize) -> bool {
        let ids = self.backlog.take(most);
        for &id in ids {
            self.tally.check(id, self.inspector, &mut self.marker);
        }
        !ids.is_empty()
    }
}

impl TakeObserver for Checker<'_> {
    fn taken(&mut self, ids: &[Id]) {
        self.backlog.push(ids);
        if self.backlog.chunks() >= self.most_chunks {
            self.check(2 * ids.len());
        }
    }

    fn use_pause(&mut self) -> bool {
        // About a microsecond.
        self.check(16)
    }

    fn finish(&mut self) {
        while self.check(usize::MAX) {}
    }
}

/// Says so if the leases at hand have not as many IDs as the load asks for.
fn warn_of_borrowing(load: &Load, time: Duration, layout: &Layout, leases: &[Lease]) {
    let nodes = leases
        .iter()
        .map(|lease| lease.nodes().end - lease.nodes().start);
    let nodes = nodes.sum::<u64>();
    let sustained = plan::sustained(layout, nodes);
    let seconds = time.as_secs_f64();
    let mean = load.demanded_by(seconds) / seconds.max(1e-9);
    let borrowing = plan::borrowing(load, sustained, BORROW_LIMIT, seconds);
    if mean <= sustained && borrowing.used_up_at.is_none() {
        return;
    }
    let end = borrowing_in_words(&borrowing);
    say(format_args!(
        "the load needs {} IDs/s on average, and the leases on {} have {} IDs/s: {end}\n\
         help: give more --nodes or --blocks",
        short(mean),
        counted(nodes, "node"),
        short(sustained),
    ));
}

/// Says what the figures alone do not explain.
fn explain(run: &Measurement) {
    if let Some(reason) = run.refusal {
        say(format_args!("{} IDs were refused: {reason}", run.refused));
    }
    if run.missed > 0 {
        say(format_args!(
            "{} of {} IDs were not taken in time: this machine is too slow for the load, or has \
             the wrong number of --consumers",
            run.missed, run.demanded
        ));
    }
}
