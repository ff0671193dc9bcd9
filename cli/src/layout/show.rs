//! `ringflake layout show`: what a layout is, and how long it lives.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringflake::{Clock, Id, Layout, SystemClock, plan};

use crate::format::FormatArgs;
use crate::output::Answer;
use crate::timestamp::{exact, in_words};
use crate::units::{self, grouped, short};

/// Show what a layout is, what it can do, and how long it lives
///
/// JSON: layout, name (null where it has none), time_bits, node_bits, sequence_bits,
/// total_bits, tick_ms, begins_unix_ms, begins, ends_unix_ms, ends (RFC 3339; null after
/// the year 9999), remaining_ms, nodes, sustained_per_node, sustained (IDs a second),
/// burst_per_node, example (base32hex), example_u64, example_tick
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// A name such as twitter, or time/node/sequence@epoch/tick such as
    /// 28/22/13@2026-01-01T00:00:00Z/1s
    #[arg(value_name = "NAME|SPEC")]
    layout: Layout,
    #[command(flatten)]
    output: FormatArgs,
}

/// The slots and the milliseconds that a generator has and borrows by default.
const CAPACITY: u64 = 1 << 16;
const BORROW_LIMIT_MS: u64 = 60_000;

/// What remains of the life, in milliseconds.
fn remaining_ms(layout: &Layout, now_unix_ms: u64) -> u64 {
    let begins = layout.epoch_unix_ms().max(now_unix_ms);
    layout.end_unix_ms().saturating_sub(begins)
}

/// The tick of now, or of the end of the life that is nearer.
fn example_tick(layout: &Layout, now_unix_ms: u64) -> u64 {
    let tick = layout.tick_at(now_unix_ms).unwrap_or(0);
    tick.min(layout.ticks() - 1)
}

fn answer(layout: &Layout, now_unix_ms: u64) -> Result<Answer> {
    let (begins, ends) = (layout.epoch_unix_ms(), layout.end_unix_ms());
    let mut answer = Answer::default();
    answer.text("layout", layout);
    answer.row("name", layout.name().unwrap_or("none"));
    answer.field("name", layout.name());
    let (time, node, sequence) = (
        layout.time_bits(),
        layout.node_bits(),
        layout.sequence_bits(),
    );
    let total = layout.total_bits();
    answer.row(
        "bits",
        format!("{total}: {time} time, {node} node, {sequence} sequence"),
    );
    answer.field("time_bits", time);
    answer.field("node_bits", node);
    answer.field("sequence_bits", sequence);
    answer.field("total_bits", total);
    answer.row("plain IDs", plain_in_words(total));
    answer.field("tick_ms", layout.tick_ms());
    for (name, unix_ms) in [("begins", begins), ("ends", ends)] {
        answer.row(name, in_words(unix_ms));
        answer.field(name, exact(unix_ms));
        answer.field(&format!("{name}_unix_ms"), unix_ms);
    }
    let remaining = remaining_ms(layout, now_unix_ms);
    match remaining {
        0 => answer.row("remaining", "nothing: it has ended"),
        ms => {
            let [rest, whole] = [ms, ends - begins].map(|ms| units::time(ms as f64 / 1e3));
            answer.row("remaining", format!("{rest} of {whole}"));
        }
    }
    answer.field("remaining_ms", remaining);
    answer.row(
        "nodes",
        format!("{}, numbered from 0", grouped(layout.nodes())),
    );
    answer.field("nodes", layout.nodes());
    let (of_one, of_all) = (
        plan::sustained(layout, 1),
        plan::sustained(layout, layout.nodes()),
    );
    answer.row(
        "sustained",
        format!(
            "{} IDs/s a node, {} IDs/s on all",
            short(of_one),
            short(of_all)
        ),
    );
    answer.field("sustained_per_node", of_one);
    answer.field("sustained", of_all);
    let borrowed = layout
        .sequences()
        .saturating_mul(BORROW_LIMIT_MS / layout.tick_ms());
    let burst = borrowed.saturating_add(CAPACITY);
    answer.row(
        "burst",
        format!(
            "{} IDs a node, from a ring of {} and {} s borrowed",
            short(burst as f64),
            grouped(CAPACITY),
            BORROW_LIMIT_MS / 1_000
        ),
    );
    answer.field("burst_per_node", burst);
    let tick = example_tick(layout, now_unix_ms);
    let example = Id::from_u64(layout.pack(tick, 1, 0)?);
    answer.row(
        "example",
        format!(
            "{example} ({}), tick {tick} of node 1, plain",
            example.to_u64()
        ),
    );
    answer.field("example", example.to_string());
    answer.field("example_u64", example.to_u64());
    answer.field("example_tick", tick);
    Ok(answer)
}

fn plain_in_words(total_bits: u32) -> &'static str {
    match total_bits {
        ..=53 => "positive as signed numbers, exact as doubles",
        54..=63 => "positive as signed numbers",
        _ => "negative as signed numbers in the second half of the life",
    }
}

pub(super) fn run(args: &ShowArgs) -> Result<ExitCode> {
    answer(&args.layout, SystemClock.unix_ms())?.show(args.output.format)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_of_now_or_of_the_nearer_end() {
        let layout = Layout::BAIDU_2026;
        let tick = |now| example_tick(&layout, now);
        assert_eq!(tick(0), 0);
        assert_eq!(tick(layout.epoch_unix_ms() + 7_000), 7);
        assert_eq!(tick(u64::MAX), layout.ticks() - 1);
    }

    #[test]
    fn what_remains_is_no_more_than_the_life() {
        let layout = Layout::BAIDU_2026;
        let life = layout.end_unix_ms() - layout.epoch_unix_ms();
        for (now, remaining) in [(0, life), (layout.end_unix_ms() - 5, 5), (u64::MAX, 0)] {
            assert_eq!(remaining_ms(&layout, now), remaining);
        }
    }
}
