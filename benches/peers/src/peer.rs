//! What is measured of a generator, and how.

use std::fmt::Debug;
use std::time::Duration;

use crate::Effort;
use crate::race::{Contest, Plan};

/// IDs that each thread keeps for the checks, at most.
const KEPT: u64 = 1 << 21;

/// The longest that the run for the checks takes.
const CHECK: Duration = Duration::from_millis(500);

/// A generator in the table.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// Size of an ID.
    pub(crate) bits: u32,
    /// What a user would miss.
    pub(crate) cannot: &'static str,
    pub(crate) burst: Race,
    pub(crate) sustained: Race,
    /// The IDs in the burst's stock, if it has one.
    pub(crate) stock: Option<usize>,
}

/// What came of a generator on a number of threads.
pub(crate) struct Figures {
    /// Millions of IDs a second.
    pub(crate) burst: f64,
    /// Millions of IDs a second.
    pub(crate) sustained: f64,
    pub(crate) faults: Faults,
}

/// What is wrong with the IDs that were kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// IDs that had come before.
    pub(crate) duplicates: usize,
    /// IDs that are not what they should be.
    pub(crate) strange: usize,
}

/// A contest whose types have been forgotten.
pub(crate) struct Race {
    run: Box<dyn Fn(Plan) -> Measured>,
    /// IDs a call.
    batch: usize,
}

#[derive(Clone, Copy)]
struct Measured {
    /// Millions of IDs a second.
    rate: f64,
    given: u64,
    faults: Faults,
}

impl Race {
    /// A race of `contest`; `is_sane` knows what its IDs should be.
    pub(crate) fn new<Stock, Seat, Take, S, T, V, const N: usize>(
        contest: Contest<Stock, Seat, Take>,
        is_sane: fn(V) -> bool,
    ) -> Self
    where
        Stock: Fn() -> S + Sync + 'static,
        Seat: Fn(&S) -> T + Sync + 'static,
        Take: Fn(&S, &mut T, &mut [V; N]) -> bool + Sync + 'static,
        S: Send + Sync + 'static,
        T: 'static,
        V: Copy + Default + Ord + Debug + Send + 'static,
    {
        let run = move |plan| {
            let outcome = contest.race(plan);
            Measured {
                rate: 1e3 / outcome.nanos_each(),
                given: outcome.given,
                faults: Faults::among(outcome.kept().collect(), is_sane),
            }
        };
        Self {
            run: Box::new(run),
            batch: N,
        }
    }

    /// Millions of IDs a second, the median of `runs`.
    fn rate(&self, plan: Plan, runs: usize) -> f64 {
        let mut rates: Vec<f64> = (0..runs).map(|_| (self.run)(plan).rate).collect();
        rates.sort_by(f64::total_cmp);
        rates[runs / 2]
    }

    fn faults(&self, plan: Plan) -> Faults {
        let measured = (self.run)(plan.keeping());
        assert!(measured.given > 0, "no IDs to check");
        measured.faults
    }
}

impl Faults {
    fn among<V: Copy + Ord>(mut ids: Vec<V>, is_sane: fn(V) -> bool) -> Self {
        let strange = ids.iter().filter(|&&id| !is_sane(id)).count();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        Self {
            duplicates: all - ids.len(),
            strange,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            duplicates: self.duplicates + other.duplicates,
            strange: self.strange + other.strange,
        }
    }
}

impl Peer {
    /// Checks, then measures on `threads` threads.
    pub(crate) fn measure(&self, threads: usize, effort: Effort) -> Figures {
        let burst = match self.stock {
            Some(ids) => Plan::calls(threads, 1, (ids / self.burst.batch / threads) as u64),
            None => Plan::time(threads, effort.burst),
        };
        let sustained = Plan::time(threads, effort.sustained);

        let checked = Plan {
            calls: KEPT / self.sustained.batch as u64,
            ..Plan::time(threads, CHECK)
        };
        let mut faults = self.sustained.faults(checked);
        if self.stock.is_some() {
            faults = faults.and(self.burst.faults(burst));
        }
        Figures {
            burst: self.burst.rate(burst, effort.burst_runs),
            sustained: self.sustained.rate(sustained, effort.sustained_runs),
            faults,
        }
    }
}
