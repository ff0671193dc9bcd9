//! How long does one take last under a steady load?
//!
//! ```sh
//! cargo bench --bench latency [-- --seconds S --consumers C]
//! ```
//!
//! Two consumers, or as many as are asked for, take at fixed moments, 1 and 10 million
//! times a second in all. The moments do not wait for the takes (an open loop), so a slow take
//! delays those that were due meanwhile, and that is counted. Two figures come
//! of each take: its *service* time, from the call to its return, and its
//! *response* time, from the moment it was due to its return.
//!
//! | contestant | what a take is |
//! |---|---|
//! | `timer alone` | nothing: what the clock, the loop and the machine cost |
//! | `ring` | `CachedGenerator::take`, one producer thread |
//! | `small ring` | the same with 4,096 slots, so that takes assist before the producer is there |
//! | `handle` | `Handle::take` on the same, a handle for each consumer |
//! | `in place` | `CachedGenerator::take` on a ring that stays empty |
//! | `mutex` | a `Mutex` around the reference algorithm |
//!
//! Where there is no core more than consumers, the producer takes one from a consumer
//! while it fills; that is in the figures, as it would be in a service. Consumers spin
//! between takes. Below the tables is who made the IDs: fills of the producer, and the
//! takes themselves.
//!
//! The reference algorithm gives 131,072 IDs a second and then refuses. Here it
//! has a sequence of 27 bits instead of 17, so that it can follow the load.
//!
//! Every ID is kept, decrypted and checked to be unique.

use std::error::Error;
use std::hint::{black_box, spin_loop};
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use ringflake::{CachedGenerator, Id, Layout, LayoutError, TakeError};

use self::reference::Reference;

#[path = "common/flags.rs"]
mod flags;
#[path = "common/reference.rs"]
mod reference;
#[allow(dead_code, reason = "the command line uses more of it")]
#[path = "../cli/src/bench/stock.rs"]
mod stock;

/// Threads that take, unless another number is asked for.
const CONSUMERS: usize = 2;

/// Takes a second, by all consumers together.
const LOADS: [u32; 2] = [1_000_000, 10_000_000];

/// Slots of a ring that lasts less than it takes to wake the producer, now and then.
const SMALL: usize = 4096;

/// Seconds that each contestant runs under each load.
const SECONDS: f64 = 1.0;

/// From the start of the threads to the first take.
const HEAD_START: Duration = Duration::from_millis(50);

/// How long after the end a consumer that is behind goes on.
const GRACE: Duration = Duration::from_millis(250);

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = match flags::value_of("--seconds") {
        Some(seconds) => seconds.parse()?,
        None if flags::is_bench() => SECONDS,
        None => 0.01,
    };
    let consumers = match flags::value_of("--consumers") {
        Some(consumers) => consumers.parse::<NonZeroUsize>()?.get(),
        None => CONSUMERS,
    };
    let mut rows = Vec::new();
    let mut makers = Vec::new();
    for load in LOADS {
        let schedule = Schedule {
            consumers,
            load,
            takes: (seconds * f64::from(load)) as u64 / consumers as u64 + 1,
        };
        rows.push(schedule.run("timer alone", || || Ok(black_box(Id::default()))));

        let mut of_ring = |name, ids: CachedGenerator| {
            rows.push(schedule.run(name, || || ids.take()).checked());
            makers.push((name, load, ids.stats()));
        };
        of_ring("ring", stock::live(|ids| ids));
        of_ring("small ring", stock::live(|ids| ids.capacity(SMALL)));

        let ids = stock::live(|ids| ids);
        let handle = || {
            let mut handle = ids.handle().expect("a page of memory");
            move || handle.take()
        };
        rows.push(schedule.run("handle", handle).checked());
        makers.push(("handle", load, ids.stats()));

        let ids = stock::without_a_ring();
        rows.push(schedule.run("in place", || || ids.take()).checked());

        let reference = Mutex::new(Reference::new(wide_layout()?, stock::cipher(), 1));
        let take = || {
            let mut reference = reference.lock().unwrap_or_else(PoisonError::into_inner);
            reference.next_id().ok_or(TakeError::Empty)
        };
        rows.push(schedule.run("mutex", || take).checked());
    }
    println!("The row \"timer alone\" is what the clock costs; it is part of each figure.");
    println!("\nService time, ns: from the call to its return\n");
    print_table(&rows, |row| &row.service);
    println!("\nResponse time, ns: from the moment the take was due to its return\n");
    print_table(&rows, |row| &row.response);
    println!();
    for (name, load, stats) in makers {
        let (fills, in_place) = (stats.fills, stats.in_place);
        println!(
            "{name} at {load}/s: {} threshold fills, {} assists, {in_place} IDs made in place",
            fills.threshold, fills.assist
        );
    }
    println!("All IDs were unique.");
    Ok(())
}

