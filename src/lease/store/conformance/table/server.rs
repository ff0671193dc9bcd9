//! The server's clock, incarnation and description.

use std::thread;
use std::time::{Duration, Instant};

use super::TableSuite;
use super::connection::{Connection, keys, put};
use crate::clock::{Clock, SystemClock};
use crate::lease::store::table::{Key, StoreTime};

/// Tolerance for the resolution of the server's clock.
const SLACK_MS: u64 = 3_000;

impl TableSuite<'_> {
    pub(super) fn the_clock_moves_on(&self) {
        let mut table = self.connect();
        let read = keys([&Key::record("table-suite-clock")]);
        let time = |table: &mut Connection| -> StoreTime {
            let time = table.read(&read).time.expect("the server has a clock");
            let is_within = (time.earliest_unix_ms..=time.latest_unix_ms).contains(&time.unix_ms);
            assert!(is_within, "{time:?}");
            let (here, hour) = (SystemClock.unix_ms(), 3_600_000);
            let apart = time.unix_ms.abs_diff(here);
            assert!(apart < hour, "{time:?}, where this machine has {here}");
            time
        };
        let started = Instant::now();
        let first = time(&mut table);
        let first_read = Instant::now();
        loop {
            // Between the two moments at which the server read its clock passed at least this,
            // however long the reads take, and at most what `started` measures.
            let least = first_read.elapsed();
            let time = time(&mut table);
            let most_ms = started.elapsed().as_millis() as u64;
            let moved = time.unix_ms.saturating_sub(first.unix_ms);
            assert!(moved <= most_ms + SLACK_MS, "{time:?} after {first:?}");
            if moved >= 1_000 {
                return;
            }
            let is_slow = moved + SLACK_MS < least.as_millis() as u64;
            assert!(!is_slow, "{time:?}, {least:?} after {first:?}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    pub(super) fn the_incarnation_is_stable(&self) {
        let mut tables = [self.connect(), self.connect()];
        let key = Key::record("table-suite-stable");
        tables[0].write([put(&key, "0")]);
        let known = tables[0].read(&keys([&key])).incarnation;
        assert!(!known.as_str().is_empty());
        for round in 1..10_usize {
            tables[round % 2].write([put(&key, &round.to_string())]);
            for table in &mut tables {
                assert_eq!(table.read(&keys([&key])).incarnation, known);
            }
        }
        assert_eq!(self.connect().read(&keys([&key])).incarnation, known);
    }

    pub(super) fn the_server_is_described(&self) {
        let mut table = self.connect();
        let described = table.0.describe().expect("the server can be asked");
        assert!(!described.store.trim().is_empty(), "{described:?}");
        let again = table.0.describe().expect("the server can be asked");
        assert_eq!(again.durability, described.durability);
    }
}
