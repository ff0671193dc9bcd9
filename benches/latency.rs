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

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use ringflake::{Id, Layout, LayoutError, TakeError};

use self::common::flags;
use self::common::latency::{Schedule, print_tables};
use self::common::reference::Reference;
use self::common::stock;

mod common;

/// Threads that take, unless another number is asked for.
const CONSUMERS: usize = 2;

/// Takes a second, by all consumers together.
const LOADS: [u32; 2] = [1_000_000, 10_000_000];

/// Slots of a ring that lasts less than it takes to wake the producer, now and then.
const SMALL: usize = 4096;

/// Seconds that each contestant runs under each load.
const SECONDS: f64 = 1.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
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
            seconds,
        };
        rows.push(schedule.run("timer alone", || || Ok(black_box(Id::default()))));

        let ids = stock::live(|ids| ids);
        rows.push(schedule.run("ring", || || ids.take()).checked());
        makers.push(("ring", load, ids.stats()));

        let ids = stock::live(|ids| ids.capacity(SMALL));
        rows.push(schedule.run("small ring", || || ids.take()).checked());
        makers.push(("small ring", load, ids.stats()));

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
    print_tables(&rows);
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
        .tick(std::time::Duration::from_secs(1))
        .epoch_unix_ms(Layout::RANDFLAKE.epoch_unix_ms())
        .build()
}
