//! Every ID lies in a grant and comes once, whatever becomes of the leases.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use ringflake::lease::LeaseStatus;
use ringflake::{CachedGenerator, DirectGenerator, Id, Refused, TakeError};

use crate::rig::{BLOCK_IDS, Judge, LEASE_DURATION, Rig, SECOND, START, all_held, held_end, one};
use ringflake_kit::faulty_store::{Fault, Op};
use ringflake_kit::small::POLICIES;
use ringflake_kit::{EndsWhenDropped, eventually, eventually_within};

/// Takes until `over`. The borrow limit is the one refusal that may come.
fn consume(
    judge: &Judge,
    over: &AtomicBool,
    mut take: impl FnMut(&mut [Id]) -> Result<usize, TakeError>,
) {
    let mut batch = [Id::default(); 100];
    while !over.load(Relaxed) {
        match take(&mut batch) {
            Ok(count) => judge.judge_all(&batch[..count]),
            Err(TakeError::Refused(Refused::BorrowLimit { .. })) => thread::yield_now(),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn u1_u2_no_take_is_refused_while_leases_are_renewed_or_swapped() {
    let (rig, judge) = Rig::judged();
    let cached = [
        rig.cached().blocks(2).widen_to(4),
        rig.cached().capacity(4).producers(2),
        rig.in_place().blocks(3).widen_to(3),
    ]
    .map(|builder| builder.build().unwrap());
    let direct = POLICIES.map(|policy| rig.direct().clock_policy(policy).build().unwrap());
    let statuses = || -> Vec<LeaseStatus> {
        let cached = cached.iter().map(CachedGenerator::lease_status);
        let direct = direct.iter().map(DirectGenerator::lease_status);
        cached.chain(direct).map(Option::unwrap).collect()
    };

    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (judge, over) = (&judge, &over);
        for ids in &cached {
            scope.spawn(move || consume(judge, over, |batch| one(batch, ids.take())));
            scope.spawn(move || consume(judge, over, |batch| ids.take_batch(batch)));
            scope.spawn(move || {
                let mut handle = ids.handle().unwrap();
                consume(judge, over, |batch| one(batch, handle.take()));
            });
        }
        for ids in &direct {
            scope.spawn(move || consume(judge, over, |batch| ids.take_batch(batch)));
        }

        // The store fails in all ways but for good, and the clock goes on for
        // several times the length of a grant.
        let ends_when_dropped = EndsWhenDropped(over);
        let faults = [
            None,
            Some(Fault::Fence),
            None,
            Some(Fault::Cut),
            Some(Fault::Panic),
        ];
        for (round, fault) in faults.into_iter().cycle().enumerate() {
            // Each is to have been at work, and on a busy machine the consumers come late.
            if round >= 15 && judge.issued() > 50_000 {
                break;
            }
            assert!(round < 80, "{} IDs were issued", judge.issued());
            if let Some(fault) = fault {
                rig.store.fail_next(Op::Renew, fault);
            }
            // A third of the lease duration, so that renewals are due and nothing runs out.
            for _ in 0..LEASE_DURATION / 3 {
                rig.clock.advance(SECOND);
                thread::yield_now();
            }
            // Nothing is due before three tenths are gone.
            let due = rig.tick() + LEASE_DURATION * 2 / 3;
            // A renewal that was in flight while the clock went on carries less far. The next
            // one is due within three twentieths of a lease, by a clock that is not the rig's.
            let patience = SECOND * u32::try_from(LEASE_DURATION / 2).unwrap();
            eventually_within(patience, "every generator is well provided", || {
                let provided = |status| all_held(status) && held_end(status) >= due;
                rig.store.has_failed() && statuses().iter().all(provided)
            });
        }
        drop(ends_when_dropped);
    });
    assert!(rig.store.granted().len() > 12, "some were replaced");
    for ids in cached {
        assert_eq!(ids.stats().panics, 0);
    }
}

#[test]
fn u1_u2_threads_issue_every_cell_of_a_lease_once() {
    let (rig, judge) = Rig::judged();
    let ids = rig.cached().blocks(2).widen_to(2);
    let ids = ids.borrow_limit(3600 * SECOND).build().unwrap();
    // Nothing is added to what there is.
    rig.store.fail(Fault::Down);
    let cells = 2 * LEASE_DURATION * BLOCK_IDS;
    thread::scope(|scope| {
        for way in 0..3 {
            let (ids, judge) = (&ids, &judge);
            scope.spawn(move || {
                let mut handle = ids.handle().unwrap();
                let mut batch = [Id::default(); 70];
                loop {
                    let taken = match way {
                        0 => one(&mut batch, ids.take()),
                        1 => one(&mut batch, handle.take()),
                        _ => ids.take_batch(&mut batch),
                    };
                    match taken {
                        Ok(count) => judge.judge_all(&batch[..count]),
                        Err(TakeError::Refused(Refused::NoLease { .. })) => break,
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    // IDs that a handle gave back, or that a producer held, are in the ring.
    eventually("nothing is left", || {
        while let Ok(id) = ids.take() {
            judge.judge(id);
        }
        judge.issued() == cells
    });
    let borrowed = Duration::from_secs(LEASE_DURATION - 1);
    assert_eq!(ids.stats().borrowed, borrowed);
}

#[test]
fn takes_go_on_while_the_store_does_not_answer() {
    let (rig, judge) = Rig::judged();
    let ids = rig.cached().build().unwrap();
    rig.store.hold();
    rig.clock.advance(Duration::from_secs(300));
    eventually("an operation hangs", || rig.store.held() == 1);
    let mut batch = [Id::default(); 200];
    for _ in 0..5 {
        assert_eq!(ids.take_batch(&mut batch), Ok(200));
        judge.judge_all(&batch);
    }
    // Nor does a look at the leases wait for it.
    assert_eq!(ids.lease_status().unwrap().grants.len(), 1);
    assert_eq!(ids.leases().len(), 1);
    assert_eq!(rig.store.held(), 1);
    rig.store.let_go();
    eventually("the renewal counts", || {
        ids.leases()[0].ticks().end > START + LEASE_DURATION
    });
}
