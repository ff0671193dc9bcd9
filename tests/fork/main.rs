//! A forked child never issues what the parent has issued or will issue.
//!
//! The child of a process with many threads may do little: no test in it
//! allocates or prints, and what it found is the status that it exits with.

#![cfg(unix)]

mod cores;
mod futures;
mod handlers;
mod inside;
#[cfg(feature = "metrics")]
mod publishing;

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use ringflake::{
    BackfillError, BackfillGenerator, BuildError, CachedGenerator, ClockPolicy, DirectGenerator,
    Handle, Id, Layout, OnEmpty, Permit, PushError, Refused, RingBuffer, StaticLease, TakeError,
};

use ringflake_kit::assert_matches;
use ringflake_kit::child::{Checks, PANICKED, checks_in_a_fork, in_a_fork};
use ringflake_kit::oracle::Oracle;
use ringflake_kit::small::{POLICIES, cached, direct, layout};

const HOUR: Duration = Duration::from_secs(3600);

fn generator(layout: Layout, on_empty: OnEmpty) -> CachedGenerator {
    cached(layout, 0..8, 0..400)
        .borrow_limit(HOUR)
        .capacity(512)
        .producers(2)
        .on_empty(on_empty)
        .build()
        .unwrap()
}

fn direct_by(layout: Layout, policy: ClockPolicy) -> DirectGenerator {
    direct(layout, 8..12, 0..400)
        .clock_policy(policy)
        .build()
        .unwrap()
}

const FORKED: Result<Id, TakeError> = Err(TakeError::Refused(Refused::Forked));

/// Every way to take, twice, and what the figures say.
fn check_cached(checks: &mut Checks, ids: &CachedGenerator, handle: &mut Handle) {
    let mut batch = [Id::default(); 70];
    for _ in 0..2 {
        checks.check(ids.take() == FORKED);
        checks.check(ids.clone().take() == FORKED);
        checks.check(ids.take_batch(&mut batch[..1]) == FORKED.map(|_| 0));
        checks.check(ids.take_batch(&mut batch) == FORKED.map(|_| 0));
        checks.check(ids.take_batch(&mut []) == Ok(0));
        checks.check(handle.take() == FORKED);
    }
    checks.check(batch == [Id::default(); 70]);
    checks.check(ids.stats().level == 0);
    checks.check(ids.handle().is_ok_and(|mut fresh| fresh.take() == FORKED));
}

#[test]
fn u1_a_child_gets_nothing_from_a_generator() {
    let layout = layout(40, 8, 8);
    for on_empty in [
        OnEmpty::Generate,
        OnEmpty::Error,
        OnEmpty::Wait(Duration::from_secs(60)),
    ] {
        let oracle = Oracle::new(layout, 0..8, 0..400);
        let mark = |id: Id, ids: &CachedGenerator| oracle.mark(ids.inspect(id).unwrap()).unwrap();
        let mut ids = Some(generator(layout, on_empty));
        let mut handle = ids.as_ref().map(|ids| ids.handle().unwrap());
        let first = handle.as_mut().unwrap().take().unwrap();
        mark(first, ids.as_ref().unwrap());

        let status = checks_in_a_fork(|checks| {
            if let (Some(ids), Some(handle)) = (&ids, &mut handle) {
                check_cached(checks, ids, handle);
            }
            // The drops must not wait for threads that are not here.
            handle = None;
            ids = None;
            checks.check(handle.is_none() && ids.is_none());
        });
        assert_eq!(status, Ok(0), "{on_empty:?}: the check that failed");

        // The parent has all it had, the stock of the handle included.
        let (ids, mut handle) = (ids.unwrap(), handle.unwrap());
        for _ in 0..2_000 {
            for id in [ids.take(), handle.take()].into_iter().flatten() {
                mark(id, &ids);
            }
        }
        assert!(oracle.marked() > 500);
    }
}

#[test]
fn u1_a_child_gets_nothing_from_a_direct_generator() {
    let layout = layout(40, 8, 8);
    for policy in POLICIES {
        let oracle = Oracle::new(layout, 8..12, 0..400);
        let mut ids = Some(direct_by(layout, policy));
        let take = |ids: &Option<DirectGenerator>| {
            let ids = ids.as_ref().unwrap();
            oracle.mark(ids.inspect(ids.take().unwrap()).unwrap())
        };
        take(&ids).unwrap();
        let status = checks_in_a_fork(|checks| {
            let mut batch = [Id::default(); 70];
            if let Some(ids) = &ids {
                checks.check(ids.take() == Err(Refused::Forked.into()));
                checks.check(ids.take_batch(&mut batch) == Err(Refused::Forked.into()));
                checks.check(ids.take() == Err(Refused::Forked.into()));
            }
            checks.check(batch == [Id::default(); 70]);
            ids = None;
            checks.check(ids.is_none());
        });
        assert_eq!(status, Ok(0), "{policy:?}: the check that failed");
        for _ in 0..200 {
            take(&ids).unwrap();
        }
    }
}

