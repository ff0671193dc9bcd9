//! Every state of a small world, breadth first, so that the way to a broken promise is the
//! shortest one. The schedules beside this are longer and of more kinds, but only samples.
//!
//! # World
//! One server with two blocks, two processes that want one each, and a few instants of true
//! time at which something begins or ends ([`INSTANTS`](state::INSTANTS)). The server is the
//! library's `Leases` over its `MemoryTable`, and the processes have the library's `Manager`.
//!
//! # Actions
//! A process does what its manager says, and gets the one or the other free block; time passes;
//! a copy is made of the table. Each of these goes wrong once at most: the reply to a commit is
//! lost, and the commit arrives later or never; the table is rolled back to the copy, with a new
//! incarnation or without; a process crashes or shuts down, and another takes its place; one
//! clock is hours ahead or behind; another process acquires between read and commit; a block is
//! damaged; an import asks for the past.
//!
//! # Properties
//! * S1: nothing is given twice of a block, nor below what was given before. After a roll-back
//!   without a new incarnation what is forgotten may be given again, until a request of one who
//!   knows better has taken effect: the guide promises no more.
//! * S2, S3: what a process issues is confirmed to it, and issued once. With S1, that is S4.
//! * S5: another secret is refused.
//! * S7: no end lies past the horizon by the server's clock.
//! * S8: no store grants to a request whose evidence it has forgotten, and nothing is given
//!   again that was given before a roll-back.
//! * Live: one wrong clock moves no end past the horizon. From every state, once clocks are
//!   right and the store answers, each process gets a lease in four turns after horizon and
//!   failover time, or in four more after the same time where it is the first to notice a loss.
//!
//! # Reduction
//! A state is stored whole: all that connections and server share is put back before each
//! action. States with the same digest are visited once. The digest leaves out
//! * the times of requests. The monotonic clock goes an hour forward with each turn, so all that
//!   a manager plans is due. It wants one block, so what is due is one request alone. When it is
//!   its turn is open. This has more orders than a manager's own times allow, and one fewer: a
//!   block that was given up is released at the end only.
//! * what a connection has cached, but for whether the table has changed since. A stale value
//!   makes a commit conflict, and a conflict is decided from what is stored.
//! * when and to whom a block was granted: no rule depends on it.
//! * what was given, but for its end, since S1 asks here for nothing below that; and what was
//!   issued, since everything is issued as soon as it is confirmed.
//! * a copy of the table once no roll-back can come.
//! * which process and which block is which: a state is that of its mirror image.
//!
//! `RINGFLAKE_INSTANTS` and `RINGFLAKE_FAULTS` make the world larger.

mod state;
mod world;

use std::collections::{HashSet, VecDeque};
use std::fmt::Write;
use std::time::Instant;

use ringflake::lease::{History, Init};
use ringflake_kit::short_or_long;

use self::state::{Action, FAR, Fault, State, Swap};
use self::world::World;
use crate::mutations::{Mutation, Promise, Row, TABLE};
use crate::oracle::Violation;
use crate::scenario::START_MS;
use crate::schedules::{number, spread};

const ALL: &[Fault] = &[
    Fault::Loss,
    Fault::RollBack,
    Fault::Restart,
    Fault::Clock,
    Fault::Rival,
    Fault::Damage,
    Fault::Import,
];

struct Step {
    from: usize,
    action: Action,
}

struct Found {
    states: usize,
    transitions: usize,
    /// A promise that is broken, and the shortest way there.
    violation: Option<(Violation, Vec<Action>)>,
}

/// Visits every state from the start, unless a promise is broken.
fn search(mut world: World) -> Found {
    let start = world.start();
    let mut seen = HashSet::from([start.digest()]);
    let mut looked_at = HashSet::new();
    // How each state but the first was reached.
    let mut steps = Vec::new();
    let mut next = VecDeque::from([(0, start)]);
    let mut transitions = 0;
    let mut violation = None;
    'search: while let Some((index, state)) = next.pop_front() {
        if let Err(broken) = check(&mut world, &state, &mut looked_at) {
            violation = Some((broken, path(&steps, index)));
            break;
        }
        for action in world.actions(&state) {
            transitions += 1;
            let from = index;
            match world.after(&state, action) {
                Err(broken) => {
                    steps.push(Step { from, action });
                    violation = Some((broken, path(&steps, steps.len())));
                    break 'search;
                }
                Ok(state) if seen.insert(state.digest()) => {
                    steps.push(Step { from, action });
                    next.push_back((steps.len(), state));
                }
                Ok(_) => {}
            }
        }
    }
    Found {
        states: seen.len(),
        transitions,
        violation,
    }
}

/// Checks a state by itself, once for all states that differ only in irrelevant parts.
fn check(world: &mut World, state: &State, looked_at: &mut HashSet<u64>) -> Result<(), Violation> {
    for who in 0..2 {
        if looked_at.insert(state.digest_of(who)) {
            world.check_recovery(state, who)?;
        }
    }
    match looked_at.insert(state.table_digest(Swap(false))) {
        true => world.resist(state),
        false => Ok(()),
    }
}

fn path(steps: &[Step], mut at: usize) -> Vec<Action> {
    let mut path = Vec::new();
    while let Some(step) = at.checked_sub(1).map(|before| &steps[before]) {
        path.push(step.action);
        at = step.from;
    }
    path.reverse();
    path
}

fn describe(violation: &Violation, path: &[Action]) -> String {
    let mut text = format!("{violation}\nafter");
    for (index, action) in path.iter().enumerate() {
        write!(text, "\n{:>4} {action:?}", index + 1).expect("it is a text");
    }
    text
}

