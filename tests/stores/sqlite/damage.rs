//! Files that this store did not write, or not like that.

use std::fs;

use ringflake::lease::{Block, Epoch, Floor, History, Init, LeaseStore, Renew};
use ringflake_kit::assert_says;
use rusqlite::ErrorCode;

use super::{Place, acquire, ask, now, run_without_triggers, space};
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
    place.run("UPDATE ringflake_namespace SET format = 2");
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
        assert_says(&said, &["recorded: 2, known: 1", "at least as new as"]);
    }
}

/// A store that has granted three blocks, at once.
fn three_blocks() -> Place {
    let place = Place::initialised();
    place.store().acquire(&space(), &ask(3)).unwrap();
    place
}

#[test]
fn rows_that_no_version_writes_are_found() {
    for (sql, expected) in [
        (
            "UPDATE ringflake_namespace SET layout = '31/31/31'",
            "layout",
        ),
        ("UPDATE ringflake_namespace SET skew_ms = -1", "skew_ms"),
        ("UPDATE ringflake_file SET writes = -1", "writes"),
        ("DROP TABLE ringflake_block", "tables"),
        (
            "ALTER TABLE ringflake_block RENAME COLUMN hwm_end TO mark",
            "tables",
        ),
    ] {
        let place = three_blocks();
        place.run(sql);
        assert_says(&corrupt(place.store().list(&space())), &[expected]);
    }
}

#[test]
fn a_row_that_no_version_writes_costs_its_block_alone() {
    for (change, said) in [
        ("hwm_end = 9000000000000000000", "9000000000000000000"),
        ("hwm_end = -5", "-5"),
        ("hwm_end = 0", "mark 0"),
        ("epoch = -1", "-1"),
        ("epoch = 0", "epoch is 0"),
        ("epoch = hwm_end + 1", "above its mark"),
        ("hwm_end = 'soon'", "hwm_end"),
        ("epoch = x'07'", "epoch"),
        ("released = 'yes'", "released"),
    ] {
        let place = three_blocks();
        let mut store = place.store();
        // Among the first that can be granted, if its mark is among the lowest.
        let all = [0, 1, 2].map(|block| (Block::new(block), Epoch::FIRST));
        store.release_all(&space(), &all).unwrap();
        place.run_without_types(&format!(
            "UPDATE ringflake_block SET {change} WHERE block = 1;"
        ));
        // Out of those that were granted, so that none is fresh.
        let more = store.acquire_within(&space(), &ask(2), 0..3).unwrap();
        let mut blocks: Vec<_> = more.iter().map(|grant| grant.block.index()).collect();
        blocks.sort_unstable();
        assert_eq!(blocks, [0, 2], "{change}");
        let quarantined = place.list().quarantined;
        let [found] = &quarantined[..] else {
            panic!("{change}: {quarantined:?}");
        };
        assert_eq!(found.block, Some(Block::new(1)), "{change}");
        assert!(found.reason.contains(said), "{found}");
        store.release_all(&space(), &all[1..2]).unwrap();
        assert_eq!(place.list().quarantined, quarantined);

        let repaired = store.repair(&space(), Block::new(1), now()).unwrap();
        assert_eq!(place.list().blocks[1], repaired);
        // The rules of the tables are in force again.
        let sql = "UPDATE ringflake_block SET hwm_end = hwm_end - 1 WHERE block = 1";
        let error = place.raw().execute(sql, []).unwrap_err();
        assert!(error.to_string().contains("never falls"), "{error}");
    }
}

#[test]
fn a_row_of_another_type_takes_no_other_blocks_place() {
    let place = three_blocks();
    // All have ended, and the damaged one comes first.
    place.run_without_types(
        "UPDATE ringflake_block SET hwm_end = 2 + abs(block - 1);
         UPDATE ringflake_block SET released = 'yes' WHERE block = 1;",
    );
    let more = place.store().acquire_within(&space(), &ask(2), 0..3);
    let mut blocks: Vec<_> = more
        .unwrap()
        .iter()
        .map(|grant| grant.block.index())
        .collect();
    blocks.sort_unstable();
    assert_eq!(blocks, [0, 2]);
}

#[test]
fn rows_of_no_block_take_no_block_away() {
    let place = three_blocks();
    for block in [-1, 4096, i64::MAX] {
        let sql = format!(
            "INSERT INTO ringflake_block (namespace, block, epoch, hwm_end, released)
                 VALUES ('test', {block}, 1, 1, 0);"
        );
        run_without_triggers(&place.path, &sql);
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
    place.run(
        "UPDATE ringflake_block SET granted_unix_ms = -1, holder_host = CAST(x'ff' AS TEXT),
             holder_instance = '7' WHERE block = 1;",
    );
    place.run_without_types("UPDATE ringflake_block SET granted_unix_ms = 'now' WHERE block = 2;");
    let listing = place.list();
    assert!(listing.quarantined.is_empty());
    assert_eq!(listing.blocks[1].granted_unix_ms, None);
    assert_eq!(listing.blocks[2].granted_unix_ms, None);
    let holder = listing.blocks[1].holder.as_ref().unwrap();
    assert_eq!(holder.to_string(), "\u{fffd}/7");
}

#[test]
fn damage_inside_is_found_by_a_check() {
    let place = three_blocks();
    // An entry of an index that is of no row.
    place.run(
        "PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = replace(sql, 'hwm_end, block', 'epoch, block')
             WHERE name = 'ringflake_block_mark';",
    );
    let said = corrupt(place.store().check(&space(), now()));
    assert_says(&said, &["is damaged"]);
}

#[test]
fn a_block_that_was_forgotten_is_not_fresh() {
    let place = three_blocks();
    // The middle one of three: a gap.
    let sql = "DELETE FROM ringflake_block WHERE block = 1";
    run_without_triggers(&place.path, sql);
    let grant = acquire(&mut place.store()).unwrap();
    assert_eq!(grant.block.index(), 3);
}

#[test]
fn the_tables_hold_the_rules_by_themselves() {
    let place = three_blocks();
    let known = place.list();
    for sql in [
        "UPDATE ringflake_block SET hwm_end = hwm_end - 1",
        "UPDATE ringflake_block SET epoch = epoch - 1",
        "UPDATE ringflake_block SET block = block + 3",
        "UPDATE ringflake_block SET epoch = hwm_end + 1",
        "INSERT INTO ringflake_block (namespace, block, epoch, hwm_end, released)
             VALUES ('test', 5, 0, 0, 0)",
        "INSERT INTO ringflake_block (namespace, block, epoch, hwm_end, released)
             VALUES ('test', -5, 1, 1, 0)",
        "DELETE FROM ringflake_block",
        "UPDATE ringflake_namespace SET floor = floor - 1",
        "UPDATE ringflake_namespace SET name = 'other'",
        "DELETE FROM ringflake_namespace",
        "INSERT INTO ringflake_block (namespace, block, epoch, hwm_end, released)
             VALUES ('test', 5, 1, 'soon', 0)",
    ] {
        let error = place.raw().execute(sql, []).unwrap_err();
        let code = error.sqlite_error_code();
        assert_eq!(code, Some(ErrorCode::ConstraintViolation), "{sql}: {error}");
    }
    assert_eq!(place.list(), known);
}
