//! The table: each rule, removed, is caught.

use ringflake_kit::short_or_long;

use crate::mutations::{Mutation, Row, TABLE};
use crate::oracle::Watch;
use crate::schedules::{must_hold, replay, spread};
use crate::world::{Outcome, Run};

/// Within how many seeds a mutation must be caught, and show a duplicate if it
/// can lead to one.
const CAUGHT_WITHIN: u64 = 20_000;

/// Where a plain run begins to look, for those that few seeds catch. It goes on with the
/// other seeds, so that a schedule that has changed costs time and no result.
const RARE: [(Mutation, u64); 10] = [
    (Mutation::RenewalIgnoresFloor, 120),
    (Mutation::TakesVoidReplies, 160),
    (Mutation::RepairIgnoresHorizon, 185),
    (Mutation::PastIgnoresFloor, 305),
    (Mutation::LazyCommit, 330),
    (Mutation::RenewalCutsMark, 425),
    (Mutation::RenewalIgnoresIncarnation, 1_410),
    (Mutation::PastKeepsMark, 3_150),
    (Mutation::RenewalIgnoresHorizon, 11_970),
    (Mutation::CommitIgnoresRecord, 18_925),
];

/// The first of these runs that breaks a promise.
fn first(mut runs: impl Iterator<Item = Run>) -> Option<(Run, Outcome)> {
    runs.find_map(|run| {
        let outcome = run.outcome();
        outcome.violation.is_some().then_some((run, outcome))
    })
}

fn line(row: &Row) -> String {
    let Row {
        mutation,
        what,
        breaks,
        duplicates,
    } = row;
    let run = |seed| Run::sound(seed).without(*mutation);
    let rare = RARE.iter().find(|(rare, _)| rare == mutation);
    let from = rare.map_or(0, |(_, seed)| short_or_long(*seed, 0));
    let mut seeds = (from..CAUGHT_WITHIN).chain(0..from);
    let Some((broken, outcome)) = first(seeds.by_ref().map(run)) else {
        panic!("{mutation:?} was not caught within {CAUGHT_WITHIN} seeds");
    };
    let (seed, steps) = (broken.seed, outcome.steps);
    let violation = outcome.violation.expect("it was caught");
    let promise = violation.promise;
    assert!(
        breaks.contains(&promise),
        "{mutation:?} should break {breaks:?}: {violation}\nsee it with: {}",
        replay(broken)
    );
    // With the rule in place the same seed is sound.
    must_hold(Run::sound(seed));

    let watched = |seed| Run {
        watch: Watch::Duplicates,
        ..run(seed)
    };
    // The seeds before broke no promise, and so issued nothing twice.
    let twice = match duplicates {
        true => first(std::iter::once(seed).chain(seeds).map(watched)),
        false => first((0..short_or_long(200, 3_000)).map(watched)),
    };
    assert_eq!(twice.is_some(), *duplicates, "{mutation:?}");
    let twice = twice.map_or("none".to_owned(), |(run, outcome)| {
        format!("{:>4} {:>5}", run.seed, outcome.steps)
    });
    let promise = format!("{promise:?}");
    format!("{what:<60} | {promise:<4} {seed:>4} {steps:>5} | {twice:>10} | {mutation:?}")
}

#[test]
fn every_mutation_is_caught() {
    let mut lines = spread(0..TABLE.len() as u64, |index| {
        (index, line(&TABLE[index as usize]))
    });
    lines.sort();
    println!(
        "{:<60} | {:<15} | {:<10} |\n{:<60} | {:>15} | {:>10} |",
        "without this rule", "broken first", "duplicate", "", "     seed  step", "seed  step"
    );
    for (_, line) in lines {
        println!("{line}");
    }
    println!(
        "the table: cargo test --test simulator every_mutation -- --nocapture\n\
         one of it: RINGFLAKE_SEED=<seed> RINGFLAKE_MUTATION=<name> \
         cargo test --test simulator no_promise -- --nocapture"
    );
}
