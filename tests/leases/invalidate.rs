//! No ID from before `invalidate` is issued after it.

use std::collections::HashSet;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use ringflake::{
    DirectGenerator, Handle, Id, Lease, OnEmpty, Refused, StaticLease, TakeError, WeakGenerator,
};

use crate::rig::{Rig, SECOND, START, is_without_lease, one};
use ringflake_kit::affinity::Cores;
use ringflake_kit::faulty_store::{Fault, Op};
use ringflake_kit::small::{POLICIES, cached};
use ringflake_kit::{EndsWhenDropped, assert_matches, eventually};

const INVALIDATED: Result<Id, TakeError> = Err(TakeError::Refused(Refused::Invalidated));

#[test]
fn s4_an_invalidation_gives_up_the_ring_every_handle_and_the_leases() {
    let (rig, judge) = Rig::judged();
    let ids = rig.cached().blocks(2).widen_to(2).build().unwrap();
    let mut handles: Vec<Handle> = (0..3).map(|_| ids.handle().unwrap()).collect();
    for handle in &mut handles {
        judge.judge(handle.take().unwrap());
    }
    // R4 promises the threshold: a handle may have taken of the last fill, and a fill may be cut
    // short by a change of leases.
    let is_filled = || {
        let stats = ids.stats();
        stats.level >= stats.threshold
    };
    eventually("the ring is filled", is_filled);

    rig.store.hold();
    ids.invalidate();
    assert_eq!(ids.stats().level, 0);
    assert_eq!(ids.leases(), []);
    assert!(ids.lease_status().unwrap().grants.is_empty());
    let dropped = handles.pop();
    drop(dropped);
    assert_eq!(ids.stats().level, 0, "what is given back is as old");
    assert!(is_without_lease(&ids.take()));
    for handle in &mut handles {
        assert!(is_without_lease(&handle.take()));
    }

    rig.store.let_go();
    eventually("there are other leases", || ids.leases().len() == 2);
    eventually("R4: the ring is filled again", is_filled);
    let blocks = |id| rig.space.block_of(ids.inspect(id).unwrap().node).index();
    for _ in 0..200 {
        for id in [ids.take(), handles[0].take(), handles[1].take()] {
            let id = id.unwrap();
            judge.judge(id);
            assert!(blocks(id) >= 2, "from before");
        }
    }
    // Blocks that may belong to another copy are not released.
    assert_eq!(rig.store.calls(Op::Release), 0);
    assert_eq!(rig.held_blocks(), 4);
}

#[test]
fn s4_a_refusal_after_an_invalidation_names_no_earlier_lease() {
    let rig = Rig::new();
    let ids = rig.in_place().build().unwrap();
    ids.take().unwrap();
    rig.store.fail(Fault::Down);
    ids.invalidate();
    let Err(TakeError::Refused(Refused::NoLease { end_unix_ms, .. })) = ids.take() else {
        panic!("a lease from before");
    };
    assert_eq!(end_unix_ms, 0);
}

#[test]
fn s4_direct_generators_of_every_policy_issue_nothing_from_before() {
    for policy in POLICIES {
        let (rig, judge) = Rig::judged();
        let ids = rig.direct().clock_policy(policy).build().unwrap();
        judge.judge(ids.take().unwrap());
        rig.store.hold();
        ids.invalidate();
        assert_eq!(ids.leases(), []);
        assert_matches!(ids.take(), Err(TakeError::Refused(Refused::NoLease { .. })));
        rig.store.let_go();
        eventually("IDs of another block", || {
            ids.take().is_ok_and(|id| {
                judge.judge(id);
                assert_eq!(rig.space.block_of(ids.inspect(id).unwrap().node).index(), 1);
                true
            })
        });
    }
}

/// It goes on from batch to batch, and an invalidation comes in between.
#[test]
fn s4_a_vector_holds_no_id_from_before_an_invalidation() {
    // In the first batch, and in one after it.
    for batch in 0..3 {
        let rig = Rig::new();
        let weak = Arc::new(OnceLock::<WeakGenerator>::new());
        let hooked = Arc::clone(&weak);
        let calls = AtomicU32::new(0);
        let ids = rig
            .cached()
            .capacity(64)
            .stripes(1)
            .assist_fill(None)
            .on_empty(OnEmpty::Wait(1000 * SECOND))
            .on_empty_hook(move |_| {
                if calls.fetch_add(1, Relaxed) == batch
                    && let Some(ids) = hooked.get().and_then(WeakGenerator::upgrade)
                {
                    ids.invalidate();
                }
            })
            .build()
            .unwrap();
        weak.set(ids.downgrade()).unwrap();
        let before = ids.leases();
        eventually("the ring is full", || ids.stats().level == 64);
        // The ring has 64, and finding no more of them calls the hook.
        let all = ids.take_vec(300).unwrap();
        assert_eq!(all.len(), 300);
        for id in all {
            let parts = ids.inspect(id).unwrap();
            let is_old = |lease: &Lease| lease.contains(parts.node, parts.tick);
            assert!(!before.iter().any(is_old), "of before: {parts:?}, {batch}");
        }
        assert_eq!(ids.stats().issued, 300, "{batch}");
    }
}

