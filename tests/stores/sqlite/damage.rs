//! Files that this store did not write, or not like that.

use std::fs;

use ringflake::lease::{Block, Epoch, LeaseStore, StoreError};
use rusqlite::Connection;

use super::{Place, acquire, ask, now, space};
use crate::upgrade::upgrades_from_format_1;

#[track_caller]
fn corrupt<T: std::fmt::Debug>(result: Result<T, StoreError>, expected: &str) {
    match result {
        Err(error @ StoreError::Corrupt { .. }) => {
            assert!(error.to_string().contains(expected), "{error}");
        }
        other => panic!("{other:?}, not corrupt: {expected}"),
    }
}

/// Files that are no store: no method uses them, and none writes to them.
#[track_caller]
fn refused_by_all(place: &Place, expected: &str) {
    let before = fs::read(&place.path).unwrap();
    let mut store = place.store();
    corrupt(acquire(&mut store, 10), expected);
    corrupt(store.list(&space()), expected);
    corrupt(store.check(&space(), now()), expected);
    let init = ringflake::lease::Init::new(ringflake::lease::History::Unknown, now());
    corrupt(store.init(&space(), &init), expected);
    assert!(fs::read(&place.path).unwrap() == before);
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let place = Place::new();
    fs::write(&place.path, "[leases]\n".repeat(500)).unwrap();
    refused_by_all(&place, "is not a database of SQLite");
}

#[test]
fn a_damaged_header_is_found() {
    let place = Place::initialised();
    let mut bytes = fs::read(&place.path).unwrap();
    bytes[..16].fill(b'x');
    fs::write(&place.path, bytes).unwrap();
    refused_by_all(&place, "is not a database of SQLite");
}

#[test]
fn a_file_cut_short_is_found() {
    let place = Place::initialised();
    acquire(&mut place.store(), 10).unwrap();
    let length = place.path.metadata().unwrap().len();
    let file = fs::File::options().write(true).open(&place.path).unwrap();
    file.set_len(length / 2 / 4096 * 4096).unwrap();
    drop(file);
    refused_by_all(&place, "is damaged");
}

#[test]
fn another_applications_database_is_left_alone() {
    let tables = Place::new();
    tables.raw().execute_batch("CREATE TABLE a (b)").unwrap();
    refused_by_all(&tables, "another application");

    let marked = Place::new();
    let sql = "PRAGMA application_id = 77; CREATE TABLE a (b); DROP TABLE a;";
    marked.raw().execute_batch(sql).unwrap();
    refused_by_all(&marked, "0x4d");
}

#[test]
fn tables_of_a_newer_version_are_left_alone() {
    let place = Place::initialised();
    place
        .raw()
        .execute_batch("PRAGMA user_version = 3")
        .unwrap();
    refused_by_all(&place, "version 3");
}

#[test]
fn a_record_of_a_newer_format_is_left_alone() {
    let place = Place::initialised();
    let sql = "UPDATE ringflake_namespace SET format = 3";
    assert_eq!(place.raw().execute(sql, []).unwrap(), 1);
    match acquire(&mut place.store(), 10) {
        Err(error @ StoreError::Format { recorded: 3, .. }) => {
            assert!(error.to_string().contains("newer"), "{error}");
        }
        other => panic!("{other:?}, not a refusal of format 3"),
    }
}

#[test]
fn a_file_of_format_1_is_upgraded() {
    let place = Place::new();
    upgrades_from_format_1(&|| Box::new(place.store()), &|name, format, former| {
        let raw = place.raw();
        if format == 1 {
            let sql = "DROP INDEX IF EXISTS ringflake_namespace_secret; PRAGMA user_version = 1;";
            raw.execute_batch(sql).unwrap();
        }
        raw.execute_batch(&format!(
            "UPDATE ringflake_namespace SET format = {format}, fingerprint = '{former}'
                 WHERE name = '{name}';"
        ))
        .unwrap();
    });
    let sql = "UPDATE ringflake_namespace SET fingerprint = '11'";
    let error = place.raw().execute(sql, []).unwrap_err();
    assert!(error.to_string().contains("UNIQUE"), "{error}");
}

