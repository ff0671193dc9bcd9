//! `ringflake layout`: finds a layout, shows one, and prints SQL for one.

use anyhow::Result;
use clap::{Args, Subcommand};
use ringflake::Layout;

use self::advice::NeedsArgs;
use self::sql::SqlArgs;
use crate::format::FormatArgs;

mod advice;
mod sql;

const DETAILS: &str = "Examples:
  ringflake layout --years 30 --nodes 500 --rate 200k
  ringflake layout show positive
  ringflake layout sql positive

The answer has a layout of 64 bits, one of 63 (positive as signed numbers) and one of
53 (exact in JavaScript). Each has numbers for twice the nodes, so that all can be
killed and restarted at once. 'ringflake layout show' prints the same columns for one
layout, with all its nodes.

JSON, one object: layouts, a list with an object for each width: bits, layout (null
where there is none, and refused has the reason), ends_unix_ms, ends, nodes,
sustained_per_node and sustained (IDs a second)";

/// Find a layout for a lifetime, a number of nodes and a load
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_long_help = DETAILS)]
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

/// Show a layout: when it ends, its nodes, and how many IDs a second they can sustain
#[derive(Debug, Args)]
struct ShowArgs {
    /// A name such as twitter, or time/node/sequence@epoch/tick such as
    /// 28/22/13@2026-01-01T00:00:00Z/1s
    #[arg(value_name = "NAME|SPEC")]
    layout: Layout,
    #[command(flatten)]
    output: FormatArgs,
}

pub(crate) fn run(args: &LayoutCommand) -> Result<()> {
    match (&args.command, &args.needs) {
        (Some(LayoutSubcommand::Show(args)), _) => {
            advice::show_one(args.layout, args.output.format)
        }
        (Some(LayoutSubcommand::Sql(args)), _) => sql::run(args),
        (None, Some(needs)) => advice::run(needs, args.output.format),
        (None, None) => unreachable!("clap asks for what is missing"),
    }
}
