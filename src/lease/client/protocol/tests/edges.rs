//! Where one answer of a manager ends and the next begins, to the millisecond.

use super::*;

const MS: Duration = Duration::from_millis(1);

#[test]
fn with_nothing_to_hold_and_no_room_nothing_is_asked() {
    let mut rig = Rig::new(LeasePlan::new(1));
    rig.demand.room = 0;
    assert_eq!(rig.waits(), secs(LEASE_DURATION));
}

#[test]
fn a_grant_that_has_passed_ends_no_wait() {
    let mut rig = Rig::holding(1);
    rig.intercept();
    rig.advance(secs(LEASE_DURATION + 100));
    assert_eq!(rig.waits(), secs(60), "a top-up period");
}

#[test]
fn a_full_grant_is_followed_at_once_and_half_of_one_is_not() {
    for (blocks, waits) in [(2, secs(0)..=secs(0)), (1, secs(2)..=secs(5))] {
        let mut rig = Rig::new(LeasePlan::new(2));
        let request = rig.asked();
        assert_eq!(acquisition(&request).blocks, 2);
        let granted = rig.acquire_beside(blocks, 60);
        rig.answer(Answer::Acquired(granted));
        let wait = rig.manager.acquire_at - rig.elapsed;
        assert!(waits.contains(&wait), "{wait:?} after {blocks}");
    }
}

#[test]
fn reach_is_lost_past_limit_and_duration_and_back_within() {
    let mut rig = Rig::new(LeasePlan::new(1).with_widen_to(1));
    rig.settle();
    let bearable = IDLE.borrow_limit + secs(LEASE_DURATION);
    let steps = [
        (bearable, false),
        (bearable + MS, true),
        (IDLE.borrow_limit + MS, true),
        (IDLE.borrow_limit, false),
        (bearable, false),
    ];
    for (borrowed, is_lost) in steps {
        rig.demand.borrowed = borrowed;
        let _ = rig.next();
        assert_eq!(rig.manager.reach_ahead.is_lost, is_lost, "{borrowed:?}");
        if borrowed == bearable + MS {
            let wait = rig.manager.acquire_at - rig.elapsed;
            assert!((secs(5) / 2..=secs(5)).contains(&wait), "{wait:?}");
        }
    }
}

#[test]
fn exhausted_is_a_failure_where_all_held_is_out_of_reach() {
    for (borrowed, fails) in [(secs(0), false), (too_far(), true)] {
        let mut rig = Rig::new(LeasePlan::new(2));
        rig.asked();
        let one = rig.acquire_beside(1, LEASE_DURATION);
        rig.answer(Answer::Acquired(one));
        rig.demand.borrowed = borrowed;
        rig.intercept_acquisition();
        rig.answer(Answer::Acquired(Err(StoreError::Exhausted {
            wanted: 1,
            blocks: 1,
            retry_after: secs(1),
        })));
        assert_eq!(rig.last_error().is_some(), fails, "{borrowed:?}");
    }
}

/// With five hundred seeds: how long until the next acquisition.
fn waits_after(error: &dyn Fn() -> StoreError, serves: bool) -> (Duration, Duration) {
    let mut waits: Vec<_> = (0..500)
        .map(|seed| {
            let mut rig = Rig::new(LeasePlan::new(2));
            rig.manager = Manager::new(rig.space.clone(), LeasePlan::new(2), seed).unwrap();
            rig.asked();
            if serves {
                let one = rig.acquire_beside(1, LEASE_DURATION);
                rig.answer(Answer::Acquired(one));
                rig.intercept_acquisition();
            }
            rig.answer(Answer::Acquired(Err(error())));
            rig.manager.acquire_at - rig.elapsed
        })
        .collect();
    waits.sort_unstable();
    (waits[0], waits[499])
}

#[test]
fn advice_is_spread_by_half_of_it_or_by_half_a_period() {
    for (advice, serves, min, max) in [
        (0, false, 0, 5),
        (2, false, 2, 7),
        (40, false, 40, 60),
        (999, false, 60, 90),
        (2, true, 2, 32),
        (40, true, 40, 70),
    ] {
        let exhausted = || StoreError::Exhausted {
            wanted: 1,
            blocks: 1,
            retry_after: secs(advice),
        };
        let floor_ahead = || StoreError::FloorAhead {
            floor: 2,
            floor_unix_ms: 2_000,
            now_unix_ms: 1_000,
            retry_after: secs(advice),
        };
        let refusals: [&dyn Fn() -> StoreError; 2] = [&exhausted, &floor_ahead];
        for error in refusals {
            let (shortest, longest) = waits_after(error, serves);
            let near = secs(max - min) / 50;
            let least = secs(min).max(RenewTiming::FIRST);
            assert!(
                (least..least + near).contains(&shortest),
                "{advice}: {shortest:?}"
            );
            let most = secs(max) - near..=secs(max);
            assert!(most.contains(&longest), "{advice}: {longest:?}");
        }
    }
}

/// So that what is held is renewed meanwhile.
#[test]
fn no_grant_for_us_is_no_failure_of_the_store() {
    for error in refusals() {
        let (kind, of_the_store) = match &error {
            StoreError::Corrupt { .. }
            | StoreError::Invalid { .. }
            | StoreError::LayoutEnded { .. }
            | StoreError::ClockSkew { .. } => (error.to_string(), false),
            _ => (error.to_string(), true),
        };
        let mut rig = Rig::new(LeasePlan::new(1));
        rig.asked();
        rig.answer(Answer::Acquired(Err(error)));
        let manager = &rig.manager;
        assert_eq!(manager.store_failing.is_some(), of_the_store, "{kind}");
        assert_eq!(manager.acquire_failing.is_some(), !of_the_store, "{kind}");
        assert_eq!(!manager.backoff.until.is_zero(), of_the_store, "{kind}");
    }
}

#[test]
fn a_fenced_grant_puts_off_no_acquisition_that_waits() {
    for planned in [None, Some(secs(77))] {
        let mut rig = Rig::holding(1);
        let lost = renewal(&rig.intercept()).block;
        if let Some(wait) = planned {
            rig.manager.acquire_at = rig.elapsed + wait;
        }
        assert!(planned.is_some() || rig.manager.acquire_at < rig.elapsed);
        rig.answer(Answer::Renewed(Err(fenced(lost))));
        let wait = rig.manager.acquire_at.checked_sub(rig.elapsed).unwrap();
        match planned {
            Some(planned) => assert_eq!(wait, planned),
            None => assert!(wait <= RenewTiming::FIRST, "{wait:?}"),
        }
    }
}
