//! Clocks that are set, stand still or go back.

use super::*;

#[test]
fn a_grant_out_of_reach_after_a_clock_step_back_is_replaced() {
    let mut rig = rig_with_one_lapsing();
    let before = rig.opened();
    rig.changes.clear();
    // The jitter, and not more.
    rig.demand.borrowed = too_far();
    rig.changes.clear();
    let asked = acquisitions(&rig.run(secs(10)));
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].1, 2);
    assert_eq!(rig.states(), [GrantState::Held; 2]);
    let closed = |change: &&Change| matches!(change, Change::Closed(_));
    assert_eq!(rig.changes.iter().filter(closed).count(), before.len());
    // What is left is not asked for again, until IDs of it are out of reach as well.
    assert!(acquisitions(&rig.run(secs(10))).is_empty());
    rig.demand.borrowed = Duration::ZERO;
    assert!(acquisitions(&rig.run(secs(10))).is_empty());
    rig.demand.borrowed = too_far();
    assert_eq!(acquisitions(&rig.run(secs(10))).len(), 1, "again");
}

#[test]
fn a_clock_that_was_wrong_for_a_moment_costs_no_block() {
    let mut rig = rig_with_one_lapsing();
    let before = rig.manager.status().grants;
    rig.demand.borrowed = too_far();
    rig.run_with(secs(30), |rig, request| match request {
        Request::Acquire(_) => rig.answer(Answer::Acquired(Err(StoreError::ClockSkew {
            store_unix_ms: 1,
            client_unix_ms: 2,
            limit: secs(5),
        }))),
        request => rig.send(request),
    });
    assert_eq!(rig.manager.status().grants.len(), before.len());
    rig.demand.borrowed = Duration::ZERO;
    assert!(acquisitions(&rig.run(secs(60))).is_empty());
    let known = |grants: Vec<GrantStatus>| -> Vec<_> {
        let block = |status: &GrantStatus| (status.grant.block, status.grant.epoch, status.state);
        grants.iter().map(block).collect()
    };
    assert_eq!(known(rig.manager.status().grants), known(before));
}

/// As after a lost history.
#[test]
fn a_new_grant_that_is_out_of_reach_itself_takes_no_place() {
    let mut rig = Rig::new(LeasePlan::new(1).with_widen_to(1));
    rig.settle();
    let floor = Floor::Tick(rig.tick() + IDLE.borrow_limit.as_secs() + 10);
    let now = rig.clock.unix_ms();
    rig.store.raise_floor(&rig.space, floor, now).unwrap();
    rig.demand.borrowed = too_far();
    let mut acquired = 0;
    let mut count = |rig: &mut Rig, request: &Request| {
        acquired += usize::from(matches!(request, Request::Acquire(_)));
        rig.send(request);
    };
    rig.run_with(secs(8), &mut count);
    assert_eq!(rig.states().len(), 2, "the one before is as near");
    rig.run_with(secs(52), count);
    assert_eq!(acquired, 1);
    assert_eq!(rig.states(), [GrantState::Held], "the clock has come to it");
    let left = rig.manager.status().grants;
    assert_eq!(left[0].grant, *rig.opened().last().unwrap());
}

#[test]
fn a_grant_that_has_passed_takes_no_place() {
    let mut rig = Rig::new(LeasePlan::new(1).with_widen_to(1));
    rig.settle();
    rig.demand.borrowed = too_far();
    let request = rig.intercept_acquisition();
    let answer = request.send(&mut rig.store, &rig.space);
    rig.clock.advance(secs(LEASE_DURATION + 10));
    rig.answer(answer);
    assert_eq!(rig.states().len(), 2);
}

#[test]
fn a_clock_set_forward_renews_at_once_and_without_haste() {
    let mut rig = Rig::holding(2);
    // An hour for the client alone.
    rig.clock.advance(secs(3600));
    let behind = Arc::new(ManualClock::new(rig.clock.unix_ms() - 3_600_000));
    let mut store = MemoryStore::new(behind);
    store.restore(&rig.store.snapshot());
    let mut asked = 0;
    rig.run_with(secs(100), |rig, request| {
        asked += 1;
        renewal(request);
        let answer = request.send(&mut store, &rig.space);
        rig.answer(answer);
    });
    assert!((2 * 20..=2 * 41).contains(&asked), "{asked}");
    assert!(matches!(
        rig.changes.iter().find(|c| !matches!(c, Change::Opened(_))),
        Some(Change::Expired { .. })
    ));
    assert_eq!(rig.manager.status().reach, Duration::ZERO);

    // Back again.
    rig.clock.step_back(secs(3600));
    rig.run(secs(10));
    assert!(rig.changes.contains(&Change::Revived));
}

#[test]
fn a_monotonic_clock_that_went_back_delays_no_request() {
    let mut rig = Rig::holding(1);
    rig.elapsed = Duration::ZERO;
    renewal(&rig.asked());
    rig.answer(Answer::Renewed(Err(unavailable())));
    rig.elapsed = secs(5000);
    rig.asked();
    rig.answer(Answer::Renewed(Err(unavailable())));
    rig.elapsed = secs(5);
    renewal(&rig.asked());
}
