//! `ringflake verify`: takes IDs from a live ring in all three ways at full speed, and checks
//! every one.

use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use ringflake::{Handle, Id, Inspector, Refused, TakeError};

use self::oracle::Oracle;
use self::tally::Tally;
use crate::args::SupplyArgs;
use crate::count::count;
use crate::data_dir::DataDir;
use crate::format::FormatArgs;
use crate::interrupt::Interrupt;
use crate::leases::{DemandEstimate, LeasedGenerator};
use crate::load::BORROW_LIMIT;
use crate::output::Answer;
use crate::report::say;
use crate::threads::{cores, in_threads, thread_count};
use crate::units::{grouped, short};

mod oracle;
mod tally;

/// IDs that a thread takes before it checks them. The first ones come through
/// its handle, then some singly, and the rest in a batch.
const CHUNK: usize = 1024;
const BY_HANDLE: usize = 64;
const BY_TAKE: usize = 64;

/// IDs that are verified if neither a number nor a time is given.
const DEFAULT_COUNT: u64 = 10_000_000;

/// How soon an interrupt is noticed while nothing can be taken.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

const EXAMPLES: &str = "Examples:
  ringflake verify -n 100M        # 100 million IDs
  ringflake verify --seconds 60   # for a minute

The exit status is 1 if an ID was issued twice or outside the leases, and 130 after
Ctrl-C.";

/// Run a live ring and check that no ID is issued twice
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// How many IDs [default: 10,000,000, or no limit with --seconds]
    #[arg(short = 'n', value_name = "N", value_parser = count::<u64>(0..=u64::MAX))]
    count: Option<u64>,
    /// For how many seconds at the most
    #[arg(long, value_name = "S", value_parser = count::<u64>(0..=u64::MAX))]
    seconds: Option<u64>,
    /// Threads that take IDs [default: one a core]
    #[arg(long, value_name = "T", value_parser = thread_count)]
    threads: Option<usize>,
    /// Slots of all stripes, a power of two
    #[arg(long, value_name = "C", value_parser = count::<usize>(0..=u64::MAX), default_value = "65536")]
    capacity: usize,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    supply: SupplyArgs,
}

pub(crate) fn run(args: &VerifyArgs, data_dir: &DataDir) -> Result<ExitCode> {
    let layout = args.supply.target.layout.layout;
    let threads = args.threads.unwrap_or_else(cores);
    let default_count = match args.seconds {
        Some(_) => u64::MAX,
        None => DEFAULT_COUNT,
    };
    let count = args.count.unwrap_or(default_count);
    let time = args.seconds.map(Duration::from_secs);
    let left_over = args.capacity.saturating_add(threads * BY_HANDLE);
    let demand = DemandEstimate {
        ids: count.saturating_add(left_over as u64),
        span: time.map_or(Duration::MAX, |time| time.saturating_add(BORROW_LIMIT)),
    };
    let supply = LeasedGenerator::new(&args.supply, data_dir, demand, |builder| {
        builder.capacity(args.capacity).borrow_limit(BORROW_LIMIT)
    })?;
    let interrupt = Interrupt::listen().context("signals can't be listened to")?;
    let check = Check {
        oracle: Oracle::new(layout, &supply.audit_log),
        inspector: Inspector::new(layout, supply.target.key.cipher()?),
        supply: &supply,
        interrupt: &interrupt,
        count,
        undertaken: AtomicU64::new(0),
        started: Instant::now(),
        time,
    };
    let tallies = in_threads(threads, || check.consume())?;
    let tally = tallies.into_iter().fold(Tally::default(), Tally::sum);
    let took = check.started.elapsed().as_secs_f64();
    if interrupt.came() {
        say("interrupted: this is what was verified until then");
    }
    let stats = supply.generator.stats();
    let mut answer = Answer::default();
    answer.count("IDs", "ids", tally.ids);
    answer.count("duplicates", "duplicates", tally.duplicates);
    answer.count("outside the leases", "outside_the_leases", tally.outside);
    let rate = tally.ids as f64 / took.max(1e-9);
    answer.row("IDs/s", short(rate));
    answer.field("ids_per_s", rate.round());
    answer.time("time", "took_s", took);
    // In text a line of its own on stderr says it.
    answer.field("interrupted", interrupt.came());
    answer.count("empties", "empties", stats.empties);
    answer.count("assists", "assists", stats.fills.assist);
    answer.count("waits at a limit", "waits", tally.waits);
    answer.time("borrowed", "borrowed_s", stats.borrowed.as_secs_f64());
    let (level, capacity) = (stats.level, stats.capacity);
    let [slots, of] = [level, capacity].map(|slots| grouped(slots as u64));
    answer.row("level", format!("{slots} of {of}"));
    answer.field("level", level);
    answer.field("capacity", capacity);
    answer.count("stripes", "stripes", stats.stripes as u64);
    tally.conclude(answer.show(args.format.format))?;
    Ok(interrupt.exit_code())
}

