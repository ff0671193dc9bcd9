//! Rows that are put back under running workers, as a hand or a script does it. The
//! server shows nothing of that. What the workers were told is all the evidence that
//! there is, so it matters who asks first: one that was told something since those
//! rows were current, or one that was not.

use crate::matrix::case::Case;
use crate::matrix::target::go_on;
use crate::matrix::worker_pool::{Member, TWICE_AS_MANY, Terms, WORKERS, WorkerPool};
use crate::matrix::{Outcome, worker};

/// How many ask for the first time when rows were put back.
const NEWCOMERS: u32 = 2;

/// Rows of a moment at which every worker held a block. Since then each has another,
/// which those rows know nothing of.
pub(super) fn put_back(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::of(TWICE_AS_MANY))?;
    for _ in 0..case.scale.pick(1, 3) {
        let put_back = case.target.keep_rows(pool.space.name());
        other_blocks(&mut pool)?;
        recover(&mut pool, |_| put_back())?;
    }
    pool.finish()
}

/// Rows of before the first grant.
pub(super) fn put_back_to_the_first(case: &mut Case<'_>) -> Outcome<()> {
    let pool = case.idle_pool(Terms::of(TWICE_AS_MANY))?;
    let put_back = case.target.keep_rows(pool.space.name());
    let mut pool = pool.serving()?;
    recover(&mut pool, |_| put_back())?;
    pool.finish()
}

/// All workers stand still while two others begin with the rows that were put back.
pub(super) fn put_back_for_newcomers(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::of(TWICE_AS_MANY))?;
    let put_back = case.target.keep_rows(pool.space.name());
    other_blocks(&mut pool)?;
    let processes = pool.each(Member::process);
    recover(&mut pool, |pool| {
        case.target.stop_between_operations(&processes);
        put_back()?;
        let numbers: Vec<u32> = (WORKERS..WORKERS + NEWCOMERS).collect();
        for &number in &numbers {
            pool.spawn(number, None);
        }
        pool.these_serve(&numbers, "with the rows that were put back")?;
        go_on(&processes);
        Ok(())
    })?;
    // Below it are the damage that is documented, and what was right.
    pool.promised_from = pool.floor()?;
    let damage = pool.reports().grant_log.twice_from(0);
    case.findings().remark = format!("{damage} IDs twice before those who know have asked");
    pool.finish()
}

/// Each gives up its block for one that was never granted.
pub(super) fn other_blocks(pool: &mut WorkerPool) -> Outcome<()> {
    let had = |it: &Member| (it.run, pool.reports().grants_of(it.run).len());
    let before = pool.each(had);
    pool.order(worker::INVALIDATE);
    pool.wait("every worker has another block", |reports| {
        let has_more = |&(run, before): &(_, usize)| reports.grants_of(run).len() > before;
        before.iter().all(has_more)
    })?;
    pool.all_serve("with another block")
}

/// Puts something back: the loss is noticed, the floor rises, and all serve from there
/// on, with nobody's help.
pub(super) fn recover(
    pool: &mut WorkerPool,
    put_back: impl FnOnce(&mut WorkerPool) -> Outcome<()>,
) -> Outcome<()> {
    let (floor, lost) = (pool.floor()?, pool.reports().lost);
    put_back(pool)?;
    pool.faults += 1;
    pool.wait("somebody is told what was lost", |reports| {
        reports.lost > lost
    })?;
    let raised = pool.floor()?;
    if raised <= floor {
        return Err(format!("the floor was {floor} and is {raised}"));
    }
    pool.all_have_grants_from(raised, "above the floor")?;
    pool.all_serve("once the floor has passed")?;
    pool.await_what_was_ahead();
    Ok(())
}
