//! Waiting for the lock.

use std::process::Stdio;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use ringflake::Clock;
use ringflake::lease::{History, Init, LeaseStore, OpenOptions, SqliteStore};
use ringflake_kit::eventually;
use rusqlite::Connection;

use super::{Place, acquire, child, given_path, now, options, space};
use crate::kit::{self, acquire_at_a_start, unavailable};

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

/// Waiting processes must leave the processor to the lock's holder.
#[test]
fn hundreds_of_processes_get_through_at_once() {
    if let Some(path) = given_path() {
        let options = OpenOptions::new().accept_best_effort(true);
        let mut store = SqliteStore::new(path, &options).unwrap();
        acquire_at_a_start(&mut store, &space());
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
