//! What a builder refuses, and that nothing is held after that.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::{
    Expiry, Fingerprint, Holder, MemoryStore, Namespace, NamespaceError, PlanError, StoreError,
};
use ringflake::{
    BuildError, CachedGenerator, Clock, DirectGenerator, Layout, Lease, ManualClock, OnEmpty,
    Refused, Secret, SystemClock,
};

use crate::rig::{LEASE_DURATION, NAME, PATIENCE, Rig, SECOND, START, is_without_lease};
use ringflake_kit::eventually;
use ringflake_kit::faulty_store::{Fault, Op};
use ringflake_kit::small::{layout, lease, secret};

/// How each generator fails to be built from these options.
macro_rules! refusals {
    ($rig:expr, |$builder:ident| $options:expr) => {{
        let cached = {
            let $builder = CachedGenerator::builder($rig.layout).clock($rig.clock.clone());
            $options.build().map(|_| ()).expect_err("cached")
        };
        let direct = {
            let $builder = DirectGenerator::builder($rig.layout).clock($rig.clock.clone());
            $options.build().map(|_| ()).expect_err("direct")
        };
        [cached, direct]
    }};
}

/// That each is this error, and says so much.
macro_rules! assert_refused {
    ($rig:expr, |$builder:ident| $options:expr, $error:pat, $text:literal) => {
        for error in refusals!($rig, |$builder| $options) {
            assert!(matches!(error, $error), "{error:?}");
            let text = error.to_string();
            assert!(text.contains($text), "{text}");
            // What comes next in the chain is not printed already.
            let cause = error.source().map(ToString::to_string);
            assert!(cause.is_none_or(|cause| !text.contains(&cause)), "{text}");
            assert_eq!($rig.held_blocks(), 0, "{text}");
        }
    };
}

#[test]
fn a_lease_or_a_store_is_asked_for_and_not_both() {
    let rig = Rig::new();
    assert_refused!(rig, |b| b.plain(), BuildError::NoLease, "`lease_store`");
    let lease = || lease(rig.layout, 0..8, START..START + 10);
    assert_refused!(
        rig,
        |b| b
            .plain()
            .lease(lease())
            .lease_store(rig.store.clone())
            .namespace(NAME),
        BuildError::TwoLeases,
        "`lease_store`"
    );
    assert_refused!(
        rig,
        |b| b.secret(&secret()).lease_store(rig.store.clone()),
        BuildError::NoNamespace,
        "`namespace`"
    );
    assert_eq!(rig.store.calls(Op::Acquire), 0);
}

#[test]
fn options_about_a_store_need_one() {
    let rig = Rig::new();
    let lease = || lease(rig.layout, 0..8, START..START + 10);
    macro_rules! assert_needs_a_store {
        ($option:ident, $value:expr) => {
            for error in refusals!(rig, |b| b.plain().lease(lease()).$option($value)) {
                let BuildError::NoStore { option } = error else {
                    panic!("{error:?}");
                };
                assert_eq!(option, stringify!($option));
                assert!(error.to_string().contains(option), "{error}");
            }
        };
    }
    assert_needs_a_store!(namespace, NAME);
    assert_needs_a_store!(block_bits, 3);
    assert_needs_a_store!(blocks, 1);
    assert_needs_a_store!(widen_to, 1);
    assert_needs_a_store!(lease_duration, Duration::from_secs(60));
    assert_needs_a_store!(expiry, Expiry::Refuse);
    assert_needs_a_store!(holder, Holder::new("a", "b"));
    assert_needs_a_store!(first_lease_within, Duration::from_secs(1));
}

