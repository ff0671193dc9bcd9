//! `ringflake layout show`: what a layout is, and how long it lives.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringflake::{Clock, Id, Layout, SystemClock, plan};
use serde::Serialize;

use crate::format::FormatArgs;
use crate::output;
use crate::timestamp::{exact, in_words};
use crate::units::{grouped, short, time};

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

#[derive(Serialize)]
struct Object {
    layout: String,
    name: Option<&'static str>,
    time_bits: u32,
    node_bits: u32,
    sequence_bits: u32,
    total_bits: u32,
    tick_ms: u64,
    begins_unix_ms: u64,
    begins: Option<String>,
    ends_unix_ms: u64,
    ends: Option<String>,
    remaining_ms: u64,
    nodes: u64,
    sustained_per_node: f64,
    sustained: f64,
    burst_per_node: u64,
    example: String,
    example_u64: u64,
    example_tick: u64,
}

/// The slots and the milliseconds that a generator has and borrows by default.
const CAPACITY: u64 = 1 << 16;
const BORROW_LIMIT_MS: u64 = 60_000;

impl Object {
    fn new(layout: &Layout, now_unix_ms: u64) -> Result<Self> {
        let remaining = layout.remaining_lifetime(now_unix_ms);
        let life_ms = layout.end_unix_ms() - layout.epoch_unix_ms();
        // Of now, or of the end of the life that is nearer.
        let tick = layout
            .tick_at(now_unix_ms)
            .unwrap_or(0)
            .min(layout.ticks() - 1);
        let example = Id::from_u64(layout.pack(tick, 1, 0)?);
        let borrowed = BORROW_LIMIT_MS / layout.tick_ms();
        let borrowed = layout.sequences().saturating_mul(borrowed);
        Ok(Self {
            layout: layout.to_string(),
            name: layout.name(),
            time_bits: layout.time_bits(),
            node_bits: layout.node_bits(),
            sequence_bits: layout.sequence_bits(),
            total_bits: layout.total_bits(),
            tick_ms: layout.tick_ms(),
            begins_unix_ms: layout.epoch_unix_ms(),
            begins: exact(layout.epoch_unix_ms()),
            ends_unix_ms: layout.end_unix_ms(),
            ends: exact(layout.end_unix_ms()),
            remaining_ms: u64::try_from(remaining.as_millis())?.min(life_ms),
            nodes: layout.nodes(),
            sustained_per_node: plan::sustained(layout, 1),
            sustained: plan::sustained(layout, layout.nodes()),
            burst_per_node: borrowed.saturating_add(CAPACITY),
            example: example.to_string(),
            example_u64: example.to_u64(),
            example_tick: tick,
        })
    }

    fn rows(&self) -> [(&'static str, String); 11] {
        let life = self.ends_unix_ms - self.begins_unix_ms;
        let in_time = |ms: u64| time(ms as f64 / 1e3);
        let remaining = match self.remaining_ms {
            0 => "nothing: it has ended".to_owned(),
            ms => format!("{} of {}", in_time(ms), in_time(life)),
        };
        [
            ("layout", self.layout.clone()),
            ("name", self.name.unwrap_or("none").to_owned()),
            (
                "bits",
                format!(
                    "{}: {} time, {} node, {} sequence",
                    self.total_bits, self.time_bits, self.node_bits, self.sequence_bits
                ),
            ),
            ("plain IDs", plain_in_words(self.total_bits).to_owned()),
            ("begins", in_words(self.begins_unix_ms)),
            ("ends", in_words(self.ends_unix_ms)),
            ("remaining", remaining),
            ("nodes", format!("{}, numbered from 0", grouped(self.nodes))),
            (
                "sustained",
                format!(
                    "{} IDs/s a node, {} IDs/s on all",
                    short(self.sustained_per_node),
                    short(self.sustained)
                ),
            ),
            (
                "burst",
                format!(
                    "{} IDs a node, from a ring of {} and {} s borrowed",
                    short(self.burst_per_node as f64),
                    grouped(CAPACITY),
                    BORROW_LIMIT_MS / 1_000
                ),
            ),
            (
                "example",
                format!(
                    "{} ({}), tick {} of node 1, plain",
                    self.example, self.example_u64, self.example_tick
                ),
            ),
        ]
    }
}

fn plain_in_words(total_bits: u32) -> &'static str {
    match total_bits {
        ..=53 => "positive as signed numbers, exact as doubles",
        54..=63 => "positive as signed numbers",
        _ => "negative as signed numbers in the second half of the life",
    }
}

pub(super) fn run(args: &ShowArgs) -> Result<ExitCode> {
    let object = Object::new(&args.layout, SystemClock.unix_ms())?;
    output::answer(|out| output::print(out, args.output.format, &object, object.rows()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_of_now_or_of_the_nearer_end() {
        let layout = Layout::BAIDU_2026;
        let tick = |now| Object::new(&layout, now).unwrap().example_tick;
        assert_eq!(tick(0), 0);
        assert_eq!(tick(layout.epoch_unix_ms() + 7_000), 7);
        assert_eq!(tick(u64::MAX), layout.ticks() - 1);
    }

    #[test]
    fn what_remains_is_no_more_than_the_life() {
        let layout = Layout::BAIDU_2026;
        let life = layout.end_unix_ms() - layout.epoch_unix_ms();
        for (now, remaining) in [(0, life), (layout.end_unix_ms() - 5, 5), (u64::MAX, 0)] {
            assert_eq!(Object::new(&layout, now).unwrap().remaining_ms, remaining);
        }
    }
}
