//! The table alone: its conditions, and random reads and commits on it and on the reference.

use std::cell::RefCell;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use ringflake::ManualClock;
use ringflake::lease::table::{Blocks, Commit, Key, Put, Query, RedisTable, Snapshot, Table, Txn};
use ringflake::lease::{Block, Incarnation, MemoryStore, RedisStore};

use crate::served::patient;
use ringflake_kit::server::{Clock, Lent, Reachable as _, Redis, TestServer as _};

const NOW_MS: u64 = 1_760_000_000_500;

fn table_of(redis: &Redis) -> RedisStore {
    RedisStore::from_url(&redis.url(), &patient()).unwrap()
}

fn put(key: &Key, value: &str, rank: Option<u64>) -> Put {
    let (key, value) = (key.clone(), value.to_owned());
    Put { key, value, rank }
}

fn query(keys: &[&Key]) -> Query {
    Query {
        keys: keys.iter().map(|&key| key.clone()).collect(),
        blocks: None,
    }
}

fn read(table: &mut RedisTable, query: &Query) -> Snapshot {
    table.read(query).unwrap()
}

#[test]
fn a_commit_outside_its_incarnation_or_time_is_a_conflict() {
    let mut redis = started!(Redis::start_with_clock(Clock::new()));
    redis.clock().stand_at(NOW_MS);
    let mut store = table_of(&redis);
    let table = store.table_mut();
    let key = Key::record("orders");
    let asked = query(&[&key]);
    let before = read(table, &asked).incarnation;
    let txn = Txn {
        puts: vec![put(&key, "{}", None)],
        ..Txn::default()
    };
    let mut commit = |txn: Txn| match table.commit(&txn, &asked).unwrap() {
        Commit::Done => true,
        Commit::Conflict(snapshot) => {
            assert!(snapshot.entries.is_empty(), "{snapshot:?}");
            assert_eq!(snapshot.time.unwrap().unix_ms, NOW_MS);
            false
        }
        Commit::Unknown(error) => panic!("{error}"),
    };
    for (not_before, not_after) in [
        (NOW_MS + 1, u64::MAX),
        (0, NOW_MS - 1),
        (u64::MAX, u64::MAX),
        (u64::MAX - 1, u64::MAX - 1),
    ] {
        let mut late = txn.clone();
        (late.not_before_unix_ms, late.not_after_unix_ms) = (not_before, not_after);
        assert!(!commit(late), "{not_before} to {not_after}");
    }
    let mut elsewhere = txn.clone();
    elsewhere.incarnation = Some(Incarnation::new("another"));
    assert!(!commit(elsewhere));

    let mut here = txn.clone();
    here.incarnation = Some(before);
    (here.not_before_unix_ms, here.not_after_unix_ms) = (NOW_MS, NOW_MS);
    redis.kill();
    redis.restart();
    // Finds the connection closed, and opens another.
    read(table, &asked);
    let Ok(Commit::Conflict(snapshot)) = table.commit(&here, &asked) else {
        panic!("committed in another incarnation");
    };
    here.incarnation = Some(snapshot.incarnation);
    assert!(matches!(table.commit(&here, &asked), Ok(Commit::Done)));
    assert_eq!(read(table, &asked).entries[&key], "{}");
}

#[test]
fn what_is_written_is_what_the_documentation_names() {
    let redis = started!(Lent::<Redis>::start());
    let block = Key::block("a.b", Block::new(7));
    let secret = Key::from(".secret/0f".to_owned());
    let txn = Txn {
        puts: vec![put(&block, "{\"b\":1}", Some(9)), put(&secret, "a.b", None)],
        ..Txn::default()
    };
    let done = table_of(&redis).table_mut().commit(&txn, &Query::default());
    assert!(matches!(done, Ok(Commit::Done)), "{done:?}");
    let text = |words: &[&str]| match redis.command(words) {
        ::redis::Value::BulkString(bytes) => String::from_utf8(bytes).unwrap(),
        other => panic!("{other:?}"),
    };
    let field = "block/00000000000000000007";
    assert_eq!(text(&["HGET", "ringflake:{a.b}", field]), "{\"b\":1}");
    assert_eq!(text(&["ZSCORE", "ringflake:{a.b}:rank", field]), "9");
    assert_eq!(text(&["HGET", "ringflake:secrets", "0f"]), "a.b");
    assert_eq!(redis.command(&["DBSIZE"]), ::redis::Value::Int(3));
}

/// Up to 1,000 fields are read at once.
#[test]
fn the_lowest_of_thousands_are_found() {
    let redis = started!(Lent::<Redis>::start());
    let mut store = table_of(&redis);
    let table = store.table_mut();
    let key = |index| Key::block("many", Block::new(index));
    for first in (0..5_000).step_by(100) {
        let blocks = first..first + 100;
        let puts = blocks.map(|index| put(&key(index), "{}", Some(9_000 - index)));
        let txn = Txn {
            puts: puts.collect(),
            ..Txn::default()
        };
        assert!(matches!(
            table.commit(&txn, &Query::default()),
            Ok(Commit::Done)
        ));
    }
    let lowest = |limit, window| Query {
        keys: Vec::new(),
        blocks: Some(Blocks::Lowest {
            namespace: "many".into(),
            limit,
            window,
        }),
    };
    let found = read(table, &lowest(2_100, 0..1_200));
    let expected: Vec<_> = (0..1_200).chain(2_900..5_000).map(key).collect();
    assert!(found.entries.keys().eq(&expected) && !found.complete);
    assert!(read(table, &lowest(5_000, 0..0)).complete);

    // Without ranks all are read.
    redis.command(&["DEL", "ringflake:{many}:rank"]);
    let found = read(table, &lowest(1, 0..0));
    assert!(found.complete && found.entries.len() == 5_000);
}

