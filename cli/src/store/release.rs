//! `ringflake store release`: frees a block whose holder is gone.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::Args;
use ringflake::lease::{Block, Epoch, Fence, StoreError};
use serde::Serialize;

use super::open_store::{CommonArgs, OpenStore};
use crate::count::count;
use crate::data_dir::DataDir;
use crate::output;

/// Free a block whose holder is gone, before its lease has ended
///
/// Safe at any time, even if the holder is alive: its lease stays its own up to
/// the end, where the next one begins. A holder that is alive takes the block
/// back when it renews. Block and epoch are those of 'ringflake store ls'.
///
/// JSON: namespace, block, epoch, released (true)
#[derive(Debug, Args)]
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

#[derive(Serialize)]
struct Object<'a> {
    namespace: &'a str,
    block: u64,
    epoch: u64,
    released: bool,
}

pub(super) fn run(args: &ReleaseArgs, data_dir: &DataDir) -> Result<ExitCode> {
    let mut open = OpenStore::open(&args.common, data_dir)?;
    let (block, epoch) = (Block::new(args.block), Epoch::new(args.epoch));
    let namespace = &open.target.namespace;
    if block.index() >= namespace.blocks() {
        return Err(anyhow!(
            "there is no block {block}: namespace {} has the blocks 0 to {}",
            namespace.name(),
            namespace.blocks() - 1
        ));
    }
    match open.store.release(namespace, block, epoch) {
        Err(StoreError::Fenced {
            fence: Fence::NeverGranted,
            ..
        }) => {
            return Err(anyhow!(
                "the store has never leased block {block} of namespace {}: 'ringflake store ls' \
                 shows the blocks that were",
                namespace.name()
            ));
        }
        released => open.explained(released)?,
    }
    let object = Object {
        namespace: open.target.namespace.name(),
        block: args.block,
        epoch: args.epoch,
        released: true,
    };
    let rows = [
        ("namespace", object.namespace.to_owned()),
        ("block", object.block.to_string()),
        ("epoch", object.epoch.to_string()),
        ("state", "released".to_owned()),
    ];
    output::answer(|out| output::print(out, args.common.output.format, &object, rows))?;
    Ok(ExitCode::SUCCESS)
}
