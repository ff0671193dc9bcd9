//! Takes after the clock has passed the end of the leases.

use ringflake::lease::Expiry;
use ringflake::{Id, Refused, TakeError};

use crate::rig::{
    BLOCK_IDS, Judge, Rig, SECOND, SHORT_END as END, SHORT_LEASE, START, is_without_lease,
};
use ringflake_kit::eventually;
use ringflake_kit::faulty_store::{Fault, Op};
use ringflake_kit::small::{POLICIES, cached};

/// The cells of one grant.
const CELLS: u64 = (END - START) * BLOCK_IDS;

#[test]
fn refuse_gives_up_the_ring_and_every_handle() {
    let rig = Rig::new();
    let ids = rig.cached().lease_duration(SHORT_LEASE).build().unwrap();
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
fn serve_gives_ring_and_lease_to_the_last_cell_and_no_further() {
    // With a lease that nobody has contested, and with one that was lost.
    for fault in [Fault::Down, Fault::Cut, Fault::Panic] {
        let rig = Rig::new();
        let judge = Judge::new(&rig);
        let ids = rig.cached().lease_duration(SHORT_LEASE);
        let ids = ids.expiry(Expiry::Serve);
        let ids = ids.blocks(2).widen_to(2).build().unwrap();
        let mut handle = ids.handle().unwrap();
        judge.judge(handle.take().unwrap());
        rig.store.fail(fault);
        rig.set_tick(END + 1_000);
        let status = || ids.lease_status().unwrap();
        eventually("the end is noticed", || {
            status().expired_since_unix_ms.is_some()
        });
        let failed = || rig.store.calls(Op::Renew) + rig.store.calls(Op::Check);
        eventually("the store is asked in vain", || failed() > 2);
        eventually("all of it is issued", || {
            while let Ok(id) = ids.take() {
                judge.judge(id);
            }
            while let Ok(id) = handle.take() {
                judge.judge(id);
            }
            judge.issued() == 2 * CELLS
        });
        assert!(is_without_lease(&ids.take()), "{fault:?}");
        assert_eq!(ids.stats().retired, 0);

        rig.store.heal();
        eventually("IDs of a new lease flow", || {
            let taken = ids.take();
            taken.is_ok_and(|id| {
                judge.judge(id);
                ids.inspect(id).unwrap().tick > END
            })
        });
    }
}

#[test]
fn serve_prefers_a_lease_that_is_in_force() {
    let rig = Rig::new();
    let judge = Judge::new(&rig);
    let ids = rig.in_place().lease_duration(SHORT_LEASE);
    let ids = ids.expiry(Expiry::Serve).build().unwrap();
    let take = || {
        let id = ids.take().unwrap();
        judge.judge(id);
        ids.inspect(id).unwrap().tick
    };
    rig.store.fail_next(Op::Renew, Fault::Fence);
    rig.store.fail_next(Op::Acquire, Fault::Down);
    rig.store.hold();
    rig.set_tick(END + 5);
    // From the middle of a tick on.
    assert_eq!(take(), START);
    rig.store.let_go();
    eventually("another block is had", || rig.store.granted().len() == 2);
    let open = || ids.leases().iter().any(|it| it.ticks().start > END);
    eventually("and used", open);
    // One take may have its lane already.
    take();
    assert_eq!(take(), END + 5);
}

#[test]
fn both_hold_for_direct_generators_of_every_policy() {
    for policy in POLICIES {
        for expiry in [Expiry::Refuse, Expiry::Serve] {
            let rig = Rig::new();
            let judge = Judge::new(&rig);
            let ids = rig.direct().lease_duration(SHORT_LEASE);
            let ids = ids.clock_policy(policy);
            let ids = ids.expiry(expiry).build().unwrap();
            judge.judge(ids.take().unwrap());
            rig.store.fail(Fault::Down);
            rig.set_tick(END);
            let refused = loop {
                match ids.take() {
                    Ok(id) => judge.judge(id),
                    Err(refused) => break refused,
                }
            };
            assert!(
                matches!(refused, TakeError::Refused(Refused::NoLease { .. })),
                "{refused:?}"
            );
            let issued = if expiry == Expiry::Serve { CELLS } else { 1 };
            assert_eq!(judge.issued(), issued, "{policy:?}, {expiry:?}");
        }
    }
}

/// The clock alone decides, both ways; nothing that was to be used is lost.
#[test]
fn a_clock_that_was_ahead_costs_what_was_made_and_no_more() {
    let rig = Rig::new();
    let judge = Judge::new(&rig);
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

#[test]
fn a_lease_that_was_given_ends_as_before() {
    let rig = Rig::new();
    let ids = cached(rig.layout, 0..8, START..END).clock(rig.clock.clone());
    let ids = ids.capacity(64).build().unwrap();
    rig.set_tick(END);
    let mut left = 0;
    let refused = loop {
        match ids.take() {
            Ok(_) => left += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(left, 64, "what was made before is served");
    let TakeError::Refused(Refused::LeaseEnded { .. }) = refused else {
        panic!("{refused:?}");
    };
}
