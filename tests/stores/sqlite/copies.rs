//! Copies of the file, and files that were put back.

use std::fs;

use ringflake::Clock;
use ringflake::lease::{
    Acquire, Fence, Floor, Grant, LeaseStore, Namespace, Renew, SqliteStore, StoreError,
};
use ringflake_kit::assert_says;
use tempfile::TempDir;

use super::{Place, Site, acquire, now, space, store};
use crate::kit::{self, FAILOVER, HORIZON, copied, fenced};

/// A store of one block in each of two namespaces, and its directory.
fn original() -> (TempDir, Site) {
    let directory = tempfile::tempdir().unwrap();
    let site = Site::new(directory.path());
    let mut store = site.store("leases.db");
    for name in ["test", "other"] {
        store.init(&one_block(name), &site.init()).unwrap();
    }
    (directory, site)
}

fn copy(original: &Site) -> SqliteStore {
    fs::copy(original.at("leases.db"), original.at("copy.db")).unwrap();
    original.store("copy.db")
}

fn renew(site: &Site, store: &mut SqliteStore, grant: &Grant) -> Result<u64, StoreError> {
    let renew = Renew::new(grant, grant.ticks.end + 5, site.clock.unix_ms());
    store.renew(&one_block("test"), &renew)
}

fn one_block(name: &str) -> Namespace {
    kit::space(name).with_block_bits(17).unwrap()
}

#[test]
fn a_copy_grants_nothing_for_as_long_as_nobody_adopts_it() {
    let (_directory, original) = original();
    let space = one_block("test");
    let grant = original
        .acquire(&mut original.store("leases.db"), &space, 10)
        .unwrap();
    let mut copy = copy(&original);
    let path = copy.path().display().to_string();
    for _ in 0..2 {
        let floor = Floor::Tick(1_000_500);
        for said in [
            copied(original.acquire(&mut copy, &space, 10)),
            copied(copy.release(&space, grant.block, grant.epoch)),
            copied(copy.raise_floor(&space, floor, original.clock.unix_ms())),
        ] {
            assert_says(&said, &[&path, "is a copy"]);
        }
        let fence = fenced(renew(&original, &mut copy, &grant));
        assert_eq!(fence, Fence::Incarnation);
        // Not a question of time.
        original.pass(2 * (HORIZON + FAILOVER));
    }
    // Looking is allowed, and shows it.
    let listing = copy.list(&space).unwrap();
    assert_eq!(listing, original.store("leases.db").list(&space).unwrap());
    assert!(copy.check(&space, 0).unwrap().history_lost());
    assert!(
        !original
            .store("leases.db")
            .check(&space, 0)
            .unwrap()
            .history_lost()
    );
    // The original is not disturbed.
    original
        .acquire(&mut original.store("leases.db"), &space, 10)
        .unwrap();
}

#[test]
fn an_adopted_copy_starts_above_all_that_the_original_granted() {
    let (_directory, original) = original();
    let space = one_block("test");
    let mut copy = copy(&original);
    // What the copy knows nothing of: as far ahead as there can be.
    original.pass(1);
    let lost = original
        .acquire(&mut original.store("leases.db"), &space, u64::MAX)
        .unwrap();
    assert_eq!(lost.ticks.end, 1_000_001 + HORIZON);

    let floor = copy.raise_floor(&space, Floor::OverLostGrants, original.clock.unix_ms());
    let floor = floor.unwrap();
    assert_eq!(floor, 1_000_001 + HORIZON + FAILOVER + 1);
    match original.acquire(&mut copy, &space, 10).unwrap_err() {
        StoreError::FloorAhead {
            floor: ahead,
            floor_unix_ms,
            now_unix_ms,
            ..
        } => {
            assert_eq!(ahead, floor);
            assert_eq!(floor_unix_ms, space.layout().tick_start_unix_ms(floor));
            assert_eq!(now_unix_ms, original.clock.unix_ms());
        }
        other => panic!("{other}"),
    }
    original.pass(FAILOVER + 2);
    let grant = original.acquire(&mut copy, &space, 10).unwrap();
    assert_eq!(grant.ticks.start, floor);
    // Earlier grants of the original are fenced there.
    let fence = fenced(renew(&original, &mut copy, &lost));
    assert!(matches!(fence, Fence::Floor { .. }), "{fence:?}");
    // The other namespace raises its floor by itself.
    let other = one_block("other");
    assert!(!copy.check(&space, 0).unwrap().history_lost());
    assert!(copy.check(&other, 0).unwrap().history_lost());
    let now = 1_000_001 + FAILOVER + 2;
    let ask = Acquire::new(1, 10, original.clock.unix_ms());
    match copy.acquire(&other, &ask).unwrap_err() {
        StoreError::FloorAhead { floor, .. } => assert_eq!(floor, now + HORIZON + FAILOVER + 1),
        other => panic!("{other}"),
    }
}

#[test]
fn a_renamed_file_goes_on() {
    let place = Place::initialised();
    let first = acquire(&mut place.store()).unwrap();
    let renamed = place.beside("renamed.db");
    fs::rename(&place.path, &renamed).unwrap();
    fs::rename(place.journal(), place.beside("renamed.db-journal")).unwrap();
    let mut store = store(&renamed);
    let renew = Renew::new(&first, first.ticks.end + 5, now());
    assert_eq!(store.renew(&space(), &renew).unwrap(), first.ticks.end + 5);
    acquire(&mut store).unwrap();
}

#[test]
fn a_copy_in_the_files_place_is_noticed_by_who_has_it_open() {
    let place = Place::initialised();
    let mut store = place.store();
    acquire(&mut store).unwrap();
    let copy = place.beside("copy.db");
    fs::copy(&place.path, &copy).unwrap();
    acquire(&mut store).unwrap();
    fs::rename(&copy, &place.path).unwrap();
    copied(acquire(&mut store));
    copied(acquire(&mut place.store()));
}

#[test]
fn another_machine_is_noticed() {
    let place = Place::initialised();
    place.run("UPDATE ringflake_file SET identity = 'machine 0000' || substr(identity, 13);");
    let said = copied(acquire(&mut place.store()));
    assert!(said.contains("machine 0000"), "{said}");
}
