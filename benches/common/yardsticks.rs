//! What everybody knows the cost of, measured beside each contestant.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use criterion::BenchmarkGroup;
use criterion::measurement::WallTime;
use crossbeam_queue::ArrayQueue;
use crossbeam_utils::CachePadded;

use super::live_queue::LiveQueue;
use super::measure::{SLOTS, Supply, measure};
use super::race::{Contest, put};
use super::stock;

/// A number from an atomic counter. A million of these are unique in their
/// process, and no more than that.
pub(crate) fn fetch_add(group: &mut BenchmarkGroup<'_, WallTime>, threads: usize) {
    let counter = || CachePadded::new(AtomicU64::new(0));
    let contest = Contest::new(
        counter,
        |_| (),
        |counter, _, [number]: &mut [u64; 1]| {
            *number = counter.fetch_add(1, Relaxed);
            true
        },
    );
    // Each counter begins with 0, so there is one for a whole sample.
    let supply = Supply::Endless;
    measure(group, "fetch_add", threads, supply, &contest, |raw| raw);
}

/// A pop from an `ArrayQueue` that was filled before.
pub(crate) fn full_queue(group: &mut BenchmarkGroup<'_, WallTime>, threads: usize) {
    let contest = Contest::new(
        || stock::queue(SLOTS),
        |_| (),
        |queue: &ArrayQueue<u64>, _, [number]: &mut [u64; 1]| put(number, queue.pop()),
    );
    let supply = Supply::OneStock;
    measure(group, "array_queue", threads, supply, &contest, |raw| raw);
}

/// A pop from an `ArrayQueue` that another thread keeps filling.
pub(crate) fn live_queue(group: &mut BenchmarkGroup<'_, WallTime>) {
    let contest = Contest::new(
        LiveQueue::new,
        |_| (),
        |queue: &LiveQueue, _, [number]: &mut [u64; 1]| {
            *number = queue.pop();
            true
        },
    );
    measure(group, "array_queue", 1, Supply::Endless, &contest, |raw| {
        raw
    });
}
