//! `ringflake generate`: prints IDs from a live ring.

use std::io::{self, BufWriter, Stdout, Write};
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use ringflake::{
    CachedGenerator, Id, Layout, OnEmpty, PaddingFill, Refused, Secret, StaticLease, TakeError,
};

use crate::args::{KeyArgs, LayoutArgs, NodeArgs};
use crate::data_dir::DataDir;
use crate::ids::OutputFormat;
use crate::marks::{Marks, Wish};
use crate::report::forgive_closed_pipe;
use crate::secret::{self, Key};
use crate::threads::{ThreadCount, in_threads};

/// IDs that a thread takes, formats and writes in one go.
const CHUNK: usize = 4096;

/// The smallest and the largest ring that a run gets.
const CAPACITY: (usize, usize) = (64, 1 << 16);

/// How long a thread waits on a dry ring before it looks whether the lease has
/// ended.
const PATIENCE: Duration = Duration::from_millis(2);

/// Print unique IDs
///
/// Without a secret, one is made and kept in the data directory, and stderr
/// says so. The data directory also keeps what has been handed out, so that no
/// two runs that share it print the same ID, at once or one after the other.
/// Runs that share only the secret, such as those on two machines, need --nodes
/// of their own.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// How many
    #[arg(short = 'n', value_name = "N", default_value_t = 10)]
    count: u64,
    /// How they are written
    #[arg(long, value_enum, default_value_t = OutputFormat::Base32hex)]
    format: OutputFormat,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    nodes: NodeArgs,
    #[command(flatten)]
    key: KeyArgs,
    /// Threads that take IDs. The output of several is mixed in no
    /// particular order
    #[arg(long, value_name = "T", default_value = "1")]
    threads: ThreadCount,
}

pub(crate) fn run(args: &GenerateArgs, data_dir: &DataDir) -> Result<ExitCode> {
    forgive_closed_pipe(print(args, data_dir))?;
    Ok(ExitCode::SUCCESS)
}

fn print(args: &GenerateArgs, data_dir: &DataDir) -> Result<()> {
    let layout = args.layout.layout;
    let nodes = args.nodes.range(&layout);
    rehearse(args, &layout)?;

    let key = secret::kept_or_made(&args.key, data_dir)?;
    let marks = Marks::new(data_dir.create()?);
    let capacity = usize::try_from(args.count).unwrap_or(usize::MAX);
    let capacity = capacity.clamp(CAPACITY.0, CAPACITY.1).next_power_of_two();
    let job = Job {
        left: AtomicU64::new(args.count),
        format: args.format,
        out: Mutex::new(BufWriter::new(io::stdout())),
    };
    // A lease has enough IDs, but the clock skips those of the time that has
    // passed. A run that its reader holds up goes on with another lease.
    while let left @ 1.. = job.left.load(Relaxed) {
        let wish = Wish {
            nodes: nodes.clone(),
            // What the ring still holds at the end is lost.
            ids: left.saturating_add(capacity as u64),
        };
        let lease = marks.grant(&layout, &wish)?;
        let generator = key
            .give_to(CachedGenerator::builder(layout))
            .lease(lease)
            .capacity(capacity)
            // The lease bounds what is borrowed.
            .borrow_limit(Duration::MAX)
            // Everything passes through the ring, made by one producer, so
            // that each thread takes IDs in the order of their time.
            .on_empty(OnEmpty::Wait(PATIENCE))
            .build()?;
        job.work(&generator, args.threads.get())?;
    }
    job.out().flush()?;
    Ok(())
}

/// Lets the library refuse what it will not do before anything is written.
fn rehearse(args: &GenerateArgs, layout: &Layout) -> Result<()> {
    let key = if args.key.plain {
        Key::Plain
    } else {
        // Any will do: no ID is made.
        Key::Secret(Secret::from_bytes([0; 16]))
    };
    key.give_to(CachedGenerator::builder(*layout))
        .lease(StaticLease::assume_unique(
            *layout,
            args.nodes.range(layout),
        ))
        .capacity(1)
        .padding_fill(PaddingFill::Off)
        .threshold_fill(None)
        .build()?;
    Ok(())
}

/// What there is to print, and where.
struct Job {
    /// IDs that no thread has undertaken to print yet.
    left: AtomicU64,
    format: OutputFormat,
    out: Mutex<BufWriter<Stdout>>,
}

impl Job {
    /// Prints what is left, or as much of it as the generator's lease yields.
    fn work(&self, generator: &CachedGenerator, threads: usize) -> Result<()> {
        in_threads(threads, || self.consume(generator))?;
        Ok(())
    }

    /// One thread's part.
    fn consume(&self, generator: &CachedGenerator) -> Result<()> {
        let mut ids = [Id::default(); CHUNK];
        let mut text = Vec::new();
        loop {
            let want = self.undertake();
            if want == 0 {
                return Ok(());
            }
            let taken = take(generator, &mut ids[..want])?;
            self.left.fetch_add((want - taken) as u64, Relaxed);
            text.clear();
            for &id in &ids[..taken] {
                self.format.write(id, &mut text)?;
            }
            self.out().write_all(&text)?;
            if taken < want {
                return Ok(());
            }
        }
    }

    /// Takes up to a chunk off what is left.
    fn undertake(&self) -> usize {
        // Relaxed: the number stands for itself.
        let mut left = self.left.load(Relaxed);
        loop {
            let want = left.min(CHUNK as u64);
            match self
                .left
                .compare_exchange_weak(left, left - want, Relaxed, Relaxed)
            {
                Ok(_) => return want as usize,
                Err(now) => left = now,
            }
        }
    }

    /// A chunk is written under one lock, so that lines stay whole.
    fn out(&self) -> MutexGuard<'_, BufWriter<Stdout>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fills `ids` and returns how many; fewer only if the lease has ended.
fn take(generator: &CachedGenerator, ids: &mut [Id]) -> Result<usize> {
    let mut taken = 0;
    while taken < ids.len() {
        match generator.take_batch(&mut ids[taken..]) {
            Ok(count) => taken += count,
            Err(TakeError::Refused(Refused::LeaseEnded { .. })) => break,
            // The producer was only slow.
            Err(TakeError::TimedOut { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(taken)
}
