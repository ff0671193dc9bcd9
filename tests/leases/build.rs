//! Refusals of a builder, which leave no block held.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::{Fingerprint, History, Holder, LeaseStore, StoreError};
use ringflake::{
    BuildError, CachedGenerator, DirectGenerator, OnEmpty, Refused, Secret, TakeError,
};

use crate::rig::{LEASE_DURATION, NAME, PATIENCE, Rig, SECOND, START, is_without_lease};
use ringflake_kit::faulty_store::{Fault, Op};
use ringflake_kit::small::{lease, namespace, secret};
use ringflake_kit::{assert_matches, assert_says, eventually, in_full};

/// That neither generator of the rig can be built with these options, each line for what
/// error, which says so much; and that no block is held after it.
macro_rules! assert_refused {
    ($rig:ident: $($(.$option:ident($($value:expr),*))+ => $error:pat, $said:literal;)+) => {$({
        let cached = $rig.cached()$(.$option($($value),*))+.build().map(drop);
        assert_refused(cached, |error| matches!(error, $error), $said);
        let direct = $rig.direct()$(.$option($($value),*))+.build().map(drop);
        assert_refused(direct, |error| matches!(error, $error), $said);
        assert_eq!($rig.held_blocks(), 0, $said);
    })+};
}

#[track_caller]
fn assert_refused(built: Result<(), BuildError>, is: fn(&BuildError) -> bool, said: &str) {
    let error = built.unwrap_err();
    assert!(is(&error), "{error:?}");
    let text = in_full(&error);
    assert_says(&text, &[said]);
    // The text does not repeat its source.
    let cause = error.source().map(ToString::to_string);
    assert!(cause.is_none_or(|cause| !text.contains(&cause)), "{text}");
}

#[test]
fn a_lease_or_a_store_is_asked_for_and_not_both() {
    let rig = Rig::new();
    let lease = || lease(rig.layout, 0..8, START..START + 10);
    assert_refused! { rig:
        .lease(lease()) => BuildError::TwoLeases, "`lease_store`";
    }
    let cached = || CachedGenerator::builder(rig.layout).secret(secret());
    let direct = || DirectGenerator::builder(rig.layout).secret(secret());
    let no_lease = |error: &BuildError| matches!(error, BuildError::NoLease);
    assert_refused(cached().build().map(drop), no_lease, "`lease_store`");
    assert_refused(direct().build().map(drop), no_lease, "`lease_store`");
    let no_name = |error: &BuildError| matches!(error, BuildError::NoNamespace);
    let cached = cached().lease_store(rig.store.clone());
    assert_refused(cached.build().map(drop), no_name, "`namespace`");
    let direct = direct().lease_store(rig.store.clone());
    assert_refused(direct.build().map(drop), no_name, "`namespace`");
    assert_eq!(rig.store.calls(Op::Acquire), 0);
}

#[test]
fn options_about_a_store_need_one() {
    let rig = Rig::new();
    let lease = || lease(rig.layout, 0..8, START..START + 10);
    macro_rules! assert_need_a_store {
        ($($option:ident($value:expr);)+) => {$(
            let cached = CachedGenerator::builder(rig.layout).plain().lease(lease());
            let direct = DirectGenerator::builder(rig.layout).plain().lease(lease());
            for built in [
                cached.$option($value).build().map(drop),
                direct.$option($value).build().map(drop),
            ] {
                let error = built.unwrap_err();
                assert_says(&error.to_string(), &[stringify!($option)]);
                assert_matches!(error, BuildError::NoStore { option }
                    if *option == stringify!($option));
            }
        )+};
    }
    assert_need_a_store! {
        namespace(NAME);
        block_bits(3);
        blocks(1);
        widen_to(1);
        lease_duration(60 * SECOND);
        holder(Holder::new("a", "b"));
        first_lease_within(SECOND);
        init_if_new(History::New);
    }
}

#[test]
fn a_namespace_that_is_another_is_refused() {
    let rig = Rig::new();
    let other = Secret::from_bytes([9; 16]);
    assert_refused! { rig:
        .secret(&other) => BuildError::Store(StoreError::FingerprintMismatch { .. }), "secret";
        .block_bits(5) => BuildError::Store(StoreError::LayoutMismatch { .. }), "of 32 nodes";
        .namespace("nobodys") => BuildError::Store(StoreError::NotInitialised { .. }), "nobodys";
    }
    assert!(rig.blocks().is_empty());
}

#[test]
fn a_store_that_may_have_lost_a_namespace_does_not_take_it_for_new() {
    let rig = Rig::new();
    for history in [History::New, History::Unused] {
        assert_refused! { rig:
            .namespace("nobodys").init_if_new(history) =>
                BuildError::Store(StoreError::HistoryUnknown { .. }), "this store doesn't say";
            .lease_store(rig.store.inner.clone()).namespace("nobodys").init_if_new(history) =>
                BuildError::Store(StoreError::HistoryUnknown { .. }), "it is kept in memory";
        }
    }
    let space = namespace("nobodys", &rig.layout, Fingerprint::of(&secret()), 3);
    let missing = rig.store.inner.clone().list(&space).unwrap_err();
    assert_matches!(missing, StoreError::NotInitialised { .. });
}

