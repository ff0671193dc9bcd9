//! Files that this store did not write, or not like that.

use std::fs;

use ringflake::lease::{History, Init, LeaseStore};
use ringflake_kit::assert_says;
use rusqlite::ErrorCode;
use rusqlite::types::Value;

use super::{Place, acquire, ask, now, space};
use crate::kit::{self, corrupt};
use crate::lost::a_later_format_is_refused;

/// No method uses such a file, and none writes to it.
#[test]
fn a_file_that_is_no_store_is_left_alone() {
    type Change = fn(&Place);
    let cases: [(&str, Place, Change, &str); 6] = [
        (
            "a text",
            Place::new(),
            |place| fs::write(&place.path, "[leases]\n".repeat(500)).unwrap(),
            "is not a database of SQLite",
        ),
        (
            "a damaged header",
            Place::initialised(),
            |place| {
                let mut bytes = fs::read(&place.path).unwrap();
                bytes[..16].fill(b'x');
                fs::write(&place.path, bytes).unwrap();
            },
            "is not a database of SQLite",
        ),
        (
            "a file cut short",
            Place::initialised(),
            |place| {
                let bytes = fs::read(&place.path).unwrap();
                let pages = bytes.len() / 4096;
                fs::write(&place.path, &bytes[..pages / 2 * 4096]).unwrap();
            },
            "is damaged",
        ),
        (
            "tables of another application",
            Place::new(),
            |place| place.run("CREATE TABLE a (b)"),
            "another application",
        ),
        (
            "the ID of another application",
            Place::new(),
            |place| place.run("PRAGMA application_id = 77; CREATE TABLE a (b); DROP TABLE a;"),
            "0x4d",
        ),
        (
            "tables of a newer version",
            Place::initialised(),
            |place| place.run("PRAGMA user_version = 2"),
            "version 2",
        ),
    ];
    for (what, place, change, expected) in cases {
        change(&place);
        let before = fs::read(&place.path).unwrap();
        let mut store = place.store();
        let init = Init::new(History::Unknown, now());
        for said in [
            corrupt(acquire(&mut store)),
            corrupt(store.list(&space())),
            corrupt(store.check(&space(), now())),
            corrupt(store.init(&space(), &init)),
        ] {
            assert!(said.contains(expected), "{what}: {said}");
        }
        assert!(fs::read(&place.path).unwrap() == before, "{what}");
    }
}

/// A store that has granted blocks 0 to 2, at once.
fn three_blocks() -> Place {
    let place = Place::initialised();
    kit::several(&mut place.store(), &space(), 3, 60);
    place
}

#[test]
fn rows_that_no_version_writes_are_found() {
    for (sql, expected) in [
        (
            "UPDATE ringflake SET value = replace(value, 'layout', 'plan') WHERE rank IS NULL",
            "layout",
        ),
        ("UPDATE ringflake_file SET life = -1", "life"),
        ("DROP VIEW ringflake_block; DROP TABLE ringflake", "tables"),
        (
            "ALTER TABLE ringflake RENAME COLUMN value TO text",
            "tables",
        ),
    ] {
        let place = three_blocks();
        place.run(sql);
        assert_says(&corrupt(place.store().list(&space())), &[expected]);
    }
}

#[test]
fn entries_of_no_block_take_no_block_away() {
    let place = three_blocks();
    let value = "{\"hwm_end\":\"00000000000000000001\",\"epoch\":1,\"released\":false}";
    for block in ["-1", "00000000000000004096", "\u{e9}"] {
        place.run(&format!(
            "INSERT INTO ringflake (key, value, rank) VALUES ('test/block/{block}', '{value}', 1)"
        ));
    }
    let more = place.store().acquire(&space(), &ask(3)).unwrap();
    assert_eq!(more.len(), 3);
    let listing = place.list();
    assert_eq!(listing.blocks.len(), 6);
    let of_blocks: Vec<_> = listing.quarantined.iter().map(|it| it.block).collect();
    assert_eq!(of_blocks, [None; 3]);
    let report = place.store().check(&space(), now()).unwrap();
    assert_eq!(report.quarantined, listing.quarantined);
}

#[test]
fn a_record_in_a_later_format_is_refused() {
    let place = Place::new();
    let open = || -> Box<dyn LeaseStore> { Box::new(place.store()) };
    a_later_format_is_refused(&open, &mut place.store().into_table());
}

#[test]
fn damage_inside_is_found_by_a_check() {
    let place = three_blocks();
    // An entry of an index that is of no row.
    place.run(
        "PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = replace(sql, '(namespace, rank)', '(namespace, value)')
             WHERE name = 'ringflake_rank';",
    );
    let said = corrupt(place.store().check(&space(), now()));
    assert_says(&said, &["is damaged"]);
}

#[test]
fn no_entry_is_deleted_by_a_slip_of_the_hand() {
    let place = three_blocks();
    let known = place.list();
    let error = place
        .raw()
        .execute("DELETE FROM ringflake", [])
        .unwrap_err();
    let code = error.sqlite_error_code();
    assert_eq!(code, Some(ErrorCode::ConstraintViolation), "{error}");
    assert_eq!(place.list(), known);
}

/// As it is in the other stores.
#[test]
fn the_view_shows_blocks_to_people() {
    let place = three_blocks();
    place.run(
        "UPDATE ringflake SET value = '?' WHERE key LIKE '%/block/%1';
         UPDATE ringflake SET value = json_set(value, '$.epoch', 'first')
             WHERE key LIKE '%/block/%2';",
    );
    let raw = place.raw();
    let sql = "SELECT block, epoch, hwm_end, released FROM ringflake_block \
               WHERE namespace = 'test' ORDER BY block";
    let mut statement = raw.prepare(sql).unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let shown: Vec<(i64, Value, Value, Value)> = statement
        .query_map([], row)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let mark = || Value::Integer(place.list().blocks[0].hwm_end as i64);
    let no = Value::Integer(0);
    assert_eq!(
        shown,
        [
            (0, Value::Integer(1), mark(), no.clone()),
            (1, Value::Null, Value::Null, Value::Null),
            (2, Value::Text("first".to_owned()), mark(), no),
        ]
    );
}
