//! `ringflake verify`: a live ring under load, and every ID checked.

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
use ringflake::{CachedGenerator, Handle, Id, Inspector, Refused, StaticLease, Stats, TakeError};

use self::oracle::{Marker, Oracle, Verdict};
use crate::args::{KeyArgs, LayoutArgs, NodeArgs};
use crate::data_dir::DataDir;
use crate::report::forgive_closed_pipe;
use crate::secret;
use crate::threads::{ThreadCount, in_threads};

mod oracle;

/// IDs that a thread takes before it looks at them. The first ones come through
/// its handle, then some singly, and the rest in a batch.
const CHUNK: usize = 1024;
const BY_HANDLE: usize = 64;
const BY_TAKE: usize = 64;

/// IDs that are verified if neither a number nor a time is given.
const DEFAULT_COUNT: u64 = 10_000_000;

/// Run a live ring under load and check that no ID comes twice
///
/// Threads take IDs in all three ways, in batches, singly and through handles.
/// Each ID is decrypted and marked in a bitmap. Nothing is kept, and the IDs
/// are shown to nobody. Without a secret a random one is used. The exit status
/// is 1 if an ID came twice or lay outside the lease.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// How many IDs [default: 10,000,000, or no limit with --seconds]
    #[arg(short = 'n', value_name = "N")]
    count: Option<u64>,
    /// For how long at the most
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// Threads that take IDs [default: one a core]
    #[arg(long, value_name = "T")]
    threads: Option<ThreadCount>,
    /// Threads that fill the ring
    #[arg(long, value_name = "P", default_value_t = 1)]
    producers: usize,
    /// Slots of the ring, a power of two
    #[arg(long, value_name = "C", default_value_t = 1 << 16)]
    capacity: usize,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    nodes: NodeArgs,
    #[command(flatten)]
    key: KeyArgs,
}

pub(crate) fn run(args: &VerifyArgs, data_dir: &DataDir) -> Result<ExitCode> {
    let layout = args.layout.layout;
    let key = secret::kept_or_random(&args.key, data_dir)?;
    let generator = key
        .give_to(CachedGenerator::builder(layout))
        .lease(StaticLease::assume_unique(
            layout,
            args.nodes.range(&layout),
        ))
        .capacity(args.capacity)
        .producers(args.producers)
        .build()?;
    let default_count = match args.seconds {
        Some(_) => u64::MAX,
        None => DEFAULT_COUNT,
    };
    let trial = Trial {
        oracle: Oracle::new(layout, generator.lease()),
        inspector: Inspector::new(layout, key.cipher()),
        generator,
        count: args.count.unwrap_or(default_count),
        undertaken: AtomicU64::new(0),
        started: Instant::now(),
        time: args.seconds.map(Duration::from_secs),
    };
    let threads = args.threads.unwrap_or_else(ThreadCount::cores);
    let tally = trial.run(threads.get())?;
    let took = trial.started.elapsed();
    let printed = print(&tally, took, &trial.generator.stats());
    conclude(&tally, printed)?;
    Ok(ExitCode::SUCCESS)
}

/// The verdict, which counts for more than whether it could be printed.
fn conclude(tally: &Tally, printed: io::Result<()>) -> Result<()> {
    if tally.duplicates > 0 || tally.outside > 0 {
        bail!(
            "{} IDs came twice and {} lay outside the lease",
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
}

/// What the threads share.
struct Trial {
    generator: CachedGenerator,
    inspector: Inspector,
    oracle: Oracle,
    /// IDs to be verified.
    count: u64,
    /// Those that threads have undertaken to verify; may pass `count`.
    undertaken: AtomicU64,
    started: Instant,
    time: Option<Duration>,
}

impl Trial {
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
        let mut handle = self.generator.handle()?;
        let mut ids = [Id::default(); CHUNK];
        loop {
            let want = self.undertake();
            if want == 0 {
                return Ok(tally);
            }
            let taken = self.take(&mut ids[..want], &mut handle, &mut tally)?;
            for &id in &ids[..taken] {
                self.judge(id, &mut marker, &mut tally);
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
        let mut taken = 0;
        while taken < ids.len() {
            let rest = &mut ids[taken..];
            let got = match taken {
                0..BY_HANDLE => handle.take().map(|id| put(id, rest)),
                BY_HANDLE..BATCH => self.generator.take().map(|id| put(id, rest)),
                _ => self.generator.take_batch(rest),
            };
            match got {
                Ok(count) => taken += count,
                Err(TakeError::Refused(Refused::BorrowLimit { retry_after, .. })) => {
                    tally.waits += 1;
                    let left = self.time_left().unwrap_or(Duration::MAX);
                    if left.is_zero() {
                        break;
                    }
                    thread::sleep(retry_after.min(left));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(taken)
    }

    fn judge(&self, id: Id, marker: &mut Marker<'_>, tally: &mut Tally) {
        tally.ids += 1;
        let verdict = match self.inspector.inspect(id) {
            Ok(parts) => marker.mark(&parts),
            Err(_) => Verdict::Outside,
        };
        match verdict {
            Verdict::New => {}
            Verdict::Duplicate => tally.duplicates += 1,
            Verdict::Outside => tally.outside += 1,
        }
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
    let mut out = io::stdout().lock();
    for (title, value) in [
        ("IDs", tally.ids.to_string()),
        ("duplicates", tally.duplicates.to_string()),
        ("outside the lease", tally.outside.to_string()),
        ("IDs/s", format!("{rate:.0}")),
        ("empties", stats.empties.to_string()),
        ("waits at the borrow limit", tally.waits.to_string()),
        (
            "seconds borrowed",
            format!("{:.3}", stats.borrowed.as_secs_f64()),
        ),
        ("level", level),
    ] {
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
