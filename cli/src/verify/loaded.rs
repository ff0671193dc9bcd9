//! `verify` under a load: does the ring keep up with it?

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use indicatif::ProgressBar;
use ringflake::plan::{self, Load};
use ringflake::{Id, Inspector, Layout, Lease, Stats};

use super::backlog::Backlog;
use super::oracle::{Marker, Oracle};
use super::{BORROW_LIMIT, Tally, VerifyArgs, conclude, print_rows};
use crate::data_dir::DataDir;
use crate::leases::{DemandEstimate, Supply};
use crate::load::{Driver, Keeper, Played};
use crate::report::say;
use crate::threads::ThreadCount;

/// How long a load without an end is played.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// Chunks of unchecked IDs that all consumers together may have, 256 MiB. Where
/// there are more, no pause was long enough, and they are checked at once.
const MOST_CHUNKS: usize = 8192;

pub(super) fn run(args: &VerifyArgs, load: &Load, data_dir: &DataDir) -> Result<ExitCode> {
    let layout = args.supply.target.layout.layout;
    let cores = ThreadCount::cores().get();
    let consumers = args.consumers.map_or(cores - 1, ThreadCount::get).max(1);
    let time = args.seconds.map(Duration::from_secs);
    let time = time.or(load.duration()).unwrap_or(DEFAULT_TIME);
    let time = load.duration().map_or(time, |whole| time.min(whole));
    let demanded = load.demanded_by(time.as_secs_f64()) as u64;
    let demand = DemandEstimate {
        ids: demanded.saturating_add(args.capacity as u64),
        span: time.saturating_add(BORROW_LIMIT),
    };
    let supply = Supply::new(&args.supply, data_dir, demand, |it| args.shape(it))?;
    warn_of_borrowing(load, time, &layout, &supply.generator.leases());

    let oracle = Oracle::new(layout, supply.audit_log());
    let inspector = Inspector::new(layout, supply.key().cipher());
    let bar = ProgressBar::new(time.as_millis() as u64);
    let driver = Driver {
        load,
        consumers,
        time,
        stop: &AtomicBool::new(false),
        bar: &bar,
    };
    let most_chunks = MOST_CHUNKS / consumers;
    let judge = || Judge::new(&inspector, &oracle, most_chunks);
    let played = driver.play(&supply.generator, judge);
    bar.finish_and_clear();
    let (played, judges) = played?;
    let tallies = judges.into_iter().map(|judge| judge.tally);
    let tally = tallies.fold(Tally::default(), Tally::sum);
    let printed = print(&tally, &played, &supply.generator.stats());
    say_what_went_wrong(&played);
    conclude(&tally, printed)?;
    Ok(ExitCode::SUCCESS)
}

/// Checks a consumer's IDs between its takes.
struct Judge<'a> {
    inspector: &'a Inspector,
    marker: Marker<'a>,
    backlog: Backlog,
    most_chunks: usize,
    tally: Tally,
}

impl<'a> Judge<'a> {
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
    fn judge(&mut self, most: usize) -> bool {
        let ids = self.backlog.take(most);
        for &id in ids {
            self.tally.judge(id, self.inspector, &mut self.marker);
        }
        !ids.is_empty()
    }
}

impl Keeper for Judge<'_> {
    fn keep(&mut self, ids: &[Id]) {
        self.backlog.push(ids);
        if self.backlog.chunks() >= self.most_chunks {
            self.judge(2 * ids.len());
        }
    }

    fn use_pause(&mut self) -> bool {
        // About a microsecond.
        self.judge(16)
    }

    fn finish(&mut self) {
        while self.judge(usize::MAX) {}
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
    let limit = BORROW_LIMIT.as_secs();
    let end = match borrowing.used_up_at {
        Some(at) => format!(
            "after {at:.1} s the {limit} s that may be borrowed are used up, and takes fail \
             from then on"
        ),
        None => format!(
            "{:.1} s of the {limit} s that may be borrowed will be needed",
            borrowing.most
        ),
    };
    say(format_args!(
        "the load asks for {mean:.0} IDs/s on average, and the leases, on {nodes} node{}, have \
         {sustained:.0} IDs/s: {end}; more --nodes or --blocks have more",
        if nodes == 1 { "" } else { "s" }
    ));
}

/// What the figures alone do not explain.
fn say_what_went_wrong(played: &Played) {
    if let Some(reason) = played.refusal {
        say(format_args!(
            "{} IDs were refused: {reason}",
            played.refused
        ));
    }
    if played.missed > 0 {
        say(format_args!(
            "the consumers did not come to {} of {} IDs in time: this machine can't take them \
             so fast, or not with so many --consumers",
            played.missed, played.demanded
        ));
    }
}

fn print(tally: &Tally, played: &Played, stats: &Stats) -> std::io::Result<()> {
    let rate = played.taken as f64 / played.took.as_secs_f64().max(1e-9);
    let micros = |nanos: u64| format!("{:.3} us", nanos as f64 / 1e3);
    let latency = |quantile| micros(played.latency.quantile(quantile));
    let level = played.lowest_level().unwrap_or(stats.level);
    print_rows(&[
        ("IDs", tally.ids.to_string()),
        ("duplicates", tally.duplicates.to_string()),
        ("outside the leases", tally.outside.to_string()),
        ("IDs/s", format!("{rate:.0}")),
        ("empties", played.empties.to_string()),
        ("made in place", played.in_place.to_string()),
        ("refused", played.refused.to_string()),
        ("not taken in time", played.missed.to_string()),
        ("latency p50", latency(0.5)),
        ("latency p99", latency(0.99)),
        ("latency p99.9", latency(0.999)),
        ("latency p99.99", latency(0.9999)),
        ("latency max", micros(played.latency.max())),
        ("threshold fills", played.fills.to_string()),
        (
            "seconds borrowed, most",
            format!("{:.3}", played.most_borrowed()),
        ),
        (
            "lowest level seen",
            format!("{level} of {}", stats.capacity),
        ),
    ])
}
