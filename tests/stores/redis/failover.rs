//! Replicas: those that confirm, those that are late, and those that take over.

use std::time::Duration;

use ringflake::lease::conformance::Given;
use ringflake::lease::{Acquire, Fence, LeaseStore, OpenOptions, RedisStore, Renew, StoreError};

use super::{options, store};
use crate::kit::{acquire, ambiguous, fenced, floor_ahead, init, now, space, unavailable};
use ringflake_kit::eventually;
use ringflake_kit::server::{Reachable as _, Redis, TestServer as _};

/// A primary and a replica that has all of it.
fn pair() -> Option<(Redis, Redis)> {
    let primary = Redis::start()?;
    let replica = Redis::start_replica(&primary)?;
    Some((primary, replica))
}

/// A store that takes replies at their word, whatever replicas have.
fn careless(redis: &Redis) -> RedisStore {
    let url = format!("{}?wait=0", redis.url());
    RedisStore::from_url(&url, &options().accept_best_effort(true)).unwrap()
}

#[test]
fn not_to_wait_for_replicas_is_refused() {
    let (primary, replica) = started!(pair());
    let space = space("wait");
    let url = format!("{}?wait=0", primary.url());
    match store(&url).list(&space).unwrap_err() {
        StoreError::NotDurable { reason, .. } => assert!(reason.contains("wait is 0"), "{reason}"),
        other => panic!("{other}"),
    }
    init(&mut careless(&primary), &space);

    // Nobody writes to a replica, nor reads what may be old.
    let text = unavailable(store(&replica.url()).list(&space));
    assert!(text.contains("replica"), "{text}");
    unavailable(acquire(&mut store(&replica.url()), &space));
}

#[test]
fn a_write_that_no_replica_confirms_is_ambiguous() {
    let (primary, replica) = started!(pair());
    let space = space("late");
    init(&mut super::store(&primary.url()), &space);
    let patience = OpenOptions::new().timeout(Duration::from_secs(1));
    let mut store = RedisStore::from_url(&primary.url(), &patience).unwrap();
    let first = acquire(&mut store, &space).unwrap();

    // It is online until it was silent for a while.
    replica.signal(libc::SIGSTOP);
    let text = ambiguous(acquire(&mut store, &space));
    assert!(text.contains("0 of 1 replicas"), "{text}");
    let blocks = store.list(&space).unwrap().blocks;
    assert_eq!(blocks.len(), 2, "the write was done");
    let renew = Renew::new(&first, first.ticks.end + 5, now());
    ambiguous(store.renew(&space, &renew));

    // Then it does not count, and who asks for it is refused before.
    let url = format!("{}?wait=1", primary.url());
    let mut strict = RedisStore::from_url(&url, &patience).unwrap();
    eventually("the replica is late", || {
        matches!(
            acquire(&mut strict, &space),
            Err(StoreError::Unavailable { .. })
        )
    });
    let before = strict.list(&space).unwrap();
    let text = unavailable(acquire(&mut strict, &space));
    assert!(text.contains("0 replicas are online"), "{text}");
    unavailable(strict.raise_floor(&space, ringflake::lease::Floor::OverLostGrants, now()));
    assert_eq!(strict.list(&space).unwrap(), before);

    replica.signal(libc::SIGCONT);
    eventually("the replica is back", || {
        acquire(&mut strict, &space).is_ok()
    });
}

#[test]
fn a_promoted_replica_with_all_writes_raises_the_floor() {
    let (mut primary, replica) = started!(pair());
    let space = space("promoted");
    let mut old = store(&primary.url());
    init(&mut old, &space);
    let grant = acquire(&mut old, &space).unwrap();
    primary.kill();
    replica.promote();

    let mut new = store(&replica.url());
    let blocks = new.list(&space).unwrap().blocks;
    assert_eq!(blocks[0].hwm_end, grant.ticks.end, "it was confirmed");
    let renew = Renew::new(&grant, grant.ticks.end + 5, now());
    assert_eq!(fenced(new.renew(&space, &renew)), Fence::Incarnation);
    floor_ahead(acquire(&mut new, &space));
}

#[test]
fn a_promoted_replica_with_writes_missing_gives_nothing_twice() {
    let (primary, replica) = started!(pair());
    // One block, so that it must be granted again.
    let space = space("missing").with_block_bits(17).unwrap();
    let mut old = careless(&primary);
    init(&mut old, &space);
    let mut given = Given::default();
    let mut grant = acquire(&mut old, &space).unwrap();
    given.add(&grant);
    primary.replicate();

    // The primary goes on, for those that still reach it.
    replica.promote();
    let renew = Renew::new(&grant, u64::MAX, now());
    let end = old.renew(&space, &renew).unwrap();
    given.extend(&grant, end);
    grant.ticks.end = end;

    let mut new = store(&replica.url());
    let recorded = new.list(&space).unwrap().blocks[0].hwm_end;
    assert!(recorded < end, "the replica has what it was not to have");
    let renew = Renew::new(&grant, end, now());
    assert_eq!(fenced(new.renew(&space, &renew)), Fence::Incarnation);
    let floor = floor_ahead(acquire(&mut new, &space));
    assert!(floor > end);
    assert_eq!(
        fenced(new.renew(&space, &renew)),
        Fence::Floor { known: end, floor }
    );
}

/// A server that goes on running has the same `run_id` when it is promoted again.
#[test]
fn a_primary_that_came_back_without_writes_raises_the_floor() {
    let (first, second) = started!(pair());
    let space = space("back").with_block_bits(17).unwrap();
    let mut store = careless(&first);
    init(&mut store, &space);
    let run_id = |store: &mut RedisStore| {
        let incarnation = store.list(&space).unwrap().record.incarnation;
        incarnation.as_str().split_once('/').unwrap().0.to_owned()
    };
    let before = run_id(&mut store);
    first.replicate();

    second.promote();
    let lost = acquire(&mut store, &space).unwrap();
    first.follow(&second);
    first.promote();

    assert_eq!(run_id(&mut store), before, "the record is the old one");
    assert!(store.list(&space).unwrap().blocks.is_empty(), "it is lost");
    assert!(first.info("server").contains(&before), "nothing restarted");
    let floor = floor_ahead(acquire(&mut store, &space));
    assert!(floor > lost.ticks.end);
}

/// As the docs say: a superseded primary serves for ever whoever reaches it, but
/// what it gives is used by nobody that asks for a replica's word.
#[test]
fn a_primary_that_was_cut_off_gives_nothing_that_is_used() {
    let (primary, replica) = started!(pair());
    let space = space("cut-off");
    let mut waiting = store(&format!("{}?wait=1", primary.url()));
    init(&mut waiting, &space);
    replica.promote();
    eventually("the primary is alone", || primary.online_replicas() == 0);
    unavailable(waiting.acquire(&space, &Acquire::new(1, 10, now())));
}
