//! Do takes notice that leases are renewed, taken up and swapped?
//!
//! ```sh
//! cargo bench --bench lease [-- --seconds S]
//! ```
//!
//! First the cost of an ID, with one consumer and one producer, against that
//! with a lease that was given and never changes. Then how long one take lasts
//! at fixed moments, as in `latency.rs`: by leases that are left alone, and by
//! leases that change a thousand times a second.
//!
//! The store is the one in memory, so that the changes come as fast as a manager
//! asks for them. A change is a grant, a renewal, or a renewal that is refused.
//!
//! Every ID of the second part is decrypted and checked to be unique; of the
//! first, those of another run on the same leases.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use ringflake::{CachedGenerator, Handle, Id};

use self::common::flags;
use self::common::latency::{Row, Schedule, print_tables};
use self::common::race::{Contest, Outcome, Plan, put};
use self::common::stock;
use self::common::unique::Marks;
use self::ground::{Leases, Meter};

mod common;
#[path = "lease/ground.rs"]
mod ground;

/// How often each kind of take is measured by each kind of lease; the median counts.
fn turns() -> usize {
    if flags::is_bench() { 5 } else { 1 }
}

/// IDs a call of the batch take.
const BATCH: usize = 64;

/// IDs that are kept and checked for each line of the first table.
fn checked() -> u64 {
    if flags::is_bench() { 1 << 20 } else { 1 << 12 }
}

/// Takes a second, by one consumer: the other core is the producer's and the
/// keeper's.
const LOADS: [u32; 2] = [1_000_000, 10_000_000];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = match flags::value_of("--seconds") {
        Some(seconds) => seconds.parse()?,
        None if flags::is_bench() => 1.0,
        None => 0.01,
    };
    let meter = Meter::new();
    print_costs(Duration::from_secs_f64(seconds), &meter);
    print_latencies(seconds, &meter);
    println!("All IDs that were checked were unique.");
    Ok(())
}

// How much

/// Measures one kind of take: nanoseconds an ID, and changes of leases a second.
type Measure = fn(Leases, Duration, &Arc<Meter>) -> (f64, f64);

const TAKES: [(&str, Measure); 3] = [
    ("take", |leases, time, meter| {
        let take =
            |ids: &CachedGenerator, (): &mut (), [id]: &mut [Id; 1]| put(id, ids.take().ok());
        run(leases, time, meter, |_| (), take)
    }),
    ("handle", |leases, time, meter| {
        let seat = |ids: &CachedGenerator| ids.handle().expect("a page of memory");
        let take = |_: &CachedGenerator, handle: &mut Handle, [id]: &mut [Id; 1]| {
            put(id, handle.take().ok())
        };
        run(leases, time, meter, seat, take)
    }),
    ("batch of 64", |leases, time, meter| {
        let take = |source: &CachedGenerator, (): &mut (), ids: &mut [Id; BATCH]| {
            source.take_batch(ids) == Ok(BATCH)
        };
        run(leases, time, meter, |_| (), take)
    }),
];

fn run<T, const N: usize>(
    leases: Leases,
    time: Duration,
    meter: &Arc<Meter>,
    seat: impl Fn(&CachedGenerator) -> T + Sync,
    take: impl Fn(&CachedGenerator, &mut T, &mut [Id; N]) -> bool + Sync,
) -> (f64, f64) {
    let contest = Contest::new(|| leases.build(meter), seat, take);
    let outcome: Outcome<Id, N> = contest.race(Plan::time(1, time));
    let changes = meter.per_second();

    let calls = checked() / N as u64;
    let kept: Outcome<Id, N> = contest.race(Plan::calls(1, 1, calls).keeping());
    assert_eq!(kept.given, checked(), "{leases:?}: a take was refused");
    let cipher = stock::cipher();
    let mut marks = Marks::default();
    for id in kept.kept() {
        let raw = cipher.decrypt(id.to_u64());
        assert!(marks.mark(raw), "{leases:?}: {raw:#x} came twice");
    }
    (outcome.nanos_each(), changes)
}

fn print_costs(time: Duration, meter: &Arc<Meter>) {
    println!("Cost, one consumer and one producer\n");
    println!("| takes | leases | changes/s | ns/ID | throughput x fixed |");
    println!("|---|---|---:|---:|---:|");
    for (name, measure) in TAKES {
        // The kinds of lease take turns, so that a change in the
        // speed of the machine meets all of them.
        let mut runs = Leases::ALL.map(|_| Vec::new());
        for _ in 0..turns() {
            for (runs, leases) in runs.iter_mut().zip(Leases::ALL) {
                runs.push(measure(leases, time, meter));
            }
        }
        let medians = runs.map(|mut runs| {
            runs.sort_by(|a, b| a.0.total_cmp(&b.0));
            runs[runs.len() / 2]
        });
        let (fixed, _) = medians[0];
        for (leases, (nanos, changes)) in Leases::ALL.iter().zip(medians) {
            println!(
                "| {name} | {} | {changes:.0} | {nanos:.2} | {:.2} |",
                leases.name(),
                fixed / nanos,
            );
        }
    }
    println!();
}

// How long

/// A row, and how often leases changed in it.
struct Measured {
    row: Row,
    changes: f64,
}

fn print_latencies(seconds: f64, meter: &Arc<Meter>) {
    let mut all = Vec::new();
    for load in LOADS {
        let schedule = Schedule {
            consumers: 1,
            load,
            seconds,
        };
        all.push(Measured {
            row: schedule.run("timer alone", || || Ok(black_box(Id::default()))),
            changes: 0.0,
        });
        for (leases, take, handle) in [
            (Leases::Fixed, "take, fixed", "handle, fixed"),
            (Leases::Steady, "take, quiet", "handle, quiet"),
            (Leases::Swapped, "take, changing", "handle, changing"),
        ] {
            let ids = leases.build(meter);
            let row = schedule.run(take, || || ids.take());
            let changes = meter.per_second();
            all.push(Measured {
                row: row.checked(),
                changes,
            });

            let ids = leases.build(meter);
            let source = || {
                let mut handle = ids.handle().expect("a page of memory");
                move || handle.take()
            };
            let row = schedule.run(handle, source);
            let changes = meter.per_second();
            all.push(Measured {
                row: row.checked(),
                changes,
            });
        }
    }
    for Measured { row, changes } in all.iter().filter(|measured| measured.changes >= 1.0) {
        let load = row.load / 1_000_000;
        println!(
            "{}, {load} M takes/s: {changes:.0} changes of leases a second.",
            row.name
        );
    }
    println!();
    let rows: Vec<_> = all.into_iter().map(|measured| measured.row).collect();
    print_tables(&rows);
}
