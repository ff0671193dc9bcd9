//! Many schedules with every rule in place.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Instant;

use ringflake_kit::short_or_long;

use crate::coverage::Coverage;
use crate::mutations::{Mutation, TABLE};
use crate::oracle::Watch;
use crate::service::Backend;
use crate::world::{Outcome, Run};

/// How many schedules a plain test run takes, and one in full; `RINGFLAKE_SCHEDULES`
/// says otherwise. The fewer meet all that there is to meet.
const SCHEDULES: [u64; 2] = [4_000, 200_000];

/// How many a thread takes at a time.
const BATCH: u64 = 100;

impl Outcome {
    fn plus(mut self, other: &Self) -> Self {
        self.steps += other.steps;
        self.grants += other.grants;
        self.cells += other.cells;
        self.doubles += other.doubles;
        self.tally.add(&other.tally);
        self
    }
}

impl fmt::Display for Outcome {
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
        let totals = seeds.map(|seed| must_hold(Run::sound(seed)));
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
    if schedules < SCHEDULES[0] {
        return;
    }
    let missing = total.tally.missing();
    assert!(missing.is_empty(), "never met: {missing:?}");
    let Outcome { cells, doubles, .. } = total;
    // What is said of clones is no excuse for anything else: it is rare, and it
    // does occur.
    assert!(doubles <= cells / 50, "{doubles} of {cells}");
    assert!(doubles > 0, "no clone ever mattered");
}

#[test]
fn a_seed_makes_the_same_schedule_every_time() {
    let digest = |seed| Run::sound(seed).outcome().digest;
    let digests: Vec<_> = (0..50).map(digest).collect();
    for (seed, first) in (0..).zip(&digests) {
        assert_eq!(digest(seed), *first, "seed {seed}");
    }
    let distinct: std::collections::BTreeSet<_> = digests.iter().collect();
    assert_eq!(distinct.len(), digests.len());
}

/// The schedule of each seed is the same when it is run in another way.
fn assert_same(seeds: u64, other: impl Fn(Run) -> Run + Sync) {
    spread(0..seeds, |seed| {
        let run = Run::sound(seed);
        let (expected, digest) = (run.outcome().digest, other(run).outcome().digest);
        assert_eq!(digest, expected, "seed {seed}");
    });
}

/// What is shown with the simulation's own store is shown of the reference.
#[test]
fn the_model_store_is_the_reference() {
    assert_same(short_or_long(400, 3_000), |reference| Run {
        backend: Backend::ModelStore(None),
        ..reference
    });
}

/// The two ways of watching see the same schedules.
#[test]
fn watching_changes_nothing() {
    assert_same(short_or_long(300, 3_000), |promises| Run {
        watch: Watch::Duplicates,
        ..promises
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
