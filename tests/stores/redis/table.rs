//! The table alone: its conditions, and how it lies in Redis.

use ringflake::lease::table::{Blocks, Commit, Key, Put, Query, Txn};
use ringflake::lease::{Block, Incarnation};

use crate::served::Served as _;
use ringflake_kit::server::{Clock, Lent, Redis, TestServer as _};

const NOW_MS: u64 = 1_760_000_000_500;

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

#[test]
fn a_commit_outside_its_incarnation_or_time_is_a_conflict() {
    let mut redis = started!(Redis::start_with_clock(Clock::new()));
    redis.clock().stand_at(NOW_MS);
    let mut table = redis.table();
    let key = Key::record("orders");
    let asked = query(&[&key]);
    let before = table.read(&asked).unwrap().incarnation;
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
    table.read(&asked).unwrap();
    let Ok(Commit::Conflict(snapshot)) = table.commit(&here, &asked) else {
        panic!("committed in another incarnation");
    };
    here.incarnation = Some(snapshot.incarnation);
    assert!(matches!(table.commit(&here, &asked), Ok(Commit::Done)));
    assert_eq!(table.read(&asked).unwrap().entries[&key], "{}");
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
    let done = redis.table().commit(&txn, &Query::default());
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
    let mut table = redis.table();
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
    let found = table.read(&lowest(2_100, 0..1_200)).unwrap();
    let expected: Vec<_> = (0..1_200).chain(2_900..5_000).map(key).collect();
    assert!(found.entries.keys().eq(&expected) && !found.complete);
    assert!(table.read(&lowest(5_000, 0..0)).unwrap().complete);

    // Without ranks all are read.
    redis.command(&["DEL", "ringflake:{many}:rank"]);
    let found = table.read(&lowest(1, 0..0)).unwrap();
    assert!(found.complete && found.entries.len() == 5_000);
}
