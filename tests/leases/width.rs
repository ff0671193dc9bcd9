//! How many blocks are held, and in which order they are used.

use std::time::{Duration, Instant};

use ringflake::lease::GrantState;
use ringflake::{Clock, ClockPolicy, Id, Refused, TakeError};

use crate::rig::{BLOCK_IDS, Judge, LEASE_DURATION, Rig, SECOND, START, held_end};
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

/// The clock goes with the real one, since the keeper's own pace counts; but it stands
/// while a thread does, or leases would end on a slow machine that are to be kept.
#[test]
fn borrowing_takes_more_blocks_and_rest_lets_them_go() {
    let rig = Rig::with_tick(Duration::from_millis(10));
    let ids = rig
        .in_place()
        .blocks(2)
        .widen_to(5)
        .lease_duration(SECOND)
        .borrow_limit(SECOND / 2)
        .build()
        .unwrap();
    let (started, begun) = (Instant::now(), rig.clock.unix_ms());
    let let_time_pass = || {
        let now = begun + started.elapsed().as_millis() as u64;
        // Renewals come by the keeper's time, long before this.
        let latest = rig.unix_ms(held_end(&ids.lease_status().unwrap())) - 500;
        rig.clock.set(now.min(latest).max(rig.clock.unix_ms()));
    };
    let held = |state| {
        let status = ids.lease_status().unwrap();
        let grants = status.grants.iter().filter(|grant| grant.state == state);
        (status.target, grants.count())
    };
    assert_eq!(held(GrantState::Held), (2, 2));
    eventually("there are as many blocks as there may be", || {
        let_time_pass();
        while ids.take().is_ok() {}
        held(GrantState::Held) == (5, 5) && rig.held_blocks() == 5
    });

    eventually("those in addition are let go", || {
        let_time_pass();
        held(GrantState::Held) == (2, 2) && held(GrantState::Lapsing).1 == 0
    });
    // A block counts as held no longer once its mark has passed, told or not.
    eventually("and the store is told", || {
        let blocks = rig.blocks();
        let released = blocks.iter().filter(|block| block.released).count();
        // All that ever came but two; more than five where the target fell for a while.
        rig.held_blocks() == 2 && released >= 3 && released == blocks.len() - 2
    });
    assert!(ids.take().is_ok());
}

#[test]
fn a_clock_set_back_does_not_widen_what_never_borrows() {
    let rig = Rig::new();
    let ids = rig
        .direct()
        .widen_to(8)
        .clock_policy(ClockPolicy::Refuse)
        .build()
        .unwrap();
    rig.clock.advance(10 * SECOND);
    ids.take().unwrap();
    rig.clock.step_back(5 * SECOND);
    assert!(matches!(
        ids.take(),
        Err(TakeError::Refused(Refused::BorrowLimit { .. }))
    ));
    // The keeper has looked at the demand when it renews.
    rig.clock.advance(5 * SECOND);
    rig.let_them_renew(|| vec![ids.lease_status()]);
    rig.clock.step_back(5 * SECOND);
    rig.let_them_renew(|| vec![ids.lease_status()]);
    assert_eq!(ids.lease_status().unwrap().target, 1);
    assert_eq!(rig.blocks().len(), 1);
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
