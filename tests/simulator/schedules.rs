//! Many schedules with every rule in place.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Instant;

use ringflake_kit::short_or_long;

use crate::coverage::{Coverage, Tally};
use crate::mutations::{Mutation, TABLE};
use crate::oracle::Watch;
use crate::service::Backend;
use crate::world::{Outcome, Run};

/// How many schedules a plain test run takes, and one in full; `RINGFLAKE_SCHEDULES`
/// says otherwise. The fewer meet all that there is to meet.
const SCHEDULES: [u64; 2] = [4_000, 200_000];

/// How many a thread takes at a time.
const BATCH: u64 = 100;

/// What many schedules came to.
struct Total {
    steps: u64,
    grants: u64,
    cells: u64,
    doubles: u64,
    tally: Tally,
}

impl Total {
    fn of(outcome: Outcome) -> Self {
        Self {
            steps: outcome.steps,
            grants: outcome.grants,
            cells: outcome.cells,
            doubles: outcome.doubles,
            tally: outcome.tally,
        }
    }

    fn plus(mut self, other: &Self) -> Self {
        self.steps += other.steps;
        self.grants += other.grants;
        self.cells += other.cells;
        self.doubles += other.doubles;
        self.tally.add(&other.tally);
        self
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, what) in [
            (self.steps, "events"),
            (self.grants, "intervals given away"),
            (self.cells, "cells issued"),
            (
                self.doubles,
                "of them twice, by copies without a hook and by stores that forgot",
            ),
        ] {
            writeln!(f, "{number:>12} {what}")?;
        }
        write!(f, "{}", self.tally)
    }
}

/// How to see a schedule event by event.
pub(crate) fn replay(run: Run) -> String {
    let mutation = run.mutation.map_or_else(String::new, |mutation| {
        format!(" RINGFLAKE_MUTATION={mutation:?}")
    });
    let seed = run.seed;
    format!("RINGFLAKE_SEED={seed}{mutation} cargo test --test simulator no_promise -- --nocapture")
}

pub(crate) fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.replace('_', "").parse();
    Some(number.unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

/// The run that the environment asks to see.
fn asked_for() -> Option<Run> {
    let seed = number("RINGFLAKE_SEED")?;
    let run = match std::env::var("RINGFLAKE_MUTATION") {
        Ok(name) => {
            let mut all = TABLE.iter().map(|row| row.mutation);
            let mutation = all.find(|mutation| format!("{mutation:?}") == name);
            Run::mutated(
                seed,
                mutation.unwrap_or_else(|| panic!("no mutation {name}")),
            )
        }
        Err(_) => Run::sound(seed),
    };
    Some(Run { trace: true, ..run })
}

/// Does `work` for each seed, on two threads; the results in no order.
pub(crate) fn spread<T: Send>(seeds: Range<u64>, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicU64::new(seeds.start);
    let worker = || {
        let mut done = Vec::new();
        loop {
            // Relaxed: the number stands for itself.
            let seed = next.fetch_add(1, Relaxed);
            if seed >= seeds.end {
                return done;
            }
            done.push(work(seed));
        }
    };
    thread::scope(|scope| {
        let workers = [scope.spawn(worker), scope.spawn(worker)];
        let join = |worker: thread::ScopedJoinHandle<'_, Vec<T>>| {
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().flat_map(join).collect()
    })
}

/// Panics with a way to see more.
#[track_caller]
pub(crate) fn must_hold(run: Run) -> Outcome {
    let outcome = run.outcome();
    if let Some(violation) = &outcome.violation {
        panic!(
            "seed {}, step {}: {violation}\nsee it with: {}",
            run.seed,
            outcome.steps,
            replay(run)
        );
    }
    outcome
}

#[test]
fn no_promise_is_broken() {
    if let Some(run) = asked_for() {
        must_hold(run);
        return;
    }
    let schedules = number("RINGFLAKE_SCHEDULES");
    let schedules = schedules.unwrap_or_else(|| short_or_long(SCHEDULES[0], SCHEDULES[1]));
    let begun = Instant::now();
    let totals = spread(0..schedules.div_ceil(BATCH), |batch| {
        let seeds = batch * BATCH..schedules.min((batch + 1) * BATCH);
        let totals = seeds.map(|seed| Total::of(must_hold(Run::sound(seed))));
        totals.reduce(|sum, total| sum.plus(&total))
    });
    let totals = totals.into_iter().flatten();
    let total = totals.reduce(|sum, total| sum.plus(&total));
    let total = total.expect("at least one schedule");
    println!(
        "{schedules} schedules in {:.1?}, which met:\n{total}\
         more: RINGFLAKE_SCHEDULES=1_000_000 cargo test --test simulator no_promise -- --nocapture",
        begun.elapsed(),
    );
    let missing = total.tally.missing();
    assert!(
        missing.is_empty() || schedules < SCHEDULES[0],
        "never met: {missing:?}"
    );
    let Total { cells, doubles, .. } = total;
    // What is said of clones is no excuse for anything else: it is rare, and it
    // does occur.
    let most = if schedules < SCHEDULES[0] {
        cells
    } else {
        cells / 50
    };
    assert!(doubles <= most, "{doubles} of {cells}");
    assert!(
        doubles > 0 || schedules < SCHEDULES[0],
        "no clone ever mattered"
    );
}

#[test]
fn a_seed_makes_the_same_schedule_every_time() {
    let digests: Vec<_> = (0..50)
        .map(|seed| Run::sound(seed).outcome().digest)
        .collect();
    for (seed, digest) in digests.iter().enumerate() {
        assert_eq!(
            Run::sound(seed as u64).outcome().digest,
            *digest,
            "seed {seed}"
        );
    }
    let distinct: std::collections::BTreeSet<_> = digests.iter().collect();
    assert_eq!(distinct.len(), digests.len());
}

/// What is shown with the simulation's own store is shown of the reference.
#[test]
fn the_model_store_is_the_reference() {
    spread(0..short_or_long(400, 3_000), |seed| {
        let reference = Run::sound(seed);
        let model_store = Run {
            backend: Backend::ModelStore(None),
            ..reference
        };
        assert_eq!(
            model_store.outcome().digest,
            reference.outcome().digest,
            "seed {seed}"
        );
    });
}

/// A renewal compares epoch and end, and the end alone would do: a later grant of
/// the block ends later than any end that an earlier holder can know, unless the
/// store forgets. The epoch is there to tell the holder what happened.
#[test]
fn the_comparison_of_ends_implies_that_of_epochs() {
    spread(0..short_or_long(400, 3_000), |seed| {
        let sound = Run {
            backend: Backend::ModelStore(None),
            ..Run::sound(seed)
        };
        let sound = sound.outcome();
        if sound.tally.has_met(Coverage::RollBack) {
            return;
        }
        let without = Run::mutated(seed, Mutation::RenewalIgnoresEpoch);
        assert_eq!(without.outcome().digest, sound.digest, "seed {seed}");
    });
}

/// The two ways of watching see the same schedules.
#[test]
fn watching_changes_nothing() {
    spread(0..short_or_long(300, 3_000), |seed| {
        let promises = Run::sound(seed);
        let duplicates = Run {
            watch: Watch::Duplicates,
            ..promises
        };
        assert_eq!(
            duplicates.outcome().digest,
            promises.outcome().digest,
            "seed {seed}"
        );
    });
}
