//! How many IDs of each tick were issued.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A count for each tick, which only grows.
pub(super) struct Counts {
    /// How many there are of a tick; at least 1.
    ids_a_tick: u64,
    /// No tick has an entry of 0.
    of_ticks: Mutex<HashMap<u64, u64>>,
}

/// Numbers of one tick that were claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) first: u64,
    /// Never 0.
    pub(super) len: usize,
}

impl Counts {
    pub(super) fn new(ids_a_tick: u64) -> Self {
        Self {
            ids_a_tick,
            of_ticks: Mutex::default(),
        }
    }

    pub(super) fn ids_a_tick(&self) -> u64 {
        self.ids_a_tick
    }

    pub(super) fn distinct_ticks(&self) -> usize {
        self.lock().len()
    }

    /// Claims the next numbers of `tick`, up to `most` of them, which is not 0; none where
    /// the tick is used up.
    pub(super) fn claim(&self, tick: u64, most: usize) -> Option<Part> {
        let mut of_ticks = self.lock();
        let count = of_ticks.entry(tick).or_default();
        let first = *count;
        let left = self.ids_a_tick - first;
        let len = left.min(most as u64);
        *count = first + len;
        // What fits `most` fits a `usize`.
        let len = len as usize;
        (len > 0).then_some(Part { first, len })
    }

    /// Nothing in here runs foreign code or unwinds half-way.
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, u64>> {
        self.of_ticks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_tick_follow_each_other_to_its_end() {
        let counts = Counts::new(10);
        let part = |first, len| Some(Part { first, len });
        assert_eq!(counts.claim(7, 4), part(0, 4));
        assert_eq!(counts.claim(7, 1), part(4, 1));
        assert_eq!(counts.claim(9, 3), part(0, 3));
        assert_eq!(counts.claim(7, 100), part(5, 5));
        assert_eq!(counts.claim(7, 1), None);
        assert_eq!(counts.claim(9, usize::MAX), part(3, 7));
        assert_eq!(counts.distinct_ticks(), 2);
    }
}
