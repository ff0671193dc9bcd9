//! A lease that is used again in one process: the next generator goes on where
//! the last one ended, and one that would issue an ID again is not built.

use std::collections::HashSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use ringflake::{
    BuildError, CachedGenerator, ClockPolicy, DirectGenerator, Id, Layout, LeaseSource,
    ManualClock, Secret, StaticLease,
};

use crate::rig::START;
use ringflake_kit::small::{POLICIES, Watched, clock_at, layout, lease, secret};
use ringflake_kit::{assert_matches, assert_says, in_full};

const HOUR: Duration = Duration::from_secs(3600);

struct Space {
    layout: Layout,
    clock: ManualClock,
}

impl Space {
    fn new() -> Self {
        let layout = layout(40, 8, 8);
        let clock = clock_at(layout, START);
        Self { layout, clock }
    }

    fn nodes(&self, nodes: Range<u64>) -> StaticLease {
        StaticLease::assume_unique(self.layout, nodes)
    }

    fn cached_with(
        &self,
        secret: &Secret,
        lease: impl Into<LeaseSource>,
    ) -> Result<CachedGenerator, BuildError> {
        CachedGenerator::builder(self.layout)
            .secret(secret)
            .lease(lease)
            .clock(self.clock.clone())
            .borrow_limit(HOUR)
            .capacity(64)
            .build()
    }

    fn cached(&self, lease: impl Into<LeaseSource>) -> Result<CachedGenerator, BuildError> {
        self.cached_with(&secret(), lease)
    }

    fn direct(
        &self,
        policy: ClockPolicy,
        lease: impl Into<LeaseSource>,
    ) -> Result<DirectGenerator, BuildError> {
        DirectGenerator::builder(self.layout)
            .secret(secret())
            .lease(lease)
            .clock(self.clock.clone())
            .clock_policy(policy)
            .build()
    }
}

#[derive(Default)]
struct Seen(HashSet<Id>);

impl Seen {
    #[track_caller]
    fn add(&mut self, id: Id) {
        assert!(self.0.insert(id), "U1: {id} was issued twice");
    }
}

#[track_caller]
fn refused<T>(built: Result<T, BuildError>) -> BuildError {
    let Err(error) = built else {
        panic!("it was built, and makes duplicates");
    };
    error
}

/// Asserts a refusal because another generator has nodes 8..16.
#[track_caller]
fn assert_taken<T>(built: Result<T, BuildError>) {
    let error = refused(built);
    let hints = [
        "overlaps one in use",
        "8..16",
        "clone that generator",
        "other nodes",
    ];
    assert_says(&in_full(&error), &hints);
    assert_matches!(error, BuildError::LeaseTaken { other_nodes, .. } if *other_nodes == (8..16));
}

#[test]
fn u1_cached_after_cached_on_one_lease_repeats_nothing() {
    let space = Space::new();
    let mut seen = Seen::default();
    for given in [
        LeaseSource::from(space.nodes(0..4)),
        space.nodes(4..8).starting_at_tick(START + 5).into(),
        lease(space.layout, 8..12, START..START + 500).into(),
        space
            .nodes(12..16)
            .starting_at_tick(7)
            .grant(0)
            .unwrap()
            .into(),
    ] {
        for _ in 0..3 {
            let ids = space.cached(given.clone()).unwrap();
            for _ in 0..1_000 {
                seen.add(ids.take().unwrap());
            }
        }
    }
    assert_eq!(seen.0.len(), 12_000);
}

#[test]
fn u1_kinds_and_policies_in_turn_repeat_nothing() {
    let space = Space::new();
    let mut seen = Seen::default();
    let nodes = space.nodes(0..8);
    for policy in POLICIES.into_iter().chain(POLICIES) {
        let ids = space.cached(nodes.clone()).unwrap();
        (0..1_000).for_each(|_| seen.add(ids.take().unwrap()));
        drop(ids);
        let ids = space.direct(policy, nodes.clone()).unwrap();
        for _ in 0..1_000 {
            match ids.take() {
                Ok(id) => seen.add(id),
                Err(_) => space.clock.advance(Duration::from_secs(1)),
            }
        }
    }
}

