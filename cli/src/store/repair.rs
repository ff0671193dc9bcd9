//! `ringflake store repair`: brings back a block whose record was damaged.

use anyhow::Result;
use clap::Args;
use ringflake::lease::Block;

use super::open_store::{CommonArgs, OpenStore};
use super::parts::{self, Moment};
use crate::count::count;
use crate::data_dir::DataDir;

const DETAILS: &str = "Examples:
  ringflake store repair --block 5           # as 'ringflake store check' shows it

Find out first what damaged the record. The block is granted again after the store's
horizon and failover time; the store's clock must be right.

JSON: namespace, block, epoch, end with tick, unix_ms and time (RFC 3339)";

/// Repair a block that is quarantined
#[derive(Args)]
#[command(after_long_help = DETAILS)]
pub(crate) struct RepairArgs {
    /// The block
    #[arg(long, value_name = "B", value_parser = count::<u64>(0..=u64::MAX))]
    block: u64,
    #[command(flatten)]
    common: CommonArgs,
}

pub(super) fn run(args: &RepairArgs, data_dir: &DataDir) -> Result<()> {
    let mut open = OpenStore::open(&args.common, data_dir)?;
    let block = Block::new(args.block);
    let repaired = open.ask(|store, namespace, now| store.repair(namespace, block, now))?;
    let namespace = &open.target.namespace;
    let mut answer = parts::of_block(namespace, block, repaired.epoch);
    Moment::new(namespace.layout(), repaired.hwm_end).add_to(&mut answer, "leased from", "end");
    answer.row("state", "released");
    answer.show(args.common.output.format)
}