/// Damages a store of three blocks by hand.
fn damaged(sql: &str) -> Place {
    let place = Place::initialised();
    place.store().acquire(&space(), &ask(3, 10)).unwrap();
    let raw = place.raw();
    raw.execute_batch(sql).unwrap();
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
        ("UPDATE ringflake_namespace SET writes = -1", "writes"),
        ("DROP TABLE ringflake_block", "tables"),
        (
            "ALTER TABLE ringflake_block RENAME COLUMN hwm_end TO mark",
            "tables",
        ),
    ] {
        let place = damaged(sql);
        corrupt(place.store().list(&space()), expected);
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
        let place = damaged("");
        let mut store = place.store();
        // Among the first that can be granted, if its mark is among the lowest.
        for block in 0..3 {
            store
                .release(&space(), Block::new(block), Epoch::FIRST)
                .unwrap();
        }
        place.without_types(&format!(
            "UPDATE ringflake_block SET {change} WHERE block = 1;"
        ));
        // Out of those that were granted, so that none is fresh.
        let more = store.acquire_within(&space(), &ask(2, 10), 0..3).unwrap();
        let mut blocks: Vec<_> = more.iter().map(|grant| grant.block.index()).collect();
        blocks.sort_unstable();
        assert_eq!(blocks, [0, 2], "{change}");
        let listing = place.list();
        let [found] = &listing.quarantined[..] else {
            panic!("{change}: {:?}", listing.quarantined);
        };
        assert_eq!(found.block, Some(Block::new(1)), "{change}");
        assert!(found.reason.contains(said), "{found}");
        store
            .release_all(&space(), &[(Block::new(1), Epoch::FIRST)])
            .unwrap();
        assert_eq!(place.list().quarantined, listing.quarantined);

        let repaired = store.repair(&space(), Block::new(1), now()).unwrap();
        assert_eq!(place.list().blocks[1], repaired);
        // The rules of the tables are in force again.
        let sql = "UPDATE ringflake_block SET hwm_end = hwm_end - 1 WHERE block = 1";
        let error = place.raw().execute(sql, []).unwrap_err();
        assert!(error.to_string().contains("never falls"), "{error}");
    }
}

#[test]
fn rows_of_no_block_take_no_block_away() {
    let place = damaged("");
    for block in [-1, 4096, i64::MAX] {
        place.without_triggers(&format!(
            "INSERT INTO ringflake_block (namespace, block, epoch, hwm_end, released) \
             VALUES ('test', {block}, 1, 1, 0);"
        ));
    }
    let more = place.store().acquire(&space(), &ask(3, 10)).unwrap();
    assert_eq!(more.len(), 3);
    let listing = place.list();
    assert_eq!((listing.blocks.len(), listing.quarantined.len()), (6, 3));
    assert!(
        listing
            .quarantined
            .iter()
            .all(|found| found.block.is_none())
    );
    let report = place.store().check(&space(), now()).unwrap();
    assert_eq!(report.quarantined, listing.quarantined);
}

#[test]
fn what_is_for_people_alone_is_left_out() {
    let place = damaged(
        "UPDATE ringflake_block SET granted_unix_ms = -1, holder_host = CAST(x'ff' AS TEXT), \
             holder_instance = '7' WHERE block = 1;",
    );
    place.without_types("UPDATE ringflake_block SET granted_unix_ms = 'now' WHERE block = 2;");
    let listing = place.list();
    assert!(listing.quarantined.is_empty());
    assert_eq!(listing.blocks[1].granted_unix_ms, None);
    assert_eq!(listing.blocks[2].granted_unix_ms, None);
    let holder = listing.blocks[1].holder.as_ref().unwrap();
    assert_eq!(holder.to_string(), "\u{fffd}/7");
}

#[test]
fn damage_inside_is_found_by_a_check() {
    let place = damaged("");
    // An entry of an index that is of no row.
    let raw = place.raw();
    raw.execute_batch(
        "PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = replace(sql, 'hwm_end, block', 'epoch, block')
             WHERE name = 'ringflake_block_mark';",
    )
    .unwrap();
    drop(raw);
    corrupt(place.store().check(&space(), now()), "is damaged");
}

#[test]
fn a_block_that_was_forgotten_is_not_fresh() {
    // The middle one of three: a gap.
    let place = damaged(
        "DROP TRIGGER ringflake_block_is_never_forgotten;
         DELETE FROM ringflake_block WHERE block = 1;",
    );
    let grant = acquire(&mut place.store(), 10).unwrap();
    assert_eq!(grant.block.index(), 3);
}

#[test]
fn the_tables_hold_the_rules_by_themselves() {
    let place = Place::initialised();
    acquire(&mut place.store(), 10).unwrap();
    let known = place.list();
    let raw: Connection = place.raw();
    for sql in [
        "UPDATE ringflake_block SET hwm_end = hwm_end - 1",
        "UPDATE ringflake_block SET epoch = epoch - 1",
        "UPDATE ringflake_block SET block = block + 1",
        "UPDATE ringflake_block SET epoch = hwm_end + 1",
        "INSERT INTO ringflake_block (namespace, block, epoch, hwm_end, released) \
         VALUES ('test', 5, 0, 0, 0)",
        "INSERT INTO ringflake_block (namespace, block, epoch, hwm_end, released) \
         VALUES ('test', -5, 1, 1, 0)",
        "DELETE FROM ringflake_block",
        "UPDATE ringflake_namespace SET floor = floor - 1",
        "UPDATE ringflake_namespace SET name = 'other'",
        "DELETE FROM ringflake_namespace",
        "INSERT INTO ringflake_block (namespace, block, epoch, hwm_end, released) \
         VALUES ('test', 5, 1, 'soon', 0)",
    ] {
        let error = raw.execute(sql, []).unwrap_err();
        let code = error.sqlite_error_code();
        assert_eq!(
            code,
            Some(rusqlite::ErrorCode::ConstraintViolation),
            "{sql}: {error}"
        );
    }
    assert_eq!(place.list(), known);
}
