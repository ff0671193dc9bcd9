//! Layouts wide enough for a life, nodes and a rate.
//!
//! Time, node and sequence share the bits of an ID. Each first gets the fewest bits that
//! suffice. What is left goes bit by bit to the field with the least headroom; time gets none
//! beyond twice the life that was asked for.

use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use ringflake::{Clock, Layout, LayoutError, SystemClock, plan};
use serde_json::{Value, json};

use crate::args::time;
use crate::count::count;
use crate::format::Format;
use crate::output;
use crate::timestamp::{in_words, rfc3339};
use crate::units::{grouped, short};
use crate::usage::Misuse;

const DAY_MS: u64 = 86_400_000;
const YEAR_MS: u128 = 31_557_600_000;

/// All bits, positive as signed numbers, and exact as doubles.
const WIDTHS: [u32; 3] = [64, 63, 53];

/// The ticks that are tried unless one is given. A longer one holds longer runs.
const TICKS_MS: [u64; 4] = [1000, 100, 10, 1];

#[derive(Debug, Args)]
pub(super) struct NeedsArgs {
    /// How many years it lives, 1 to 1000
    #[arg(long, value_name = "N", value_parser = count::<u32>(1..=1000))]
    years: u32,
    /// Nodes alive at once; with a store all those of the blocks that are held
    #[arg(long, value_name = "N", value_parser = count::<u64>(1..=1 << 32))]
    nodes: u64,
    /// IDs a second that all nodes together make for ever, such as 200k
    #[arg(long, value_name = "RATE", value_parser = count::<u64>(1..=1_000_000_000_000))]
    rate: u64,
    /// When the first tick begins, such as 2026-01-01 or 2026-01-01T00:00:00Z
    /// [default: today]
    #[arg(long, value_name = "TIME", value_parser = epoch)]
    epoch: Option<u64>,
    /// The length of a tick, such as 10ms [default: 1s, or where that does not fit 100ms,
    /// 10ms or 1ms]
    #[arg(long, value_name = "TIME", value_parser = time)]
    tick: Option<Duration>,
}

/// A day, or a moment, in milliseconds since 1970.
fn epoch(text: &str) -> Result<u64> {
    let whole = match text.len() == "2026-01-01".len() {
        true => format!("{text}T00:00:00Z"),
        false => text.to_owned(),
    };
    let moment = humantime::parse_rfc3339(&whole).ok();
    let age = moment.and_then(|moment| moment.duration_since(UNIX_EPOCH).ok());
    match age {
        Some(age) if age.subsec_nanos().is_multiple_of(1_000_000) => {
            Ok(u64::try_from(age.as_millis())?)
        }
        _ => bail!(
            "give a day from 1970 on such as 2026-01-01, or a moment in UTC with at most \
             milliseconds such as 2026-01-01T00:00:00Z"
        ),
    }
}

/// How many values time, node and sequence need with ticks of one length.
#[derive(Clone, Copy)]
struct Demand {
    tick: Duration,
    values: [u128; 3],
}

impl NeedsArgs {
    fn demand(&self, tick: Duration) -> Demand {
        let (nodes, tick_ms) = (u128::from(self.nodes), tick.as_millis().max(1));
        let ids_a_tick = (u128::from(self.rate) * tick_ms).div_ceil(1000 * nodes);
        Demand {
            tick,
            values: [
                (u128::from(self.years) * YEAR_MS).div_ceil(tick_ms),
                // All of them may be killed at once, and their leases last on.
                2 * nodes,
                ids_a_tick,
            ],
        }
    }

    /// The layout of this width, or why there is none.
    fn layout(
        &self,
        width: u32,
        epoch_unix_ms: u64,
    ) -> Result<Result<Layout, String>, LayoutError> {
        let ticks = TICKS_MS.map(|tick| self.tick.unwrap_or(Duration::from_millis(tick)));
        let demands = ticks.iter().map(|&tick| self.demand(tick));
        let Some(demand) = demands.clone().find(|demand| demand.total_bits() <= width) else {
            let nearest = demands.min_by_key(Demand::total_bits);
            let nearest = nearest.expect("there is a tick");
            return Ok(Err(self.shortage(width, &nearest)));
        };
        let [time, node, sequence] = demand.divide(width);
        let layout = Layout::builder()
            .bits(time, node, sequence)
            .tick(demand.tick)
            .epoch_unix_ms(epoch_unix_ms)
            .build()?;
        Ok(Ok(layout))
    }

    fn shortage(&self, width: u32, demand: &Demand) -> String {
        let [time, node, sequence] = demand.bits();
        format!(
            "{width} bits are not enough: with ticks of {}, {} years need {time} bits, {} nodes need \
             {node}, and {} IDs for each node and tick need {sequence}: {} in all",
            humantime::format_duration(demand.tick),
            self.years,
            grouped(self.nodes),
            demand.values[2],
            demand.total_bits(),
        )
    }
}

impl Demand {
    /// The fewest bits. Each field has at least one.
    fn bits(&self) -> [u32; 3] {
        let bits = |values: u128| (u128::BITS - (values - 1).leading_zeros()).max(1);
        self.values.map(bits)
    }

    fn total_bits(&self) -> u32 {
        self.bits().iter().sum()
    }

    /// All of `width`, which is enough, divided among the fields.
    fn divide(&self, width: u32) -> [u32; 3] {
        let mut bits = self.bits();
        for _ in self.total_bits()..width {
            let headroom =
                |field: usize| (1_u128 << bits[field]) as f64 / self.values[field] as f64;
            let [time, node, sequence] = [0, 1, 2].map(headroom);
            let least = if time < 2.0 && time <= node.min(sequence) {
                0
            } else if node < sequence {
                1
            } else {
                2
            };
            bits[least] += 1;
        }
        bits
    }
}

