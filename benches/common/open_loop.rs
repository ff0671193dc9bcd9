//! Takes at fixed moments, and how long each lasts.
//!
//! The moments do not wait for the takes (an open loop), so a slow take delays
//! those that were due meanwhile, and that is counted. Two figures come of each
//! take: its *service* time, from the call to its return, and its *response*
//! time, from the moment it was due to its return.

use std::hint::{black_box, spin_loop};
use std::thread;

use ringflake::Id;

use super::unique::Marks;
use super::{stock, timer};

/// Between the making of the threads and the first take that is due.
const HEAD_START_SECONDS: f64 = 0.01;

/// When takes are due.
#[derive(Clone, Copy)]
pub(crate) struct Schedule {
    /// Threads that take.
    pub(crate) consumers: usize,
    /// Takes a second, by all consumers together.
    pub(crate) load: u32,
    pub(crate) seconds: f64,
    pub(crate) nanos_per_tick: f64,
}

impl Schedule {
    /// Runs a contestant: `seat` makes what a consumer has for itself.
    pub(crate) fn run<T>(
        self,
        name: &'static str,
        seat: impl Fn() -> T + Sync,
        take: impl Fn(&mut T) -> Option<Id> + Sync,
    ) -> Row {
        let takes = (self.seconds * f64::from(self.load)) as usize / self.consumers;
        let ticks_per_second = 1e9 / self.nanos_per_tick;
        let ticks_between = ticks_per_second * self.consumers as f64 / f64::from(self.load);
        let origin = timer::ticks() + self.head_start(takes, ticks_per_second);

        let (seat, take) = (&seat, &take);
        let consume = move |consumer: usize| {
            // Written to beforehand, so that no page fault falls between takes.
            let mut samples = vec![Sample::BLANK; takes];
            let mut seat = seat();
            // The consumers take turns.
            let phase = consumer as f64 / self.consumers as f64;
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
            let consumers: Vec<_> = (0..self.consumers)
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
        let bytes = takes * self.consumers * size_of::<Sample>();
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
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) load: u32,
    pub(crate) service: Distribution,
    pub(crate) response: Distribution,
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
    pub(crate) fn checked(mut self) -> Self {
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
pub(crate) struct Distribution {
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
    pub(crate) fn quantile(&self, quantile: f64) -> f64 {
        let rank = (quantile * self.ticks.len() as f64).ceil() as usize;
        let ticks = self.ticks[rank.clamp(1, self.ticks.len()) - 1];
        f64::from(ticks) * self.nanos_per_tick
    }
}

/// Says what the timer costs.
pub(crate) fn print_timer(nanos_per_tick: f64) {
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

/// Prints the quantiles of one of the figures of each row.
pub(crate) fn print_table(title: &str, rows: &[Row], figures: fn(&Row) -> &Distribution) {
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
