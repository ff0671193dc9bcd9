//! `ringflake verify`: a live ring at full speed or under a load, and every ID checked.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use indicatif::ProgressBar;
use ringflake::{CachedGeneratorBuilder, Handle, Id, Inspector, Refused, Stats, TakeError};

use self::oracle::{Marker, Oracle, Verdict};
use crate::args::SupplyArgs;
use crate::data_dir::DataDir;
use crate::leases::{DemandEstimate, Stall, Supply};
use crate::load::{LoadArgs, Threshold};
use crate::report::forgive_closed_pipe;
use crate::threads::{ThreadCount, in_threads};

mod backlog;
mod loaded;
mod oracle;

/// IDs that a thread takes before it looks at them. The first ones come through
/// its handle, then some singly, and the rest in a batch.
const CHUNK: usize = 1024;
const BY_HANDLE: usize = 64;
const BY_TAKE: usize = 64;

/// IDs that are verified if neither a number nor a time is given.
const DEFAULT_COUNT: u64 = 10_000_000;

/// How far ahead of the clock IDs may lie.
const BORROW_LIMIT: Duration = Duration::from_secs(60);

/// Run a live ring and check that no ID comes twice
///
/// Leases, and the secret, are had as generate has them. Threads take IDs in all
/// three ways, in batches, singly and through handles, as fast as they can. Each
/// ID is decrypted, held against the leases that the store has confirmed, and
/// marked in a bitmap. The IDs are shown to nobody. The exit status is 1 if one
/// came twice or lay outside the leases.
///
/// With --rate or --trace, IDs are taken singly at the moments when they are due,
/// and checked in between. Latency counts from those moments, whatever comes in
/// between. Above a million a second for each consumer, IDs are due in groups of
/// up to 64. An empty is a take that found the ring dry, also if it then made its
/// ID itself.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// How many IDs [default: 10,000,000, or no limit with --seconds]
    #[arg(short = 'n', value_name = "N", conflicts_with = "LoadArgs")]
    count: Option<u64>,
    /// For how long at the most [default under a load: 10, or as long as the trace]
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// Threads that take IDs [default: one a core]
    #[arg(long, value_name = "T", conflicts_with = "LoadArgs")]
    threads: Option<ThreadCount>,
    #[command(flatten)]
    load: LoadArgs,
    /// Threads that take IDs under a load [default: one a core, but for one core
    /// that is left to the producer]
    #[arg(long, value_name = "N", requires = "LoadArgs")]
    consumers: Option<ThreadCount>,
    /// Threads that fill the ring
    #[arg(long, value_name = "P", default_value_t = 1)]
    producers: usize,
    /// Slots of the ring, a power of two
    #[arg(long, value_name = "C", default_value_t = 1 << 16)]
    capacity: usize,
    /// The level under which the ring is filled, as a share of the capacity, or
    /// adaptive: one that follows the load
    #[arg(long, value_name = "P%|adaptive", default_value = "50%")]
    threshold: Threshold,
    #[command(flatten)]
    supply: SupplyArgs,
}

impl VerifyArgs {
    /// Gives the ring its shape.
    fn shape(&self, builder: CachedGeneratorBuilder) -> CachedGeneratorBuilder {
        builder
            .capacity(self.capacity)
            .producers(self.producers)
            .threshold_fill(self.threshold.fill())
            .borrow_limit(BORROW_LIMIT)
    }
}

pub(crate) fn run(args: &VerifyArgs, data_dir: &DataDir) -> Result<ExitCode> {
    match args.load.load()? {
        Some(load) => loaded::run(args, &load, data_dir),
        None => run_flat_out(args, data_dir),
    }
}

fn run_flat_out(args: &VerifyArgs, data_dir: &DataDir) -> Result<ExitCode> {
    let layout = args.supply.target.layout.layout;
    let threads = args.threads.unwrap_or_else(ThreadCount::cores).get();
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
    let supply = Supply::new(&args.supply, data_dir, demand, |it| args.shape(it))?;
    let trial = Trial {
        oracle: Oracle::new(layout, supply.audit_log()),
        inspector: Inspector::new(layout, supply.key().cipher()),
        supply: &supply,
        count,
        undertaken: AtomicU64::new(0),
        started: Instant::now(),
        time,
    };
    let tally = trial.run(threads)?;
    let took = trial.started.elapsed();
    let printed = print(&tally, took, &supply.generator.stats());
    conclude(&tally, printed)?;
    Ok(ExitCode::SUCCESS)
}

/// The verdict, which counts for more than whether it could be printed.
fn conclude(tally: &Tally, printed: io::Result<()>) -> Result<()> {
    if tally.duplicates > 0 || tally.outside > 0 {
        bail!(
            "{} IDs came twice and {} lay outside the leases",
            tally.duplicates,
            tally.outside
        );
    }
    forgive_closed_pipe(printed)
}

/// What the threads have found out.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    ids: u64,
    duplicates: u64,
    outside: u64,
    /// How often the generator asked for patience.
    waits: u64,
}

impl Tally {
    fn sum(self, other: Self) -> Self {
        Self {
            ids: self.ids + other.ids,
            duplicates: self.duplicates + other.duplicates,
            outside: self.outside + other.outside,
            waits: self.waits + other.waits,
        }
    }

