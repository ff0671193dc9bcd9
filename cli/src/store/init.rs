//! `ringflake store init`: makes the record of a namespace.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use ringflake::lease::{History, Init, StoreLimits};
use ringflake::{Clock, Local, SystemClock};

use super::open_store::CommonArgs;
use super::parts::{self, Moment};
use crate::args::time;
use crate::data_dir::DataDir;
use crate::leases::{Purpose, StoreTarget};
use crate::output::Answer;
use crate::usage::Misuse;

const DETAILS: &str = "Examples:
  ringflake store init --history new --store URL --namespace orders
  ringflake store init --history unknown     # after leases.db was lost

The layout, the block size and the secret of a namespace never change.

--history:
  new      no ID with a present or future time was issued with this layout
           and secret; leases start at once
  unused   no ID at all was issued with them; leases start at once, and past
           rows can be imported
  unknown  anything else, or in doubt; leases start above all that may have
           been issued, --horizon ahead of the clock and after --failover: the
           clock must be right, and neither shorter than before
A wrong new or unused issues IDs twice.

JSON: namespace, layout, block_nodes, blocks, history, horizon_ms, failover_ms,
skew_limit_ms, floor with tick, unix_ms and time (RFC 3339)";

/// Initialise a namespace, once for all who share it
#[derive(Args)]
#[command(after_long_help = DETAILS)]
pub(crate) struct InitArgs {
    /// Whether IDs were issued before: see below. There is no default
    #[arg(long, value_enum, value_name = "HISTORY")]
    history: Option<KnownHistory>,
    /// How far ahead of the store's time a lease may end; after a lost history, new leases begin that far ahead
    /// [default: 11min, in leases.db 2min]
    #[arg(long, value_name = "TIME", value_parser = time)]
    horizon: Option<Duration>,
    /// How long a primary that was superseded can still grant leases, plus twice
    /// the skew [default: 1min, in leases.db 2s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    failover: Option<Duration>,
    /// How far the clocks of store and client may be apart [default: 5s, in
    /// leases.db 1s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    skew: Option<Duration>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KnownHistory {
    /// No ID with a present or future time was issued
    New,
    /// No ID at all was issued
    Unused,
    /// Anything else, or in doubt
    Unknown,
}

pub(super) fn run(args: &InitArgs, data_dir: &DataDir) -> Result<()> {
    let (history, word) = match args.history {
        Some(KnownHistory::New) => (History::New, "new"),
        Some(KnownHistory::Unused) => (History::Unused, "unused"),
        Some(KnownHistory::Unknown) => (History::Unknown, "unknown"),
        None => {
            let text = "--history is missing\n\
                        help: give --history new if no ID with a present or future time was \
                        issued with this layout and secret, and --history unknown if in doubt";
            return Err(Misuse(text.to_owned()).into());
        }
    };
    let target = StoreTarget::find(&args.common.target, data_dir, Purpose::Initialise)?;
    let defaults = if target.file().is_some() {
        Local::limits(target.namespace.layout())
    } else {
        StoreLimits::default()
    };
    let limits = defaults
        .with_horizon(args.horizon.unwrap_or(defaults.horizon()))
        .with_failover(args.failover.unwrap_or(defaults.failover()))
        .with_skew(args.skew.unwrap_or(defaults.skew()));
    let init = Init::new(history, SystemClock.unix_ms()).with_limits(limits);
    let record = target.init(init)?;

    let mut answer = Answer::default();
    parts::add_record(&mut answer, &record, "");
    answer.text("history", word);
    Moment::new(record.namespace.layout(), record.floor).add_to(&mut answer, "floor", "floor");
    answer.show(args.common.output.format)
}