/// Reads, or commits.
#[derive(Clone, Debug)]
struct Step {
    query: (Vec<Index>, Option<(u32, u64, u64)>, bool),
    /// The keys to compare; and of each whether the value is right, absent or another one.
    compare: Vec<(Index, u8)>,
    puts: Vec<(Index, u64)>,
    not_before_ms: u64,
    not_after_ms: u64,
    /// None, the right one, or another.
    incarnation: u8,
}

fn step() -> impl Strategy<Value = Step> {
    let blocks = prop::option::of((0..9_u32, 0..8_u64, 0..6_u64));
    let query = (
        prop::collection::vec(any::<Index>(), 0..5),
        blocks,
        any::<bool>(),
    );
    let right = prop_oneof![12 => Just(0_u8), 1 => Just(1), 1 => Just(2)];
    let compare = prop::collection::vec((any::<Index>(), right.clone()), 0..4);
    let puts = prop::collection::vec((any::<Index>(), 0..50_u64), 0..5);
    let not_before = prop_oneof![8 => 0..=NOW_MS, 1 => Just(NOW_MS + 1)];
    let not_after = prop_oneof![8 => Just(u64::MAX), 8 => Just(NOW_MS), 1 => 0..NOW_MS];
    let conditions = (compare, puts, not_before, not_after, right);
    (query, conditions).prop_map(|(query, conditions)| {
        let (compare, puts, not_before_ms, not_after_ms, incarnation) = conditions;
        Step {
            query,
            compare,
            puts,
            not_before_ms,
            not_after_ms,
            incarnation,
        }
    })
}

/// One server, and the reference with the same clock and incarnation.
struct Twins {
    redis: RedisStore,
    memory: MemoryStore,
    cases: u32,
}

impl Twins {
    fn run(&mut self, steps: &[Step]) {
        self.cases += 1;
        let [a, b] = ["a", "b"].map(|name| format!("{name}{}", self.cases));
        let mut keys = vec![Key::record(&a), Key::check(&a), Key::record(&b)];
        keys.extend((0..8).map(|index| Key::block(&a, Block::new(index))));
        keys.extend((0..2).map(|index| Key::block(&b, Block::new(index))));
        keys.extend((0..2).map(|index| Key::from(format!(".secret/{a}{index}"))));
        for (number, step) in steps.iter().enumerate() {
            self.step(&keys, &a, number, step);
        }
    }

    fn step(&mut self, keys: &[Key], name: &str, number: usize, step: &Step) {
        let (named, blocks, is_all) = &step.query;
        let blocks = blocks.map(|(limit, first, length)| match is_all {
            true => Blocks::All {
                namespace: name.to_owned(),
            },
            false => Blocks::Lowest {
                namespace: name.to_owned(),
                limit,
                window: first..first + length,
            },
        });
        let query = Query {
            keys: named.iter().map(|index| index.get(keys).clone()).collect(),
            blocks,
        };
        let mut txn = Txn {
            not_before_unix_ms: step.not_before_ms,
            not_after_unix_ms: step.not_after_ms,
            ..Txn::default()
        };
        let state = self.memory.table_mut().read(&Query {
            keys: keys.to_vec(),
            blocks: None,
        });
        let state = state.unwrap();
        for (index, right) in &step.compare {
            let key = index.get(keys);
            let value = match right {
                0 => state.entries.get(key).cloned(),
                1 => None,
                _ => Some("another".to_owned()),
            };
            txn.compare.push((key.clone(), value));
        }
        for (index, rank) in &step.puts {
            let key = index.get(keys);
            if txn.puts.iter().all(|put| put.key != *key) {
                let rank = key.as_str().contains("/block/").then_some(*rank);
                txn.puts
                    .push(put(key, &format!("{{\"n\":{number}}}"), rank));
            }
        }
        txn.incarnation = match step.incarnation {
            0 => Some(state.incarnation),
            1 => None,
            _ => Some(Incarnation::new("another")),
        };
        fn both(table: &mut dyn Table, txn: &Txn, query: &Query) -> String {
            format!("{:?} {:?}", table.commit(txn, query), table.read(query))
        }
        assert_eq!(
            both(self.redis.table_mut(), &txn, &query),
            both(self.memory.table_mut(), &txn, &query)
        );
    }
}

#[test]
fn commits_and_reads_are_those_of_the_reference() {
    let redis = started!(Redis::start_with_clock(Clock::new()));
    redis.clock().stand_at(NOW_MS);
    let mut twins = Twins {
        redis: table_of(&redis),
        memory: MemoryStore::new(Arc::new(ManualClock::new(NOW_MS))),
        cases: 0,
    };
    let snapshot = read(twins.redis.table_mut(), &Query::default());
    twins.memory.set_incarnation(snapshot.incarnation);
    let config = ProptestConfig {
        cases: ringflake_kit::short_or_long(100, 1_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let twins = RefCell::new(twins);
    proptest!(config, |(steps in prop::collection::vec(step(), 1..30))| {
        twins.borrow_mut().run(&steps);
    });
}