struct Check<'a> {
    interrupt: &'a Interrupt,
    supply: &'a LeasedGenerator,
    inspector: Inspector,
    oracle: Oracle<'a>,
    /// IDs to be verified.
    count: u64,
    /// IDs that threads have undertaken to verify; may pass `count`.
    undertaken: AtomicU64,
    started: Instant,
    time: Option<Duration>,
}

impl Check<'_> {
    fn consume(&self) -> Result<Tally> {
        let mut tally = Tally::default();
        let mut marker = self.oracle.marker();
        let mut handle = self.supply.generator.handle()?;
        let mut ids = [Id::default(); CHUNK];
        loop {
            let want = self.undertake();
            if want == 0 {
                return Ok(tally);
            }
            let taken = self.take(&mut ids[..want], &mut handle, &mut tally)?;
            for &id in &ids[..taken] {
                tally.check(id, &self.inspector, &mut marker);
            }
        }
    }

    /// How many IDs to take next; 0 at the end.
    fn undertake(&self) -> usize {
        if self.is_over() {
            return 0;
        }
        let before = self.undertaken.fetch_add(CHUNK as u64, Relaxed);
        self.count.saturating_sub(before).min(CHUNK as u64) as usize
    }

    fn time_left(&self) -> Duration {
        let left = |time: Duration| time.saturating_sub(self.started.elapsed());
        self.time.map_or(Duration::MAX, left)
    }

    fn is_over(&self) -> bool {
        self.interrupt.came() || self.time_left().is_zero()
    }

    /// Fills `ids`, each part in its own way; fewer only at the end of the run.
    fn take(&self, ids: &mut [Id], handle: &mut Handle, tally: &mut Tally) -> Result<usize> {
        const BATCH: usize = BY_HANDLE + BY_TAKE;
        let mut stalled = None;
        let mut taken = 0;
        while taken < ids.len() {
            let rest = &mut ids[taken..];
            let got = match taken {
                0..BY_HANDLE => handle.take().map(|id| put(id, rest)),
                BY_HANDLE..BATCH => self.supply.generator.take().map(|id| put(id, rest)),
                _ => self.supply.generator.take_batch(rest),
            };
            let retry_after = match got {
                Ok(count) => {
                    taken += count;
                    stalled = None;
                    continue;
                }
                Err(TakeError::Refused(Refused::BorrowLimit { retry_after, .. })) => {
                    Some(retry_after)
                }
                Err(TakeError::Refused(Refused::NoLease { .. })) => None,
                Err(error) => return Err(error.into()),
            };
            tally.waits += 1;
            if self.is_over() {
                break;
            }
            match retry_after {
                Some(time) => thread::sleep(time.min(self.time_left()).min(LONGEST_SLEEP)),
                None => self.supply.wait_out(&mut stalled)?,
            }
        }
        Ok(taken)
    }
}

/// Puts one ID to the front, and says so.
fn put(id: Id, ids: &mut [Id]) -> usize {
    ids[0] = id;
    1
}
