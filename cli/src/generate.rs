//! `ringflake generate`: prints IDs from a live ring.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use ringflake::{Id, OnEmpty, Refused, TakeError};

use crate::args::SupplyArgs;
use crate::count::count;
use crate::data_dir::DataDir;
use crate::ids::OutputFormat;
use crate::leases::{DemandEstimate, LeasedGenerator};
use crate::report::forgive_closed_pipe;

/// IDs that are taken, formatted and written in one go.
const CHUNK: usize = 4096;

/// The smallest and the largest ring that a run gets.
const CAPACITY: (usize, usize) = (64, 1 << 16);

/// How long a take waits on a dry ring before it is checked whether there is a
/// lease.
const PATIENCE: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "Examples:
  ringflake generate                         # ten IDs
  ringflake generate -n 1M --format u64le    # a million, as binary numbers
  ringflake generate --plain                 # not encrypted, sorted by time
  ringflake generate --store URL --namespace orders  # shared with other machines";

/// Print unique IDs
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GenerateArgs {
    /// How many, such as 500 or 1.5M
    #[arg(short = 'n', value_name = "N", allow_negative_numbers = true, default_value = "10", value_parser = count::<u64>(0..=u64::MAX))]
    count: u64,
    /// How they are written
    #[arg(long, value_enum, default_value_t = OutputFormat::Base32hex)]
    format: OutputFormat,
    #[command(flatten)]
    supply: SupplyArgs,
}

pub(crate) fn run(args: &GenerateArgs, data_dir: &DataDir) -> Result<()> {
    forgive_closed_pipe(print(args, data_dir))
}

fn print(args: &GenerateArgs, data_dir: &DataDir) -> Result<()> {
    let capacity = usize::try_from(args.count).unwrap_or(usize::MAX);
    let capacity = capacity.clamp(CAPACITY.0, CAPACITY.1).next_power_of_two();
    let demand = DemandEstimate {
        // IDs left in the ring at the end are lost.
        ids: args.count.saturating_add(capacity as u64),
        span: Duration::MAX,
    };
    let supply = LeasedGenerator::new(&args.supply, data_dir, demand, |builder| {
        builder
            .capacity(capacity)
            // One ring and one producer, so that IDs are taken in the order in which they
            // were made.
            .stripes(1)
            .assist_fill(None)
            .on_empty(OnEmpty::Wait(PATIENCE))
            // The leases bound what is borrowed.
            .borrow_limit(Duration::MAX)
    })?;
    let mut out = io::stdout().lock();
    let mut left = args.count;
    let mut ids = [Id::default(); CHUNK];
    let mut text = Vec::new();
    while left > 0 {
        let ids = &mut ids[..left.min(CHUNK as u64) as usize];
        take(&supply, ids)?;
        left -= ids.len() as u64;
        text.clear();
        for &mut id in ids {
            args.format.write(id, &mut text)?;
        }
        out.write_all(&text)?;
    }
    out.flush()?;
    Ok(())
}

/// Fills `ids`, however long that takes.
fn take(supply: &LeasedGenerator, ids: &mut [Id]) -> Result<()> {
    let mut stalled = None;
    let mut taken = 0;
    while taken < ids.len() {
        match supply.generator.take_batch(&mut ids[taken..]) {
            Ok(count) => {
                taken += count;
                stalled = None;
            }
            Err(TakeError::Refused(Refused::NoLease { .. })) => supply.wait_out(&mut stalled)?,
            // The producer was only slow.
            Err(TakeError::TimedOut { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
