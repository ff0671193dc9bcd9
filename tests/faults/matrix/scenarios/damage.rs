//! The record of one block that is damaged under running workers.

use ringflake::lease::Block;
use ringflake::{Clock as _, SystemClock};

use crate::matrix::case::Case;
use crate::matrix::grant_log::Tenure;
use crate::matrix::worker_pool::{NARROW, Terms, WORKERS};
use crate::matrix::{Outcome, in_time, text};

/// There are as many blocks as workers, so the one whose block is damaged has none
/// until that was repaired.
pub(super) fn of_a_block(case: &mut Case<'_>) -> Outcome<()> {
    let mut pool = case.pool(Terms::of(NARROW))?;
    for round in 0..case.scale.pick(2, 8) {
        // One that takes what it is given, or more, in turns.
        let victim = (3 * round) % WORKERS;
        let is_repaired_at_once = round % 2 == 1;
        let run = pool.member(victim).run;
        let held = pool.reports().grants_of(run).last().cloned();
        let held = held.ok_or("the victim has no block")?;
        let block = Block::new(held.block);
        case.target.damage(pool.space.name(), held.block);
        pool.faults += 1;

        pool.wait("its holder is told", |reports| {
            let said = reports.runs[run].last_failure.as_deref();
            said.is_some_and(|said| said.contains("quarantined") || said.contains("free"))
        })?;
        // At once means while its holder has ticks left that were confirmed.
        if !is_repaired_at_once {
            let others: Vec<u32> = (0..WORKERS).filter(|&number| number != victim).collect();
            pool.these_serve(&others, "while one block is damaged")?;
            pool.wait("its holder is refused", |reports| {
                reports.runs[run].refused.is_some()
            })?;
        }
        let mut store = pool.store()?;
        let now = || SystemClock.unix_ms();
        let report = in_time(|| store.check(&pool.space, now())).map_err(text)?;
        let listed: Vec<_> = report.quarantined.iter().map(|found| found.block).collect();
        if listed != [Some(block)] {
            return Err(format!("quarantined is {listed:?}, and not block {block}"));
        }
        let repaired = in_time(|| store.repair(&pool.space, block, now()))
            .map_err(|error| format!("repair: {error}"))?;
        pool.wait("the block is granted again, above all before", |reports| {
            let is_above =
                |it: &Tenure| it.block == held.block && it.ticks.start >= repaired.hwm_end;
            reports.grants_of(run).iter().any(is_above)
        })?;
        pool.all_serve("once the block is back")?;
    }
    pool.finish()
}
