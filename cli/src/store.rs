//! `ringflake store`: looks after the stores that leases come from.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use ringflake::lease::{LeaseStore, StoreError};
use ringflake::{Clock, SystemClock};

use self::bump_floor::BumpFloorArgs;
use self::check::CheckArgs;
use self::init::InitArgs;
use self::ls::LsArgs;
use self::release::ReleaseArgs;
use self::repair::RepairArgs;
use self::upgrade::UpgradeArgs;
use crate::args::PlaceArgs;
use crate::data_dir::DataDir;
use crate::leases::Place;
use crate::report::forgive_closed_pipe;

mod bump_floor;
mod check;
mod init;
mod ls;
mod output;
mod release;
mod repair;
mod upgrade;

/// Look after the stores that leases come from
///
/// A namespace is an ID space: a layout, a block size and a secret, for ever. Its
/// store leases blocks of nodes, each for an interval of time. By default these
/// commands are about leases.db in the data directory, and there about --namespace,
/// or without one about that of --layout, --plain and the secret.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    Init(InitArgs),
    Check(CheckArgs),
    Ls(LsArgs),
    BumpFloor(BumpFloorArgs),
    Release(ReleaseArgs),
    Repair(RepairArgs),
    Upgrade(UpgradeArgs),
}

/// What these commands share.
#[derive(Debug, Args)]
struct CommonArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// How the answer is written
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Aligned, for reading
    Table,
    /// One object a line
    Json,
}

pub(crate) fn run(command: &StoreCommand, data_dir: &DataDir) -> Result<ExitCode> {
    match command {
        StoreCommand::Init(args) => init::run(args, data_dir),
        StoreCommand::Check(args) => check::run(args, data_dir),
        StoreCommand::Ls(args) => ls::run(args, data_dir),
        StoreCommand::BumpFloor(args) => bump_floor::run(args, data_dir),
        StoreCommand::Release(args) => release::run(args, data_dir),
        StoreCommand::Repair(args) => repair::run(args, data_dir),
        StoreCommand::Upgrade(args) => upgrade::run(args, data_dir),
    }
}

/// A store at hand.
struct Desk {
    place: Place,
    store: Box<dyn LeaseStore>,
    now_unix_ms: u64,
}

impl Desk {
    /// The store as `args` name it. Its file must exist where it is one of ours.
    fn open(args: &CommonArgs, data_dir: &DataDir) -> Result<Self> {
        let place = Place::to_look_after(&args.place, data_dir)?;
        if place.file().is_some_and(|path| !path.exists()) {
            return Err(place.explain(StoreError::NotInitialised {
                namespace: place.namespace.name().to_owned(),
            }));
        }
        Self::at(place)
    }

    fn at(place: Place) -> Result<Self> {
        Ok(Self {
            store: place.open()?,
            place,
            now_unix_ms: SystemClock.unix_ms(),
        })
    }

    /// What the store answers, or what to do about its refusal.
    fn explained<T>(&self, answer: Result<T, StoreError>) -> Result<T> {
        answer.map_err(|error| self.place.explain(error))
    }
}

/// Prints with `print`, to stdout.
fn answer(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    forgive_closed_pipe(print(&mut out).and_then(|()| out.flush()))
}
