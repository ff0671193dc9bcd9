//! The table: each rule, removed, is caught.

use std::ops::Range;

use ringflake_kit::short_or_long;

use crate::mutations::{Mutation, Row, TABLE};
use crate::oracle::Watch;
use crate::schedules::{must_hold, replay, spread};
use crate::world::{Outcome, Run};

/// Within how many seeds a mutation must be caught, and show a duplicate if it
/// can lead to one.
const CAUGHT_WITHIN: u64 = 20_000;

/// For how many seeds one that leads to none is watched, in a plain run and in full.
const WATCHED_FOR: [u64; 2] = [200, 3_000];

/// Where a plain run begins to look for the duplicate of the one that has it so rarely.
const RARE: (Mutation, u64) = (Mutation::RenewalIgnoresHorizon, 9_000);

fn first(mut seeds: Range<u64>, run: impl Fn(u64) -> Run) -> Option<(Run, Outcome)> {
    seeds.find_map(|seed| {
        let run = run(seed);
        let outcome = run.outcome();
        outcome.violation.is_some().then_some((run, outcome))
    })
}

/// The line of the table for one rule.
fn line(row: &Row) -> String {
    let Row {
        mutation,
        what,
        breaks,
        duplicates,
    } = row;
    let broken = first(0..CAUGHT_WITHIN, |seed| Run::mutated(seed, *mutation));
    let Some((run, outcome)) = broken else {
        panic!("{mutation:?} was not caught within {CAUGHT_WITHIN} seeds");
    };
    let violation = outcome.violation.expect("it was caught");
    assert!(
        breaks.contains(&violation.promise),
        "{mutation:?} should break {breaks:?}: {violation}\nsee it with: {}",
        replay(run)
    );
    // With the rule in place the same seed is sound.
    must_hold(Run::sound(run.seed));

    let seeds = match duplicates {
        true if *mutation == RARE.0 => short_or_long(RARE.1, 0)..CAUGHT_WITHIN,
        true => 0..CAUGHT_WITHIN,
        false => 0..short_or_long(WATCHED_FOR[0], WATCHED_FOR[1]),
    };
    let twice = first(seeds, |seed| Run {
        watch: Watch::Duplicates,
        ..Run::mutated(seed, *mutation)
    });
    assert_eq!(twice.is_some(), *duplicates, "{mutation:?}");
    let twice = twice.map_or("none".to_owned(), |(run, outcome)| {
        format!("{:>4} {:>5}", run.seed, outcome.steps)
    });
    let promise = format!("{:?}", violation.promise);
    format!(
        "{what:<60} | {promise:<4} {:>4} {:>5} | {twice:>10} | {mutation:?}",
        run.seed, outcome.steps
    )
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
