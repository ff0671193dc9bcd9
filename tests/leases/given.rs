//! A lease that is given to a builder: one generator at a time.

use ringflake::lease::{Acquire, LeaseStore};
use ringflake::{BuildError, CachedGenerator, DirectGenerator, Layout, LeaseSource, StaticLease};

use crate::rig::{Rig, START};
use ringflake_kit::small::{clock_at, lease};

fn cached(layout: Layout, source: impl Into<LeaseSource>) -> Result<CachedGenerator, BuildError> {
    CachedGenerator::builder(layout)
        .plain()
        .lease(source)
        .clock(clock_at(layout, START))
        .capacity(64)
        .build()
}

fn direct(layout: Layout, source: impl Into<LeaseSource>) -> Result<DirectGenerator, BuildError> {
    DirectGenerator::builder(layout)
        .plain()
        .lease(source)
        .clock(clock_at(layout, START))
        .build()
}

#[track_caller]
fn assert_taken<T>(built: Result<T, BuildError>) {
    let Err(error) = built else {
        panic!("a second generator on one lease");
    };
    let BuildError::LeaseTaken {
        nodes, other_nodes, ..
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!((nodes, other_nodes), (&(8..16), &(8..16)));
    assert!(error.to_string().contains("is taken"), "{error}");
}

#[test]
fn a_lease_is_one_generators_at_a_time() {
    let rig = Rig::new();
    let lease = lease(rig.layout, 8..16, START..START + 100);
    let first = cached(rig.layout, lease.clone()).unwrap();
    assert_taken(cached(rig.layout, lease.clone()));
    assert_taken(direct(rig.layout, lease.clone()));
    // IDs were issued, and the second one goes on after them.
    drop(first);
    let second = cached(rig.layout, lease.clone()).unwrap();
    assert_taken(direct(rig.layout, lease));
    let raw = second.take().unwrap().to_u64();
    assert_eq!(raw, rig.layout.pack(START + 2, 8, 0).unwrap(), "after 64");
}

#[test]
fn all_leases_of_one_grant_are_one() {
    let rig = Rig::new();
    let mut store = rig.store.clone();
    let acquire = Acquire::new(2, 100, rig.unix_ms(START));
    let grants = store.acquire(&rig.space, &acquire).unwrap();
    let grant = &grants[1];
    let first = direct(rig.layout, grant.to_lease(&rig.space).unwrap()).unwrap();
    assert_taken(cached(rig.layout, grant.to_lease(&rig.space).unwrap()));
    drop(first);
    let again = grant.clone().to_lease(&rig.space).unwrap();
    let second = direct(rig.layout, again).unwrap();
    assert_taken(cached(rig.layout, grant.to_lease(&rig.space).unwrap()));
    drop(second);
    let other = grants[0].to_lease(&rig.space).unwrap();
    assert!(cached(rig.layout, other).is_ok(), "another grant");
}

#[test]
fn a_static_lease_is_one_generators_at_a_time() {
    let layout = Rig::new().layout;
    let nodes = StaticLease::assume_unique(layout, 8..16);
    let first = cached(layout, nodes.clone()).unwrap();
    assert_taken(cached(layout, nodes.clone()));
    let second = first.clone();
    drop(first);
    assert_taken(direct(layout, nodes.clone()));
    let handle = second.handle().unwrap();
    drop(second);
    assert_taken(direct(layout, nodes.clone()));
    drop(handle);
    // It goes on where the first one ended.
    let third = direct(layout, nodes.clone()).unwrap();
    assert_taken(cached(layout, nodes.clone()));
    drop(third);
    assert!(cached(layout, nodes).is_ok());
}

#[test]
fn a_build_that_fails_gives_the_lease_back() {
    let layout = Rig::new().layout;
    let lease = lease(layout, 8..16, START..START + 100);
    let builder = || {
        CachedGenerator::builder(layout)
            .plain()
            .lease(lease.clone())
            .clock(clock_at(layout, START))
    };
    for _ in 0..2 {
        let error = builder().capacity(3).build().unwrap_err();
        assert!(matches!(error, BuildError::Ring(_)), "{error:?}");
        let error = builder().block_bits(3).build().unwrap_err();
        assert!(matches!(error, BuildError::NoStore { .. }), "{error:?}");
    }
    assert!(builder().capacity(64).build().is_ok());
}

/// A claim is of the process: what the child has is a copy, and its own.
#[cfg(unix)]
#[test]
fn a_child_does_not_begin_its_parents_lease_anew() {
    let layout = Rig::new().layout;
    let lease = lease(layout, 8..16, START..START + 100);
    let first = direct(layout, lease.clone()).unwrap();
    let status = ringflake_kit::child::in_a_fork(|| {
        let refused = matches!(
            direct(layout, lease.clone()),
            Err(BuildError::LeaseOfParent { .. })
        );
        u8::from(!refused)
    });
    assert_eq!(status, Ok(0));
    assert!(first.take().is_ok());
}
