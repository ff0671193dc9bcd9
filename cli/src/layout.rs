//! `ringflake layout`: finds a layout, shows one, and prints SQL for one.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

use self::advice::NeedsArgs;
use self::show::ShowArgs;
use self::sql::SqlArgs;
use crate::format::FormatArgs;

mod advice;
mod show;
mod sql;

/// Find a layout for a life, nodes and a load
///
/// The bits of an ID are divided among time, node and sequence: a longer life, more nodes
/// and a higher rate take them from each other. Answers with a layout of 64 bits, one of
/// 63, which plain IDs need to stay positive as signed numbers, and one of 53, which a
/// JavaScript number holds. Each has numbers for twice the nodes: all may be killed at once
/// and start again while their old leases last.
///
/// JSON, one object: layouts, a list with an object for each width: bits, layout (null where
/// there is none, and refused says why), ends_unix_ms, ends, nodes, sustained_per_node and
/// sustained (IDs a second)
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct LayoutCommand {
    #[command(flatten)]
    needs: Option<NeedsArgs>,
    #[command(flatten)]
    output: FormatArgs,
    #[command(subcommand)]
    command: Option<LayoutSubcommand>,
}

#[derive(Debug, Subcommand)]
enum LayoutSubcommand {
    Show(ShowArgs),
    Sql(SqlArgs),
}

pub(crate) fn run(args: &LayoutCommand) -> Result<ExitCode> {
    match (&args.command, &args.needs) {
        (Some(LayoutSubcommand::Show(args)), _) => show::run(args),
        (Some(LayoutSubcommand::Sql(args)), _) => sql::run(args),
        (None, Some(needs)) => advice::run(needs, args.output.format),
        // clap has asked for what is missing.
        (None, None) => Ok(ExitCode::from(2)),
    }
}
