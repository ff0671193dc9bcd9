//! How many blocks are held.

use super::*;

#[test]
fn failures_of_blocks_no_longer_wanted_are_forgotten() {
    let mut rig = Rig::holding(1);
    rig.demand = BUSY;
    acquisition(&rig.asked());
    rig.answer(Answer::Acquired(Err(refusals().swap_remove(8))));
    assert!(rig.last_error().is_some());
    rig.demand = IDLE;
    rig.run_with(secs(LEASE_DURATION + 10), |rig, request| match request {
        Request::Acquire(_) => {
            rig.answer(Answer::Acquired(Err(refusals().swap_remove(8))));
        }
        other => rig.send(other),
    });
    assert_eq!(rig.manager.status().target, 1);
    assert!(rig.last_error().is_none());
}

#[test]
fn asks_for_no_more_than_there_is_room_for() {
    let mut rig = Rig::new(LeasePlan::new(5));
    rig.demand.room = 0;
    rig.waits();
    rig.demand.room = 3;
    assert_eq!(acquisition(&rig.asked()).blocks, 3);

    let mut rig = Rig::new(LeasePlan::new(256));
    let request = rig.asked();
    assert_eq!(acquisition(&request).blocks, MAX_ACQUIRE);
    acquisition(&request).validate().unwrap();
    rig.send(&request);
    rig.settle();
    assert_eq!(rig.opened().len(), 256);

    let mut rig = Rig::holding(1);
    rig.demand = Demand { room: 0, ..BUSY };
    rig.settle();
    assert_eq!(rig.manager.status().target, 1);
}

#[test]
fn extra_blocks_lapse_one_by_one_and_are_released_at_their_end() {
    let mut rig = Rig::holding(1);
    rig.demand = BUSY;
    rig.run(secs(30));
    assert_eq!(rig.states(), [GrantState::Held; 8]);

    rig.demand = IDLE;
    rig.run(secs(LEASE_DURATION - 10));
    assert_eq!(rig.states(), [GrantState::Held; 8]);
    let mut held = Vec::new();
    for _ in 0..9 {
        rig.run(secs(60));
        let states = rig.states();
        held.push(states.iter().filter(|s| **s == GrantState::Held).count());
    }
    assert_eq!(held, [7, 6, 5, 4, 3, 2, 1, 1, 1]);

    let asked = rig.run(secs(LEASE_DURATION + 100));
    let released = |(_, request): &&(Duration, Request)| matches!(request, Request::Release { .. });
    let before = rig.changes.iter();
    let closed: Vec<_> = before
        .filter_map(|change| match change {
            Change::Closed(grant) => Some(grant.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(closed.len(), 7);
    assert!(asked.iter().filter(released).count() <= 7);
    assert_eq!(rig.states(), [GrantState::Held]);
    let listing = rig.store.list(&rig.space).unwrap();
    assert_eq!(listing.blocks.iter().filter(|b| b.released).count(), 7);
    for grant in closed {
        let state = &listing.blocks[usize::try_from(grant.block.index()).unwrap()];
        assert!(state.released && state.hwm_end == grant.ticks.end);
    }
}

#[test]
fn takes_back_what_is_lapsing_before_it_asks_for_more() {
    let mut rig = Rig::new(LeasePlan::new(1).with_widen_to(2));
    rig.settle();
    rig.demand = BUSY;
    rig.settle();
    rig.demand = IDLE;
    rig.run(secs(LEASE_DURATION + 1));
    assert!(rig.states().contains(&GrantState::Lapsing));
    rig.demand = BUSY;
    let asked = rig.settle();
    assert_eq!(asked.len(), 1);
    renewal(&asked[0]);
    assert_eq!(rig.states(), [GrantState::Held; 2]);
}

#[test]
fn takes_back_no_more_than_are_wanted() {
    let mut rig = Rig::holding(4);
    let held = |rig: &mut Rig, target| {
        rig.manager.width.target = target;
        let step = rig.next();
        let states = rig.states();
        // A grant that is reopened is renewed at once.
        if let Step::Ask(request) = step {
            rig.send(&request);
            rig.settle();
        }
        states.iter().filter(|s| **s == GrantState::Held).count()
    };
    for target in [2, 3, 1, 4] {
        assert_eq!(held(&mut rig, target), target as usize);
    }
}
