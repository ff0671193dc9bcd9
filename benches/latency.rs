//! How long does one take last under a steady load?
//!
//! ```sh
//! cargo bench --bench latency [-- --seconds S]
//! ```
//!
//! Two consumers take at fixed moments, 1 and 10 million times a second in
//! all. The moments do not wait for the takes (an open loop), so a slow take
//! delays those that were due meanwhile, and that is counted. Two figures come
//! of each take: its *service* time, from the call to its return, and its
//! *response* time, from the moment it was due to its return.
//!
//! | contestant | what a take is |
//! |---|---|
//! | `timer alone` | nothing: what the timer, the loop and the machine cost |
//! | `ring` | `CachedGenerator::take`, one producer thread |
//! | `handle` | `Handle::take` on the same, a handle for each consumer |
//! | `in place` | `CachedGenerator::take` on a ring that stays empty |
//! | `mutex` | a `Mutex` around the reference algorithm |
//!
//! Where there are no three cores, the producer takes one from a consumer while
//! it fills; that is in the figures, as it would be in a service.
//!
//! The reference algorithm gives 131,072 IDs a second and then refuses. Here it
//! has a sequence of 27 bits instead of 17, so that it can follow the load.
//!
//! Every ID is kept, decrypted and checked to be unique.

use std::hint::{black_box, spin_loop};
use std::sync::{Mutex, PoisonError};
use std::thread;

use ringflake::{CachedGenerator, Handle, Id, Layout, LayoutError};

use self::common::reference::Reference;
use self::common::unique::Marks;
use self::common::{flags, stock, timer};

mod common;

const CONSUMERS: usize = 2;

/// Takes a second, by all consumers together.
const LOADS: [u32; 2] = [1_000_000, 10_000_000];

/// Seconds that each contestant runs under each load.
const SECONDS: f64 = 1.0;

/// Between the making of the threads and the first take that is due.
const HEAD_START_SECONDS: f64 = 0.01;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = match flags::value_of("--seconds") {
        Some(seconds) => seconds.parse()?,
        None if flags::is_bench() => SECONDS,
        None => 0.01,
    };
    let nanos_per_tick = timer::nanos_per_tick();
    print_timer(nanos_per_tick);

    let mut rows = Vec::new();
    for load in LOADS {
        let schedule = Schedule {
            load,
            seconds,
            nanos_per_tick,
        };
        rows.push(schedule.run("timer alone", || (), |()| Some(black_box(Id::default()))));

        let ids = stock::live();
        let take = |ids: &mut CachedGenerator| ids.take().ok();
        rows.push(schedule.run("ring", || ids.clone(), take).checked());

        let ids = stock::live();
        let handle = || ids.handle().expect("a page of memory");
        let take = |handle: &mut Handle| handle.take().ok();
        rows.push(schedule.run("handle", handle, take).checked());

        let ids = stock::without_a_ring();
        let take = |ids: &mut CachedGenerator| ids.take().ok();
        rows.push(schedule.run("in place", || ids.clone(), take).checked());

        let reference = Mutex::new(Reference::new(wide_layout()?, stock::cipher(), 1));
        let take = |(): &mut ()| {
            let mut reference = reference.lock().unwrap_or_else(PoisonError::into_inner);
            reference.next_id()
        };
        rows.push(schedule.run("mutex", || (), take).checked());
    }

    print_table(
        "Service time, ns: from the call to its return",
        &rows,
        |row| &row.service,
    );
    print_table(
        "Response time, ns: from the moment the take was due to its return",
        &rows,
        |row| &row.response,
    );
    println!("All IDs were unique.");
    Ok(())
}

/// Randflake's layout with more of it for the sequence.
fn wide_layout() -> Result<Layout, LayoutError> {
    Layout::builder()
        .bits(30, 7, 27)
        .tick(std::time::Duration::from_secs(1))
        .epoch_unix_ms(Layout::RANDFLAKE.epoch_unix_ms())
        .build()
}

/// When takes are due.
#[derive(Clone, Copy)]
struct Schedule {
    /// Takes a second.
    load: u32,
    seconds: f64,
    nanos_per_tick: f64,
}

impl Schedule {
    /// Runs a contestant: `seat` makes what a consumer has for itself.
    fn run<T>(
        self,
        name: &'static str,
        seat: impl Fn() -> T + Sync,
        take: impl Fn(&mut T) -> Option<Id> + Sync,
    ) -> Row {
        let takes = (self.seconds * f64::from(self.load)) as usize / CONSUMERS;
        let ticks_per_second = 1e9 / self.nanos_per_tick;
        let ticks_between = ticks_per_second * CONSUMERS as f64 / f64::from(self.load);
        let origin = timer::ticks() + self.head_start(takes, ticks_per_second);

        let (seat, take) = (&seat, &take);
        let consume = move |consumer: usize| {
            // Written to beforehand, so that no page fault falls between takes.
            let mut samples = vec![Sample::BLANK; takes];
            let mut seat = seat();
            // The consumers take turns.
            let phase = consumer as f64 / CONSUMERS as f64;
            for (index, sample) in samples.iter_mut().enumerate() {
                let due = origin + ((index as f64 + phase) * ticks_between) as u64;
                let mut start = timer::ticks();
                while start < due {
                    spin_loop();
                    start = timer::ticks();
                }
                let id = black_box(take(&mut seat));
                let end = timer::ticks();
                *sample = Sample {
                    service: saturate(end - start),
                    response: saturate(end - due),
                    id,
                };
            }
            samples
        };
        let samples = thread::scope(|scope| {
            let consumers: Vec<_> = (0..CONSUMERS)
                .map(|consumer| scope.spawn(move || consume(consumer)))
                .collect();
            consumers
                .into_iter()
                .flat_map(|consumer| consumer.join().expect("a consumer panicked"))
                .collect()
        });
        Row::new(name, self, samples)
    }

