//! `ringflake store raise-floor`: lets leases begin later.

use std::io::{self, Write};

use anyhow::{Context, Result, bail};
use clap::Args;
use ringflake::lease::{Floor, LeaseStore, Namespace, OpenOptions, SqliteStore};
use ringflake::{Clock, SystemClock, shell_quoted as quoted};

use super::open_store::{CommonArgs, OpenStore};
use super::parts::Moment;
use crate::count::count;
use crate::data_dir::DataDir;
use crate::output::{self, Answer};
use crate::usage::Misuse;

const DETAILS: &str = "Examples:
  ringflake store raise-floor --over-lost-grants --all  # adopt a copy of leases.db
  ringflake store raise-floor --to-tick 50000000

Use --over-lost-grants after a restore that the store can't detect, and to adopt a
copy once nobody uses the original any more; the store's clock must be right. The
floor is never lowered: a --to-tick far ahead stops all leases until that time, and
needs --force.

JSON: namespace, old_floor and new_floor, each with tick, unix_ms and time (RFC 3339);
with --all a line for each namespace";

/// Raise the floor: no lease starts before it
#[derive(Args)]
#[command(after_long_help = DETAILS)]
pub(crate) struct RaiseFloorArgs {
    #[command(flatten)]
    to: ToArgs,
    /// With --to-tick: however far it lies ahead, and whatever the clocks show
    #[arg(long, requires = "to_tick", conflicts_with = "over_lost_grants")]
    force: bool,
    /// With --over-lost-grants: of every namespace in leases.db, or in the file that --store
    /// names
    #[arg(
        long,
        requires = "over_lost_grants",
        conflicts_with_all = ["namespace", "layout", "block_bits", "secret_file", "plain", "id_width"]
    )]
    all: bool,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ToArgs {
    /// Above all that a lost lease can reach
    #[arg(long)]
    over_lost_grants: bool,
    /// To this tick since the layout's epoch
    #[arg(long, value_name = "N", value_parser = count::<u64>(0..=u64::MAX))]
    to_tick: Option<u64>,
}

pub(super) fn run(args: &RaiseFloorArgs, data_dir: &DataDir) -> Result<()> {
    if args.all {
        return raise_all(args, data_dir);
    }
    let mut open = OpenStore::open(&args.common, data_dir)?;
    let report = open.ask(|store, namespace, now| store.check(namespace, now))?;
    let floor = match args.to.to_tick {
        None => Floor::OverLostGrants,
        Some(tick) if args.force => Floor::AnyTick(tick),
        Some(tick) => Floor::Tick(tick),
    };
    let raised = open.ask(|store, namespace, now| store.raise_floor(namespace, floor, now))?;
    let floors = (report.record.floor, raised);
    output::answer(|out| print(out, args, &open.target.namespace, floors))
}

/// Raises the floors of all namespaces in a file. Their records say all that is needed.
fn raise_all(args: &RaiseFloorArgs, data_dir: &DataDir) -> Result<()> {
    let store = &args.common.target.store;
    let options = OpenOptions::new().accept_best_effort(store.accepts_best_effort()?);
    let url = store.url();
    if url.is_some()
        && let Some(directory) = data_dir.given()
    {
        let (found, without) = match store.is_from_environment() {
            true => ("RINGFLAKE_STORE names a store", "RINGFLAKE_STORE= "),
            false => ("--store names a store", ""),
        };
        let directory = quoted(directory.display());
        return Err(Misuse(format!(
            "which file --all means is not clear: {found}, and --data-dir a directory\n\
             help: for leases.db in that directory, run '{without}ringflake store raise-floor \
             --over-lost-grants --all --data-dir {directory}{}'\n\
             help: for the store, leave out --data-dir",
            store.best_effort_word()
        ))
        .into());
    }
    let mut file = match url {
        None => SqliteStore::new(data_dir.find()?.leases(), &options)?,
        Some(url) => SqliteStore::from_url(&url, &options).context(
            "--all is for leases.db or another sqlite: store; otherwise give --namespace",
        )?,
    };
    if !file.path().exists() {
        bail!("{} does not exist", file.path().display());
    }
    let mut old_floors = Vec::new();
    for namespace in file.namespaces()? {
        old_floors.push(file.list(&namespace)?.record.floor);
    }
    let raised = file.raise_all_floors(SystemClock.unix_ms())?;
    output::answer(|out| {
        let mut floors = old_floors.iter().zip(&raised);
        floors.try_for_each(|(&old, (namespace, new))| print(out, args, namespace, (old, *new)))
    })
}

fn print(
    out: &mut dyn Write,
    args: &RaiseFloorArgs,
    namespace: &Namespace,
    (old_floor, new_floor): (u64, u64),
) -> io::Result<()> {
    let mut answer = Answer::default();
    answer.text("namespace", namespace.name());
    for (title, name, floor) in [
        ("old floor", "old_floor", old_floor),
        ("new floor", "new_floor", new_floor),
    ] {
        Moment::new(namespace.layout(), floor).add_to(&mut answer, title, name);
    }
    answer.print(out, args.common.output.format)
}
