//! Faults of workers: they are killed, terminated, stopped, forked, and invalidated as
//! copies.

use std::hash::{BuildHasher, RandomState};
use std::thread;
use std::time::Duration;

use crate::matrix::case::Case;
use crate::matrix::grant_log::Run;
use crate::matrix::target::go_on;
use crate::matrix::worker_pool::{Member, NARROW, Reports, Terms, WORKERS, WorkerPool};
use crate::matrix::{Outcome, worker};

/// Workers are killed at any moment, and every second one that follows dies when
/// the store has committed a grant or a renewal, and before it has its reply.
pub(super) fn killed(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::default())?;
    let deaths = case.scale.pick(50, 1_000);
    let jitter = RandomState::new();
    while pool.faults < deaths {
        let random = jitter.hash_one(pool.faults);
        // A living one may be doomed as well.
        let number = (random % u64::from(WORKERS)) as u32;
        pool.kill(number);
        let dies_after = (random >> 32) % 4;
        let doomed = (dies_after > 0).then_some(dies_after as u32);
        pool.spawn(number, doomed);
        thread::sleep(Duration::from_millis(20 + random % 60));
        for number in pool.the_dead() {
            pool.faults += 1;
            pool.spawn(number, None);
        }
    }
    // Kill the remaining doomed workers.
    pool.kill_and_spawn(0..WORKERS);
    pool.all_serve("after the deaths")?;
    pool.finish()
}

/// Workers end in order and others begin with the blocks that they released.
pub(super) fn ended(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::of(NARROW))?;
    end_and_start(&mut pool, case.scale.pick(2, 10))?;
    let grants: Vec<usize> = {
        let reports = pool.reports();
        let by_block = reports.grant_log.by_block();
        by_block.values().map(Vec::len).collect()
    };
    let blocks = grants.iter().filter(|&&grants| grants > 1).count();
    if blocks < WORKERS as usize {
        return Err(format!("only {blocks} blocks were handed on"));
    }
    pool.finish()
}

pub(crate) fn end_and_start(pool: &mut WorkerPool, rounds: usize) -> Outcome<()> {
    for _ in 0..rounds {
        for number in 0..WORKERS {
            pool.end(number)?;
            pool.spawn(number, None);
            pool.faults += 1;
        }
        pool.all_serve("after the restart")?;
    }
    Ok(())
}

/// Two workers are stopped until others have their blocks, and go on then.
pub(super) fn stopped(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::of(NARROW))?;
    let mut next = WORKERS;
    for _ in 0..case.scale.pick(1, 5) {
        let runs = pool.each(|member| member.run);
        let processes = pool.each(Member::process);
        let stopped = &processes[..2];
        // They are to make room for the two when these go on.
        let others = [2, 3].map(|at: usize| pool.members[at].number);
        case.target.stop_between_operations(stopped);
        pool.faults += 2;
        // All eight blocks are held, so these get what the two had.
        let newcomers = [next, next + 1];
        next += 2;
        for number in newcomers {
            pool.spawn(number, None);
        }
        pool.these_serve(&newcomers, "with the blocks of the stopped")?;
        pool.wait("others have the blocks of the stopped", |reports| {
            runs[..2].iter().all(|&run| is_taken_over(reports, run))
        })?;
        go_on(stopped);
        for number in others {
            pool.end(number)?;
        }
        pool.all_serve("after the two went on")?;
    }
    pool.finish()
}

/// Whether the last block of a process was granted to another since.
fn is_taken_over(reports: &Reports, run: Run) -> bool {
    let last = reports.grants_of(run).last();
    last.is_some_and(|last| {
        let of_it = &reports.grant_log.by_block()[&last.block];
        of_it.iter().any(|(_, it)| it.epoch > last.epoch)
    })
}

/// Every worker forks while it takes, and its child tries to take as well.
pub(super) fn forked(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::default())?;
    for round in 1..=case.scale.pick(5, 50) {
        pool.order(worker::FORK);
        pool.faults += u64::from(WORKERS);
        pool.wait("every child has ended", |reports| {
            reports.runs.iter().all(|entry| entry.forks == round)
        })?;
    }
    pool.all_serve("after the forks")?;
    pool.finish()
}

/// Invalidates every worker, as after a resume from a snapshot.
pub(super) fn invalidated(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::default())?;
    for round in 1..=case.scale.pick(2, 10) {
        pool.order(worker::INVALIDATE);
        pool.faults += u64::from(WORKERS);
        pool.wait("every worker has another block", |reports| {
            let mut runs = 0..reports.runs.len();
            runs.all(|run| reports.grants_of(run).len() > round)
        })?;
        pool.all_serve("with another block")?;
    }
    pool.finish()
}