#[test]
fn s4_a_lease_that_was_given_is_given_up_for_good() {
    let rig = Rig::new();
    for (answer, node) in [
        (OnEmpty::Generate, 8),
        (OnEmpty::Error, 16),
        (OnEmpty::Wait(1000 * SECOND), 24),
    ] {
        let ids = cached(rig.layout, node..node + 8, START..START + 500);
        let ids = ids.capacity(256).on_empty(answer).build().unwrap();
        let mut handle = ids.handle().unwrap();
        handle.take().unwrap();
        ids.take().unwrap();
        ids.invalidate();
        assert_eq!(ids.take(), INVALIDATED, "{answer:?}");
        assert_eq!(handle.take(), INVALIDATED);
        drop(handle);
        assert_eq!(ids.take(), INVALIDATED);
        assert_eq!(ids.leases(), []);
        assert_eq!(ids.stats().level, 0);
        ids.invalidate();
    }
    let nodes = StaticLease::assume_unique(rig.layout, 0..8);
    let direct = DirectGenerator::builder(rig.layout).plain().lease(nodes);
    let direct = direct.clock(rig.clock.clone()).build().unwrap();
    direct.take().unwrap();
    direct.invalidate();
    assert_eq!(direct.take(), Err(TakeError::Refused(Refused::Invalidated)));
    assert_eq!(direct.leases(), []);
}

/// A block is never come back to here, so each ID tells when it was made. Takes change cores
/// all the time, so that IDs are on their way between stripes in some of the calls.
#[test]
fn s4_takes_after_an_invalidation_returns_get_nothing_from_before() {
    let (rig, judge) = Rig::judged();
    let ids = (rig.cached().stripes(8).capacity(256).producers(2).build()).unwrap();
    let cores = Cores::of_this_thread();
    // How often it has returned, and the blocks that were given up by then.
    let rounds = AtomicU64::new(0);
    let given_up = Mutex::new(HashSet::new());
    let over = AtomicBool::new(false);
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        for way in 0..3 {
            let (ids, judge, rounds, given_up, over, taken) =
                (&ids, &judge, &rounds, &given_up, &over, &taken);
            let cores = &cores;
            let space = &rig.space;
            scope.spawn(move || {
                let mut handle = Some(ids.handle().unwrap());
                let mut batch = [Id::default(); 40];
                for take in way.. {
                    if over.load(Relaxed) {
                        break;
                    }
                    cores.go_to(take / 2);
                    // Acquire: with the count come the blocks.
                    let before = rounds.load(Acquire);
                    let old: HashSet<u64> = given_up.lock().unwrap().clone();
                    // Later IDs, added since the count was read, may appear.
                    let certain = rounds.load(Acquire) == before;
                    let count = match way {
                        0 => ids.take_batch(&mut batch),
                        1 => one(&mut batch, ids.take()),
                        _ => one(&mut batch, handle.as_mut().unwrap().take()),
                    };
                    let count = match count {
                        Ok(count) => count,
                        Err(TakeError::Refused(
                            Refused::NoLease { .. } | Refused::BorrowLimit { .. },
                        )) => {
                            // Gives back what it has, and takes a new one.
                            if way == 2 {
                                drop(handle.take());
                                handle = Some(ids.handle().unwrap());
                            }
                            thread::yield_now();
                            continue;
                        }
                        Err(other) => panic!("{other}"),
                    };
                    judge.judge_all(&batch[..count]);
                    for &id in &batch[..count] {
                        let block = space.block_of(ids.inspect(id).unwrap().node).index();
                        assert!(!certain || !old.contains(&block), "block {block}");
                    }
                    taken.fetch_add(count as u64, Relaxed);
                }
            });
        }
        let ends_when_dropped = EndsWhenDropped(&over);
        for round in 0..50 {
            let block = || ids.leases().first().map(|it| it.nodes().start / 8);
            eventually("there is another lease", || block().is_some());
            let before = taken.load(Relaxed);
            // It may have been used up by now.
            rig.clock.advance(10 * SECOND);
            eventually("it is used", || taken.load(Relaxed) > before + 100);
            let block = block().unwrap();
            ids.invalidate();
            given_up.lock().unwrap().insert(block);
            assert_eq!(rounds.fetch_add(1, AcqRel), round);
        }
        drop(ends_when_dropped);
    });
    eventually("the last is replaced, too", || rig.blocks().len() == 51);
}

/// Nothing of the new leases is thrown away with the old, however busy it is.
#[test]
fn ids_made_after_an_invalidation_stay() {
    let rig = Rig::new();
    let ids = rig.cached().producers(4).build().unwrap();
    for _ in 0..20 {
        ids.invalidate();
        eventually("the ring is full again", || ids.stats().level == 64);
        rig.clock.advance(SECOND);
    }
    // 64 each time: those that were in the ring then.
    assert_eq!(ids.stats().retired, 20 * 64);
    assert_eq!(ids.stats().issued, 0);
}
