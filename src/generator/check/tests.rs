//! What a check says, and that it changes nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;

use super::*;
use crate::clock::ManualClock;
use crate::generator::builder::CachedGeneratorBuilder;
use crate::generator::cached::CachedGenerator;
use crate::generator::direct::{ClockPolicy, DirectGenerator};
use crate::layout::Layout;
use crate::lease::{
    Acquire, Fingerprint, History, Init, LeaseStore, MemoryStore, StaticLease, StoreError,
};

const LAYOUT: Layout = Layout::RANDFLAKE;
const NOW: u64 = 1_760_000_000_000;

/// On a store without any namespace: each request to it is refused.
fn on_a_store() -> CachedGeneratorBuilder {
    let clock = ManualClock::new(NOW);
    CachedGenerator::builder(LAYOUT)
        .plain()
        .lease_store(MemoryStore::new(Arc::new(clock.clone())))
        .clock(clock)
}

#[test]
fn a_check_says_what_it_would_ask_a_store_for_and_asks_nothing() {
    let check = on_a_store()
        .namespace("orders")
        .block_bits(3)
        .blocks(2)
        .check()
        .unwrap();
    assert_eq!(check.borrow_limit, Duration::from_secs(250));
    let LeaseCheck::Store { namespace, plan } = check.leases else {
        panic!("{check:?}")
    };
    assert_eq!((namespace.name(), namespace.block_nodes()), ("orders", 8));
    assert_eq!((plan.blocks, plan.widen_to), (2, 16));
}

#[test]
fn a_first_lease_has_a_length_and_is_no_longer_than_others() {
    let first = |duration| {
        on_a_store()
            .namespace("orders")
            .lease_duration(Duration::from_secs(60))
            .first_lease_duration(duration)
            .check()
    };
    first(Duration::from_secs(60)).unwrap();
    first(Duration::from_millis(1)).unwrap();
    for wrong in [Duration::ZERO, Duration::from_millis(60_001)] {
        let error = first(wrong).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(&format!("{wrong:?}")) && text.contains("1m"),
            "{text}"
        );
    }
}

#[test]
fn a_wait_for_the_first_lease_is_reported_to_the_hook() {
    let clock = ManualClock::new(NOW);
    let mut store = MemoryStore::new(Arc::new(clock.clone()));
    let one_block = Namespace::new("orders", &LAYOUT, Fingerprint::PLAIN)
        .and_then(|space| space.with_block_bits(LAYOUT.node_bits()))
        .unwrap();
    store
        .init(&one_block, &Init::new(History::New, NOW))
        .unwrap();
    store
        .acquire(&one_block, &Acquire::new(1, 600, NOW))
        .unwrap();
    let waits = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&waits);
    let ends = clock.clone();
    let built = DirectGenerator::builder(LAYOUT)
        .plain()
        .lease_store(store)
        .namespace("orders")
        .block_bits(LAYOUT.node_bits())
        .clock(clock)
        .first_lease_within(Duration::from_secs(60))
        .on_lease_wait_hook(move |error| {
            assert!(matches!(error, StoreError::Exhausted { .. }), "{error}");
            count.fetch_add(1, Relaxed);
            // Past the end of the lease on the only block.
            ends.advance(Duration::from_secs(601));
        })
        .build();
    built.unwrap().take().unwrap();
    assert_eq!(waits.load(Relaxed), 1);
}

#[test]
fn a_check_leaves_a_given_lease_as_it_was() {
    let lease = Lease::new(LAYOUT, 951..953, 30_000_000..30_000_600).unwrap();
    let builder = || {
        DirectGenerator::builder(LAYOUT)
            .plain()
            .lease(lease.clone())
            .clock(ManualClock::new(LAYOUT.tick_start_unix_ms(30_000_001)))
    };
    let check = builder().check().unwrap();
    assert_eq!(check.leases, LeaseCheck::Given(lease.clone()));
    assert_eq!((check.capacity, check.borrow_limit), (0, Duration::ZERO));
    let held = builder().build().unwrap();
    held.take().unwrap();
    let taken = builder().check().unwrap_err();
    assert!(matches!(taken, BuildError::LeaseTaken { .. }), "{taken}");
    drop(held);
    let left = builder().check().unwrap().leases;
    assert!(
        matches!(&left, LeaseCheck::Given(left) if left.ticks().start > 30_000_000),
        "{left:?}"
    );
}

