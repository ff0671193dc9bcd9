//! `ringflake store raise-floor`: lets leases begin later.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringflake::lease::Floor;
use serde::Serialize;

use super::open_store::{CommonArgs, OpenStore};
use super::parts::Moment;
use crate::count::count;
use crate::data_dir::DataDir;
use crate::output;

/// Raise the floor: no lease begins before it
///
/// After a restore that the store can't notice by itself, and to take a copy of
/// leases.db into use: once nobody uses the original any more, for good, run this
/// with --over-lost-grants. Leases then begin above all that the original can have
/// granted: the store's horizon ahead of the clock, and after its failover time.
/// The floor is never lowered, so a wrong --to-tick can't be taken back: until the
/// horizon reaches it no lease is given. One above all that was ever leased is refused
/// therefore, unless it is forced, and so are clocks of store and machine that differ
/// by more than the store's limit: one of them says how far ahead a tick lies.
///
/// JSON: namespace, old_floor and new_floor, each with tick, unix_ms and time (RFC
/// 3339)
#[derive(Debug, Args)]
pub(crate) struct RaiseFloorArgs {
    #[command(flatten)]
    to: ToArgs,
    /// With --to-tick: however far it lies ahead, and whatever the clocks show
    #[arg(long, requires = "to_tick", conflicts_with = "over_lost_grants")]
    force: bool,
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

#[derive(Serialize)]
struct Object<'a> {
    namespace: &'a str,
    old_floor: Moment,
    new_floor: Moment,
}

pub(super) fn run(args: &RaiseFloorArgs, data_dir: &DataDir) -> Result<ExitCode> {
    let mut open = OpenStore::open(&args.common, data_dir)?;
    let namespace = open.target.namespace.clone();
    let report = open.store.check(&namespace, open.now_unix_ms);
    let old_floor = open.explained(report)?.record.floor;
    let floor = match args.to.to_tick {
        None => Floor::OverLostGrants,
        Some(tick) if args.force => Floor::AnyTick(tick),
        Some(tick) => Floor::Tick(tick),
    };
    let raised = open.store.raise_floor(&namespace, floor, open.now_unix_ms);
    let object = Object {
        namespace: namespace.name(),
        old_floor: Moment::new(namespace.layout(), old_floor),
        new_floor: Moment::new(namespace.layout(), open.explained(raised)?),
    };
    let rows = [
        ("namespace", object.namespace.to_owned()),
        ("old floor", object.old_floor.in_words()),
        ("new floor", object.new_floor.in_words()),
    ];
    output::answer(|out| output::print(out, args.common.output.format, &object, rows))?;
    Ok(ExitCode::SUCCESS)
}
