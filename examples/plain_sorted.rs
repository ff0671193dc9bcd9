//! Plain IDs as keys of a B-tree: new keys go to its end.
//!
//! Encrypted IDs are spread evenly over all 64 bits, so each insert into an index touches another
//! page. Plain IDs grow with time. The price: any two of them show how many were made in between.
//!
//! The layout has 63 bits, so that keys stay positive as a signed `BIGINT`. With 64 bits half
//! of them are negative there, and sort before all others.
//!
//! IDs come in order only from one ring that one producer fills. By default each core has its own
//! ring, with IDs of other moments, and takes may make some, too.
//!
//! ```sh
//! cargo run --example plain_sorted
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use ringflake::{CachedGenerator, Clock, Id, Layout, OnEmpty, StaticLease, SystemClock};

const ROWS: usize = 10_000;

/// IDs in a handle.
const STOCK: usize = 128;

fn main() -> Result<(), Box<dyn Error>> {
    let layout = Layout::POSITIVE;
    let before = SystemClock.unix_ms();
    let ids = CachedGenerator::builder(layout)
        .plain()
        .lease(StaticLease::assume_unique(layout, 0..32))
        // The clock that the generator reads by default is up to 10 ms behind `before`.
        .clock(SystemClock)
        .stripes(1)
        .assist_fill(None)
        .on_empty(OnEmpty::Wait(Duration::from_secs(60)))
        .build()?;

    // So no key is ever negative, and the database sees the same order.
    assert!(layout.total_bits() < 64);

    // One consumer gets its IDs in order.
    let mut table = BTreeMap::new();
    for row in 0..ROWS {
        let key = ids.take()?;
        let last = table.last_key_value().map(|(&last, _)| last);
        assert!(last < Some(key), "a key was not the largest so far");
        table.insert(key, row);
    }
    println!("{ROWS} rows by one consumer, each at the end of the tree");

    // With several consumers keys are k-sorted: each holds a stock of 128, so a
    // key arrives at most a stock a consumer away from its sorted place.
    let (mut one, mut other) = (ids.handle()?, ids.handle()?);
    let mut arrivals = Vec::new();
    for _ in 0..ROWS / 2 {
        arrivals.extend([one.take()?, other.take()?]);
    }
    let furthest = furthest_from_its_place(&arrivals);
    println!("{ROWS} rows by two consumers, none more than {furthest} places off");
    assert!((1..=2 * STOCK).contains(&furthest));

    // The time is in the key, so an index on the key is one on the time too:
    // here, all rows since this example began.
    table.extend(arrivals.into_iter().zip(ROWS..));
    let tick = layout.tick_at(before).ok_or("the clock is before 2024")?;
    let since = Id::from_u64(layout.pack(tick, 0, 0)?);
    let recent = table.range(since..).count();
    println!("{recent} rows since the start, by a range of keys");
    assert_eq!(recent, 2 * ROWS);
    Ok(())
}

/// The most places that a key lies from where sorting would put it.
fn furthest_from_its_place(keys: &[Id]) -> usize {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|&arrival| keys[arrival]);
    let places = order.iter().enumerate();
    places
        .map(|(place, &arrival)| place.abs_diff(arrival))
        .max()
        .unwrap_or(0)
}
