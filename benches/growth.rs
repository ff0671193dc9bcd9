//! How does the cost of an ID grow with capacity, threshold, batch size,
//! threads and nodes? And what does a ring cost to have?
//!
//! ```sh
//! cargo bench --bench growth [-- --svg FILE]
//! ```
//!
//! Prints tables; `--svg` draws them as well. One thing varies at a time and
//! the rest stays as in `Point::BASE`. A point is measured in two ways:
//!
//! - *full*: caches that are not refilled, of which half is taken;
//! - *live*: one producer fills while the consumers take, for a tenth of a
//!   second. What consumers make in place, because they outrun the producer,
//!   counts as well, and its share stands behind.
//!
//! After each of these the same is run with the IDs kept, and they are
//! decrypted and checked to be unique.

use std::error::Error;
use std::time::Duration;

use ringflake::{CachedGenerator, CachedGeneratorBuilder, Id, OnEmpty, ThresholdFill};

use self::common::flags;
use self::common::measure::SLOTS;
use self::common::race::{Contest, Plan, put};
use self::common::stock::{self, LAYOUT};
use self::common::unique::Marks;

mod common;
#[path = "growth/memory.rs"]
mod memory;
#[path = "growth/picture.rs"]
mod picture;

/// The smallest ring that takes long enough to empty for that to be timed.
const SMALLEST_FULL: usize = 1 << 12;

fn main() -> Result<(), Box<dyn Error>> {
    let effort = if flags::is_bench() {
        Effort::MEASURE
    } else {
        Effort::TRY
    };
    memory::print_table(effort);

    let mut panels = Vec::new();
    for axis in Axis::all(effort) {
        let lines = axis.measure(effort);
        axis.print_table(&lines);
        panels.push((axis, lines));
    }
    println!("All IDs that were checked were unique.");
    if let Some(file) = flags::value_of("--svg") {
        picture::draw(&file, &panels)?;
        println!("The picture is in {file}.");
    }
    Ok(())
}

/// How thoroughly to measure.
#[derive(Clone, Copy)]
struct Effort {
    /// Of a point; the median counts.
    runs: usize,
    /// Of one live run.
    time: Duration,
    /// IDs of a live run that are kept and checked, by each consumer.
    checked: u64,
    /// IDs taken from full rings in one run, at the least.
    ids: usize,
    largest_capacity: u32,
}

impl Effort {
    const MEASURE: Self = Self {
        runs: 3,
        time: Duration::from_millis(100),
        checked: 1 << 16,
        ids: 1 << 22,
        largest_capacity: 24,
    };
    /// Just enough to see that it works.
    const TRY: Self = Self {
        runs: 1,
        time: Duration::from_millis(1),
        checked: 1 << 12,
        ids: 1,
        largest_capacity: 16,
    };
}

/// A configuration to measure.
#[derive(Clone, Copy)]
struct Point {
    capacity: usize,
    threshold_percent: u32,
    nodes: u64,
    consumers: usize,
}

impl Point {
    const BASE: Self = Self {
        capacity: SLOTS,
        threshold_percent: 50,
        nodes: LAYOUT.nodes(),
        consumers: 1,
    };
}

/// The measurements at a point.
#[derive(Clone, Copy)]
struct Cost {
    /// Nanoseconds an ID from a full ring, where that can be measured.
    full: Option<f64>,
    /// Nanoseconds an ID from a live ring.
    live: f64,
    /// The share of the live ones that was made in place.
    in_place: f64,
}

/// The costs along an axis, for one batch size and number of consumers.
struct Line {
    batch: &'static str,
    consumers: usize,
    /// With the positions on the axis.
    costs: Vec<(u64, Cost)>,
}

/// What varies.
struct Axis {
    name: &'static str,
    /// Whether the positions are powers of two.
    doubles: bool,
    positions: Vec<u64>,
    /// The kinds of take that are measured along it.
    takes: &'static [(&'static str, Measure)],
}

/// Measures what lies at a position of an axis.
type Measure = fn(position: u64, consumers: usize, effort: Effort) -> Cost;

impl Axis {
    fn all(effort: Effort) -> [Self; 4] {
        [
            Self {
                name: "capacity",
                doubles: true,
                positions: powers((8..=effort.largest_capacity).step_by(2)),
                takes: &[("take", capacity::<1>), ("batch of 64", capacity::<64>)],
            },
            Self {
                name: "threshold, %",
                doubles: false,
                positions: vec![10, 30, 50, 70, 90],
                takes: &[("take", threshold::<1>), ("batch of 64", threshold::<64>)],
            },
            Self {
                name: "IDs a call",
                doubles: true,
                positions: powers((0..=10).step_by(2)),
                takes: &[("batch", batch)],
            },
            Self {
                name: "nodes in the lease",
                doubles: true,
                positions: powers([0, 4, 8, 12, 17]),
                takes: &[("take", nodes::<1>), ("batch of 64", nodes::<64>)],
            },
        ]
    }

