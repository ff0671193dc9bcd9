//! How many blocks are held, and in which order they are used.

use std::time::Duration;

use ringflake::{Id, Refused, TakeError};

use crate::rig::{BLOCK_IDS, Judge, LEASE_DURATION, Rig, SECOND, START};
use ringflake_kit::eventually;

#[test]
fn all_blocks_of_a_tick_come_before_the_next_tick() {
    let rig = Rig::new();
    let judge = Judge::new(&rig);
    let ids = rig.in_place().blocks(3).widen_to(3).build().unwrap();
    for take in [1, 5, 64] {
        let mut batch = vec![Id::default(); take];
        // The first of the next tick.
        rig.clock.advance(100 * SECOND);
        let first = rig.tick();
        let mut ticks = Vec::new();
        // As a batch ends within a tick, some may be left of the last.
        while ticks.len() < 10 * 3 * BLOCK_IDS as usize {
            let count = ids.take_batch(&mut batch).unwrap();
            judge.judge_all(&batch[..count]);
            let tick = |id: &Id| ids.inspect(*id).unwrap().tick;
            ticks.extend(batch[..count].iter().map(tick));
        }
        assert!(ticks.is_sorted(), "{take}: {ticks:?}");
        for tick in first..first + 10 {
            let of_it = ticks.iter().filter(|&&it| it == tick).count();
            assert_eq!(of_it as u64, 3 * BLOCK_IDS, "{take}: tick {tick}");
        }
    }
}

#[test]
fn a_block_that_comes_later_is_used_first_where_it_is_behind() {
    let rig = Rig::new();
    let judge = Judge::new(&rig);
    let ids = rig.in_place().widen_to(2).build().unwrap();
    let mut blocks = Vec::new();
    let mut take = |count: u64| {
        for _ in 0..count {
            let id = ids.take().unwrap();
            judge.judge(id);
            let parts = ids.inspect(id).unwrap();
            blocks.push((rig.space.block_of(parts.node).index(), parts.tick - START));
        }
    };
    // More than half of what may be borrowed.
    take(40 * BLOCK_IDS);
    let wide = || ids.leases().len() == 2;
    eventually("there is a second block", wide);
    take(60 * BLOCK_IDS);
    // It may have come while the first was still being taken from. All of it up to
    // where the first was, and then both.
    let second: Vec<_> = blocks.iter().filter(|it| it.0 == 1).collect();
    let ticks: Vec<_> = second.iter().map(|it| it.1).collect();
    assert_eq!(ticks[..BLOCK_IDS as usize], [0; BLOCK_IDS as usize]);
    assert!(ticks.is_sorted());
    assert!(ticks.len() as u64 >= 49 * BLOCK_IDS, "{}", ticks.len());
    let last = blocks.iter().map(|it| it.1).max();
    assert_eq!(last, Some(49), "as far ahead as both reach");
}

/// Then every lease that was renewed meanwhile lies an hour ahead, whether it is
/// used up or not.
#[test]
fn ids_flow_after_all_clocks_were_an_hour_ahead() {
    for is_used_up in [false, true] {
        let rig = Rig::new();
        let judge = Judge::new(&rig);
        let ids = rig.in_place().lease_duration(10 * SECOND).build().unwrap();
        let take = || ids.take().inspect(|&id| judge.judge(id));
        take().unwrap();
        rig.clock.advance(3600 * SECOND);
        eventually("IDs flow an hour on", || {
            take().is_ok_and(|id| ids.inspect(id).unwrap().tick >= START + 3600)
        });
        while is_used_up && take().is_ok() {}
        rig.store.hold();
        rig.clock.step_back(3600 * SECOND);
        take().unwrap_err();
        rig.store.let_go();
        eventually("IDs flow again", || take().is_ok());
        let blocks = rig.store.granted().len();
        assert_eq!(blocks, 2, "one block took the other's place");
    }
}

#[test]
fn a_block_that_begins_in_the_future_waits_for_the_clock() {
    let rig = Rig::new();
    rig.give_away(64);
    let judge = Judge::new(&rig);
    let ids = rig.in_place().build().unwrap();
    let Err(TakeError::Refused(Refused::BorrowLimit { retry_after, .. })) = ids.take() else {
        panic!("all ticks up to the old ends were given away");
    };
    // The limit lies a minute ahead.
    assert_eq!(retry_after, Duration::from_secs(LEASE_DURATION - 60));
    assert_eq!(ids.leases()[0].ticks().start, START + LEASE_DURATION);
    rig.clock.advance(retry_after);
    judge.judge(ids.take().unwrap());
}
