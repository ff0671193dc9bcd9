//! Tests of the tables themselves, on servers that compare their own clock in a commit.

use std::sync::Arc;

use ringflake::SystemClock;
use ringflake::lease::conformance::TableSuite;
use ringflake::lease::table::{Blocks, Commit, Key, MemoryTable, Put, Query, Snapshot, Table, Txn};
use ringflake::lease::{Block, Fingerprint, Incarnation};

use crate::kit::now;
use crate::served::Served;

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

/// Names of which one is the beginning of another, and one is a pattern of it.
const NAMES: [&str; 4] = ["a", "a-b", "a_b", "ab"];

fn any_key(random: &mut Random) -> Key {
    let name = random.pick(&NAMES);
    match random.below(8) {
        0 => Key::record(name),
        1 => Key::check(name),
        2 => Key::secret(Fingerprint::from_bytes([random.below(3) as u8; 16])),
        _ => Key::block(name, Block::new(random.below(12))),
    }
}

/// Values that differ in case, trailing spaces, or not at all as JSON.
const VALUES: [&str; 8] = [
    "",
    "a",
    "A",
    "a ",
    "ä",
    "数据🦀\u{1}'\\\"%_",
    r#"{"a":1}"#,
    r#"{"a": 1}"#,
];

fn any_query(random: &mut Random) -> Query {
    let namespace = random.pick(&NAMES).to_owned();
    let start = random.below(12);
    let blocks = match random.below(4) {
        0 => None,
        1 => Some(Blocks::All { namespace }),
        _ => Some(Blocks::Lowest {
            namespace,
            limit: random.below(8) as u32,
            window: start..start + random.below(6),
        }),
    };
    Query {
        keys: (0..random.below(6)).map(|_| any_key(random)).collect(),
        blocks,
    }
}

/// A commit that is decided from what the reference has, and with some chance from something
/// else. `rank` is one that no entry has.
fn any_txn(random: &mut Random, reference: &mut MemoryTable, rank: u64) -> Txn {
    let mut txn = Txn {
        creates: true,
        ..Txn::default()
    };
    for index in 0..1 + random.below(5) {
        let key = any_key(random);
        let is_known = |(known, _): &(Key, _)| *known == key;
        if txn.compare.iter().any(is_known) || txn.puts.iter().any(|put| put.key == key) {
            continue;
        }
        if random.below(10) > 0 {
            let query = Query {
                keys: vec![key.clone()],
                blocks: None,
            };
            let known = reference.read(&query).unwrap().entries.remove(&key);
            let expected = match random.below(16) {
                0 => None,
                1 => Some(random.pick(&VALUES).to_owned()),
                _ => known,
            };
            txn.compare.push((key.clone(), expected));
            if random.below(4) == 0 {
                continue;
            }
        }
        let rank = key.as_str().contains("/block/").then_some(rank + index);
        let value = random.pick(&VALUES).to_owned();
        txn.puts.push(Put { key, value, rank });
    }
    // Neither clock comes near these while a test runs.
    let hour = 3_600_000;
    match random.below(8) {
        0 => txn.not_before_unix_ms = now() + hour,
        1 => txn.not_after_unix_ms = now() - hour,
        2 => txn.not_before_unix_ms = now() - hour,
        3 => txn.not_after_unix_ms = now() + hour,
        _ => {}
    }
    txn
}

fn is_same(what: &str, ours: &Snapshot, theirs: &Snapshot) {
    assert_eq!(ours.entries, theirs.entries, "{what}");
    assert_eq!(ours.complete, theirs.complete, "{what}");
}

pub(crate) fn the_table_conforms(server: &dyn Served) {
    TableSuite::new(&|| server.table()).run();
}

/// Random reads and commits, on the server and in memory.
pub(crate) fn the_table_agrees_with_the_reference(server: &dyn Served) {
    let mut table = server.table();
    let mut reference = MemoryTable::new(Arc::new(SystemClock));
    let mut done = 0;
    let steps = ringflake_kit::short_or_long(400, 4_000);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for step in 0..steps {
        let query = any_query(&mut random);
        let [ours, theirs] = [&mut *table as &mut dyn Table, &mut reference]
            .map(|table| table.read(&query).unwrap());
        is_same(&format!("step {step}: {query:?}"), &ours, &theirs);

        let mut txn = any_txn(&mut random, &mut reference, 8 * step as u64);
        let incarnation = random.below(6);
        let mut outcome = |table: &mut dyn Table, own: &Incarnation| {
            txn.incarnation = match incarnation {
                0 => Some(Incarnation::new("another")),
                1 | 2 => Some(own.clone()),
                _ => None,
            };
            table.commit(&txn, &query).unwrap()
        };
        // The first commit creates the tables, which changes the incarnation.
        let created = matches!(incarnation, 1 | 2) && done == 0;
        let ours = outcome(&mut *table, &ours.incarnation);
        if created && matches!(ours, Commit::Conflict(_)) {
            continue;
        }
        let theirs = outcome(&mut reference, &theirs.incarnation);
        match (ours, theirs) {
            (Commit::Done, Commit::Done) => done += 1,
            (Commit::Conflict(ours), Commit::Conflict(theirs)) => {
                is_same(&format!("step {step}: {txn:?}"), &ours, &theirs);
            }
            (ours, theirs) => panic!("step {step}: {txn:?}: {ours:?}, not {theirs:?}"),
        }
    }
    assert!(done > steps / 4, "only {done} commits of {steps} were done");
}