#[test]
fn what_is_out_of_range_is_refused_before_the_store_is_asked() {
    let rig = Rig::new();
    macro_rules! assert_out_of_range {
        (|$builder:ident| $options:expr, $error:pat, $text:literal) => {
            assert_refused!(
                rig,
                |b| {
                    let $builder = b
                        .secret(&secret())
                        .lease_store(rig.store.clone())
                        .namespace(NAME)
                        .block_bits(3);
                    $options
                },
                $error,
                $text
            );
        };
    }
    assert_out_of_range!(
        |b| b.namespace(""),
        BuildError::Namespace(NamespaceError::NameLength { bytes: 0 }),
        "name"
    );
    assert_out_of_range!(
        |b| b.block_bits(10),
        BuildError::Namespace(NamespaceError::BlockBits { .. }),
        "10"
    );
    assert_out_of_range!(
        |b| b.blocks(0),
        BuildError::Plan(PlanError::Blocks { value: 0, .. }),
        "1 to 64"
    );
    assert_out_of_range!(
        |b| b.blocks(257),
        BuildError::Plan(PlanError::Blocks { value: 257, .. }),
        "1 to 64"
    );
    assert_out_of_range!(
        |b| b.blocks(4).widen_to(3),
        BuildError::Plan(PlanError::WidenTo {
            value: 3,
            min: 4,
            ..
        }),
        "give 4"
    );
    assert_out_of_range!(
        |b| b.widen_to(257),
        BuildError::Plan(PlanError::WidenTo { value: 257, .. }),
        "256"
    );
    assert_out_of_range!(
        |b| b.lease_duration(Duration::from_millis(9_999)),
        BuildError::Plan(PlanError::LeaseDuration { .. }),
        "10s"
    );
    assert_eq!(rig.store.calls(Op::Acquire), 0);
}

#[test]
fn more_than_256_blocks_are_refused_where_there_are_as_many() {
    let store = MemoryStore::new(std::sync::Arc::new(SystemClock));
    let error = CachedGenerator::builder(Layout::RANDFLAKE)
        .plain()
        .lease_store(store)
        .namespace(NAME)
        .blocks(257)
        .build()
        .unwrap_err();
    let plan = |error| matches!(error, BuildError::Plan(PlanError::Blocks { max: 256, .. }));
    assert!(plan(error));
}

#[test]
fn a_namespace_that_is_another_is_refused() {
    let rig = Rig::new();
    macro_rules! assert_store_refuses {
        (|$builder:ident| $options:expr, $error:pat, $text:literal) => {
            assert_refused!(
                rig,
                |b| {
                    let $builder = b.lease_store(rig.store.clone()).namespace(NAME);
                    $options
                },
                BuildError::Store($error),
                $text
            );
        };
    }
    let other = Secret::from_bytes([9; 16]);
    assert_store_refuses!(
        |b| b.secret(&other).block_bits(3),
        StoreError::FingerprintMismatch { .. },
        "secret"
    );
    assert_store_refuses!(
        |b| b.plain().block_bits(3),
        StoreError::FingerprintMismatch { .. },
        "secret"
    );
    assert_store_refuses!(
        |b| b.secret(&secret()),
        StoreError::LayoutMismatch { .. },
        "blocks of 32 nodes"
    );
    assert_store_refuses!(
        |b| b.secret(&secret()).block_bits(3).namespace("nobodys"),
        StoreError::NotInitialised { .. },
        "nobodys"
    );
    let wider = layout(44, 10, 2);
    let error = CachedGenerator::builder(wider)
        .secret(&secret())
        .clock(rig.clock.clone())
        .lease_store(rig.store.clone())
        .namespace(NAME)
        .block_bits(3)
        .build()
        .unwrap_err();
    assert!(matches!(
        error,
        BuildError::Store(StoreError::LayoutMismatch { .. })
    ));
    assert!(rig.blocks().is_empty());
}

