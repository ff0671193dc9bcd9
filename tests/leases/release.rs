//! Blocks after a generator was dropped.

use std::time::Instant;

use ringflake::Shutdown;

use crate::rig::{PATIENCE, Rig, SECOND};
use ringflake_kit::child::{passes, this_test};
use ringflake_kit::eventually;
use ringflake_kit::faulty_store::{Fault, Op};

#[test]
fn dropping_the_last_clone_or_handle_releases_every_block() {
    let rig = Rig::new();
    let ids = rig.cached().blocks(3).widen_to(3).build().unwrap();
    let clone = ids.clone();
    let mut handle = ids.handle().unwrap();
    drop(ids);
    drop(clone);
    assert_eq!(rig.held_blocks(), 3);
    handle.take().unwrap();
    drop(handle);
    eventually("all is released", || rig.held_blocks() == 0);
    let blocks = rig.blocks();
    assert_eq!(blocks.len(), 3);
    assert!(blocks.iter().all(|block| block.released));
    assert_eq!(rig.store.calls(Op::Release), 3);

    let ids = rig.direct().blocks(2).widen_to(2).build().unwrap();
    ids.take().unwrap();
    assert_eq!(rig.held_blocks(), 2);
    drop(ids);
    eventually("all is released", || rig.held_blocks() == 0);
}

#[test]
fn a_shutdown_releases_every_block_once_nobody_else_has_them() {
    let rig = Rig::new();
    let ids = rig.cached().blocks(3).widen_to(3).build().unwrap();
    let handle = ids.handle().unwrap();
    assert_eq!(ids.clone().shutdown(PATIENCE), Shutdown::InUse);
    assert_eq!(ids.shutdown(PATIENCE), Shutdown::InUse);
    assert_eq!(rig.held_blocks(), 3);
    drop(handle);
    let ids = rig.cached().build().unwrap();
    assert_eq!(ids.shutdown(PATIENCE), Shutdown::Released);
    let ids = rig.direct().build().unwrap();
    assert_eq!(ids.shutdown(PATIENCE), Shutdown::Released);
    eventually("all is released", || rig.held_blocks() == 0);
}

#[test]
fn a_shutdown_says_what_it_could_not_release_and_tries_it_once() {
    for fault in [Fault::Down, Fault::Cut, Fault::Panic] {
        let rig = Rig::new();
        let ids = rig.cached().blocks(5).widen_to(5).build().unwrap();
        rig.store.fail(fault);
        assert_eq!(ids.shutdown(PATIENCE), Shutdown::Unreleased, "{fault:?}");
        assert_eq!(rig.store.calls(Op::Release), 1, "{fault:?}");
    }
    // A store that does not answer in time, and does later.
    let rig = Rig::new();
    let ids = rig.direct().build().unwrap();
    rig.store.hold();
    assert_eq!(ids.shutdown(SECOND / 100), Shutdown::Unreleased);
    rig.store.let_go();
    eventually("it is released all the same", || rig.held_blocks() == 0);
}

/// In a process of its own: all drops share what they may wait.
#[test]
fn sixty_drops_wait_as_long_as_one_for_a_store_that_hangs() {
    const DROPS: &str = "RINGFLAKE_TEST_DROPS";
    if std::env::var_os(DROPS).is_none() {
        return passes(this_test().env(DROPS, "1"));
    }
    let rig = Rig::new();
    let all: Vec<_> = (0..60).map(|_| rig.direct().build().unwrap()).collect();
    rig.store.hold();
    let started = Instant::now();
    drop(all);
    // Each release would take a minute and more, and each drop alone a second.
    let waited = started.elapsed();
    assert!((SECOND / 2..30 * SECOND).contains(&waited), "{waited:?}");
    rig.store.let_go();
    eventually("they are released all the same", || rig.held_blocks() == 0);
}
