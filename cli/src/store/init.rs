//! `ringflake store init`: makes the record of a namespace.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use ringflake::lease::{History, Init, LeasePlan, StoreLimits};
use ringflake::{CachedGeneratorBuilder, Clock, Local, SystemClock};
use serde::Serialize;

use super::open_store::CommonArgs;
use super::parts::{self, Moment};
use crate::args::time;
use crate::data_dir::DataDir;
use crate::leases::StoreTarget;
use crate::output;
use crate::report::say;
use crate::usage::Misuse;

const DETAILS: &str = "Examples:
  ringflake store init --history new --store URL --namespace orders
  ringflake store init --history unknown     # after leases.db was lost

The layout, the block size and the secret of a namespace never change.

--history:
  new      no ID of this layout and secret was issued at the present time or
           later; leases start at once
  unused   no ID of this layout and secret was ever issued; leases start at
           once, and past rows can be imported
  unknown  IDs were issued, and their record is lost; leases start above all
           of them, --horizon ahead of the clock and after --failover
If in doubt it is unknown: a wrong new or unused issues IDs twice.

JSON: namespace, layout, block_nodes, blocks, history, horizon_ms, failover_ms,
skew_limit_ms, floor with tick, unix_ms and time (RFC 3339)";

/// Initialise a namespace, once for all who share it
#[derive(Debug, Args)]
#[command(after_long_help = DETAILS)]
pub(crate) struct InitArgs {
    /// Whether IDs were issued before: see below. There is no default
    #[arg(long, value_enum, value_name = "HISTORY")]
    history: Option<KnownHistory>,
    /// How far ahead of the store's time a lease may end; the pause after a lost history
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
    /// No ID was issued yet
    New,
    /// No ID of any time was ever issued
    Unused,
    /// IDs were issued, and their record is lost
    Unknown,
}

#[derive(Serialize)]
struct Object<'a> {
    namespace: &'a str,
    layout: String,
    block_nodes: u64,
    blocks: u64,
    history: &'a str,
    horizon_ms: u128,
    failover_ms: u128,
    skew_limit_ms: u128,
    floor: Moment,
}

/// What these limits cost generators that leave the rest at its defaults, if anything.
/// `fits` is what goes with those.
fn warning_of_a_gap(limits: &StoreLimits, fits: &StoreLimits) -> Option<String> {
    let (duration, borrow_limit) = if *fits == StoreLimits::default() {
        (
            LeasePlan::default().lease_duration,
            CachedGeneratorBuilder::STORE_BORROW_LIMIT,
        )
    } else {
        // Local ones are covered for as long as can be, and borrow as far as leases reach.
        (fits.horizon(), fits.horizon() + fits.failover())
    };
    let gap = limits.gap(duration, borrow_limit);
    if gap.is_zero() {
        return None;
    }
    let (most, enough) = (limits.horizon(), borrow_limit + gap);
    let advice = if limits.gap(duration, enough).is_zero() {
        format!("give them a borrow limit of {}", words(enough))
    } else {
        format!(
            "with a borrow limit of {}, and more is of no use, for up to {}",
            words(most),
            words(limits.gap(duration, most))
        )
    };
    Some(format!(
        "warning: after a failover, or whatever else looks like a lost history, generators with \
         the default lease duration of {} and borrow limit of {} have no IDs for up to {}: {advice}; a \
         namespace with the default --horizon {} and --failover {} would not need that",
        words(duration),
        words(borrow_limit),
        words(gap),
        words(fits.horizon()),
        words(fits.failover()),
    ))
}

/// In whole seconds, rounded up.
fn words(time: Duration) -> humantime::FormattedDuration {
    let part = Duration::from_nanos(999_999_999);
    humantime::format_duration(Duration::from_secs(time.saturating_add(part).as_secs()))
}

pub(super) fn run(args: &InitArgs, data_dir: &DataDir) -> Result<ExitCode> {
    let (history, word) = match args.history {
        Some(KnownHistory::New) => (History::New, "new"),
        Some(KnownHistory::Unused) => (History::Unused, "unused"),
        Some(KnownHistory::Unknown) => (History::Unknown, "unknown"),
        None => {
            let text = "--history is missing\n\
                        help: give --history new if no ID of this layout and secret was ever \
                        issued, and --history unknown if in doubt";
            return Err(Misuse(text.to_owned()).into());
        }
    };
    let target = StoreTarget::to_initialise(&args.common.target, data_dir)?;
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
    if let Some(warning) = warning_of_a_gap(&limits, &defaults) {
        say(warning);
    }

    let namespace = &record.namespace;
    let object = Object {
        namespace: namespace.name(),
        layout: namespace.layout().to_string(),
        block_nodes: namespace.block_nodes(),
        blocks: namespace.blocks(),
        history: word,
        horizon_ms: record.limits.horizon().as_millis(),
        failover_ms: record.limits.failover().as_millis(),
        skew_limit_ms: record.limits.skew().as_millis(),
        floor: Moment::new(namespace.layout(), record.floor),
    };
    let rows = [
        ("namespace", object.namespace.to_owned()),
        ("layout", object.layout.clone()),
        (
            "blocks",
            format!("{} of {} nodes", object.blocks, object.block_nodes),
        ),
        ("limits", parts::limits(&record.limits)),
        ("history", object.history.to_owned()),
        ("floor", object.floor.in_words()),
    ];
    output::answer(|out| output::print(out, args.common.output.format, &object, rows))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use ringflake::Layout;

    use super::*;

    #[test]
    fn a_gap_is_told_with_what_bridges_it() {
        let limits = StoreLimits::default();
        let secs = Duration::from_secs;
        assert_eq!(warning_of_a_gap(&limits, &limits), None);
        for (limits, said) in [
            (
                limits.with_horizon(secs(1200)),
                "up to 8m 52s: give them a borrow limit of 13m 2s;",
            ),
            // More than may be borrowed at all.
            (
                limits.with_failover(secs(600)),
                "up to 8m 52s: with a borrow limit of 11m, and more is of no use, for up to 2m 32s;",
            ),
            (
                limits.with_horizon(Duration::from_millis(671_500)),
                "up to 4s: give them a borrow limit of 4m 14s;",
            ),
        ] {
            let warning = warning_of_a_gap(&limits, &StoreLimits::default()).unwrap();
            for said in [
                said,
                "lease duration of 10m and borrow limit of 4m 10s",
                "--horizon 11m and --failover 1m",
            ] {
                assert!(warning.contains(said), "{warning}");
            }
        }
    }

    #[test]
    fn local_limits_have_defaults_of_their_own() {
        let fits = Local::limits(&Layout::RANDFLAKE);
        assert_eq!(warning_of_a_gap(&fits, &fits), None);
        let longer = fits.with_horizon(Duration::from_secs(1200));
        let warning = warning_of_a_gap(&longer, &fits).unwrap();
        for said in [
            "lease duration of 2m and borrow limit of 2m 2s have no IDs for up to 16m 26s",
            "give them a borrow limit of 18m 28s;",
            "--horizon 2m and --failover 2s",
        ] {
            assert!(warning.contains(said), "{warning}");
        }
    }
}
