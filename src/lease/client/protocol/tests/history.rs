//! A store that knows less than it has confirmed.

use super::*;
use crate::lease::Confirmed;

/// With two blocks that were renewed since the store's state was put back to.
fn put_back() -> Rig {
    let mut rig = Rig::holding(2);
    let snapshot = rig.store.snapshot();
    rig.run(secs(200));
    rig.store.restore(&snapshot);
    rig
}

fn floor(rig: &mut Rig) -> u64 {
    rig.store.list(&rig.space).unwrap().record.floor
}

#[test]
fn s8_what_was_confirmed_goes_with_every_acquisition() {
    let mut rig = Rig::new(LeasePlan::new(1));
    let evidence = |request: &Request| match request {
        Request::Acquire(acquire) => acquire.evidence.clone(),
        other => panic!("{other:?}"),
    };
    let request = rig.intercept();
    assert_eq!(evidence(&request), []);
    rig.send(&request);
    rig.run(secs(200));
    let held = rig.manager.status().grants[0].grant.clone();
    assert!(held.ticks.end > START + 700, "it was renewed: {held}");
    let confirmed = Confirmed::new(held.block, held.epoch, held.ticks.end);
    // Also when the grant was given up.
    rig.changes.extend(rig.manager.invalidate());
    assert_eq!(evidence(&rig.intercept()), [confirmed]);
}

#[test]
fn s8_a_loss_that_a_renewal_meets_leads_to_a_request_at_once() {
    let mut rig = put_back();
    let (before, now) = (floor(&mut rig), rig.tick());
    let asked = rig.run(secs(100));
    let mut asked = asked.iter();
    let (fenced, renewal) = asked.next().unwrap();
    assert!(matches!(renewal, Request::Renew(_)), "{renewal:?}");
    let (at, second) = asked.next().unwrap();
    assert!(matches!(second, Request::Acquire(_)), "{second:?}");
    assert!(*at - *fenced <= Duration::from_millis(100), "{at:?}");
    let limits = StoreLimits::default();
    let over = limits.horizon().as_secs() + limits.failover().as_secs() + 1;
    let floor = floor(&mut rig);
    assert!(before < floor && (now + over..now + over + 100).contains(&floor));
    // It goes on by itself, above the floor.
    rig.run(secs(200));
    let status = rig.manager.status();
    let above = |held: &&GrantStatus| held.grant.ticks.start >= floor;
    assert_eq!(status.grants.iter().filter(above).count(), 2, "{status:?}");
}

#[test]
fn s8_a_loss_is_in_the_status() {
    let mut rig = put_back();
    rig.changes.extend(rig.manager.invalidate());
    let request = rig.intercept();
    assert!(matches!(request, Request::Acquire(_)));
    rig.send(&request);
    let last_error = rig.manager.status().health.last_error;
    let lost = matches!(last_error.as_deref(), Some(StoreError::HistoryLost { .. }));
    assert!(lost, "{last_error:?}");
}