    /// Ticks until the first take: time to start the threads and to write to
    /// the memory for `takes` samples.
    fn head_start(self, takes: usize, ticks_per_second: f64) -> u64 {
        let bytes = takes * CONSUMERS * size_of::<Sample>();
        let seconds = HEAD_START_SECONDS + bytes as f64 / 1e9;
        (seconds * ticks_per_second) as u64
    }
}

/// One take.
#[derive(Clone, Copy)]
struct Sample {
    /// In ticks, as is the next.
    service: u32,
    response: u32,
    id: Option<Id>,
}

impl Sample {
    const BLANK: Self = Self {
        service: u32::MAX,
        response: u32::MAX,
        id: None,
    };
}

/// A span of ticks in 32 bits, which hold more than a second.
fn saturate(ticks: u64) -> u32 {
    u32::try_from(ticks).unwrap_or(u32::MAX)
}

/// A contestant under a load.
struct Row {
    name: &'static str,
    load: u32,
    service: Distribution,
    response: Distribution,
    ids: Vec<Option<Id>>,
}

impl Row {
    fn new(name: &'static str, schedule: Schedule, samples: Vec<Sample>) -> Self {
        let distribution = |ticks: fn(&Sample) -> u32| {
            Distribution::new(samples.iter().map(ticks).collect(), schedule.nanos_per_tick)
        };
        Self {
            name,
            load: schedule.load,
            service: distribution(|sample| sample.service),
            response: distribution(|sample| sample.response),
            ids: samples.iter().map(|sample| sample.id).collect(),
        }
    }

    /// The row, if each take gave an ID and none came twice.
    ///
    /// # Panics
    ///
    /// If that is not so.
    fn checked(mut self) -> Self {
        let cipher = stock::cipher();
        let mut marks = Marks::default();
        for id in std::mem::take(&mut self.ids) {
            let id = id.unwrap_or_else(|| panic!("{}: a take was refused", self.name));
            let raw = cipher.decrypt(id.to_u64());
            assert!(marks.mark(raw), "{}: {raw:#x} came twice", self.name);
        }
        self
    }
}

/// Quantiles of a set of spans.
struct Distribution {
    /// In ascending order.
    ticks: Vec<u32>,
    nanos_per_tick: f64,
}

impl Distribution {
    fn new(mut ticks: Vec<u32>, nanos_per_tick: f64) -> Self {
        ticks.sort_unstable();
        Self {
            ticks,
            nanos_per_tick,
        }
    }

    /// The smallest difference between two spans, in nanoseconds.
    fn step(&self) -> f64 {
        let steps = self.ticks.windows(2).map(|pair| pair[1] - pair[0]);
        let least = steps.filter(|&step| step > 0).min();
        f64::from(least.unwrap_or(0)) * self.nanos_per_tick
    }

    /// The span, in nanoseconds, that a share of `quantile` does not exceed.
    fn quantile(&self, quantile: f64) -> f64 {
        let rank = (quantile * self.ticks.len() as f64).ceil() as usize;
        let ticks = self.ticks[rank.clamp(1, self.ticks.len()) - 1];
        f64::from(ticks) * self.nanos_per_tick
    }
}

fn print_timer(nanos_per_tick: f64) {
    let spans: Vec<u32> = (0..100_000)
        .map(|_| {
            let start = timer::ticks();
            saturate(timer::ticks() - start)
        })
        .collect();
    let cost = Distribution::new(spans, nanos_per_tick);
    println!(
        "The timer ({}) costs {:.0} ns (median; p99 {:.0} ns) and moves in steps of {:.1} ns. \
         Its cost is part of each figure below.\n",
        timer::NAME,
        cost.quantile(0.5),
        cost.quantile(0.99),
        cost.step(),
    );
}

fn print_table(title: &str, rows: &[Row], figures: fn(&Row) -> &Distribution) {
    println!("{title}\n");
    println!("| takes/s | contestant | p50 | p99 | p99.9 | p99.99 | max |");
    println!("|---:|---|---:|---:|---:|---:|---:|");
    for row in rows {
        let nanos = |quantile| figures(row).quantile(quantile);
        println!(
            "| {} M | {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
            row.load / 1_000_000,
            row.name,
            nanos(0.5),
            nanos(0.99),
            nanos(0.999),
            nanos(0.9999),
            nanos(1.0),
        );
    }
    println!();
}
