//! `ringflake store`: looks after the stores that leases come from.

use anyhow::Result;
use clap::Subcommand;

use self::check::CheckArgs;
use self::init::InitArgs;
use self::ls::LsArgs;
use self::raise_floor::RaiseFloorArgs;
use self::release::ReleaseArgs;
use self::repair::RepairArgs;
use crate::data_dir::DataDir;

mod check;
mod init;
mod ls;
mod open_store;
mod parts;
mod raise_floor;
mod release;
mod repair;

const EXAMPLES: &str = "Examples:
  ringflake store check                      # leases.db in the data directory
  ringflake store ls --store URL --namespace orders

Without --store, the commands use leases.db in the data directory.";

/// Manage the stores that leases come from
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum StoreCommand {
    Init(InitArgs),
    Check(CheckArgs),
    Ls(LsArgs),
    RaiseFloor(RaiseFloorArgs),
    Release(ReleaseArgs),
    Repair(RepairArgs),
}

pub(crate) fn run(command: &StoreCommand, data_dir: &DataDir) -> Result<()> {
    match command {
        StoreCommand::Init(args) => init::run(args, data_dir),
        StoreCommand::Check(args) => check::run(args, data_dir),
        StoreCommand::Ls(args) => ls::run(args, data_dir),
        StoreCommand::RaiseFloor(args) => raise_floor::run(args, data_dir),
        StoreCommand::Release(args) => release::run(args, data_dir),
        StoreCommand::Repair(args) => repair::run(args, data_dir),
    }
}