/// Visits all that this menu of faults leads to, so many of them together.
fn must_hold(instants: u64, menu: &'static [Fault], faults: u64) {
    let instants = number("RINGFLAKE_INSTANTS").unwrap_or(instants) as usize;
    let faults = number("RINGFLAKE_FAULTS").unwrap_or(faults) as usize;
    let begun = Instant::now();
    let found = search(World::new(None, instants, menu, faults));
    let (states, transitions) = (found.states, found.transitions);
    println!(
        "{states} states, {transitions} transitions in {:.1?}",
        begun.elapsed()
    );
    if let Some((violation, path)) = &found.violation {
        panic!("{}", describe(violation, path));
    }
}

#[test]
fn no_state_breaks_a_promise_after_one_fault() {
    must_hold(3, ALL, 1);
}

/// Any two of a loss, a roll-back and a restart; all three in the long form, which visits seven
/// times as many states.
#[test]
fn no_state_breaks_a_promise_after_several_faults() {
    let faults = short_or_long(2, 3);
    must_hold(2, &[Fault::Loss, Fault::RollBack, Fault::Restart], faults);
}

/// All clocks were hours ahead when the namespace was made, and are right since. One that has no
/// past needs no floor; at the wrong time, it would stop all grants for as long.
#[test]
fn a_first_use_with_clocks_ahead_is_no_outage() {
    let wrong_ms = START_MS + FAR.unsigned_abs() * 1000;
    let broken_after = |history| {
        let init = Init::new(history, wrong_ms);
        let found = search(World::begun(init, None, 3, &[Fault::Restart], 1));
        found.violation.map(|(violation, _)| violation.promise)
    };
    assert_eq!(broken_after(History::Unused), None);
    assert_eq!(broken_after(History::New), Some(Promise::Live));
}

/// The faults that reveal a mutation.
fn menu(mutation: Mutation) -> &'static [Fault] {
    match mutation {
        Mutation::FingerprintIgnored | Mutation::IssuesPastTheEnd => &[],
        Mutation::ReleaseLowersMark
        | Mutation::RenewalKeepsMark
        | Mutation::RenewalIgnoresEpochAndEnd
        | Mutation::AcquireIgnoresMark
        | Mutation::AcquireIgnoresHorizon
        | Mutation::TimeToLive
        | Mutation::LazyCommit
        | Mutation::IgnoresFence
        | Mutation::CursorRestarts => &[Fault::Restart],
        Mutation::RenewalIgnoresFloor | Mutation::RenewalIgnoresIncarnation => {
            &[Fault::RollBack, Fault::Restart]
        }
        Mutation::RenewalCutsMark => &[Fault::Clock, Fault::Restart],
        Mutation::CommitIgnoresBlocks => &[Fault::Rival],
        Mutation::CommitIgnoresRecord => &[Fault::RollBack, Fault::Rival],
        Mutation::CommitIgnoresTime | Mutation::RenewalIgnoresHorizon | Mutation::SkewIgnored => {
            &[Fault::Clock]
        }
        Mutation::AdoptsAmbiguousAcquire | Mutation::AdoptsAmbiguousRenewal => &[Fault::Loss],
        Mutation::QuarantineIgnored | Mutation::RepairIgnoresHorizon => &[Fault::Damage],
        Mutation::PastIgnoresMark | Mutation::PastKeepsMark => &[Fault::Import],
        Mutation::PastIgnoresFloor => &[Fault::RollBack, Fault::Import],
        _ => &[Fault::RollBack],
    }
}

/// Mutations that this world can't express, and why.
const ELSEWHERE: [(Mutation, &str); 8] = [
    (
        Mutation::FloorIgnoresFailover,
        "no second server is superseded",
    ),
    (Mutation::Tokens, "no request arrives twice"),
    (
        Mutation::ResendsAmbiguous,
        "a commit whose reply was lost arrives after the turn",
    ),
    (Mutation::TakesLateReplies, "a reply comes at once or never"),
    (Mutation::TakesVoidReplies, "no process is copied"),
    (Mutation::KeepsGrantsAtResume, "no process is copied"),
    (Mutation::ForkedChildIssues, "no process is copied"),
    (
        Mutation::CursorFollowsClockBack,
        "a generator issues at once, whatever the time",
    ),
];

/// The line of the table for one rule.
fn line(row: &Row) -> String {
    let (mutation, what) = (row.mutation, row.what);
    if let Some((_, why)) = ELSEWHERE.iter().find(|(other, _)| *other == mutation) {
        return format!("{what:<60} | not here: {why}");
    }
    let menu = menu(mutation);
    let found = search(World::new(Some(mutation), 3, menu, menu.len()));
    let states = found.states;
    let Some((violation, path)) = found.violation else {
        panic!("{mutation:?} was not caught in {states} states");
    };
    let promise = violation.promise;
    let is_expected = match promise {
        // It is called so after a roll-back.
        Promise::S8 => row.breaks.contains(&Promise::S1),
        // The process alone learns of the loss at each attempt.
        Promise::Live if mutation == Mutation::LossIsNotKept => true,
        promise => row.breaks.contains(&promise),
    };
    assert!(is_expected, "{mutation:?}: {}", describe(&violation, &path));
    format!(
        "{what:<60} | {:<4} | {:>2} steps | {states:>6} states | {mutation:?}",
        format!("{promise:?}"),
        path.len()
    )
}

#[test]
fn every_mutation_is_caught_in_some_state() {
    let mut lines = spread(0..TABLE.len() as u64, |index| {
        (index, line(&TABLE[index as usize]))
    });
    lines.sort();
    for (_, line) in lines {
        println!("{line}");
    }
}
