//! Generators of one process that share a store.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::thread;

use ringflake::lease::{
    Fingerprint, Grant, GrantState, History, Init, LeaseStatus, LeaseStore, StoreError,
};
use ringflake::{Clock, DirectGenerator, Secret, Shutdown};

use crate::rig::{Judge, PATIENCE, Rig, held_end, on_lease_thread};
use ringflake_kit::faulty_store::{Fault, Op};
use ringflake_kit::small::{Watched, namespace};
use ringflake_kit::{assert_matches, eventually};

fn rig(name: &str) -> Rig {
    let mut rig = Rig::new();
    rig.store = rig.store.shared_as(name);
    rig
}

fn init(rig: &mut Rig, name: &str, secret: &Secret, block_bits: u32) {
    let space = namespace(name, &rig.layout, Fingerprint::of(secret), block_bits);
    let init = Init::new(History::New, rig.clock.unix_ms());
    rig.store.init(&space, &init).unwrap();
}

fn many(rig: &Rig, count: usize) -> Vec<DirectGenerator> {
    (0..count).map(|_| rig.direct().build().unwrap()).collect()
}

/// The cause of an error of a store that can't be reached.
fn cause_of(error: &StoreError) -> String {
    assert_matches!(error, StoreError::Unavailable { .. });
    error.source().map(ToString::to_string).unwrap_or_default()
}

fn statuses(all: &[DirectGenerator]) -> Vec<Option<LeaseStatus>> {
    all.iter().map(DirectGenerator::lease_status).collect()
}

fn status(ids: &DirectGenerator) -> LeaseStatus {
    ids.lease_status().unwrap()
}

#[test]
fn generators_share_one_thread_and_one_store_and_no_lease() {
    let rig = rig("share");
    let judge = Judge::new(&rig);
    let all = many(&rig, 50);
    assert_eq!(rig.store.threads(), 1);
    assert_eq!(rig.held_blocks(), 50);
    let end = held_end(&status(&all[0]));
    rig.let_them_renew(|| statuses(&all));
    assert!(all.iter().all(|ids| held_end(&status(ids)) > end));
    for ids in &all {
        judge.judge(ids.take().unwrap());
    }
    assert_eq!(rig.store.threads(), 1);
    assert_eq!(rig.held_blocks(), 50);
    drop(all);
    eventually("all is released", || rig.held_blocks() == 0);
}

#[test]
fn without_a_key_each_has_a_thread_of_its_own_and_another_key_is_another_store() {
    let without = Rig::new();
    let _all = many(&without, 3);
    assert_eq!(without.store.threads(), 3);
    let (one, mut other) = (rig("one key"), Rig::new());
    other.store = one.store.clone().shared_as("another key");
    (other.clock, other.space, other.layout) = (one.clock.clone(), one.space.clone(), one.layout);
    let _both = (many(&one, 2), many(&other, 2));
    assert_eq!(one.store.threads(), 2);
}

#[test]
fn the_thread_ends_with_the_last_and_the_next_one_has_another() {
    let rig = rig("ends");
    let mut all = many(&rig, 2);
    for thread in 1..=3 {
        assert_eq!(rig.store.threads(), thread);
        assert_eq!(all.pop().unwrap().shutdown(PATIENCE), Shutdown::Released);
        all.push(rig.direct().build().unwrap());
        assert_eq!(rig.store.threads(), thread, "one is left");
        for ids in all.drain(..) {
            assert_eq!(ids.shutdown(PATIENCE), Shutdown::Released);
        }
        assert_eq!(rig.held_blocks(), 0);
        all = many(&rig, 2);
    }
}

/// Coming and going at once: who comes in the moment in which the last one goes must find
/// a thread that serves it.
#[test]
fn a_generator_built_while_the_last_one_ends_is_served() {
    let mut rig = rig("churn");
    let secret = Secret::from_bytes([8; 16]);
    // A block for each: one that was released can be had again, and begins later.
    init(&mut rig, "nodes", &secret, 0);
    let build = || {
        let builder = rig.direct().secret(&secret).namespace("nodes");
        builder.block_bits(0).build()
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let ids = build().unwrap();
                    ids.take().unwrap();
                    assert_eq!(ids.shutdown(PATIENCE), Shutdown::Released);
                }
            });
        }
    });
    assert_eq!(rig.store.calls(Op::Acquire), 400);
    assert_eq!(rig.store.calls(Op::Release), 400);
}

