//! A forked child has none of its parent's leases, and leaves them alone.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use ringflake::{
    BuildError, CachedGenerator, DirectGenerator, Id, Layout, LeaseSource, Refused, StaticLease,
    TakeError,
};

use crate::rig::{PATIENCE, Rig, SECOND, START, on_lease_thread};
use ringflake_kit::EndsWhenDropped;
use ringflake_kit::child::{checks_in_a_fork, is_alone, wait_for};
use ringflake_kit::events::{registering, said};
use ringflake_kit::faulty_store::{Fault, Op};
use ringflake_kit::small::{Watched, clock_at, layout, lease, secret};

const FORKED: Result<Id, TakeError> = Err(TakeError::Refused(Refused::Forked));

#[test]
fn u1_a_child_has_no_leases_and_sends_nothing_for_its_parents() {
    let (rig, judge) = Rig::judged();
    let mut ids = Some(rig.cached().blocks(2).widen_to(2).build().unwrap());
    let mut direct = Some(rig.direct().build().unwrap());
    let mut handle = ids.as_ref().map(|ids| ids.handle().unwrap());
    judge.judge(handle.as_mut().unwrap().take().unwrap());
    // Whatever the keepers are doing at that moment, the child must not wait.
    for forks in 0..20 {
        let statuses = || {
            let cached = ids.as_ref().map(CachedGenerator::lease_status);
            let direct = direct.as_ref().map(DirectGenerator::lease_status);
            vec![cached.flatten(), direct.flatten()]
        };
        rig.let_them_renew(statuses);
        if forks % 2 == 1 {
            rig.make_renewals_due(statuses);
        }
        let status = checks_in_a_fork(|checks| {
            let calls =
                || [Op::Acquire, Op::Renew, Op::Release, Op::Check].map(|op| rig.store.calls(op));
            let before = calls();
            if let (Some(ids), Some(direct), Some(handle)) = (&ids, &direct, &mut handle) {
                checks.check(ids.take() == FORKED);
                checks.check(handle.take() == FORKED);
                checks.check(direct.take() == Err(Refused::Forked.into()));
                checks.check(ids.lease_status().is_none());
                checks.check(direct.lease_status().is_none());
                checks.check(!ids.is_ready() && !ids.wait_ready(SECOND));
                checks.check(!direct.is_ready() && !direct.wait_ready(SECOND));
                checks.check(ids.leases().is_empty());
                checks.check(direct.leases().is_empty());
                ids.invalidate();
                direct.invalidate();
                checks.check(ids.take() == FORKED);
                let stats = ids.stats();
                checks.check((stats.level, stats.lease_end_unix_ms) == (0, 0));
                checks.check(!format!("{ids:?} {direct:?}").is_empty());
            }
            // The drops must not wait for threads that are not here.
            (handle, ids, direct) = (None, None, None);
            checks.check(handle.is_none() && ids.is_none() && direct.is_none());
            checks.check(calls() == before);
        });
        assert_eq!(status, Ok(0), "the check that failed");
        judge.judge(handle.as_mut().unwrap().take().unwrap());
    }
    assert_eq!(rig.held_blocks(), 3);
    assert_eq!(rig.store.calls(Op::Release), 0);
    judge.judge(ids.as_ref().unwrap().take().unwrap());
    judge.judge(direct.as_ref().unwrap().take().unwrap());
}

/// Independent of what the parent's generators share at that moment, and of threads that
/// enter or leave them.
#[test]
fn u1_a_child_shares_no_thread_with_its_parent() {
    if !is_alone() {
        return;
    }
    let mut rig = Rig::new();
    rig.store = rig.store.shared_as("forked");
    let ids = rig.direct().build().unwrap();
    let stop = AtomicBool::new(false);
    let started = Barrier::new(3);
    thread::scope(|scope| {
        let _ends = EndsWhenDropped(&stop);
        scope.spawn(|| {
            started.wait();
            while !stop.load(Relaxed) {
                // Refused at once, by the same thread.
                let stranger = rig.direct().namespace("stranger").build();
                assert!(stranger.is_err());
            }
        });
        // As other tests do.
        scope.spawn(|| {
            started.wait();
            said(|| {
                while !stop.load(Relaxed) {
                    said(|| ());
                }
            });
        });
        // No thread starts or ends from here on: see `is_alone`.
        started.wait();
        for _ in 0..20 {
            let status = checks_in_a_fork(|checks| {
                let mut rig = Rig::new();
                rig.store = rig.store.shared_as("forked");
                for _ in 0..2 {
                    let own = rig.direct().build();
                    checks.check(own.as_ref().is_ok_and(|own| own.take().is_ok()));
                    checks.check(rig.store.calls(Op::Acquire) > 0);
                }
                checks.check(ids.take() == Err(Refused::Forked.into()));
            });
            assert_eq!(status, Ok(0), "the check that failed");
        }
    });
    assert!(ids.take().is_ok());
}

