//! What becomes of the blocks when a generator goes.

use std::time::{Duration, Instant};

use crate::eventually::eventually;
use crate::rig::{Rig, SECOND};
use crate::store::{Fault, Op};

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
    assert_eq!(rig.held_blocks(), 0);
    let blocks = rig.blocks();
    assert_eq!(blocks.len(), 3);
    assert!(blocks.iter().all(|block| block.released));
    assert_eq!(rig.store.calls(Op::Release), 3);

    let ids = rig.direct().blocks(2).widen_to(2).build().unwrap();
    ids.take().unwrap();
    assert_eq!(rig.held_blocks(), 2);
    drop(ids);
    assert_eq!(rig.held_blocks(), 0);
}

#[test]
fn a_drop_releases_what_was_just_being_acquired() {
    let rig = Rig::new();
    let ids = rig.direct().build().unwrap();
    rig.store.hold();
    ids.invalidate();
    eventually("another block is asked for", || rig.store.held() == 1);
    std::thread::scope(|scope| {
        scope.spawn(move || drop(ids));
        rig.store.let_go();
    });
    // The first was given up, perhaps to a copy; the second is released.
    assert_eq!(rig.blocks().len(), 2);
    assert_eq!(rig.held_blocks(), 1);
}

#[test]
fn a_block_whose_fate_is_anothers_is_not_released() {
    let rig = Rig::new();
    let ids = rig.direct().build().unwrap();
    rig.store.fail_next(Op::Renew, Fault::Fence);
    rig.clock.advance(300 * SECOND);
    eventually("the block is replaced", || ids.leases().len() == 2);
    drop(ids);
    let released: Vec<_> = rig.blocks().iter().map(|block| block.released).collect();
    assert_eq!(released, [false, true]);
}

#[test]
fn a_drop_with_a_store_that_fails_tries_once_and_ends() {
    for fault in [Fault::Down, Fault::Cut, Fault::Panic] {
        let rig = Rig::new();
        let ids = rig.cached().blocks(5).widen_to(5).build().unwrap();
        rig.store.fail(fault);
        let started = Instant::now();
        drop(ids);
        assert!(started.elapsed() < Duration::from_secs(5));
        assert_eq!(rig.store.calls(Op::Release), 1, "{fault:?}");
    }
}

#[test]
fn a_drop_in_the_middle_of_an_outage_does_not_wait_for_its_end() {
    let rig = Rig::new();
    let ids = rig.cached().build().unwrap();
    rig.store.fail(Fault::Down);
    rig.clock.advance(300 * SECOND);
    eventually("the outage is noticed", || rig.store.calls(Op::Renew) > 0);
    let started = Instant::now();
    drop(ids);
    assert!(started.elapsed() < Duration::from_secs(5));
}
