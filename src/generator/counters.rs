//! Counters of consumers, on lines that consumers don't share.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::empty::TakeError;
use super::stats::TakeFailures;
use crate::fill::MadeInPlace;
use crate::per_core::PerCore;
use crate::timeline::RefusalCounters;

/// The counts of consumers that find all stripes dry: for each core on a line of its own,
/// because consumers would contend only here.
#[derive(Debug)]
pub(super) struct DryCounters(PerCore<Counts>);

#[derive(Debug, Default)]
struct Counts {
    empties: AtomicU64,
    in_place: AtomicU64,
    given: AtomicU64,
    refused: RefusalCounters,
    empty: AtomicU64,
    timed_out: AtomicU64,
}

impl DryCounters {
    /// For as many cores as there are stripes.
    pub(super) fn new(count: usize) -> Self {
        Self(PerCore::new(count, |_| Counts::default()))
    }

    /// A take or a batch ran dry.
    pub(super) fn ran_dry(&self) {
        // Relaxed, here and below: figures for people.
        self.here().empties.fetch_add(1, Relaxed);
    }

    /// A consumer made IDs itself.
    pub(super) fn made_in_place(&self, made: MadeInPlace) {
        let MadeInPlace { given, stocked } = made;
        let here = self.here();
        here.in_place.fetch_add((given + stocked) as u64, Relaxed);
        here.given.fetch_add(given as u64, Relaxed);
    }

    /// A take or a batch gave no ID.
    pub(super) fn failed(&self, error: TakeError) {
        let here = self.here();
        match error {
            TakeError::Empty => _ = here.empty.fetch_add(1, Relaxed),
            TakeError::TimedOut { .. } => _ = here.timed_out.fetch_add(1, Relaxed),
            TakeError::Refused(refused) => here.refused.count(refused),
            // Not an error of a generator's.
            TakeError::NotInitialised | TakeError::NoPage { .. } => {}
        }
    }

    pub(super) fn failures(&self) -> TakeFailures {
        let mut failures = TakeFailures {
            empty: self.sum(|counts| &counts.empty),
            timed_out: self.sum(|counts| &counts.timed_out),
            ..TakeFailures::default()
        };
        for counts in self.0.iter() {
            counts.refused.add_to(&mut failures.refused);
        }
        failures
    }

    pub(super) fn empties(&self) -> u64 {
        self.sum(|counts| &counts.empties)
    }

    pub(super) fn in_place(&self) -> u64 {
        self.sum(|counts| &counts.in_place)
    }

    /// Those of `in_place` that went to the consumer at once, and not through a ring.
    pub(super) fn given(&self) -> u64 {
        self.sum(|counts| &counts.given)
    }

    fn sum(&self, counter: impl Fn(&Counts) -> &AtomicU64) -> u64 {
        let counts = self.0.iter().map(|counts| counter(counts).load(Relaxed));
        counts.sum()
    }

    fn here(&self) -> &Counts {
        &self.0[self.0.here()]
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::timeline::Refused;

    #[test]
    fn the_sums_are_those_of_all_cores() {
        let counters = DryCounters::new(2);
        for count in 1..=500usize {
            let note = || {
                counters.ran_dry();
                counters.made_in_place(MadeInPlace {
                    given: count,
                    stocked: 0,
                });
                counters.failed(TakeError::Empty);
                counters.failed(TakeError::TimedOut {
                    waited: Duration::ZERO,
                });
                counters.failed(TakeError::NotInitialised);
                counters.failed(TakeError::Refused(Refused::Invalidated));
            };
            thread::scope(|scope| _ = scope.spawn(note));
        }
        assert_eq!((counters.empties(), counters.in_place()), (500, 125_250));
        let failures = counters.failures();
        assert_eq!((failures.empty, failures.timed_out), (500, 500));
        assert_eq!(failures.refused.invalidated, 500);
    }
}
