//! Answers that no store gives, and floors ahead.

use super::*;

#[test]
fn grants_that_no_store_gives_are_not_opened() {
    let mut rig = Rig::holding(1);
    rig.demand = BUSY;
    let held = rig.opened()[0].clone();
    let ask = |rig: &mut Rig, grants: Vec<Grant>| {
        rig.intercept_acquisition();
        rig.answer(Answer::Acquired(Ok(grants)));
    };
    let outside = Grant::new(Block::new(rig.space.blocks()), Epoch::FIRST, 1..2);
    let backwards = Grant::new(Block::new(8), Epoch::FIRST, 7..7);
    let mut overlapping = held.clone();
    overlapping.ticks = held.ticks.end - 1..held.ticks.end + 5;
    for unsound in [outside, backwards, overlapping] {
        ask(&mut rig, vec![unsound]);
        assert_eq!(rig.opened().len(), 1);
        assert_error!(rig, StoreError::Corrupt { .. });
    }
    // Its successor on the same block, even of the same epoch, is sound; grants that
    // nobody asked for are ignored.
    let mut successor = held.clone();
    successor.ticks = held.ticks.end..held.ticks.end + 5;
    let unasked = Grant::new(Block::new(9), Epoch::FIRST, 7..8);
    ask(&mut rig, vec![successor.clone(), unasked]);
    assert_eq!(rig.opened(), [held.clone(), successor.clone()]);
    // And what ends where one begins.
    let after = held.ticks.end + 10;
    let later = Grant::new(Block::new(9), Epoch::FIRST, after..after + 5);
    let earlier = Grant::new(Block::new(9), Epoch::FIRST, after - 5..after);
    ask(&mut rig, vec![later.clone()]);
    ask(&mut rig, vec![earlier.clone()]);
    assert_eq!(rig.opened(), [held, successor, later, earlier]);
}

#[test]
fn an_end_that_no_store_gives_is_not_believed() {
    for off in [-1, LEASE_DURATION as i64 * 10] {
        let mut rig = Rig::holding(1);
        let known = rig.opened()[0].ticks.end;
        rig.intercept();
        let end = known.saturating_add_signed(off);
        rig.answer(Answer::Renewed(Ok(end)));
        assert_eq!(rig.states(), [GrantState::Draining]);
        assert_eq!(rig.manager.status().grants[0].grant.ticks.end, known);
        assert_error!(rig, StoreError::Corrupt { .. });
    }
}

#[test]
fn a_floor_ahead_leaves_grants_that_wait_for_the_clock() {
    let limits = StoreLimits::default().with_horizon(secs(1200));
    let mut rig = Rig::with(LeasePlan::new(1), 5, limits);
    let now = rig.clock.unix_ms();
    let floor = Floor::Tick(START + 1000);
    rig.store.raise_floor(&rig.space, floor, now).unwrap();
    rig.settle();
    assert_eq!(rig.opened()[0].ticks, START + 1000..START + 1200);
    // It lies ahead of the clock plus the lease duration: there is nothing to add yet.
    rig.run(secs(300));
    assert_eq!(rig.manager.status().grants[0].grant.ticks.end, START + 1200);
    rig.run(secs(700));
    assert!(rig.manager.status().grants[0].grant.ticks.end > START + 1500);
}
