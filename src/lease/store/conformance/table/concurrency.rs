//! Reads and commits of several connections at once.

use std::sync::Barrier;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

use super::TableSuite;
use super::connection::{Connection, all_of, block, guarded, keys, put};
use crate::lease::fingerprint::Fingerprint;
use crate::lease::store::table::{Key, Query, Txn};

/// How long the threads of one check may take.
const DEADLINE: Duration = Duration::from_secs(300);

/// Flips of two keys, at least, and reads by each reader that begin after different flips.
const FLIPS: u64 = 200;
const READS: u32 = 60;
const PAUSE: Duration = Duration::from_millis(1);

const WRITERS: usize = 8;
const INCREMENTS: u32 = 25;

/// Races of two commits.
const RACES: u64 = 60;

/// Counts a thread that ends, even by a panic.
struct Finished<'a>(&'a AtomicUsize);

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[track_caller]
fn in_time(started: Instant, what: &str) {
    let elapsed = started.elapsed();
    assert!(elapsed < DEADLINE, "{what} after {elapsed:?}");
}

impl TableSuite<'_> {
    pub(super) fn a_read_shows_one_moment(&self) {
        let name = "table-suite-moment";
        let (left, right) = (Key::record(name), block(name, 249));
        let both = [&left, &right];
        let between = (0..248).map(|index| block(name, index));
        let queries = [
            keys(both),
            Query {
                keys: [left.clone()].into_iter().chain(between).collect(),
                ..keys([])
            },
            Query {
                keys: vec![left.clone()],
                ..all_of(name)
            },
        ];
        let queries = queries.map(|mut query| {
            if query.blocks.is_none() {
                query.keys.push(right.clone());
            }
            query
        });
        let mut writer = self.connect();
        writer.write(both.map(|key| put(key, "0")));
        let (committed, finished) = (&AtomicU64::new(0), &AtomicUsize::new(0));
        let started = Instant::now();
        let readers = queries.map(|query| (self.connect(), query));
        let count = readers.len();
        let (left, right) = (&left, &right);
        thread::scope(|scope| {
            for (mut table, query) in readers {
                scope.spawn(move || {
                    let _finished = Finished(finished);
                    let (mut reads, mut flips) = (0, 0);
                    while reads < READS {
                        let before = committed.load(SeqCst);
                        if before > flips {
                            (reads, flips) = (reads + 1, before);
                        }
                        let entries = table.entries(&query);
                        let [left, right] = [left, right].map(|key| entries.get(key));
                        assert_eq!(left, right, "two moments in one snapshot");
                        let shown: u64 = left.expect("it is there").parse().expect("a number");
                        assert!(shown >= before, "{shown}, where {before} was committed");
                        in_time(started, "the readers are not done");
                        // The writer comes between two reads.
                        thread::sleep(PAUSE);
                    }
                });
            }
            let mut flips = 0;
            while flips < FLIPS || finished.load(SeqCst) < count {
                let [now, next] = [flips, flips + 1].map(|flip| flip.to_string());
                let mut txn = guarded((left, Some(&now)), put(left, &next));
                txn.puts.push(put(right, &next));
                if writer.commit(&txn, &Query::default()).is_none() {
                    flips += 1;
                    committed.store(flips, SeqCst);
                }
                in_time(started, "the writer is not done");
            }
        });
    }

    pub(super) fn no_update_is_lost(&self) {
        let key = &Key::record("table-suite-counter");
        let mut table = self.connect();
        table.write([put(key, "0")]);
        let started = Instant::now();
        let increment = |mut table: Connection| {
            let read = keys([key]);
            for _ in 0..INCREMENTS {
                let mut entries = table.entries(&read);
                loop {
                    let known = entries.remove(key).expect("it is there");
                    let next = known.parse::<u32>().expect("a number") + 1;
                    let txn = guarded((key, Some(&known)), put(key, &next.to_string()));
                    match table.commit(&txn, &read) {
                        None => break,
                        Some(conflict) => entries = conflict.entries,
                    }
                    in_time(started, "an increment still conflicts");
                }
            }
        };
        let tables: Vec<_> = (0..WRITERS).map(|_| self.connect()).collect();
        thread::scope(|scope| {
            for table in tables {
                scope.spawn(move || increment(table));
            }
        });
        let sum = WRITERS as u32 * INCREMENTS;
        assert_eq!(table.value(key), Some(sum.to_string()), "an update is lost");
    }

    /// Two commits write what the other one compares, and every other time what they write is
    /// compared, too. Snapshot isolation alone would apply both.
    pub(super) fn compared_keys_are_protected_from_writes(&self) {
        let name = "table-suite-skew";
        let mut tables = [self.connect(), self.connect()];
        let (mut applied, started) = (0, Instant::now());
        for race in 0..RACES {
            let [left, right] = match race % 3 {
                0 => [Key::record(name), block(name, 0)],
                1 => [block(name, 1), block(name, 2)],
                _ => [Key::record(name), Key::record("table-suite-skew-2")],
            };
            let before = race.to_string();
            tables[0].write([&left, &right].map(|key| put(key, &before)));
            let mut txns = [
                guarded((&left, Some(&before)), put(&right, "changed")),
                guarded((&right, Some(&before)), put(&left, "changed")),
            ];
            if race % 2 == 0 {
                let [one, other] = &mut txns;
                one.compare.extend_from_slice(&other.compare);
                other.compare.clone_from(&one.compare);
            }
            applied += race_of(&mut tables, &txns, [&left, &right]);
            in_time(started, "the races are not over");
        }
        assert!(applied > 0, "no commit was applied in {RACES} races");
    }

    pub(super) fn absent_keys_are_protected_from_inserts(&self) {
        let mut tables = [self.connect(), self.connect()];
        // Where tables are created first.
        tables[0].write([put(&Key::check("table-suite-insert"), "made")]);
        let (mut applied, started) = (0, Instant::now());
        for race in 0..RACES {
            let name = format!("table-suite-insert-{race}");
            let secret = |half| {
                let number: u128 = u128::from(race) << 8 | 0xa8 << 64 | half;
                Key::secret(Fingerprint::from_bytes(number.to_be_bytes()))
            };
            let [left, right] = match race % 3 {
                0 => [Key::record(&name), block(&name, 0)],
                1 => [block(&name, 1), block(&name, 2)],
                _ => [secret(1), secret(2)],
            };
            let txns = [
                guarded((&left, None), put(&right, "changed")),
                guarded((&right, None), put(&left, "changed")),
            ];
            applied += race_of(&mut tables, &txns, [&left, &right]);
            in_time(started, "the races are not over");
        }
        assert!(applied > 0, "no commit was applied in {RACES} races");
    }
}

/// Commits two transactions at once, each of which changes what the other one compares. Returns
/// how many of them were applied: one at most.
#[track_caller]
fn race_of(tables: &mut [Connection; 2], txns: &[Txn; 2], both: [&Key; 2]) -> usize {
    let start = &Barrier::new(2);
    let applied = thread::scope(|scope| {
        let racers = tables.iter_mut().zip(txns).map(|(table, txn)| {
            scope.spawn(move || {
                start.wait();
                table.commit(txn, &Query::default()).is_none()
            })
        });
        let racers: Vec<_> = racers.collect();
        racers
            .into_iter()
            .map(|racer| racer.join().expect("the commit has an outcome"))
            .filter(|applied| *applied)
            .count()
    });
    let changed = tables[0].entries(&keys(both));
    let changed = changed.values().filter(|value| *value == "changed");
    assert_eq!(changed.count(), applied, "of {txns:?}");
    assert!(applied < 2, "no order allows both of {txns:?}");
    applied
}
