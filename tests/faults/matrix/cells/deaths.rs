//! What happens to workers: they are killed, ended, stopped, forked, and told that
//! they are copies.

use std::hash::{BuildHasher, RandomState};
use std::thread;
use std::time::Duration;

use crate::matrix::case::Case;
use crate::matrix::crew::{Crew, NARROW, Terms, Told, WORKERS};
use crate::matrix::ledger::{Run, Tenure};
use crate::matrix::{Outcome, worker};

/// Workers are killed at any moment, and every second one that follows dies when
/// the store has committed a grant or a renewal, and before it has its reply.
pub(super) fn killed(case: &mut Case<'_>) -> Outcome<()> {
    let mut crew = case.crew(Terms::default())?;
    let deaths = case.scale.pick(50, 1_000);
    let jitter = RandomState::new();
    while crew.faults < deaths {
        let random = jitter.hash_one(crew.faults);
        // A living one may be doomed as well.
        let number = (random % u64::from(WORKERS)) as u32;
        crew.kill(number);
        let dies_after = (random >> 32) % 4;
        let doomed = (dies_after > 0).then_some(dies_after as u32);
        crew.spawn(number, doomed);
        thread::sleep(Duration::from_millis(20 + random % 60));
        for number in crew.the_dead() {
            crew.faults += 1;
            crew.spawn(number, None);
        }
    }
    // Who is still doomed goes now.
    for number in 0..WORKERS {
        crew.kill(number);
        crew.spawn(number, None);
    }
    crew.all_serve("after the deaths")?;
    crew.finish()
}

/// Workers end in order and others begin with the blocks that they released.
pub(super) fn ended(case: &mut Case<'_>) -> Outcome<()> {
    let terms = Terms {
        node_bits: NARROW,
        ..Terms::default()
    };
    let mut crew = case.crew(terms)?;
    end_and_start(&mut crew, case.scale.pick(2, 10))?;
    let blocks = handed_on(&crew);
    if blocks < WORKERS as usize {
        return Err(format!("only {blocks} blocks were handed on"));
    }
    crew.finish()
}

/// Ends and starts every worker so many times.
pub(crate) fn end_and_start(crew: &mut Crew, rounds: usize) -> Outcome<()> {
    for _ in 0..rounds {
        for number in 0..WORKERS {
            crew.end(number)?;
            crew.spawn(number, None);
            crew.faults += 1;
        }
        crew.all_serve("after the restart")?;
    }
    Ok(())
}

/// How many blocks were granted more than once.
fn handed_on(crew: &Crew) -> usize {
    let told = crew.told();
    let runs = 0..told.runs.len();
    let tenures: Vec<_> = runs.flat_map(|run| told.ledger.grants_of(run)).collect();
    let of = |block| {
        tenures
            .iter()
            .filter(|tenure| tenure.block == block)
            .count()
    };
    let blocks = 0..told.ledger.namespace().blocks();
    blocks.filter(|&block| of(block) > 1).count()
}

/// Two workers are stopped until others have their blocks, and go on then.
pub(super) fn stopped(case: &mut Case<'_>) -> Outcome<()> {
    let terms = Terms {
        node_bits: NARROW,
        ..Terms::default()
    };
    let mut crew = case.crew(terms)?;
    let mut next = WORKERS;
    for _ in 0..case.scale.pick(1, 5) {
        let numbers: Vec<u32> = crew.processes().iter().map(|(number, _)| *number).collect();
        let (stopped, others) = numbers.split_at(2);
        let processes: Vec<_> = stopped.iter().map(|&n| crew.process(n)).collect();
        let ids: Vec<_> = processes.iter().map(|(id, _)| *id).collect();
        case.ground.stop_between_operations(&ids);
        crew.faults += 2;
        // All eight blocks are held, so these get what the two had.
        let newcomers = [next, next + 1];
        next += 2;
        for number in newcomers {
            crew.spawn(number, None);
        }
        crew.these_serve(&newcomers, "with the blocks of the stopped")?;
        for &(_, run) in &processes {
            crew.wait("others have the blocks of the stopped", |told| {
                is_taken_over(told, run)
            })?;
        }
        for id in ids {
            // SAFETY: numbers only, of a child that was not waited for.
            unsafe { libc::kill(id, libc::SIGCONT) };
        }
        // Room for the two that go on.
        for &number in &others[..2] {
            crew.end(number)?;
        }
        crew.all_serve("after the two went on")?;
    }
    crew.finish()
}

/// Whether the last block of a process was granted to another since.
fn is_taken_over(told: &Told, run: Run) -> bool {
    let Some(last) = told.ledger.grants_of(run).last() else {
        return false;
    };
    let is_later = |it: &Tenure| it.block == last.block && it.epoch > last.epoch;
    let mut runs = 0..told.runs.len();
    runs.any(|run| told.ledger.grants_of(run).iter().any(is_later))
}

/// Every worker forks while it takes, and its child tries to take as well.
pub(super) fn forked(case: &mut Case<'_>) -> Outcome<()> {
    let mut crew = case.crew(Terms::default())?;
    for round in 1..=case.scale.pick(5, 50) {
        crew.order(worker::FORK);
        crew.faults += u64::from(WORKERS);
        crew.wait("every child has ended", |told| {
            told.runs.iter().all(|life| life.forks == round)
        })?;
    }
    crew.all_serve("after the forks")?;
    crew.finish()
}

/// Every worker is told that it was resumed from a snapshot.
pub(super) fn invalidated(case: &mut Case<'_>) -> Outcome<()> {
    let mut crew = case.crew(Terms::default())?;
    for round in 1..=case.scale.pick(2, 10) {
        crew.order(worker::INVALIDATE);
        crew.faults += u64::from(WORKERS);
        crew.wait("every worker has another block", |told| {
            let mut runs = 0..told.runs.len();
            runs.all(|run| told.ledger.grants_of(run).len() > round)
        })?;
        crew.all_serve("with another block")?;
    }
    crew.finish()
}
