//! `ringflake layout sql`: PostgreSQL functions that read the plain IDs of a layout.

use anyhow::Result;
use clap::Args;
use ringflake::Layout;

use crate::output;
use crate::timestamp::{END_OF_9999_UNIX_MS, exact};
use crate::usage::Misuse;

const EXAMPLES: &str = "Examples:
  ringflake layout sql positive | psql orders

Only for plain IDs of at most 63 bits, and PostgreSQL 14 or later. No extension and no
special privilege is needed.";

/// Print functions for PostgreSQL that read plain IDs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SqlArgs {
    /// A name such as positive, or time/node/sequence@epoch/tick such as
    /// 41/10/12@2026-01-01T00:00:00Z/1ms
    #[arg(value_name = "NAME|SPEC")]
    layout: Layout,
}

/// Bits that a BIGINT has beside its sign.
const SIGNED_BITS: u32 = 63;

pub(super) fn run(args: &SqlArgs) -> Result<()> {
    let SqlArgs { layout } = *args;
    if let Some(problem) = problem(&layout) {
        return Err(Misuse(format!("layout {layout} {problem}")).into());
    }
    let text = text(&layout);
    output::answer(|out| out.write_all(text.as_bytes()))
}

fn command(layout: &Layout) -> String {
    let layout = layout
        .name()
        .map_or_else(|| layout.to_string(), str::to_owned);
    format!("ringflake layout sql {layout}")
}

/// Why no SQL can read the IDs of this layout, and what to do.
fn problem(layout: &Layout) -> Option<&'static str> {
    if layout.total_bits() > SIGNED_BITS {
        Some(
            "has 64 bits: its IDs are negative in a BIGINT in the second half of its life, and \
             do not sort by time there\n\
             help: for new IDs, choose a layout of at most 63 bits, such as positive",
        )
    } else if layout.end_unix_ms() >= END_OF_9999_UNIX_MS {
        Some(
            "ends after the year 9999, which is the last one of dates in SQL\n\
             help: for new IDs, choose fewer time bits, a shorter tick or an earlier epoch",
        )
    } else {
        None
    }
}

fn text(layout: &Layout) -> String {
    const TEMPLATE: &str = include_str!("postgres.sql");
    let (epoch_ms, tick_ms) = (layout.epoch_unix_ms(), layout.tick_ms());
    let last_tick_ms = layout.tick_start_unix_ms(layout.ticks() - 1);
    let tick_ids = layout.nodes() * layout.sequences();
    let last_id = (layout.ticks() - 1) * tick_ids + (tick_ids - 1);
    let above_all = last_id + u64::from(layout.total_bits() < SIGNED_BITS);
    let values = [
        ("{command}", command(layout)),
        ("{layout}", layout.to_string()),
        ("{total_bits}", layout.total_bits().to_string()),
        ("{time_bits}", layout.time_bits().to_string()),
        ("{node_bits}", layout.node_bits().to_string()),
        ("{sequence_bits}", layout.sequence_bits().to_string()),
        ("{nodes}", layout.nodes().to_string()),
        ("{sequences}", layout.sequences().to_string()),
        ("{tick_ms}", tick_ms.to_string()),
        ("{tick_us}", (tick_ms * 1_000).to_string()),
        ("{epoch}", utc(epoch_ms)),
        ("{epoch_us}", (epoch_ms * 1_000).to_string()),
        ("{last_tick}", utc(last_tick_ms)),
        ("{end}", utc(layout.end_unix_ms())),
        ("{tick_ids}", tick_ids.to_string()),
        ("{last_id}", last_id.to_string()),
        ("{above_all}", above_all.to_string()),
    ];
    let fill = |text: String, (name, value): &(&str, String)| text.replace(name, value);
    values.iter().fold(TEMPLATE.to_owned(), fill)
}

/// A moment in UTC, with milliseconds where there are any.
fn utc(unix_ms: u64) -> String {
    let text = exact(unix_ms).unwrap_or_default();
    text.trim_end_matches('Z').replace('T', " ")
}