#[test]
fn a_build_that_does_not_wait_fails_at_once_without_a_lease() {
    let rig = Rig::new();
    rig.store.fail(Fault::Down);
    assert_refused! { rig:
        .first_lease_within(Duration::ZERO) =>
            BuildError::NoLeaseYet { error: StoreError::Unavailable { .. }, .. }, "unavailable";
    }
    rig.store.fail(Fault::Panic);
    assert_refused! { rig:
        .first_lease_within(Duration::ZERO) =>
            BuildError::Store(StoreError::Ambiguous { .. }), "operation";
    }
    rig.store.fail(Fault::Nothing);
    assert_refused! { rig:
        .first_lease_within(Duration::ZERO) =>
            BuildError::Store(StoreError::Corrupt { .. }), "no block";
    }
    let calls = [Op::Acquire, Op::Renew, Op::Release, Op::Check].map(|op| rig.store.calls(op));
    assert_eq!(calls, [6, 0, 0, 0], "one attempt each");

    // The holder of the last block keeps it.
    rig.store.heal();
    let all = rig.cached().blocks(64).widen_to(64).build().unwrap();
    let hasty = rig.cached().first_lease_within(Duration::ZERO).build();
    let BuildError::NoLeaseYet { error, .. } = hasty.unwrap_err() else {
        panic!("all blocks are held");
    };
    assert_matches!(error, StoreError::Exhausted { blocks: 64, .. });
    assert_eq!(rig.held_blocks(), 64);
    drop(all);
    eventually("all is released", || rig.held_blocks() == 0);
}

#[test]
fn a_build_waits_for_a_store_that_comes_and_for_blocks_that_others_let_go() {
    let rig = Rig::new();
    let build_until = |done: &mut dyn FnMut()| {
        let asked = rig.store.calls(Op::Acquire);
        thread::scope(|scope| {
            let patient = rig.direct().first_lease_within(PATIENCE);
            let built = scope.spawn(|| patient.build().unwrap());
            eventually("it was asked more than once", || {
                rig.store.calls(Op::Acquire) > asked + 1
            });
            done();
            built.join().unwrap()
        })
    };
    rig.store.fail(Fault::Down);
    let first = build_until(&mut || rig.store.heal());
    first.take().unwrap();

    let mut others = Some(rig.cached().blocks(63).widen_to(63).build().unwrap());
    let second = build_until(&mut || others = None);
    assert_eq!(second.leases()[0].ticks().start, START + LEASE_DURATION);
}

#[test]
fn a_detached_generator_is_ready_when_its_store_is() {
    let rig = Rig::new();
    rig.store.fail(Fault::Down);
    let cached = rig.cached().on_empty(OnEmpty::Error);
    let cached = cached.build_detached().unwrap();
    let direct = rig.direct().build_detached().unwrap();
    eventually("both report the store", || {
        let statuses = [cached.lease_status(), direct.lease_status()];
        let mut health = statuses.into_iter().map(|status| status.unwrap().health);
        health.all(|health| health.last_error.is_some())
    });
    assert!(!cached.is_ready() && !direct.is_ready());
    assert!(!cached.wait_ready(Duration::from_millis(1)));
    assert_matches!(
        direct.take(),
        Err(TakeError::Refused(Refused::NoLease {
            end_unix_ms: 0,
            failure: Some(_),
            ..
        }))
    );
    cached.take().unwrap_err();

    let begun = Instant::now();
    thread::scope(|scope| {
        let waiting = [
            scope.spawn(|| cached.wait_ready(PATIENCE)),
            scope.spawn(|| direct.wait_ready(PATIENCE)),
        ];
        rig.store.heal();
        for waited in waiting {
            assert!(waited.join().unwrap());
        }
    });
    assert!(begun.elapsed() < PATIENCE, "they are woken");
    assert!(cached.is_ready() && direct.is_ready());
    direct.take().unwrap();
    // The part that could not be filled at the start is filled now.
    eventually("the ring is full", || cached.stats().level == 64);
    cached.take().unwrap();

    // A lease that has ended is none.
    rig.store.fail(Fault::Down);
    rig.clock.advance(2 * LEASE_DURATION as u32 * SECOND);
    assert!(!cached.is_ready() && !direct.is_ready());
    rig.store.heal();
    assert!(cached.wait_ready(PATIENCE) && direct.wait_ready(PATIENCE));
    // Nor is one that was given up, until another has come.
    rig.store.fail(Fault::Down);
    cached.invalidate();
    assert!(!cached.is_ready());
    assert!(is_without_lease(&cached.take()));
}

/// Its first lease may come after it has gone.
#[test]
fn a_detached_generator_that_goes_keeps_nothing() {
    let rig = Rig::new();
    rig.store.hold();
    let ids = rig.cached().build_detached().unwrap();
    eventually("the store is asked", || rig.store.held() == 1);
    assert!(!ids.is_ready());
    drop(ids);
    rig.store.let_go();
    eventually("what came is released", || {
        rig.blocks().iter().map(|block| block.released).eq([true])
    });
    // One that was never answered has nothing to release.
    rig.store.fail(Fault::Down);
    drop(rig.direct().build_detached().unwrap());
    assert_eq!(rig.blocks().len(), 1);
}

/// Only a block whose grant nobody can know of stays idle.
#[test]
fn a_build_whose_reply_is_lost_costs_a_block_until_its_end() {
    let rig = Rig::new();
    rig.store.fail(Fault::Cut);
    let error = rig.cached().build().unwrap_err();
    assert_matches!(error, BuildError::Store(StoreError::Ambiguous { .. }));
    assert_eq!(rig.held_blocks(), 1);
    assert_eq!(rig.store.calls(Op::Acquire), 1, "never sent again");
    rig.store.heal();
    let ids = rig.cached().build().unwrap();
    assert_eq!(ids.leases()[0].nodes(), 8..16);
}
