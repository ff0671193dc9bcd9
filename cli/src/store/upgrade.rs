//! `ringflake store upgrade`: brings a record into the present format.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::open_store::{CommonArgs, OpenStore};
use crate::data_dir::DataDir;
use crate::output;

/// Bring a namespace's record into the format that this version writes
///
/// Once for each namespace, and before anything of this version leases from it. What
/// still runs of the version before ends with the leases that it has: renewed every
/// minute or so, they reach for some minutes, which is the time to replace it in.
/// In a file of SQLite that goes for all of its namespaces at once.
/// A record that is in the present format is left as it is. leases.db in the data
/// directory is upgraded by the first run that makes IDs.
///
/// JSON: namespace, upgraded
#[derive(Debug, Args)]
pub(crate) struct UpgradeArgs {
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Serialize)]
struct Object<'a> {
    namespace: &'a str,
    upgraded: bool,
}

pub(super) fn run(args: &UpgradeArgs, data_dir: &DataDir) -> Result<ExitCode> {
    let mut open = OpenStore::open(&args.common, data_dir)?;
    let namespace = open.target.namespace.clone();
    let former = open.target.key.former_fingerprint(namespace.name());
    let upgraded = open.store.upgrade(&namespace, former);
    let object = Object {
        namespace: namespace.name(),
        upgraded: open.explained(upgraded)?,
    };
    let rows = [
        ("namespace", object.namespace.to_owned()),
        (
            "upgraded",
            if object.upgraded { "yes" } else { "no need" }.to_owned(),
        ),
    ];
    output::answer(|out| output::print(out, args.common.output.format, &object, rows))?;
    Ok(ExitCode::SUCCESS)
}