/// Randflake's layout with more of it for the sequence.
fn wide_layout() -> Result<Layout, LayoutError> {
    Layout::builder()
        .bits(30, 7, 27)
        .tick(Duration::from_secs(1))
        .epoch_unix_ms(Layout::RANDFLAKE.epoch_unix_ms())
        .build()
}

/// When takes are due.
#[derive(Clone, Copy)]
struct Schedule {
    /// Threads that take.
    consumers: usize,
    /// Takes a second, by all consumers together.
    load: u32,
    /// Takes of each consumer.
    takes: u64,
}

/// A contestant under a load. The figures are nanoseconds, each known to 1 part in 100.
struct Row {
    name: &'static str,
    load: u32,
    service: Histogram<u64>,
    response: Histogram<u64>,
    ids: Vec<Id>,
}

impl Schedule {
    /// When a consumer takes for this time, counted from 0.
    fn due(self, origin: Instant, number: u64, consumer: usize) -> Instant {
        let place = number * self.consumers as u64 + consumer as u64;
        origin + Duration::from_nanos(place * 1_000_000_000 / u64::from(self.load))
    }

    /// Runs a contestant: `source` makes a consumer's way of taking an ID.
    ///
    /// # Panics
    ///
    /// If a take was refused.
    fn run<T>(self, name: &'static str, source: impl Fn() -> T + Sync) -> Row
    where
        T: FnMut() -> Result<Id, TakeError>,
    {
        let origin = Instant::now() + HEAD_START;
        let end = self.due(origin, self.takes, 0) + GRACE;
        let consume = |consumer: usize| {
            let mut take = source();
            let mut row = Row::new(name, self.load);
            // Written to beforehand, so that no page fault falls between takes.
            row.ids = vec![Id::from_u64(u64::MAX); self.takes as usize];
            row.ids.clear();
            let mut now = Instant::now();
            for number in 0..self.takes {
                let due = self.due(origin, number, consumer);
                while now < due {
                    spin_loop();
                    now = Instant::now();
                }
                let id = take().unwrap_or_else(|error| panic!("{name}: {error}"));
                let called = now;
                now = Instant::now();
                row.service
                    .saturating_record((now - called).as_nanos() as u64);
                row.response
                    .saturating_record((now - due).as_nanos() as u64);
                row.ids.push(id);
                if now > end {
                    break;
                }
            }
            row
        };
        let rows: Vec<Row> = thread::scope(|scope| {
            let consume = &consume;
            let consumers = (0..self.consumers).map(|number| scope.spawn(move || consume(number)));
            let consumers: Vec<_> = consumers.collect();
            let consumers = consumers.into_iter();
            consumers
                .map(|consumer| consumer.join().expect("a consumer panicked"))
                .collect()
        });
        let mut all = Row::new(name, self.load);
        for row in rows {
            all.service += row.service;
            all.response += row.response;
            all.ids.extend(row.ids);
        }
        all
    }
}

impl Row {
    fn new(name: &'static str, load: u32) -> Self {
        let histogram = || Histogram::new_with_max(3_600_000_000_000, 2).expect("valid bounds");
        Self {
            name,
            load,
            service: histogram(),
            response: histogram(),
            ids: Vec::new(),
        }
    }

    /// The row, if no ID came twice.
    ///
    /// # Panics
    ///
    /// If one did.
    fn checked(mut self) -> Self {
        let cipher = stock::cipher();
        let ids = std::mem::take(&mut self.ids);
        let mut raws: Vec<u64> = ids.iter().map(|id| cipher.decrypt(id.to_u64())).collect();
        raws.sort_unstable();
        let twice = raws.windows(2).find(|pair| pair[0] == pair[1]);
        assert!(twice.is_none(), "{}: {twice:x?} came twice", self.name);
        self
    }
}

/// Prints the quantiles of one figure of each row.
fn print_table(rows: &[Row], figures: fn(&Row) -> &Histogram<u64>) {
    println!("| takes/s | contestant | p50 | p99 | p99.9 | p99.99 | max |");
    println!("|---:|---|---:|---:|---:|---:|---:|");
    for row in rows {
        let load = row.load / 1_000_000;
        let quantiles = [0.5, 0.99, 0.999, 0.9999, 1.0];
        let cells = quantiles.map(|quantile| figures(row).value_at_quantile(quantile).to_string());
        println!("| {load} M | {} | {} |", row.name, cells.join(" | "));
    }
}
