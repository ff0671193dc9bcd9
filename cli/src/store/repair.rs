//! `ringflake store repair`: brings back a block whose record was damaged.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringflake::lease::Block;
use serde_json::json;

use super::open_store::{CommonArgs, OpenStore};
use super::parts::Moment;
use crate::count::count;
use crate::data_dir::DataDir;
use crate::output;

const DETAILS: &str = "Examples:
  ringflake store repair --block 5           # as 'ringflake store check' shows it

Find out first what damaged the record. The block is granted again after the store's
horizon and failover time; the store's clock must be right.

JSON: namespace, block, epoch, end with tick, unix_ms and time (RFC 3339)";

/// Repair a block that is quarantined
#[derive(Debug, Args)]
#[command(after_long_help = DETAILS)]
pub(crate) struct RepairArgs {
    /// The block
    #[arg(long, value_name = "B", value_parser = count::<u64>(0..=u64::MAX))]
    block: u64,
    #[command(flatten)]
    common: CommonArgs,
}

pub(super) fn run(args: &RepairArgs, data_dir: &DataDir) -> Result<ExitCode> {
    let mut open = OpenStore::open(&args.common, data_dir)?;
    let namespace = open.target.namespace.clone();
    let block = Block::new(args.block);
    let repaired = open.store.repair(&namespace, block, open.now_unix_ms);
    let repaired = open.explained(repaired)?;
    let (epoch, end) = (repaired.epoch.get(), repaired.hwm_end);
    let end = Moment::new(namespace.layout(), end);
    let object = json!({
        "namespace": namespace.name(),
        "block": args.block,
        "epoch": epoch,
        "end": end,
    });
    let rows = [
        ("namespace", namespace.name().to_owned()),
        ("block", args.block.to_string()),
        ("epoch", epoch.to_string()),
        ("leased from", end.in_words()),
        ("state", "released".to_owned()),
    ];
    output::answer(|out| output::print(out, args.common.output.format, &object, rows))?;
    Ok(ExitCode::SUCCESS)
}
