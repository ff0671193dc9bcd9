//! How many blocks are held, and which of them are used.

use std::time::Duration;

use ringflake::{Refused, TakeError};

use crate::rig::{BLOCK_IDS, Judge, LEASE_DURATION, Rig, SECOND, START};
use ringflake_kit::eventually;

#[test]
fn a_generator_that_borrows_much_gets_a_second_block() {
    let (rig, judge) = Rig::judged();
    let ids = rig.in_place().widen_to(2).build().unwrap();
    let take = |count| (0..count).for_each(|_| judge.judge(ids.take().unwrap()));
    // More than half of what may be borrowed, and then more than one block has.
    take(40 * BLOCK_IDS);
    eventually("there is a second block", || ids.leases().len() == 2);
    take(60 * BLOCK_IDS);
}

/// Then every lease that was renewed meanwhile lies an hour ahead, whether it is
/// used up or not.
#[test]
fn ids_flow_after_all_clocks_were_an_hour_ahead() {
    for is_used_up in [false, true] {
        let (rig, judge) = Rig::judged();
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