#[test]
fn a_check_meanwhile_refuses_no_build() {
    let lease = Lease::new(LAYOUT, 958..960, 30_000_000..30_000_600).unwrap();
    let builder = |lease: &Lease| {
        DirectGenerator::builder(LAYOUT)
            .plain()
            .lease(lease.clone())
            .clock(ManualClock::new(LAYOUT.tick_start_unix_ms(30_000_001)))
    };
    // Of the same lease, and of one that was made separately.
    let other = Lease::new(LAYOUT, 958..960, 30_000_000..30_000_600).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for lease in [&lease, &other] {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    let _ = builder(lease).check();
                }
            });
        }
        let built: Vec<_> = (0..5_000).map(|_| builder(&lease).build().err()).collect();
        done.store(true, Relaxed);
        let refused = built.iter().flatten().next();
        assert!(refused.is_none(), "{refused:?}");
    });
}

#[test]
fn lanes_in_a_tick_begun_are_refused_as_by_a_build() {
    let lease = Lease::new(LAYOUT, 960..962, 30_000_000..30_000_002).unwrap();
    let builder = |policy, tick| {
        DirectGenerator::builder(LAYOUT)
            .plain()
            .lease(lease.clone())
            .clock(ManualClock::new(LAYOUT.tick_start_unix_ms(tick)))
            .clock_policy(policy)
    };
    for (tick, left) in [(30_000_000, Some(30_000_001)), (30_000_001, None)] {
        let ids = builder(ClockPolicy::Refuse, tick).build().unwrap();
        ids.take().unwrap();
        drop(ids);
        // One lane goes on in the middle of the tick, and two after it.
        let LeaseCheck::Given(one) = builder(ClockPolicy::Refuse, tick).check().unwrap().leases
        else {
            panic!("no given lease")
        };
        assert_eq!(one.ticks(), tick..30_000_002);
        let check = builder(ClockPolicy::SwitchNode, tick).check();
        let built = builder(ClockPolicy::SwitchNode, tick).build().map(drop);
        match (left, check, built) {
            (Some(left), Ok(check), Ok(())) => {
                let rest = Lease::new(LAYOUT, 960..962, left..30_000_002).unwrap();
                assert_eq!(check.leases, LeaseCheck::Given(rest));
            }
            (None, Err(check), Err(built)) => assert_eq!(check.to_string(), built.to_string()),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_check_of_a_direct_generator_knows_its_policy() {
    let builder = |policy| {
        DirectGenerator::builder(LAYOUT)
            .plain()
            .lease(StaticLease::assume_unique(LAYOUT, 954..957))
            .clock_policy(policy)
    };
    let at_most_ahead = Duration::from_millis(2500);
    let check = builder(ClockPolicy::Logical { at_most_ahead }).check();
    assert_eq!(check.unwrap().borrow_limit, Duration::from_secs(2));
}

#[cfg(feature = "sqlite")]
#[test]
fn a_check_of_a_local_space_makes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("ids");
    let local = crate::local::Local::new("orders").in_directory(&place);
    let builder = CachedGenerator::builder(LAYOUT).local(local);
    let LeaseCheck::Store { namespace, plan } = builder.check().unwrap().leases else {
        panic!("a lease that was given")
    };
    assert_eq!(namespace.name(), "orders");
    assert_eq!(plan.lease_duration, Duration::from_secs(120));
    assert!(!place.exists());
    let refused = builder.namespace("else").check().unwrap_err();
    assert!(matches!(
        refused,
        BuildError::LocalHas {
            option: "namespace"
        }
    ));
}
