//! Counters of consumers, on lines that consumers don't share.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use crossbeam_utils::CachePadded;

/// Threads beyond this many share lines, which costs time and nothing else.
const STRIPES: usize = 16;

/// The counts of consumers that find the ring dry: each thread on a line of its
/// own, because consumers are fastest there and would contend only here.
#[derive(Debug, Default)]
pub(super) struct DryCounters {
    stripes: [CachePadded<Stripe>; STRIPES],
}

#[derive(Debug, Default)]
struct Stripe {
    empties: AtomicU64,
    in_place: AtomicU64,
}

impl DryCounters {
    /// A take or a batch ran dry.
    pub(super) fn ran_dry(&self) {
        // Relaxed, here and below: figures for people.
        self.stripe().empties.fetch_add(1, Relaxed);
    }

    /// A consumer made `count` IDs itself.
    pub(super) fn made_in_place(&self, count: u64) {
        self.stripe().in_place.fetch_add(count, Relaxed);
    }

    pub(super) fn empties(&self) -> u64 {
        self.sum(|stripe| &stripe.empties)
    }

    pub(super) fn in_place(&self) -> u64 {
        self.sum(|stripe| &stripe.in_place)
    }

    fn sum(&self, counter: impl Fn(&Stripe) -> &AtomicU64) -> u64 {
        let values = self.stripes.iter().map(|s| counter(s).load(Relaxed));
        values.sum()
    }

    fn stripe(&self) -> &Stripe {
        &self.stripes[thread_number() % STRIPES]
    }
}

/// A number for this thread, counted from 0 in the order of their first calls.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    // A thread that is ending has no number any more; any will do.
    NUMBER
        .try_with(|number| {
            if number.get() == usize::MAX {
                number.set(NEXT.fetch_add(1, Relaxed) & (usize::MAX >> 1));
            }
            number.get()
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn each_thread_keeps_a_number_of_its_own() {
        let numbers = || [thread_number(), thread_number()];
        let others = (0..3).map(|_| thread::spawn(numbers).join().unwrap());
        let mut all: Vec<_> = others.chain([numbers()]).collect();
        assert!(all.iter().all(|[first, second]| first == second), "{all:?}");
        assert!(all.iter().all(|&[number, _]| number < 1 << 20), "{all:?}");
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn the_sums_are_those_of_all_threads_however_many() {
        let counters = DryCounters::default();
        for count in 1..=500 {
            let note = || {
                counters.ran_dry();
                counters.made_in_place(count);
            };
            thread::scope(|scope| _ = scope.spawn(note));
        }
        assert_eq!((counters.empties(), counters.in_place()), (500, 125_250));
    }
}
