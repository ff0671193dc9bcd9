//! Takes after the clock has passed the end of the leases.

use ringflake::{Id, Refused, TakeError};

use crate::rig::{Rig, SECOND, SHORT_END as END, SHORT_LEASE, is_without_lease};
use ringflake_kit::eventually;
use ringflake_kit::faulty_store::Fault;
use ringflake_kit::small::POLICIES;

#[test]
fn the_end_of_a_lease_gives_up_the_ring_and_every_handle() {
    let rig = Rig::new();
    // An assist may fill the ring up to the threshold before the producer looks.
    let ids = rig.cached().lease_duration(SHORT_LEASE).assist_fill(None);
    let ids = ids.build().unwrap();
    let mut handles = [ids.handle().unwrap(), ids.handle().unwrap()];
    for handle in &mut handles {
        // Takes all, so that the next fill goes up to the limit.
        handle.take().unwrap();
        eventually("the ring is full", || ids.stats().level == 64);
    }
    rig.store.fail(Fault::Down);
    rig.set_tick(END);
    eventually("the ring is given up", || {
        let stats = ids.stats();
        (stats.level, stats.retired) == (0, 64)
    });
    let [mut taking, dropped] = handles;
    drop(dropped);
    assert_eq!(ids.stats().level, 0, "what is given back is as old");
    assert_eq!(ids.stats().retired, 64 + 63);
    assert!(is_without_lease(&taking.take()));
    assert!(is_without_lease(&ids.take()));
    let mut batch = [Id::default(); 70];
    assert!(is_without_lease(
        &ids.take_batch(&mut batch).map(|_| batch[0])
    ));
    assert_eq!(ids.stats().retired, 64 + 63 + 63);
    assert_eq!(ids.stats().issued, 2);
}

#[test]
fn direct_generators_of_every_policy_refuse_after_the_end() {
    for policy in POLICIES {
        let rig = Rig::new();
        let ids = rig.direct().lease_duration(SHORT_LEASE);
        let ids = ids.clock_policy(policy).build().unwrap();
        ids.take().unwrap();
        rig.store.fail(Fault::Down);
        rig.set_tick(END);
        assert!(
            matches!(ids.take(), Err(TakeError::Refused(Refused::NoLease { .. }))),
            "{policy:?}"
        );
    }
}

/// The clock alone decides, both ways; nothing that was to be used is lost.
#[test]
fn a_clock_that_was_ahead_costs_what_was_made_and_no_more() {
    let (rig, judge) = Rig::judged();
    let ids = rig.cached().build().unwrap();
    rig.store.fail(Fault::Down);
    rig.clock.advance(1_000 * SECOND);
    let expired = || ids.lease_status().unwrap().expired_since_unix_ms;
    eventually("the leases have ended", || expired().is_some());
    eventually("the ring is given up", || ids.stats().level == 0);
    rig.clock.step_back(999 * SECOND);
    eventually("they are in force again", || expired().is_none());
    // Without a reply of the store, and without a take.
    eventually("R4: the ring is full again", || ids.stats().level == 64);
    judge.judge(ids.take().unwrap());
    assert_eq!(rig.store.granted().len(), 1);
}
