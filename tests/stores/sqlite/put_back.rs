//! Files that were put back more than once, or together with their notes, and namespaces that
//! were lost with that.

use std::fs;
use std::os::unix::fs::symlink;

use ringflake::Clock;
use ringflake::lease::conformance::GrantedTicks;
use ringflake::lease::{Floor, History, Init, LeaseStore, Namespace, StoreError};
use tempfile::TempDir;

use super::Site;
use crate::kit::{self, FAILOVER, HORIZON, history_unknown};

struct Home {
    _directory: TempDir,
    site: Site,
    given: GrantedTicks,
}

impl Home {
    fn new() -> Self {
        let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self {
            site: Site::new(directory.path()),
            _directory: directory,
            given: GrantedTicks::default(),
        }
    }

    fn copy(&self, from: &str, to: &str) {
        fs::copy(self.site.at(from), self.site.at(to)).unwrap();
    }

    /// As a program does at each of its starts.
    fn begin(&self, name: &str, space: &Namespace) -> Result<(), StoreError> {
        let mut store = self.site.store(name);
        store.init_if_new(space, &self.site.init()).map(drop)
    }

    /// Asks for a grant. None may meet another one of the same namespace.
    fn acquire(&mut self, name: &str, space: &Namespace) -> Result<(), StoreError> {
        let mut store = self.site.store(name);
        let grant = self.site.acquire(&mut store, space, 50)?;
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
    home.site.pass(HORIZON + 2 * FAILOVER);
    home.begin("x", &lost).unwrap();
    home.acquire("x", &lost).unwrap();
}

#[test]
fn a_file_that_is_missing_or_was_brought_is_not_new() {
    let mut home = Home::new();
    let [used, other, fresh] = ["a", "c", "d"].map(kit::space);
    home.begin("x", &used).unwrap();
    fs::rename(home.site.at("x"), home.site.at("aside")).unwrap();
    history_unknown(home.begin("x", &used)).says("was removed");
    assert!(!home.site.at("x").exists());
    fs::rename(home.site.at("aside"), home.site.at("x")).unwrap();
    home.begin("x", &fresh).unwrap();

    // Nor is one that was made by hand.
    let begin = |name, history| {
        let init = Init::new(history, home.site.clock.unix_ms());
        home.site.store(name).init(&used, &init).unwrap();
    };
    begin("by hand", History::New);
    // A loss that is declared covers every namespace.
    begin("lost", History::Unknown);
    history_unknown(home.begin("lost", &other));
    home.begin("by hand", &other).unwrap();
    fs::rename(home.site.at("by hand"), home.site.at("brought")).unwrap();
    history_unknown(home.begin("by hand", &used)).says("was removed");
    home.acquire("brought", &used).unwrap();
    history_unknown(home.begin("brought", &fresh)).says("brought here");
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
    let now = home.site.clock.unix_ms();
    let mut store = home.site.store("y");
    store
        .raise_floor(&theirs, Floor::OverLostGrants, now)
        .unwrap();
    history_unknown(home.begin("y", &ours));
}

#[test]
fn a_copied_note_is_adopted_through_a_link() {
    let home = Home::new();
    let [first, second] = ["a", "c"].map(kit::space);
    fs::create_dir(home.site.at("copy")).unwrap();
    home.begin("x", &first).unwrap();
    home.copy("x", "copy/x");
    home.copy("x.lock", "copy/x.lock");
    symlink(home.site.at("copy/x"), home.site.at("link")).unwrap();
    let said = history_unknown(home.begin("copy/x", &second));
    assert!(said.contains("copied here"), "{said}");
    let raised = home
        .site
        .store("link")
        .raise_all_floors(home.site.clock.unix_ms());
    assert_eq!(raised.unwrap().len(), 1);
    let said = history_unknown(home.begin("copy/x", &second));
    assert!(!said.contains("copied here"), "{said}");
}