/// As a signal handler can fork on any thread.
#[test]
fn u1_a_child_that_is_forked_on_the_lease_thread_asks_nothing_and_ends() {
    let rig = Rig::new();
    let (child, forked) = mpsc::channel();
    let (child, is_due) = (Mutex::new(Some(child)), Arc::new(AtomicBool::new(false)));
    let due = Arc::clone(&is_due);
    let fork = move || {
        if !on_lease_thread() || !due.load(Relaxed) {
            return;
        }
        let Some(child) = child.lock().unwrap().take() else {
            return;
        };
        let lock = registering();
        // SAFETY: the child ends with this thread, its only one.
        let pid = unsafe { libc::fork() };
        drop(lock);
        match pid {
            0 => std::mem::forget(child),
            pid => child.send(pid).unwrap(),
        }
    };
    let clock = Watched(rig.clock.clone(), fork);
    let ids = rig.direct().clock(clock).build().unwrap();
    // A child that asks the store hangs.
    rig.store.hold();
    is_due.store(true, Relaxed);
    rig.clock.advance(Duration::from_secs(300));
    let pid = forked.recv_timeout(PATIENCE).unwrap();
    assert_eq!(wait_for(pid), Ok(0));
    rig.store.let_go();
    assert!(ids.take().is_ok());
}

fn on(layout: Layout, source: impl Into<LeaseSource>) -> Result<DirectGenerator, BuildError> {
    DirectGenerator::builder(layout)
        .secret(secret())
        .lease(source)
        .clock(clock_at(layout, START))
        .build()
}

fn nodes(layout: Layout, nodes: Range<u64>) -> StaticLease {
    StaticLease::assume_unique(layout, nodes)
}

/// Whether it is refused as the parent's, on its nodes 8..16.
fn is_parents<T>(built: Result<T, BuildError>) -> bool {
    match built {
        Err(BuildError::LeaseOfParent { parents_nodes, .. }) => parents_nodes == (8..16),
        _ => false,
    }
}

#[test]
fn u1_a_child_can_build_on_nothing_of_its_parents() {
    // Whether the parent's generator is there at the fork, or gone before it.
    for (gone, is_static) in [(false, true), (true, true), (false, false)] {
        let layout = layout(40, 8, 8);
        let given: LeaseSource = match is_static {
            true => nodes(layout, 8..16).into(),
            false => lease(layout, 8..16, START..START + 100).into(),
        };
        let mut ids = Some(on(layout, given.clone()).unwrap());
        ids.as_ref().unwrap().take().unwrap();
        if gone {
            ids = None;
        }
        let status = checks_in_a_fork(|checks| {
            for _ in 0..2 {
                checks.check(is_parents(on(layout, given.clone())));
                checks.check(is_parents(on(layout, nodes(layout, 15..16))));
                let later = nodes(layout, 0..9).starting_at_tick(START + 1_000_000);
                checks.check(is_parents(on(layout, later)));
                checks.check(is_parents(on(layout, lease(layout, 8..9, 0..1))));
                // Nothing that is dropped here changes that.
                ids = None;
            }
            let own = on(layout, nodes(layout, 16..24));
            checks.check(own.as_ref().is_ok_and(|own| own.take().is_ok()));
            drop(own);
            // A child of the child has two parents.
            let grandchild = checks_in_a_fork(|checks| {
                checks.check(is_parents(on(layout, given.clone())));
                let of_child = on(layout, nodes(layout, 23..24));
                checks.check(matches!(of_child, Err(BuildError::LeaseOfParent { .. })));
                let own = on(layout, nodes(layout, 24..25));
                checks.check(own.is_ok_and(|own| own.take().is_ok()));
            });
            checks.check(grandchild == Ok(0));
        });
        assert_eq!(status, Ok(0), "gone: {gone}; the check that failed");
        // The parent may go on, and build again.
        if let Some(ids) = ids {
            ids.take().unwrap();
        }
        on(layout, given).unwrap().take().unwrap();
    }
}

#[test]
fn a_child_of_a_process_whose_store_hangs_does_not_hang() {
    let rig = Rig::new();
    let mut ids = Some(rig.cached().build().unwrap());
    rig.store.hold();
    rig.clock.advance(Duration::from_secs(300));
    ringflake_kit::eventually("an operation hangs", || rig.store.held() == 1);
    let status = checks_in_a_fork(|checks| {
        if let Some(ids) = &ids {
            ids.invalidate();
            checks.check(ids.lease_status().is_none());
        }
        ids = None;
        checks.check(ids.is_none());
    });
    assert_eq!(status, Ok(0), "the check that failed");
    rig.store.let_go();
    rig.store.fail(Fault::Down);
    assert!(ids.unwrap().take().is_ok());
}