#[test]
fn a_store_that_gives_nothing_fails_at_once_who_does_not_wait() {
    let rig = Rig::new();
    macro_rules! assert_fails {
        ($fault:expr, $error:pat, $text:literal) => {
            rig.store.fail($fault);
            assert_refused!(
                rig,
                |b| b
                    .secret(&secret())
                    .lease_store(rig.store.clone())
                    .namespace(NAME)
                    .first_lease_within(Duration::ZERO)
                    .block_bits(3),
                $error,
                $text
            );
        };
    }
    assert_fails!(
        Fault::Down,
        BuildError::NoLeaseYet {
            error: StoreError::Unavailable { .. },
            ..
        },
        "reach"
    );
    assert_fails!(
        Fault::Panic,
        BuildError::Store(StoreError::Ambiguous { .. }),
        "operation"
    );
    assert_fails!(
        Fault::Nothing,
        BuildError::Store(StoreError::Corrupt { .. }),
        "no block"
    );
    let calls = [Op::Acquire, Op::Renew, Op::Release, Op::Check].map(|op| rig.store.calls(op));
    assert_eq!(calls, [6, 0, 0, 0], "one attempt each");

    // Who holds the last block holds it: nothing is taken away.
    rig.store.heal();
    let all = rig.cached().blocks(64).widen_to(64).build().unwrap();
    let hasty = rig.cached().first_lease_within(Duration::ZERO);
    let error = hasty.build().unwrap_err();
    assert!(matches!(
        error,
        BuildError::NoLeaseYet {
            error: StoreError::Exhausted { blocks: 64, .. },
            ..
        }
    ));
    assert_eq!(rig.held_blocks(), 64);
    drop(all);
    eventually("all is released", || rig.held_blocks() == 0);
}

#[test]
fn a_build_waits_for_a_store_that_comes() {
    let rig = Rig::new();
    rig.store.fail(Fault::Down);
    let ids = thread::scope(|scope| {
        let patient = rig.cached().first_lease_within(PATIENCE);
        let built = scope.spawn(|| patient.build().unwrap());
        eventually("it was asked more than once", || {
            rig.store.calls(Op::Acquire) > 1
        });
        rig.store.heal();
        built.join().unwrap()
    });
    ids.take().unwrap();

    // And for blocks that others let go.
    let all = rig.cached().blocks(63).widen_to(63).build().unwrap();
    let asked = rig.store.calls(Op::Acquire);
    let ids = thread::scope(|scope| {
        let patient = rig.direct().first_lease_within(PATIENCE);
        let built = scope.spawn(|| patient.build().unwrap());
        eventually("it was asked more than once", || {
            rig.store.calls(Op::Acquire) > asked + 1
        });
        drop(all);
        built.join().unwrap()
    });
    assert_eq!(ids.leases()[0].ticks().start, START + LEASE_DURATION);
}

#[test]
fn a_build_says_how_long_it_waited() {
    let rig = Rig::new();
    rig.store.fail(Fault::Down);
    let patience = Duration::from_millis(600);
    let cached = rig.cached().first_lease_within(patience).build();
    let direct = rig.direct().first_lease_within(patience).build();
    for error in [cached.unwrap_err(), direct.unwrap_err()] {
        let text = error.to_string();
        let BuildError::NoLeaseYet { waited, .. } = error else {
            panic!("{error:?}");
        };
        assert!(waited >= patience, "{waited:?}");
        let waited = format!("within {:.1} s: ", waited.as_secs_f64());
        for said in [&waited, "`first_lease_within`", "`build_detached`", "reach"] {
            assert!(text.contains(said), "{text}");
        }
    }
}

