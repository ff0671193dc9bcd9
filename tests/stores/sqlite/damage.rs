//! Files that this store did not write, or not like that.

use std::fs;

use ringflake::lease::{Block, Epoch, Floor, History, Init, LeaseStore, Renew};
use ringflake_kit::assert_says;
use rusqlite::ErrorCode;
use rusqlite::types::Value;

use super::{Place, acquire, ask, now, space};
use crate::kit::{corrupt, format_mismatch};

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

#[test]
fn a_record_in_a_newer_format_is_refused() {
    let place = Place::initialised();
    let mut store = place.store();
    let grant = acquire(&mut store).unwrap();
    place.run(
        "UPDATE ringflake SET value = json_set(value, '$.format', 2) WHERE key = 'test/record'",
    );
    let renew = Renew::new(&grant, grant.ticks.end + 10, now());
    for said in [
        format_mismatch(acquire(&mut store)),
        format_mismatch(store.renew(&space(), &renew)),
        format_mismatch(store.release(&space(), grant.block, grant.epoch)),
        format_mismatch(store.raise_floor(&space(), Floor::Tick(1), now())),
        format_mismatch(store.repair(&space(), grant.block, now())),
        format_mismatch(store.list(&space())),
        format_mismatch(store.check(&space(), now())),
    ] {
        assert_says(
            &said,
            &["recorded: 2, known: 1", "this version reads format 1"],
        );
    }
}

/// A store that has granted blocks 0 to 2, at once.
fn three_blocks() -> Place {
    let place = Place::initialised();
    let grants = place.store().acquire_within(&space(), &ask(3), 0..3);
    assert_eq!(grants.unwrap().len(), 3);
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
fn a_value_that_no_version_writes_costs_its_block_alone() {
    for (field, value, said) in [
        ("hwm_end", "'09000000000000000000'", "9000000000000000000"),
        ("hwm_end", "-5", "hwm_end"),
        ("hwm_end", "'soon'", "soon"),
        ("epoch", "-1", "-1"),
        ("epoch", "0", "epoch is 0"),
        ("epoch", "9000000000000000000", "above its mark"),
        ("released", "'yes'", "released"),
        ("holder_host", "CAST(x'ff' AS TEXT) || '\"'", "JSON"),
    ] {
        let place = three_blocks();
        let mut store = place.store();
        let all = [0, 1, 2].map(|block| (Block::new(block), Epoch::FIRST));
        store.release_all(&space(), &all).unwrap();
        match said {
            "JSON" => place.run(
                "UPDATE ringflake SET value = CAST(x'ff' AS TEXT) WHERE key LIKE '%/block/%1'",
            ),
            _ => place.set_field(1, field, value),
        }
        // Out of those that were granted, so that none is fresh.
        let more = store.acquire_within(&space(), &ask(2), 0..3).unwrap();
        let mut blocks: Vec<_> = more.iter().map(|grant| grant.block.index()).collect();
        blocks.sort_unstable();
        assert_eq!(blocks, [0, 2], "{field}");
        let quarantined = place.list().quarantined;
        let [found] = &quarantined[..] else {
            panic!("{field}: {quarantined:?}");
        };
        assert_eq!(found.block, Some(Block::new(1)), "{field}");
        assert!(found.reason.contains(said), "{found}");

        let repaired = store.repair(&space(), Block::new(1), now()).unwrap();
        assert_eq!(place.list().blocks[1], repaired);
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
fn what_is_for_people_alone_is_left_out() {
    let place = three_blocks();
    place.set_field(1, "granted_unix_ms", "-1");
    place.set_field(2, "granted_unix_ms", "'now'");
    let listing = place.list();
    assert!(listing.quarantined.is_empty());
    assert_eq!(listing.blocks[1].granted_unix_ms, None);
    assert_eq!(listing.blocks[2].granted_unix_ms, None);
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
    place.set_field(2, "epoch", "'first'");
    place.run("UPDATE ringflake SET value = '?' WHERE key LIKE '%/block/%1'");
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