    fn measure(&self, effort: Effort) -> Vec<Line> {
        let mut lines = Vec::new();
        for &(batch, measure) in self.takes {
            for consumers in [1, 2] {
                let costs = self.positions.iter();
                let costs = costs.map(|&at| (at, measure(at, consumers, effort)));
                lines.push(Line {
                    batch,
                    consumers,
                    costs: costs.collect(),
                });
            }
        }
        lines
    }

    fn print_table(&self, lines: &[Line]) {
        println!(
            "| {} | takes | consumers | full, ns | live, ns | in place |",
            self.name
        );
        println!("|---:|---|---:|---:|---:|---:|");
        for line in lines {
            for (at, cost) in &line.costs {
                let full = cost.full.map_or("".to_owned(), |full| format!("{full:.2}"));
                println!(
                    "| {at} | {} | {} | {full} | {:.2} | {:.0} % |",
                    line.batch,
                    line.consumers,
                    cost.live,
                    cost.in_place * 100.0,
                );
            }
        }
        println!();
    }
}

fn powers(exponents: impl IntoIterator<Item = u32>) -> Vec<u64> {
    exponents
        .into_iter()
        .map(|exponent| 1 << exponent)
        .collect()
}

fn capacity<const N: usize>(slots: u64, consumers: usize, effort: Effort) -> Cost {
    let point = Point {
        capacity: slots as usize,
        consumers,
        ..Point::BASE
    };
    Cost {
        full: (point.capacity >= SMALLEST_FULL).then(|| full::<N>(point, effort)),
        ..live::<N>(point, effort)
    }
}

fn threshold<const N: usize>(percent: u64, consumers: usize, effort: Effort) -> Cost {
    let point = Point {
        threshold_percent: percent as u32,
        consumers,
        ..Point::BASE
    };
    live::<N>(point, effort)
}

fn nodes<const N: usize>(nodes: u64, consumers: usize, effort: Effort) -> Cost {
    let point = Point {
        nodes,
        consumers,
        ..Point::BASE
    };
    live::<N>(point, effort)
}

fn batch(ids: u64, consumers: usize, effort: Effort) -> Cost {
    // The loop knows the size of a batch when it is compiled.
    let measure = match ids {
        1 => capacity::<1>,
        4 => capacity::<4>,
        16 => capacity::<16>,
        64 => capacity::<64>,
        256 => capacity::<256>,
        _ => capacity::<1024>,
    };
    measure(Point::BASE.capacity as u64, consumers, effort)
}

/// The cost from full rings.
fn full<const N: usize>(point: Point, effort: Effort) -> f64 {
    let contest = Contest::new(
        || built(stock::filled_once(point.capacity)),
        |_| (),
        |ids: &CachedGenerator, _, out: &mut [Id; N]| take(ids, out),
    );
    // Half: who takes all has to wait for the last ones, which another may be moving.
    let taken = point.capacity / 2;
    let rounds = effort.ids.div_ceil(taken) as u64;
    let calls = (taken / N / point.consumers) as u64;
    let plan = |rounds| Plan::calls(point.consumers, rounds, calls).patient();

    let cost = median((0..effort.runs).map(|_| contest.race(plan(rounds)).nanos_each()));
    check(contest.race(plan(1).keeping()).kept());
    cost
}

/// The cost from a live ring.
fn live<const N: usize>(point: Point, effort: Effort) -> Cost {
    let ids = built(
        stock::generator(0..point.nodes)
            .capacity(point.capacity)
            .threshold_fill(ThresholdFill::percent(point.threshold_percent))
            .on_empty(OnEmpty::Generate),
    );
    // What the ring held at the start came from no live producer.
    let mut start = vec![Id::default(); 1024];
    for _ in 0..(2 * point.capacity).div_ceil(start.len()) {
        assert_eq!(ids.take_batch(&mut start), Ok(start.len()));
    }

    let contest = Contest::new(
        || ids.clone(),
        |_| (),
        |ids: &CachedGenerator, _, out: &mut [Id; N]| take(ids, out),
    );
    let plan = Plan::time(point.consumers, effort.time);
    let before = ids.stats();
    let live = median((0..effort.runs).map(|_| contest.race(plan).nanos_each()));
    let after = ids.stats();

    let calls = effort.checked / N as u64;
    check(contest.race(Plan { calls, ..plan }.keeping()).kept());
    Cost {
        full: None,
        live,
        in_place: (after.in_place - before.in_place) as f64 / (after.issued - before.issued) as f64,
    }
}

/// One call: a take for one ID, a batch take for more.
#[inline]
fn take<const N: usize>(ids: &CachedGenerator, out: &mut [Id; N]) -> bool {
    if N == 1 {
        put(&mut out[0], ids.take().ok())
    } else {
        stock::take_batch_patiently(ids, out)
    }
}

fn built(builder: CachedGeneratorBuilder) -> CachedGenerator {
    builder.build().expect("the configuration is valid")
}

/// # Panics
///
/// If an ID comes twice, or there are none.
fn check(ids: impl Iterator<Item = Id>) {
    let cipher = stock::cipher();
    let mut marks = Marks::default();
    let mut count = 0;
    for id in ids {
        let raw = cipher.decrypt(id.to_u64());
        assert!(marks.mark(raw), "{raw:#x} came twice");
        count += 1;
    }
    assert!(count > 0, "no IDs to check");
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
