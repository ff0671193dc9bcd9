//! A store that is cut off: takes ride through, then fail, then go on.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use ringflake::lease::StoreFailureKind;
use ringflake::{CachedGenerator, Clock, Id, OnEmpty, Refused, TakeError};

use crate::rig::{
    Rig, SECOND, SHORT_END as END, SHORT_LEASE, START, is_without_lease, on_lease_thread,
};
use ringflake_kit::faulty_store::{Fault, Op};
use ringflake_kit::small::Watched;
use ringflake_kit::{assert_says, eventually};

/// Cuts the store off until the leases have ended, and with them what the ring had.
fn outlast(rig: &Rig, ids: &CachedGenerator) {
    rig.store.fail(Fault::Down);
    rig.set_tick(END);
    eventually("the ring is emptied", || ids.stats().level == 0);
}

/// The refusal, as it is while the store fails like this.
#[track_caller]
fn assert_no_lease(outcome: Result<Id, TakeError>, rig: &Rig, kind: StoreFailureKind, since: u64) {
    let Err(TakeError::Refused(refused)) = outcome else {
        panic!("{outcome:?}");
    };
    let Refused::NoLease {
        end_unix_ms,
        now_unix_ms,
        failure: Some(failure),
    } = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(end_unix_ms, rig.unix_ms(END));
    assert_eq!(now_unix_ms, rig.clock.unix_ms());
    assert_eq!((failure.kind, failure.since_unix_ms), (kind, since));
    let [end, since] = [end_unix_ms, since].map(|ms| {
        let time = UNIX_EPOCH + Duration::from_millis(ms);
        let text = humantime::format_rfc3339_seconds(time).to_string();
        text.trim_end_matches('Z').to_owned()
    });
    assert_says(&refused.to_string(), &[&end, &since, &kind.to_string()]);
}

#[test]
fn ids_flow_until_the_confirmed_end_then_fail_and_say_why() {
    for (fault, kind) in [
        (Fault::Down, StoreFailureKind::Unavailable),
        (Fault::Cut, StoreFailureKind::Ambiguous),
        (Fault::Panic, StoreFailureKind::Ambiguous),
    ] {
        let (rig, judge) = Rig::judged();
        let ids = rig.in_place().lease_duration(SHORT_LEASE);
        let ids = ids.build().unwrap();
        let status = || ids.lease_status().unwrap();
        let end = status().grants[0].grant.ticks.end;
        assert_eq!(end, END);

        rig.store.fail(fault);
        // Less than seven tenths are left.
        rig.set_tick(START + 8);
        let failing = || status().health.failing_since_unix_ms;
        eventually("the outage is noticed", || failing().is_some());
        let since = rig.unix_ms(START + 8);
        assert_eq!(failing(), Some(since));

        // The ride-through is what was confirmed, to the millisecond.
        for tick in START + 8..end {
            rig.set_tick(tick);
            judge.judge(ids.take().unwrap());
        }
        rig.clock.set(rig.unix_ms(end) - 1);
        judge.judge(ids.take().unwrap());
        rig.set_tick(end);
        assert_no_lease(ids.take(), &rig, kind, since);
        eventually("it is told", || {
            status().expired_since_unix_ms == Some(rig.unix_ms(end))
        });
        rig.clock.advance(100 * SECOND);
        assert_no_lease(ids.take(), &rig, kind, since);

        rig.store.heal();
        eventually("IDs flow again by themselves", || {
            ids.take().map(|id| judge.judge(id)).is_ok()
        });
        eventually("all is well", || {
            failing().is_none() && status().expired_since_unix_ms.is_none()
        });
    }
}

#[test]
fn a_waiting_take_is_woken_when_leases_come_back() {
    let (rig, judge) = Rig::judged();
    // No test waits so long.
    let ids = rig.cached().on_empty(OnEmpty::Wait(1000 * SECOND));
    let ids = ids.lease_duration(SHORT_LEASE).build().unwrap();
    outlast(&rig, &ids);
    thread::scope(|scope| {
        let waits = scope.spawn(|| ids.take());
        eventually("the take finds it dry", || ids.stats().empties == 1);
        rig.store.heal();
        judge.judge(waits.join().unwrap().unwrap());
    });
}

/// Panics when it is dropped, too, unless somebody takes care of it.
struct PanicsAgain;

impl Drop for PanicsAgain {
    fn drop(&mut self) {
        resume_unwind(Box::new("the payload fails"));
    }
}

#[test]
fn a_clock_that_panics_at_any_moment_wedges_nothing() {
    // Each look at the clock that a renewal takes is the one that fails once.
    for good in 0..8 {
        let (rig, judge) = Rig::judged();
        // How many looks of the thread succeed before one fails; negative for no more failures.
        let left = Arc::new(AtomicI64::new(-1));
        let looks = Arc::clone(&left);
        let look = move || {
            if on_lease_thread() && looks.fetch_sub(1, Relaxed) == 0 {
                // Without the panic hook, which would write to the test's output.
                resume_unwind(Box::new(PanicsAgain));
            }
        };
        let ids = rig.cached().lease_duration(SHORT_LEASE);
        let ids = ids.clock(Watched(rig.clock.clone(), look)).build().unwrap();
        rig.store.hold();
        rig.clock.advance(8 * SECOND);
        eventually("a renewal is under way", || rig.store.held() == 1);
        left.store(good, Relaxed);
        rig.store.let_go();
        eventually("the clock has failed", || left.load(Relaxed) < 0);
        for _ in 0..3 {
            rig.let_them_renew(|| vec![ids.lease_status()]);
            judge.judge(ids.take().unwrap());
        }
        assert_eq!(rig.store.calls(Op::Acquire), 1, "after {good}");
    }
}

/// A producer that was refused for want of a lease rests for a minute.
#[test]
fn r4_a_producer_at_rest_is_woken_by_a_new_lease() {
    let rig = Rig::new();
    let ids = rig.cached().lease_duration(SHORT_LEASE).build().unwrap();
    rig.store.fail(Fault::Down);
    rig.set_tick(END + 60);
    while ids.take().is_ok() {}
    assert!(is_without_lease(&ids.take()));
    eventually("the producer is refused", || ids.stats().refusals > 0);
    let started = Instant::now();
    rig.store.heal();
    while ids.stats().level < 64 && started.elapsed() < 30 * SECOND {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(ids.stats().level, 64, "half a minute later");
}