#[test]
fn u1_what_was_borrowed_far_ahead_is_not_issued_again() {
    let space = Space::new();
    let mut seen = Seen::default();
    let nodes = space.nodes(0..1);
    let mut last = 0;
    for _ in 0..3 {
        let ids = space.cached(nodes.clone()).unwrap();
        for _ in 0..50 * 256 {
            let id = ids.take().unwrap();
            seen.add(id);
            last = ids.inspect(id).unwrap().tick;
        }
    }
    assert!(last >= START + 149, "borrowed up to tick {last}");
    // Another lease on the node can't begin before that is over.
    let error = refused(space.cached(space.nodes(0..1)));
    let text = error.to_string();
    let BuildError::LeaseUsed {
        used_nodes,
        used_ticks,
        ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!((used_nodes, used_ticks.start), (0..1, START));
    let end = used_ticks.end;
    assert!(end > last);
    assert_says(&text, &["0..1", &format!("..{end}")]);
    refused(space.cached(space.nodes(0..1).starting_at_tick(end - 1)));
    let after = space.nodes(0..1).starting_at_tick(end);
    let ids = space.cached(after).unwrap();
    (0..1_000).for_each(|_| seen.add(ids.take().unwrap()));
}

#[test]
fn leases_that_meet_one_in_use_are_refused() {
    let space = Space::new();
    let first = space.cached(space.nodes(8..16)).unwrap();
    let on = |nodes: Range<u64>| space.nodes(nodes);
    for given in [
        LeaseSource::from(on(8..16)),
        on(15..20).into(),
        on(0..9).into(),
        on(10..11).starting_at_tick(0).into(),
        on(10..11).starting_at_tick(START + 5_000).into(),
        on(10..11).starting_at_tick(7).grant(0).unwrap().into(),
        lease(space.layout, 12..13, START + 10..START + 11).into(),
        first.leases().remove(0).into(),
    ] {
        assert_taken(space.cached(given.clone()));
        assert_taken(space.direct(ClockPolicy::Refuse, given));
    }
    let later = lease(space.layout, 12..13, START + 10..START + 11);
    let error = refused(space.cached(later)).to_string();
    let rectangles = [
        "nodes 12..13, ticks 1010..1011,",
        "nodes 8..16, ticks 1000..",
    ];
    assert_says(&error, &rectangles);
    // Side by side with it, and what no ID of it can be in.
    drop(space.cached(lease(space.layout, 8..16, 0..START)).unwrap());
    let beside = [on(0..8), on(16..17), on(17..18)].map(|it| space.cached(it).unwrap());
    let mut seen = Seen::default();
    for ids in beside.iter().chain([&first]) {
        (0..200).for_each(|_| seen.add(ids.take().unwrap()));
    }
}

#[test]
fn a_lease_is_taken_until_the_last_clone_or_handle_has_gone() {
    for is_static in [true, false] {
        let space = Space::new();
        let given: LeaseSource = match is_static {
            true => space.nodes(8..16).into(),
            false => lease(space.layout, 8..16, START..START + 100).into(),
        };
        let first = space.cached(given.clone()).unwrap();
        let second = first.clone();
        drop(first);
        assert_taken(space.cached(given.clone()));
        let handle = second.handle().unwrap();
        drop(second);
        assert_taken(space.direct(ClockPolicy::Refuse, given.clone()));
        drop(handle);
        let direct = space.direct(ClockPolicy::Refuse, given.clone()).unwrap();
        assert_taken(space.cached(given));
        direct.take().unwrap();
    }
}

#[test]
fn another_secret_makes_other_ids() {
    let space = Space::new();
    let nodes = || space.nodes(0..8);
    let first = space.cached(nodes()).unwrap();
    let other = Secret::from_bytes([7; 16]);
    let second = space.cached_with(&other, nodes()).unwrap();
    let plain = CachedGenerator::builder(space.layout).plain();
    let plain = plain.lease(nodes()).build().unwrap();
    for ids in [&first, &second, &plain] {
        ids.take().unwrap();
    }
    refused(space.cached_with(&other, nodes()));
    drop((first, second));
    refused(space.cached_with(&other, nodes()));
    refused(space.cached(nodes()));
}

#[test]
fn a_build_that_fails_leaves_the_lease_as_it_was() {
    let space = Space::new();
    let nodes = space.nodes(8..16);
    let builder = || {
        CachedGenerator::builder(space.layout)
            .secret(secret())
            .lease(nodes.clone())
            .clock(space.clock.clone())
    };
    let error = builder().capacity(3).build().unwrap_err();
    assert_matches!(error, BuildError::Ring(_));
    let error = builder().block_bits(3).build().unwrap_err();
    assert_matches!(error, BuildError::NoStore { .. });
    // Before the padding fill, and in the middle of it.
    for left in 0..4 {
        let looks = AtomicU32::new(left);
        let look = move || assert_ne!(looks.fetch_sub(1, Relaxed), 0, "the one to panic at");
        let clock = Watched(space.clock.clone(), look);
        let builder = builder().clock(clock).capacity(4096);
        let built = catch_unwind(AssertUnwindSafe(|| builder.build()));
        assert!(built.is_err(), "it got by at look {left}");
    }
    // With other nodes, and the very first ID.
    let wider = space.direct(ClockPolicy::Refuse, space.nodes(0..16));
    drop(wider.unwrap());
    let ids = space.direct(ClockPolicy::Refuse, nodes).unwrap();
    let parts = ids.inspect(ids.take().unwrap()).unwrap();
    assert_eq!((parts.tick, parts.node, parts.sequence), (START, 8, 0));
}

#[test]
fn one_of_eight_builds_at_once_wins() {
    for shared in [true, false] {
        for _ in 0..50 {
            let space = Space::new();
            let nodes = space.nodes(8..16);
            let barrier = Barrier::new(8);
            let built = thread::scope(|scope| {
                let build = || {
                    let nodes = match shared {
                        true => nodes.clone(),
                        false => space.nodes(8..16),
                    };
                    barrier.wait();
                    space.direct(ClockPolicy::Refuse, nodes)
                };
                let threads = [(); 8].map(|()| scope.spawn(build));
                threads.map(|thread| thread.join().unwrap())
            });
            let won = built.iter().filter(|built| built.is_ok()).count();
            assert_eq!(won, 1, "shared: {shared}");
            let lost = built.into_iter().filter(Result::is_err);
            lost.for_each(assert_taken);
        }
    }
}

#[test]
fn what_was_given_up_is_not_used_again() {
    let space = Space::new();
    let nodes = space.nodes(8..16);
    let ids = space.cached(nodes.clone()).unwrap();
    ids.take().unwrap();
    ids.invalidate();
    drop(ids);
    let error = refused(space.cached(nodes));
    assert_says(&error.to_string(), &["8..16"]);
    assert_matches!(error, BuildError::LeaseGivenUp { .. });
}