#[test]
fn a_build_that_waits_for_its_first_lease_holds_up_no_other() {
    let mut rig = rig("first");
    // All of it is one block.
    let secret = Secret::from_bytes([9; 16]);
    let bits = rig.layout.node_bits();
    init(&mut rig, "small", &secret, bits);
    let build = || {
        let builder = rig.direct().secret(&secret).namespace("small");
        let builder = builder.block_bits(bits);
        builder.first_lease_within(PATIENCE).build()
    };
    let first = build().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(build);
        let asked = rig.store.calls(Op::Acquire);
        eventually("it was refused", || rig.store.calls(Op::Acquire) > asked);
        // Others come and go meanwhile.
        for _ in 0..3 {
            let ids = rig.direct().build().unwrap();
            ids.take().unwrap();
            assert_eq!(ids.shutdown(PATIENCE), Shutdown::Released);
        }
        assert!(!waiting.is_finished());
        assert_eq!(first.shutdown(PATIENCE), Shutdown::Released);
        assert!(waiting.join().unwrap().is_ok());
    });
    assert_eq!(rig.store.threads(), 2, "this one made the namespace");
}

/// By a clock that makes it when the leases' thread looks first, as a subscriber may that gives
/// each event an ID.
#[test]
fn a_generator_built_on_the_lease_thread_is_served_by_another_thread() {
    let rig = rig("lazy");
    let built = Arc::new(Mutex::new(None));
    let (to_build, keep) = (Mutex::new(Some(rig.direct())), Arc::clone(&built));
    let look = move || {
        if on_lease_thread()
            && let Some(builder) = to_build.lock().unwrap().take()
        {
            *keep.lock().unwrap() = Some(builder.build().unwrap());
        }
    };
    let builder = rig.direct().clock(Watched(rig.clock.clone(), look));
    let building = thread::spawn(move || builder.build());
    eventually("nobody waits for itself", || building.is_finished());
    let ids = building.join().unwrap().unwrap();
    ids.take().unwrap();
    let inner: DirectGenerator = built.lock().unwrap().take().unwrap();
    inner.take().unwrap();
    assert_eq!(rig.store.threads(), 2);
}

#[test]
fn a_fenced_renewal_costs_one_generator_its_block() {
    let rig = rig("fenced");
    let all = many(&rig, 8);
    let before = rig.store.granted();
    rig.store.fail_next(Op::Renew, Fault::Fence);
    rig.make_renewals_due(|| statuses(&all));
    let held = |ids: &DirectGenerator| -> Vec<Grant> {
        let grants = status(ids).grants.into_iter();
        let held = grants.filter(|held| held.state == GrantState::Held);
        held.map(|held| held.grant).collect()
    };
    let kept = || {
        let pairs = all.iter().zip(&before);
        let is_kept = |(ids, old): &(&DirectGenerator, &Grant)| {
            let is = |new: &Grant| new.block == old.block && new.ticks.end > old.ticks.end;
            held(ids).iter().any(is)
        };
        pairs.filter(is_kept).count()
    };
    eventually("all but one are renewed", || kept() == 7);
    eventually("that one has another block", || {
        all.iter().all(|ids| held(ids).len() == 1)
    });
    assert_eq!(kept(), 7);
}

#[test]
fn a_store_that_is_away_is_asked_once_and_comes_back_for_all() {
    let rig = rig("away");
    let all = many(&rig, 30);
    rig.store.fail(Fault::Down);
    rig.make_renewals_due(|| statuses(&all));
    let trouble = |ids: &DirectGenerator| status(ids).health.last_error;
    eventually("all know of it", || {
        all.iter().all(|ids| trouble(ids).is_some())
    });
    assert!(rig.store.calls(Op::Renew) < 30, "each has asked");
    let reason = |ids: &DirectGenerator| trouble(ids).map(|error| cause_of(&error));
    // First those that share the failed call, then those that ask meanwhile.
    eventually("what one has met reaches the others", || {
        let reasons = all.iter().filter_map(reason);
        let of_another: Vec<String> = reasons
            .filter(|it| it.contains("another generator"))
            .collect();
        // It is what that one has met, not what was left for it.
        assert!(!of_another.iter().any(|it| it.contains("not sent")));
        !of_another.is_empty()
    });
    rig.store.heal();
    eventually("all have recovered", || {
        all.iter().all(|ids| trouble(ids).is_none())
    });
}
