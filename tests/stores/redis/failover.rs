//! Replicas: those that confirm, those that are late, and those that take over.

use std::time::Duration;

use ringflake::lease::{Floor, Grant, LeaseStore, StoreError, open};

use crate::kit::{
    acquire, all_of, floor_ahead, init, made, mark, not_durable, now, renew, space, take,
    unavailable,
};
use crate::served::{Served as _, hasty, patient, store};
use ringflake_kit::eventually;
use ringflake_kit::server::{Clock, Redis, TestServer as _};

fn pair() -> Option<(Redis, Redis)> {
    let primary = Redis::start()?;
    let replica = Redis::start_replica(&primary)?;
    Some((primary, replica))
}

/// A store that takes replies at their word, whatever replicas have.
fn careless(redis: &Redis) -> Box<dyn LeaseStore> {
    let url = format!("{}?wait=0", redis.url());
    open(&url, &patient().accept_best_effort(true)).unwrap()
}

#[test]
fn not_to_wait_for_replicas_is_refused() {
    let (primary, replica) = started!(pair());
    let space = space("wait");
    let mut strict = store(&format!("{}?wait=0", primary.url()));
    not_durable(strict.list(&space)).says("wait is 0");
    init(&mut careless(&primary), &space);

    // Nobody writes to a replica, nor reads what may be old.
    unavailable(replica.store().list(&space)).says("replica");
    unavailable(acquire(&mut replica.store(), &space));
}

/// Stops the replica, which has everything, and does `write` until it is the replica's
/// confirmation that the time was not enough for.
fn without_a_confirmation(
    primary: &Redis,
    replica: &Redis,
    mut write: impl FnMut(&mut dyn LeaseStore) -> Result<(), StoreError>,
) {
    let mut timeout = Duration::from_secs(1);
    eventually("the time is up while the replica is waited for", || {
        replica.process().signal(libc::SIGCONT);
        primary.replicate();
        replica.process().signal(libc::SIGSTOP);
        let answer = write(&mut hasty(&primary.url(), timeout));
        // On a busy machine it can be up before.
        timeout *= 2;
        match answer {
            Err(error @ StoreError::Ambiguous { .. }) => all_of(&error).contains("0 of 1 replicas"),
            Err(StoreError::Unavailable { .. }) => false,
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_write_that_no_replica_confirms_is_ambiguous() {
    let primary = started!(Redis::start_by(Some(Clock::new())));
    let replica = started!(Redis::start_replica(&primary));
    let (mut witness, space) = primary.with("late", 5);
    let first = take(&mut witness, &space, 60);

    // It is online until it was silent for a while.
    let mut before = 0;
    without_a_confirmation(&primary, &replica, |store| {
        before = witness.list(&space).unwrap().blocks.len();
        acquire(store, &space).map(drop)
    });
    let blocks = witness.list(&space).unwrap().blocks;
    assert_eq!(blocks.len(), before + 1, "the write was done");
    without_a_confirmation(&primary, &replica, |store| {
        let end = mark(&mut witness, &space, first.block).unwrap();
        let known = Grant::new(first.block, first.epoch, first.ticks.start..end);
        renew(store, &space, &known).map(drop)
    });

    // Then it does not count, and who asks for it is refused before. The server counts by its
    // clock, so that nobody waits for that.
    primary.clock().run_ahead(20_000);
    let patience = Duration::from_secs(15);
    let mut strict = hasty(&format!("{}?wait=1", primary.url()), patience);
    eventually("the replica is late", || {
        let answer = acquire(&mut strict, &space);
        matches!(answer, Err(StoreError::Unavailable { .. }))
    });
    let before = strict.list(&space).unwrap();
    unavailable(acquire(&mut strict, &space)).says("0 replicas are online");
    unavailable(strict.raise_floor(&space, Floor::OverLostGrants, now()));
    assert_eq!(strict.list(&space).unwrap(), before);

    replica.process().signal(libc::SIGCONT);
    eventually("the replica is back", || {
        acquire(&mut strict, &space).is_ok()
    });
}

/// A server that goes on running has the same `run_id` when it is promoted again.
#[test]
fn a_primary_that_came_back_without_writes_raises_the_floor() {
    let (first, second) = started!(pair());
    let mut store = careless(&first);
    let space = made(&mut store, "back", 17);
    let run_id = |store: &mut dyn LeaseStore| {
        let incarnation = store.list(&space).unwrap().record.incarnation;
        incarnation.as_str().split_once('/').unwrap().0.to_owned()
    };
    let before = run_id(&mut store);
    first.replicate();

    second.promote();
    let lost = take(&mut store, &space, 60);
    first.follow(&second);
    first.promote();

    assert_eq!(run_id(&mut store), before, "the record is the old one");
    assert!(store.list(&space).unwrap().blocks.is_empty(), "it is lost");
    assert!(first.info("server").contains(&before), "nothing restarted");
    let floor = floor_ahead(acquire(&mut store, &space));
    assert!(floor > lost.ticks.end);
}
