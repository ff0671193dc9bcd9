//! The measurements of a generator.

use std::fmt::Debug;
use std::time::Duration;

use crate::Effort;
use crate::race::{Contest, Plan};

/// IDs that each thread keeps for the checks, at most.
const KEPT: u64 = 1 << 21;

/// The longest that the run for the checks takes.
const CHECK: Duration = Duration::from_millis(500);

/// A race of a fixed time.
fn timed(threads: usize, limit: Duration) -> Plan {
    Plan {
        limit: Some(limit),
        ..Plan::calls(threads, u64::MAX)
    }
}

/// A generator in the table.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// Size of an ID.
    pub(crate) bits: u32,
    /// Whether one generator is for all threads.
    pub(crate) is_shared: bool,
    /// It has nodes for no more threads.
    pub(crate) most_threads: usize,
    /// What a user would miss.
    pub(crate) cannot: &'static str,
    pub(crate) burst: Race,
    pub(crate) sustained: Race,
    /// The IDs in the burst's stock, if it has one.
    pub(crate) stock: Option<usize>,
}

/// Faults of the IDs that were kept.
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

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            duplicates: self.duplicates + other.duplicates,
            strange: self.strange + other.strange,
        }
    }
}

impl Peer {
    /// Says that one generator is for all threads.
    pub(crate) fn shared(self) -> Self {
        Self {
            is_shared: true,
            ..self
        }
    }

    /// Says that there are nodes for no more threads than these.
    pub(crate) fn up_to(self, most_threads: usize) -> Self {
        Self {
            most_threads,
            ..self
        }
    }

    /// Looks for what is wrong with the IDs.
    pub(crate) fn check(&self, threads: usize, effort: Effort) -> Faults {
        let checked = Plan {
            calls: KEPT / self.sustained.batch as u64,
            ..timed(threads, CHECK)
        };
        let faults = self.sustained.faults(checked);
        match self.stock {
            Some(_) => faults.and(self.burst.faults(self.burst_plan(threads, effort))),
            None => faults,
        }
    }

    /// Millions of IDs a second in one burst.
    pub(crate) fn burst(&self, threads: usize, effort: Effort) -> f64 {
        (self.burst.run)(self.burst_plan(threads, effort)).rate
    }

    /// Millions of IDs a second in one sustained run.
    pub(crate) fn sustained(&self, threads: usize, effort: Effort) -> f64 {
        (self.sustained.run)(timed(threads, effort.sustained)).rate
    }

    fn burst_plan(&self, threads: usize, effort: Effort) -> Plan {
        match self.stock {
            Some(ids) => Plan::calls(threads, (ids / self.burst.batch / threads) as u64).patient(),
            None => timed(threads, effort.burst),
        }
    }
}
