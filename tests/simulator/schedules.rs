//! Many schedules with every rule in place.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use ringflake_kit::short_or_long;

use crate::coverage::Tally;
use crate::mutations::{Mutation, TABLE};
use crate::oracle::Watch;
use crate::scenario::every_fault;
use crate::world::{Outcome, Run};

/// What schedules must meet, beside every fault.
const MUST_MEET: [&str; 33] = [
    "acquired",
    "answered by a superseded primary",
    "awake past the end of a lease",
    "cells issued twice",
    "checked",
    "clocks apart",
    "exhausted",
    "fenced by end",
    "fenced by epoch",
    "fenced by floor",
    "fenced by incarnation",
    "fenced: never granted",
    "fenced: quarantined",
    "fewer blocks than wanted",
    "floor ahead",
    "history lost, and noticed",
    "outcome unknown",
    "past below the floor",
    "past granted",
    "past that is not over",
    "past without a block",
    "released",
    "renewed",
    "reply after invalidate",
    "reply after the time-out",
    "reply delivered twice",
    "reply lost",
    "reply to both copies",
    "request delivered twice",
    "request lost",
    "server before the epoch",
    "store unavailable",
    "ticks given again before a loss was noticed",
];

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

/// How many schedules to run: `RINGFLAKE_SCHEDULES`, or else as many as a plain run of the
/// tests takes, or one in full.
pub(crate) fn schedules(plain: u64) -> u64 {
    number("RINGFLAKE_SCHEDULES").unwrap_or_else(|| short_or_long(plain, 200_000))
}

/// The run that the environment asks to see.
fn asked_for() -> Option<Run> {
    let sound = Run {
        trace: true,
        ..Run::sound(number("RINGFLAKE_SEED")?)
    };
    let Ok(name) = std::env::var("RINGFLAKE_MUTATION") else {
        return Some(sound);
    };
    let mut all = TABLE.iter().map(|row| row.mutation);
    let mutation = all.find(|mutation| format!("{mutation:?}") == name);
    Some(sound.without(mutation.unwrap_or_else(|| panic!("no mutation {name}"))))
}

/// Does `work` for each seed, on two threads; the results in no order.
pub(crate) fn spread<T: Send>(seeds: Range<u64>, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicU64::new(seeds.start);
    // Relaxed: the number stands for itself.
    let seeds = || Some(next.fetch_add(1, Relaxed)).filter(|seed| *seed < seeds.end);
    let worker = || std::iter::from_fn(seeds).map(&work).collect::<Vec<_>>();
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

/// All that the schedules of these seeds met.
pub(crate) fn total(seeds: Range<u64>, schedule: impl Fn(u64) -> Tally + Sync) -> Tally {
    let total = Mutex::new(Tally::default());
    spread(seeds, |seed| {
        let met = schedule(seed);
        total.lock().unwrap().add(&met);
    });
    total.into_inner().unwrap()
}

/// Panics with a way to see more.
#[track_caller]
pub(crate) fn must_hold(run: Run) -> Outcome {
    let outcome = run.outcome();
    if let Some(violation) = &outcome.violation {
        let (seed, step) = (run.seed, outcome.steps);
        let replay = replay(run);
        panic!("seed {seed}, step {step}: {violation}\nsee it with: {replay}");
    }
    outcome
}

#[test]
fn no_promise_is_broken() {
    if let Some(run) = asked_for() {
        must_hold(run);
        return;
    }
    // The fewest that meet all that there is to meet.
    let plain = 4_000;
    let schedules = schedules(plain);
    let begun = Instant::now();
    let total = total(0..schedules, |seed| must_hold(Run::sound(seed)).tally);
    println!(
        "{schedules} schedules in {:.1?}, which met:\n{total}\
         more: RINGFLAKE_SCHEDULES=1_000_000 cargo test --test simulator no_promise -- --nocapture",
        begun.elapsed(),
    );
    if schedules < plain {
        return;
    }
    total.assert_met(MUST_MEET);
    total.assert_met(every_fault().map(|fault| format!("{fault:?}")));
    // The exception for clones must stay rare.
    let cells = total.times("cells issued");
    let doubles = total.times("cells issued twice");
    assert!(doubles <= cells / 50, "{doubles} of {cells}");
}

#[test]
fn a_seed_makes_the_same_schedule_however_it_is_run() {
    let digests = spread(0..short_or_long(400, 3_000), |seed| {
        let sound = Run::sound(seed);
        let digest = sound.outcome().digest;
        for (why, run) in [
            ("it is run once more", sound),
            (
                "watching changes nothing",
                Run {
                    watch: Watch::Duplicates,
                    ..sound
                },
            ),
        ] {
            assert_eq!(run.outcome().digest, digest, "{why}: seed {seed}");
        }
        digest
    });
    let distinct: BTreeSet<_> = digests.iter().collect();
    assert_eq!(distinct.len(), digests.len());
}

/// A renewal compares epoch and end, and the end alone would do: a later grant of
/// the block ends later than any end that an earlier holder can know, unless the
/// store loses writes. The epoch is there to tell the holder what happened.
#[test]
fn the_comparison_of_ends_implies_that_of_epochs() {
    // A replica that takes over lacks the writes since its last replication.
    const LOSE_WRITES: [&str; 3] = ["RollBack", "FailOver", "FailOverBehindSleeper"];
    let seeds = short_or_long(400, 3_000);
    let compared = spread(0..seeds, |seed| {
        let sound = Run::sound(seed).outcome();
        let keeps_writes = LOSE_WRITES.map(|fault| sound.tally.times(fault)) == [0; 3];
        if keeps_writes {
            let without = Run::sound(seed).without(Mutation::RenewalIgnoresEpoch);
            assert_eq!(without.outcome().digest, sound.digest, "seed {seed}");
        }
        keeps_writes
    });
    let count = compared.into_iter().filter(|&compared| compared).count();
    assert!(
        count as u64 > seeds / 3,
        "only {count} of {seeds} seeds compared"
    );
}