#[test]
fn u1_a_child_gets_nothing_of_the_past_whatever_lock_is_held() {
    let layout = layout(40, 8, 8);
    let oracle = Oracle::new(layout, 30..34, 0..40);
    let lease = StaticLease::assume_unique_past(layout, 30..34, 0..40).unwrap();
    let builder = BackfillGenerator::builder(layout).plain().lease(lease);
    let mut past = Some(builder.build().unwrap());
    let moment = |tick| UNIX_EPOCH + Duration::from_millis(layout.tick_start_unix_ms(tick));
    let take = |past: &BackfillGenerator, tick| {
        let id = past.take_at(moment(tick)).unwrap();
        oracle.mark(past.inspect(id).unwrap()).unwrap();
    };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // Has the lock most of the time.
        let busy = past.clone().unwrap();
        let (stop, take) = (&stop, &take);
        scope.spawn(move || {
            while !stop.load(Acquire) {
                for _ in 0..1_000 {
                    let _ = busy.take_at(moment(39));
                }
            }
        });
        for tick in 0..30 {
            take(past.as_ref().unwrap(), tick);
            let status = checks_in_a_fork(|checks| {
                let mut batch = [Id::default(); 70];
                if let Some(past) = &past {
                    checks.check(past.take_at(moment(tick)) == Err(BackfillError::Forked));
                    let took = past.take_batch_at(moment(tick), &mut batch);
                    checks.check(took == Err(BackfillError::Forked));
                    checks.check(past.distinct_ticks() == 0);
                }
                checks.check(batch == [Id::default(); 70]);
                past = None;
                checks.check(past.is_none());
            });
            if status != Ok(0) {
                stop.store(true, Release);
            }
            assert_eq!(status, Ok(0), "the check that failed");
            take(past.as_ref().unwrap(), tick);
        }
        stop.store(true, Release);
    });
    assert_eq!(oracle.marked(), 60);
    // The last one that there is in the child, which lets go of nothing there.
    let status = in_a_fork(|| {
        past = None;
        u8::from(past.is_some())
    });
    assert_eq!(status, Ok(0));
    let lease = StaticLease::assume_unique_past(layout, 33..34, 39..40).unwrap();
    let again = BackfillGenerator::builder(layout).plain().lease(lease);
    let again = again.build();
    assert_matches!(again, Err(BuildError::LeaseTaken { .. }));
}

#[test]
fn u1_a_ring_is_empty_in_a_child_and_stays_so() {
    let id = Id::from_u64;
    for (pushed, taken) in [(0, 0), (3, 1), (64, 0), (64, 10)] {
        let mut ring = Some(RingBuffer::with_capacity(64).unwrap());
        let the_ring = ring.as_ref().unwrap();
        for number in 0..pushed {
            the_ring.push(id(1_000 + number)).unwrap();
        }
        for _ in 0..taken {
            the_ring.take().unwrap();
        }
        let status = checks_in_a_fork(|checks| {
            if let Some(ring) = &ring {
                for _ in 0..2 {
                    checks.check(ring.take().is_none());
                    checks.check(ring.take_batch(&mut [Id::default(); 9]) == 0);
                    checks.check(ring.is_empty());
                    checks.check(ring.push(id(1)) == Err(PushError(id(1))));
                    checks.check(ring.push_batch(&[id(2), id(3)]) == 0);
                    checks.check(ring.reserve(1).is_none());
                }
                checks.check(ring.capacity() == 64);
            }
            ring = None;
            checks.check(ring.is_none());
        });
        assert_eq!(status, Ok(0), "the check that failed");
        let ring = ring.unwrap();
        for number in taken..pushed {
            assert_eq!(ring.take(), Some(id(1_000 + number)));
        }
        assert_eq!(ring.take(), None);
    }
}

#[test]
fn u1_a_permit_that_a_child_inherits_publishes_nothing() {
    let ring = RingBuffer::with_capacity(8).unwrap();
    let id = Id::from_u64;
    assert_eq!(ring.push_batch(&[id(1), id(2), id(3), id(4), id(5)]), 5);
    for dropped in [false, true] {
        let mut permits = [ring.reserve(1), ring.reserve(2)];
        let status = checks_in_a_fork(|checks| {
            let push = |permit: Permit<'_>| match dropped {
                false => drop(permit.push(&[id(9), id(9)])),
                true => drop(permit),
            };
            permits.iter_mut().filter_map(Option::take).for_each(push);
            checks.check(ring.is_empty());
            checks.check(ring.take().is_none());
            checks.check(ring.take_batch(&mut [Id::default(); 8]) == 0);
            checks.check(ring.push(id(9)) == Err(PushError(id(9))));
        });
        assert_eq!(status, Ok(0), "the check that failed");
        let [one, two] = permits.map(Option::unwrap);
        if dropped {
            assert_eq!(two.push(&[id(6), id(7)]), 2);
            assert_eq!(one.push(&[id(8)]), 1);
        }
    }
    for number in 1..=8 {
        assert_eq!(ring.take(), Some(id(number)));
    }
}

#[test]
fn u1_a_childs_child_gets_nothing_either() {
    let layout = layout(40, 8, 8);
    let ids = generator(layout, OnEmpty::Generate);
    let mut handle = ids.handle().unwrap();
    handle.take().unwrap();
    let status = in_a_fork(|| {
        let grandchild = checks_in_a_fork(|checks| {
            check_cached(checks, &ids, &mut handle);
        });
        grandchild.unwrap_or(PANICKED)
    });
    assert_eq!(status, Ok(0), "the check that failed");
}
