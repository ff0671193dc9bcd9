//! Files that were put back more than once, or together with their notes, and namespaces that
//! were lost with that.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringflake::lease::conformance::Given;
use ringflake::lease::{
    Acquire, Floor, History, Init, LeaseStore, Namespace, OpenOptions, SqliteStore, StoreError,
};
use ringflake::{Clock, Layout, ManualClock};
use tempfile::TempDir;

use crate::kit::{self, FAILOVER, HORIZON, history_unknown};

/// A directory with files, on a disk.
struct Home {
    directory: TempDir,
    clock: ManualClock,
    given: Given,
}

impl Home {
    fn new() -> Self {
        Self {
            directory: TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
            clock: ManualClock::new(Layout::RANDFLAKE.tick_start_unix_ms(1_000_000)),
            given: Given::default(),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes `to` over, in place.
    fn copy(&self, from: &str, to: &str) {
        fs::copy(self.at(from), self.at(to)).unwrap();
    }

    fn store(&self, name: &str) -> SqliteStore {
        let options = OpenOptions::new().accept_best_effort(true);
        let store = SqliteStore::new(self.at(name), &options).unwrap();
        store.with_clock(Arc::new(self.clock.clone()))
    }

    /// As a program does at each of its starts.
    fn begin(&self, name: &str, space: &Namespace) -> Result<(), StoreError> {
        let init = Init::new(History::New, self.clock.unix_ms()).with_limits(kit::limits());
        self.store(name).init_if_new(space, &init).map(drop)
    }

    /// Asks for a grant. None may meet another one of the same namespace.
    fn acquire(&mut self, name: &str, space: &Namespace) -> Result<(), StoreError> {
        let ask = Acquire::new(1, 50, self.clock.unix_ms());
        let grant = self.store(name).acquire(space, &ask)?.remove(0);
        self.given.add(&grant);
        Ok(())
    }

    #[track_caller]
    fn begins_later(&mut self, name: &str, space: &Namespace) {
        match self.acquire(name, space) {
            Err(StoreError::FloorAhead { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Both have the same number of writes when the second one is put back.
#[test]
fn a_wrong_backup_and_then_the_right_one() {
    let mut home = Home::new();
    let space = kit::space("a");
    home.begin("x", &space).unwrap();
    home.acquire("x", &space).unwrap();
    home.copy("x", "first");
    home.acquire("x", &space).unwrap();
    home.copy("x", "second");
    home.acquire("x", &space).unwrap();
    for backup in ["first", "second", "first", "first"] {
        home.copy(backup, "x");
        home.begins_later("x", &space);
    }
}

/// Only the first namespace is left, and writes.
#[test]
fn a_namespace_that_was_lost_is_not_new_after_the_next_write() {
    let mut home = Home::new();
    let [kept, lost] = ["a", "c"].map(kit::space);
    home.begin("x", &kept).unwrap();
    home.copy("x", "backup");
    home.copy("x.lock", "backup.lock");
    home.begin("x", &lost).unwrap();
    home.acquire("x", &lost).unwrap();
    home.copy("backup", "x");
    home.copy("backup.lock", "x.lock");
    history_unknown(home.begin("x", &lost));
    home.begins_later("x", &kept);
    history_unknown(home.begin("x", &lost));
    // All that it can have granted is over.
    home.clock
        .advance(Duration::from_secs(HORIZON + 2 * FAILOVER));
    home.begin("x", &lost).unwrap();
    home.acquire("x", &lost).unwrap();
}

/// The note beside the file is right, and says nothing of what was written over it.
#[test]
fn a_file_that_another_was_written_over_is_adopted_as_one_that_lost_something() {
    let mut home = Home::new();
    let [theirs, ours] = ["a", "c"].map(kit::space);
    home.begin("x", &theirs).unwrap();
    home.begin("y", &ours).unwrap();
    home.acquire("y", &ours).unwrap();
    home.copy("x", "y");
    history_unknown(home.begin("y", &ours));
    let now = home.clock.unix_ms();
    let mut store = home.store("y");
    store
        .raise_floor(&theirs, Floor::OverLostGrants, now)
        .unwrap();
    history_unknown(home.begin("y", &ours));
}

#[test]
fn a_copied_note_is_adopted_through_a_link() {
    let home = Home::new();
    let [first, second] = ["a", "c"].map(kit::space);
    fs::create_dir(home.at("copy")).unwrap();
    home.begin("x", &first).unwrap();
    home.copy("x", "copy/x");
    home.copy("x.lock", "copy/x.lock");
    symlink(home.at("copy/x"), home.at("link")).unwrap();
    let said = history_unknown(home.begin("copy/x", &second));
    assert!(said.contains("copied here"), "{said}");
    let raised = home.store("link").raise_all_floors(home.clock.unix_ms());
    assert_eq!(raised.unwrap().len(), 1);
    let said = history_unknown(home.begin("copy/x", &second));
    assert!(!said.contains("copied here"), "{said}");
}
