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

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

use ringflake::{CachedGenerator, Handle, Id, Layout, LayoutError};

use self::common::open_loop::{Schedule, print_table, print_timer};
use self::common::reference::Reference;
use self::common::{flags, stock, timer};

mod common;

const CONSUMERS: usize = 2;

/// Takes a second, by all consumers together.
const LOADS: [u32; 2] = [1_000_000, 10_000_000];

/// Seconds that each contestant runs under each load.
const SECONDS: f64 = 1.0;

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
            consumers: CONSUMERS,
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
