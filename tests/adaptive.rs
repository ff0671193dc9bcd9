//! A threshold that moves: on a live ring.

#[path = "common/eventually.rs"]
mod eventually;
#[path = "common/small.rs"]
mod small;

use std::time::Duration;

use ringflake::{CachedGenerator, Id, OnEmpty, ThresholdFill};

use crate::eventually::eventually;
use crate::small::{clock_at, layout, lease, secret};

const CAPACITY: usize = 1000_usize.next_power_of_two();

/// 10 to 90 %: 103 to 922 slots.
const BOUNDS: (usize, usize) = (103, 922);

fn generator() -> CachedGenerator {
    let layout = layout(40, 8, 10);
    CachedGenerator::builder(layout)
        .secret(&secret())
        .lease(lease(layout, 0..16, 0..100_000))
        .clock(clock_at(layout, 0))
        .borrow_limit(Duration::from_secs(3600))
        .on_empty(OnEmpty::Error)
        .capacity(CAPACITY)
        .threshold_fill(ThresholdFill::adaptive().between(10, 90))
        .build()
        .unwrap()
}

/// Takes IDs until the level is just under the threshold, and waits for the fill.
fn cross(ids: &CachedGenerator) {
    let stats = ids.stats();
    if stats.level >= stats.threshold {
        let mut batch = vec![Id::default(); stats.level + 1 - stats.threshold];
        ids.take_batch(&mut batch).unwrap();
    }
    eventually("a crossing is a fill", || {
        let now = ids.stats();
        now.fills.threshold > stats.fills.threshold && now.level >= now.threshold
    });
}

#[test]
fn it_comes_down_while_nothing_is_taken_meanwhile_and_rises_when_the_ring_is_dry() {
    let ids = generator();
    assert_eq!(ids.stats().threshold, BOUNDS.1);
    eventually("it comes down", || {
        cross(&ids);
        ids.stats().threshold == BOUNDS.0
    });
    // Not to the brim: an eighth of the ring above the threshold at the most.
    cross(&ids);
    let level = ids.stats().level;
    assert!(
        (BOUNDS.0..=BOUNDS.0 + CAPACITY / 8).contains(&level),
        "{level}"
    );

    eventually("it rises", || {
        let mut all = [Id::default(); CAPACITY];
        // A take that finds nothing asks for a fill, too.
        let _ = ids.take_batch(&mut all);
        ids.stats().threshold == BOUNDS.1
    });
    assert_eq!(ids.stats().panics, 0);
}

#[test]
fn r4_no_wake_up_is_lost_while_it_moves() {
    let ids = generator();
    std::thread::scope(|scope| {
        for size in [1, 7, 64] {
            let ids = &ids;
            scope.spawn(move || {
                let mut batch = vec![Id::default(); size];
                let mut taken = 0;
                while taken < 50_000 {
                    taken += ids.take_batch(&mut batch).unwrap_or(0);
                }
            });
        }
    });
    eventually("the ring is filled", || {
        let stats = ids.stats();
        stats.level >= stats.threshold
    });
}
