//! `ringflake store release`: frees a block whose holder is gone.

use anyhow::{Result, bail};
use clap::Args;
use ringflake::lease::{Block, Epoch};

use super::open_store::{CommonArgs, OpenStore};
use super::parts;
use crate::count::count;
use crate::data_dir::DataDir;

const DETAILS: &str = "Examples:
  ringflake store release --block 5 --epoch 3  # as 'ringflake store ls' shows them

Safe at any time: a holder that is alive keeps its lease to the end, and takes the
block back when it renews.

JSON: namespace, block, epoch, released (true)";

/// Free a block whose holder is gone before its lease ends
#[derive(Args)]
#[command(after_long_help = DETAILS)]
pub(crate) struct ReleaseArgs {
    /// The block
    #[arg(long, value_name = "B", value_parser = count::<u64>(0..=u64::MAX))]
    block: u64,
    /// Which of its leases: its last
    #[arg(long, value_name = "E", value_parser = count::<u64>(0..=u64::MAX))]
    epoch: u64,
    #[command(flatten)]
    common: CommonArgs,
}

pub(super) fn run(args: &ReleaseArgs, data_dir: &DataDir) -> Result<()> {
    let mut open = OpenStore::open(&args.common, data_dir)?;
    let (block, epoch) = (Block::new(args.block), Epoch::new(args.epoch));
    let namespace = &open.target.namespace;
    if block.index() >= namespace.blocks() {
        bail!(
            "block must be 0 to {1} in namespace {0}, got {block}",
            namespace.name(),
            namespace.blocks() - 1
        );
    }
    let released = open.store.release(namespace, block, epoch);
    released.map_err(|error| open.target.explain(error))?;
    let mut answer = parts::of_block(namespace, block, epoch);
    answer.row("state", "released");
    answer.field("released", true);
    answer.show(args.common.output.format)
}