pub(super) fn run(args: &NeedsArgs, format: Format) -> Result<()> {
    let now_unix_ms = SystemClock.unix_ms();
    let epoch_unix_ms = args.epoch.unwrap_or(now_unix_ms - now_unix_ms % DAY_MS);
    let found: Result<Vec<_>, _> = WIDTHS
        .iter()
        .map(|&width| Ok((width, args.layout(width, epoch_unix_ms)?)))
        .collect();
    let found = found.map_err(|error: LayoutError| Misuse(error.to_string()))?;
    if let (_, Err(shortage)) = &found[0] {
        return Err(anyhow!(shortage.clone()));
    }
    show(&found, args.nodes, format)
}

/// Prints a layout that is known, and what all its nodes make.
pub(super) fn show_one(layout: Layout, format: Format) -> Result<()> {
    show(&[(layout.total_bits(), Ok(layout))], layout.nodes(), format)
}

/// A width, and its layout or why there is none.
type Found = (u32, Result<Layout, String>);

fn show(found: &[Found], nodes: u64, format: Format) -> Result<()> {
    output::answer(|out| match format {
        Format::Json => {
            let object = |(width, layout): &Found| object(*width, layout, nodes);
            let found: Vec<_> = found.iter().map(object).collect();
            output::json(out, &json!({ "layouts": found }))
        }
        Format::Text => table(out, found, nodes),
    })
}

fn table(out: &mut dyn Write, found: &[Found], nodes: u64) -> io::Result<()> {
    let row = |layout: &Layout| {
        let ends = in_words(layout.end_unix_ms());
        // The day is enough here.
        let ends = ends.split_once('T').map_or(&*ends, |(day, _)| day);
        [
            layout.total_bits().to_string(),
            layout.to_string(),
            ends.to_owned(),
            grouped(layout.nodes()),
            short(plan::sustained(layout, 1)),
            short(plan::sustained(layout, nodes)),
        ]
    };
    let layouts = found.iter().filter_map(|(_, layout)| layout.as_ref().ok());
    let rows: Vec<_> = layouts.map(row).collect();
    let titles = ["bits", "layout", "ends", "nodes", "IDs/s a node", "IDs/s"];
    output::columns(out, titles, &rows)?;
    for (_, layout) in found {
        if let Err(shortage) = layout {
            writeln!(out, "{shortage}")?;
        }
    }
    Ok(())
}

fn object(width: u32, layout: &Result<Layout, String>, nodes: u64) -> Value {
    match layout {
        Err(shortage) => json!({ "bits": width, "layout": null, "refused": shortage }),
        Ok(layout) => json!({
            "bits": width,
            "layout": layout.to_string(),
            "ends_unix_ms": layout.end_unix_ms(),
            "ends": rfc3339(layout.end_unix_ms(), false),
            "nodes": layout.nodes(),
            "sustained_per_node": plan::sustained(layout, 1),
            "sustained": plan::sustained(layout, nodes),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01T00:00:00Z.
    const NEW_YEAR: u64 = 1_767_225_600_000;

    #[test]
    fn each_layout_is_wide_enough_and_one_bit_less_is_not() {
        for years in [1, 7, 68, 69, 1000] {
            for nodes in [1, 2, 3, 500, 1 << 16] {
                for rate in [1, 999, 1_000_000, 77_000_000_000] {
                    let needs = NeedsArgs {
                        years,
                        nodes,
                        rate,
                        epoch: None,
                        tick: None,
                    };
                    for width in WIDTHS {
                        let Ok(layout) = needs.layout(width, 0).unwrap() else {
                            let ticks = TICKS_MS.map(Duration::from_millis);
                            let bits = ticks.map(|tick| needs.demand(tick).total_bits());
                            assert!(bits.iter().all(|&bits| bits > width));
                            continue;
                        };
                        assert_eq!(layout.total_bits(), width);
                        let life_ms = u128::from(layout.end_unix_ms());
                        assert!(life_ms >= u128::from(years) * YEAR_MS, "{layout}");
                        assert!(layout.nodes() >= 2 * nodes, "{layout}");
                        assert!(plan::sustained(&layout, nodes) >= rate as f64, "{layout}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_tie_gives_the_bit_to_time_and_then_to_the_sequence() {
        let layout = |nodes, rate| {
            let needs = NeedsArgs {
                years: 1,
                nodes,
                rate,
                epoch: None,
                tick: None,
            };
            needs.layout(53, 0).unwrap().unwrap().to_string()
        };
        // A year of seconds is 2^5 x 986,175: 2^25 ticks have the headroom of 2^21 nodes.
        let found = layout(986_175, 33 * 986_175);
        assert!(found.starts_with("26/21/6@"), "{found}");
        // Two nodes, and two IDs a tick.
        let found = layout(1, 2);
        assert!(found.starts_with("26/13/14@"), "{found}");
    }

    #[test]
    fn an_epoch_is_a_day_or_a_moment() {
        assert_eq!(epoch("2026-01-01").unwrap(), NEW_YEAR);
        assert_eq!(epoch("2026-01-01T00:00:00.007Z").unwrap(), NEW_YEAR + 7);
        let wrong = "|2026|1969-12-31|2026-13-01|2026-01-01T00:00:00.0001Z|tomorrow--";
        for wrong in wrong.split('|') {
            assert!(epoch(wrong).is_err(), "{wrong}");
        }
    }
}
