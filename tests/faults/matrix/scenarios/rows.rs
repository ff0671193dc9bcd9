//! Rows that are put back under running workers, as a hand or a script does it. The
//! server shows nothing of that. What the workers were told is all the evidence that
//! there is, so it matters who asks first: one that was told something since those
//! rows were current, or one that was not.

use std::thread;

use crate::matrix::case::Case;
use crate::matrix::worker_pool::{Terms, WorkerPool};
use crate::matrix::{Outcome, space, worker};

pub(super) const ALL_KNOW: &str = "all who ask know better than the rows that are put back: the \
                                   first of them raises the floor over all that was granted, \
                                   and nothing at all comes twice";
pub(super) const ONE_DOES_NOT: &str = "two who know nothing ask first, and can't be helped; \
                                       once the first who knows has asked, nothing from the \
                                       floor on comes twice";

/// 16 blocks, twice as many as workers: whoever knows nothing of the eight that are
/// held takes these.
pub(super) const TWICE_AS_MANY: u32 = 6;

/// How many ask for the first time when rows were put back.
const NEWCOMERS: u32 = 2;

/// Rows of a moment at which every worker held a block. Since then each has another,
/// which those rows know nothing of.
pub(super) fn put_back(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(terms())?;
    for _ in 0..case.scale.pick(1, 3) {
        let put_back = case.target.keep_rows(pool.namespace());
        other_blocks(&mut pool)?;
        let before = Before::of(&pool)?;
        put_back()?;
        pool.faults += 1;
        recover(&mut pool, before)?;
    }
    pool.finish()
}

/// Rows of before the first grant.
pub(super) fn put_back_to_the_first(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.idle_pool(terms())?;
    let put_back = case.target.keep_rows(pool.namespace());
    pool.spawn_all()?;
    let before = Before::of(&pool)?;
    put_back()?;
    pool.faults += 1;
    recover(&mut pool, before)?;
    pool.finish()
}

/// All workers stand still while two others begin with the rows that were put back.
pub(super) fn put_back_for_newcomers(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(terms())?;
    let put_back = case.target.keep_rows(pool.namespace());
    other_blocks(&mut pool)?;
    let before = Before::of(&pool)?;
    let processes: Vec<i32> = pool.processes().iter().map(|(_, id)| *id).collect();
    case.target.stop_between_operations(&processes);
    put_back()?;
    pool.faults += 1;
    let numbers: Vec<u32> = (0..NEWCOMERS)
        .map(|n| crate::matrix::worker_pool::WORKERS + n)
        .collect();
    for &number in &numbers {
        pool.spawn(number, None);
    }
    pool.these_serve(&numbers, "with the rows that were put back")?;
    for process in processes {
        // SAFETY: numbers only, of a child that was not waited for.
        unsafe { libc::kill(process, libc::SIGCONT) };
    }
    recover(&mut pool, before)?;
    // Below it are the damage that is documented, and what was right.
    pool.promised_from = pool.floor()?;
    let damage = pool.reports().grant_log.twice_from(0);
    case.remark(format!(
        "{damage} IDs twice before those who know have asked"
    ));
    pool.finish()
}

/// Each gives up its block for one that was never granted.
pub(super) fn other_blocks(pool: &mut WorkerPool) -> Outcome<()> {
    let had =
        |reports: &crate::matrix::worker_pool::Reports, run| reports.grant_log.grants_of(run).len();
    let runs = pool.runs();
    let before: Vec<usize> = runs.iter().map(|&run| had(&pool.reports(), run)).collect();
    pool.order(worker::INVALIDATE);
    pool.wait("every worker has another block", |reports| {
        let mut pairs = runs.iter().zip(&before);
        pairs.all(|(&run, &before)| had(reports, run) > before)
    })?;
    pool.all_serve("with another block")
}

pub(super) fn terms() -> Terms {
    Terms {
        node_bits: TWICE_AS_MANY,
        ..Terms::default()
    }
}

/// How it stood before the rows were put back.
pub(super) struct Before {
    floor: u64,
    /// How many requests were told of a loss.
    lost: u64,
}

impl Before {
    pub(super) fn of(pool: &WorkerPool) -> Outcome<Self> {
        let (floor, lost) = (pool.floor()?, pool.reports().lost);
        Ok(Self { floor, lost })
    }
}

/// The loss is noticed, the floor rises, and all serve from there on, with nobody's
/// help.
pub(super) fn recover(pool: &mut WorkerPool, before: Before) -> Outcome<()> {
    let Before { floor, lost } = before;
    pool.wait("somebody is told what was lost", |reports| {
        reports.lost > lost
    })?;
    let raised = pool.floor()?;
    if raised <= floor {
        return Err(format!("the floor was {floor} and is {raised}"));
    }
    pool.all_have_grants_from(raised, "above the floor")?;
    pool.all_serve("once the floor has passed")?;
    // For what was issued ahead of the clock to be met again, if it ever is.
    thread::sleep(space::LEASE_DURATION / 2);
    Ok(())
}