#[test]
fn a_detached_generator_is_ready_when_its_store_is() {
    let rig = Rig::new();
    rig.store.fail(Fault::Down);
    let cached = rig.cached().on_empty(OnEmpty::Error);
    let cached = cached.build_detached().unwrap();
    let direct = rig.direct().build_detached().unwrap();
    eventually("both are told of the store", || {
        let told = |status: Option<ringflake::lease::LeaseStatus>| {
            status.is_some_and(|status| status.health.last_error.is_some())
        };
        told(cached.lease_status()) && told(direct.lease_status())
    });
    assert!(!cached.is_ready() && !direct.is_ready());
    assert!(!cached.wait_ready(Duration::from_millis(1)));
    let refused = direct.take().unwrap_err();
    let Refused::NoLease {
        end_unix_ms: 0,
        failure: Some(_),
        ..
    } = refused
    else {
        panic!("{refused:?}");
    };
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
    // What could not be filled at the start is filled now.
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

#[test]
fn a_lease_that_was_given_is_always_ready() {
    let rig = Rig::new();
    let lease = lease(rig.layout, 0..8, START..START + 10);
    let ids = DirectGenerator::builder(rig.layout).clock(rig.clock.clone());
    let ids = ids.plain().lease(lease).build_detached().unwrap();
    assert!(ids.is_ready());
    ids.take().unwrap();
    rig.set_tick(START + 10);
    ids.take().unwrap_err();
    assert!(ids.wait_ready(PATIENCE));
}

#[test]
fn what_waiting_does_not_help_is_refused_at_once() {
    let rig = Rig::new();
    let other = Secret::from_bytes([9; 16]);
    let patient = rig.cached().secret(&other).first_lease_within(PATIENCE);
    assert!(matches!(
        patient.build().unwrap_err(),
        BuildError::Store(StoreError::FingerprintMismatch { .. })
    ));
    assert_eq!(rig.store.calls(Op::Acquire), 1);
    // A detached one is told when it asks for an ID.
    let detached = rig.direct().secret(&other).build_detached().unwrap();
    eventually("it is told why", || {
        let refused = detached.take().unwrap_err().to_string();
        refused.contains("another secret")
    });
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

/// What may lie idle is what nobody can know of.
#[test]
fn a_build_whose_reply_is_lost_costs_a_block_until_its_end() {
    let rig = Rig::new();
    rig.store.fail(Fault::Cut);
    let error = rig.cached().build().unwrap_err();
    assert!(matches!(
        error,
        BuildError::Store(StoreError::Ambiguous { .. })
    ));
    assert_eq!(rig.held_blocks(), 1);
    assert_eq!(rig.store.calls(Op::Acquire), 1, "never sent again");
    rig.store.heal();
    let ids = rig.cached().build().unwrap();
    assert_eq!(ids.leases()[0].nodes(), 8..16);
}

/// A clock that panics once it was read so often.
#[derive(Debug)]
struct Fragile {
    clock: ManualClock,
    left: AtomicUsize,
}

impl Clock for Fragile {
    fn unix_ms(&self) -> u64 {
        let fewer = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Relaxed, Relaxed, fewer).is_err() {
            // Without the panic hook, which would write to the test's output.
            resume_unwind(Box::new("the clock fails"));
        }
        self.clock.unix_ms()
    }
}

#[test]
fn a_build_that_panics_gives_back_what_it_had() {
    let rig = Rig::new();
    let (mut panics, mut with_a_block) = (0, 0);
    // The padding fill reads the clock some times, after the block was had.
    for reads in 0..30 {
        let fragile = || Fragile {
            clock: rig.clock.clone(),
            left: AtomicUsize::new(reads),
        };
        let before = rig.store.calls(Op::Acquire);
        let build = || rig.cached().clock(fragile()).capacity(1024).build();
        let built = catch_unwind(AssertUnwindSafe(build));
        panics += u32::from(built.is_err());
        if built.is_err() {
            with_a_block += rig.store.calls(Op::Acquire) - before;
        }
        drop(built);
        eventually("what it had is released", || rig.held_blocks() == 0);
    }
    assert!(panics > 5 && with_a_block > 5, "{panics}, {with_a_block}");

    let lease = lease(rig.layout, 0..8, START..START + 600);
    let build = |clock: Fragile, lease: &Lease| {
        CachedGenerator::builder(rig.layout)
            .plain()
            .lease(lease.clone())
            .clock(clock)
            .capacity(64)
            .build()
    };
    let mut panics = 0;
    for reads in 0..10 {
        let fragile = Fragile {
            clock: rig.clock.clone(),
            left: AtomicUsize::new(reads),
        };
        match catch_unwind(AssertUnwindSafe(|| build(fragile, &lease))) {
            Err(_) => panics += 1,
            Ok(built) => {
                built.expect("nobody has issued anything of the lease");
                break;
            }
        }
    }
    assert!(panics > 1);
}

#[test]
fn the_builders_show_no_secret() {
    let rig = Rig::new();
    let (cached, direct) = (rig.cached(), rig.direct());
    let shown = format!("{cached:?} {direct:?}");
    assert!(shown.contains("MemoryStore"), "{shown}");
    let fingerprint = Namespace::new(NAME, &rig.layout, Fingerprint::of(&secret()));
    assert_eq!(fingerprint.unwrap().fingerprint(), rig.space.fingerprint());
    for leak in ["secrets for test", "736563", "115, 101, 99"] {
        assert!(!shown.contains(leak), "{shown}");
    }
}