    fn judge(&mut self, id: Id, inspector: &Inspector, marker: &mut Marker<'_>) {
        self.ids += 1;
        let verdict = match inspector.inspect(id) {
            Ok(parts) => marker.mark(&parts),
            Err(_) => Verdict::Outside,
        };
        match verdict {
            Verdict::New => {}
            Verdict::Duplicate => self.duplicates += 1,
            Verdict::Outside => self.outside += 1,
        }
    }
}

/// What the threads share.
struct Trial<'a> {
    supply: &'a Supply,
    inspector: Inspector,
    oracle: Oracle<'a>,
    /// IDs to be verified.
    count: u64,
    /// Those that threads have undertaken to verify; may pass `count`.
    undertaken: AtomicU64,
    started: Instant,
    time: Option<Duration>,
}

impl Trial<'_> {
    fn run(&self, threads: usize) -> Result<Tally> {
        thread::scope(|scope| {
            let (working, at_work) = mpsc::channel();
            scope.spawn(move || self.show_progress(&at_work));
            // Dropped when the work is done, which ends the progress bar.
            let _working: mpsc::Sender<()> = working;
            let tallies = in_threads(threads, || self.consume())?;
            Ok(tallies.into_iter().fold(Tally::default(), Tally::sum))
        })
    }

    /// Draws a bar, on a terminal only, until the other end of `at_work` is gone.
    fn show_progress(&self, at_work: &mpsc::Receiver<()>) {
        const PERIOD: Duration = Duration::from_millis(100);
        let bar = match self.time {
            Some(time) if self.count == u64::MAX => ProgressBar::new(time.as_millis() as u64),
            _ => ProgressBar::new(self.count),
        };
        while at_work.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            bar.set_position(if self.count == u64::MAX {
                self.started.elapsed().as_millis() as u64
            } else {
                self.undertaken.load(Relaxed)
            });
        }
        bar.finish_and_clear();
    }

    /// One thread's part.
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
                tally.judge(id, &self.inspector, &mut marker);
            }
        }
    }

    /// How many IDs to take next; 0 when the number or the time is reached.
    fn undertake(&self) -> usize {
        if self.time_left().is_some_and(|left| left.is_zero()) {
            return 0;
        }
        let before = self.undertaken.fetch_add(CHUNK as u64, Relaxed);
        self.count.saturating_sub(before).min(CHUNK as u64) as usize
    }

    fn time_left(&self) -> Option<Duration> {
        let time = self.time?;
        Some(time.saturating_sub(self.started.elapsed()))
    }

    /// Fills `ids`, each part in its own way; fewer only if the time is up.
    fn take(&self, ids: &mut [Id], handle: &mut Handle, tally: &mut Tally) -> Result<usize> {
        const BATCH: usize = BY_HANDLE + BY_TAKE;
        let mut stall = Stall::default();
        let mut taken = 0;
        while taken < ids.len() {
            let rest = &mut ids[taken..];
            let got = match taken {
                0..BY_HANDLE => handle.take().map(|id| put(id, rest)),
                BY_HANDLE..BATCH => self.supply.generator.take().map(|id| put(id, rest)),
                _ => self.supply.generator.take_batch(rest),
            };
            match got {
                Ok(count) => {
                    taken += count;
                    stall.end();
                }
                Err(TakeError::Refused(Refused::BorrowLimit { retry_after, .. })) => {
                    tally.waits += 1;
                    let left = self.time_left().unwrap_or(Duration::MAX);
                    if left.is_zero() {
                        break;
                    }
                    thread::sleep(retry_after.min(left));
                }
                Err(TakeError::Refused(Refused::NoLease { .. })) => {
                    tally.waits += 1;
                    if self.time_left().is_some_and(|left| left.is_zero()) {
                        break;
                    }
                    self.supply.wait_out(&mut stall)?;
                }
                Err(error) => return Err(error.into()),
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

fn print(tally: &Tally, took: Duration, stats: &Stats) -> io::Result<()> {
    let rate = tally.ids as f64 / took.as_secs_f64();
    let level = format!("{} of {}", stats.level, stats.capacity);
    print_rows(&[
        ("IDs", tally.ids.to_string()),
        ("duplicates", tally.duplicates.to_string()),
        ("outside the leases", tally.outside.to_string()),
        ("IDs/s", format!("{rate:.0}")),
        ("empties", stats.empties.to_string()),
        ("waits at a limit", tally.waits.to_string()),
        (
            "seconds borrowed",
            format!("{:.3}", stats.borrowed.as_secs_f64()),
        ),
        ("level", level),
    ])
}

fn print_rows(rows: &[(&str, String)]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (title, value) in rows {
        writeln!(out, "{title:<25}  {value:>18}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_does_not_depend_on_a_reader() {
        let closed = || Err(io::ErrorKind::BrokenPipe.into());
        let clean = Tally::default();
        assert!(conclude(&clean, closed()).is_ok());
        assert!(conclude(&clean, Err(io::ErrorKind::StorageFull.into())).is_err());
        for (duplicates, outside) in [(1, 0), (0, 1)] {
            let tally = Tally {
                duplicates,
                outside,
                ..clean
            };
            let verdict = conclude(&tally, closed()).unwrap_err().to_string();
            assert!(verdict.contains("came twice"), "{verdict}");
        }
    }
}
