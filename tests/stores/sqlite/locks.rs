//! Waiting for the lock.

use std::process::Stdio;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Barrier, Once, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use ringflake::Clock;
use ringflake::lease::{History, Init, LeaseStore, SqliteStore};
use ringflake_kit::eventually;
use rusqlite::Connection;

use super::{Place, acquire, child, given_path, now, options, space};
use crate::kit::{self, unavailable};

fn with_patience(place: &Place, timeout: Duration) -> SqliteStore {
    SqliteStore::new(&place.path, &options().timeout(timeout)).unwrap()
}

/// Takes the lock that `sql` takes, and holds it for as long as it lives.
fn holding(place: &Place, sql: &str) -> Connection {
    let raw = place.raw();
    raw.execute_batch(sql).unwrap();
    raw
}

#[test]
fn a_lock_that_is_held_makes_the_store_unavailable_in_time() {
    let place = Place::initialised();
    let known = place.list();
    let timeout = Duration::from_millis(150);
    let mut store = with_patience(&place, timeout);
    for held in [
        "BEGIN IMMEDIATE",
        "BEGIN EXCLUSIVE",
        // A reader: the lock is had, and the commit has to wait.
        "BEGIN; SELECT * FROM ringflake",
    ] {
        let raw = holding(&place, held);
        let began = Instant::now();
        let reason = unavailable(acquire(&mut store));
        let took = began.elapsed();
        assert!(reason.contains("locked"), "{held}: {reason}");
        // Slack for a machine under load; without a bound it would wait for ever.
        assert!(took >= timeout, "{held}: {took:?}");
        assert!(took < Duration::from_secs(60), "{held}: {took:?}");
        drop(raw);
        assert_eq!(place.list(), known, "{held}");
    }
    eventually("the lock is had", || acquire(&mut store).is_ok());
}

/// A minute passes after the first look at it.
#[derive(Debug)]
struct MinuteLater(Once);

impl Clock for MinuteLater {
    fn unix_ms(&self) -> u64 {
        let mut unix_ms = now() + 60_000;
        self.0.call_once(|| unix_ms -= 60_000);
        unix_ms
    }
}

#[test]
fn a_first_record_may_wait_for_longer_than_clocks_may_differ() {
    let place = Place::new();
    let mut store = place.store().with_clock(Arc::new(MinuteLater(Once::new())));
    let init = Init::new(History::New, now()).with_limits(kit::limits());
    assert!(kit::limits().skew() < Duration::from_secs(60));
    store.init(&space(), &init).unwrap();
}

#[test]
fn readers_wait_for_no_writer_that_has_not_begun_to_commit() {
    let place = Place::initialised();
    let _writer = holding(&place, "BEGIN IMMEDIATE");
    // What would wait, would do so until then, and fail.
    let mut store = with_patience(&place, Duration::from_secs(20));
    store.list(&space()).unwrap();
    store.check(&space(), now()).unwrap();
}

#[test]
fn twenty_connections_get_through_and_none_stands_back() {
    const EACH: usize = 30;
    let place = Place::in_memory();
    place.init();
    let counts: [AtomicU32; 20] = Default::default();
    let first_done = OnceLock::new();
    let start = Barrier::new(counts.len());
    let work = |count: &AtomicU32| {
        // Nobody is to give up before all are done, on however slow a machine.
        let mut store = with_patience(&place, Duration::from_secs(600));
        start.wait();
        for _ in 0..EACH {
            acquire(&mut store).unwrap();
            count.fetch_add(1, Relaxed);
        }
        first_done.get_or_init(|| counts.each_ref().map(|count| count.load(Relaxed)));
    };
    thread::scope(|scope| {
        for count in &counts {
            scope.spawn(|| work(count));
        }
    });
    // Each was given a block that no other was.
    assert_eq!(place.list().blocks.len(), counts.len() * EACH);
    // Chance makes some come later than others, but none comes last each time.
    let had = first_done.get().unwrap();
    assert!(had.iter().all(|&had| had > 0), "{had:?}");
}

/// Waiting processes must leave the processor to the lock's holder.
#[test]
fn hundreds_of_processes_get_through_at_once() {
    if let Some(path) = given_path() {
        let mut store = SqliteStore::new(path, &options()).unwrap();
        acquire(&mut store).unwrap();
        return;
    }
    let processes = ringflake_kit::short_or_long(40, 500);
    let place = Place::in_memory();
    place.init();
    let children: Vec<_> = (0..processes)
        .map(|_| child(&place.path).stderr(Stdio::piped()).spawn().unwrap())
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(place.list().blocks.len(), processes as usize);
}
