//! The file: how it comes to be, where it may lie, and who may use it.

use std::fs;
use std::time::Duration;

use ringflake::lease::{
    Durability, Floor, History, Init, LeaseStore, OpenOptions, SqliteStore, StoreError, StoreLimits,
};
use ringflake_kit::assert_says;
use ringflake_kit::events::warnings;
use ringflake_kit::tls::{allow, mode};
use tempfile::TempDir;

use super::{Place, acquire, now, space, store};
use crate::kit::{self, history_unknown, invalid, not_durable, not_initialised, unavailable};

#[test]
fn only_init_within_the_limits_makes_a_file() {
    let place = Place::new();
    let mut store = place.store();
    let files = || fs::read_dir(place.directory.path()).unwrap();
    let mut refused_everything = || {
        not_initialised(acquire(&mut store));
        not_initialised(store.list(&space()));
        not_initialised(store.check(&space(), now()));
        not_initialised(store.raise_floor(&space(), Floor::OverLostGrants, now()));
        let limits = StoreLimits::default().with_skew(Duration::ZERO);
        let init = Init::new(History::New, now()).with_limits(limits);
        invalid(store.init(&space(), &init));
        assert_eq!(files().count(), 0);
    };
    refused_everything();
    place.init();
    acquire(&mut place.store()).unwrap();
    // As if the disk had been swapped for an empty one.
    for file in files() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    refused_everything();
}

#[test]
fn the_file_is_its_owners_alone() {
    let place = Place::initialised();
    acquire(&mut place.store()).unwrap();
    for path in [&place.path, &place.journal()] {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
}

#[test]
fn an_empty_file_is_not_initialised_and_can_be() {
    // As after an `init` that was killed half-way.
    let place = Place::new();
    fs::write(&place.path, "").unwrap();
    not_initialised(acquire(&mut place.store()));
    place.init();
    acquire(&mut place.store()).unwrap();
}

#[test]
fn a_missing_directory_is_named() {
    let place = Place::new();
    let directory = place.beside("not mounted");
    let mut store = store(&directory.join("leases.db"));
    let init = Init::new(History::New, now());
    for said in [
        unavailable(store.init(&space(), &init)),
        unavailable(acquire(&mut store)),
        unavailable(store.check(&space(), now())),
    ] {
        assert_says(&said, &["not mounted", "make it, or mount"]);
    }
    assert!(!directory.exists());
}

/// Does something as a member of this group whose own group is another. Needs root.
#[cfg(target_os = "linux")]
pub(super) fn as_member<T>(user: u32, group: u32, act: impl FnOnce() -> T) -> T {
    // The library's function changes all threads.
    // SAFETY: one group.
    unsafe { libc::syscall(libc::SYS_setgroups, 1, &group) };
    // SAFETY: takes any number, as the next, and concerns this thread alone.
    unsafe { libc::setfsgid(user) };
    // SAFETY: as above.
    unsafe { libc::setfsuid(user) };
    let done = act();
    // SAFETY: as above.
    unsafe { libc::setfsuid(0) };
    // SAFETY: as above.
    unsafe { libc::setfsgid(0) };
    // SAFETY: no group.
    unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<u32>()) };
    done
}

/// Does something without the rights of root, if it has them.
#[cfg(target_os = "linux")]
pub(super) fn without_privilege<T>(act: impl FnOnce() -> T) -> T {
    const NOBODY: u32 = 65_534;
    // SAFETY: no arguments, no failure.
    let root = unsafe { libc::geteuid() } == 0;
    if root {
        // SAFETY: takes any number, and concerns this thread alone.
        unsafe { libc::setfsuid(NOBODY) };
    }
    let done = act();
    if root {
        // SAFETY: as above.
        unsafe { libc::setfsuid(0) };
    }
    done
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_may_not_be_written_is_unavailable() {
    let place = Place::initialised();
    for (of_directory, of_file, expected) in [
        (0o755, 0o000, "unable to open"),
        (0o755, 0o444, "may not write"),
        (0o000, 0o444, "ermission denied"),
    ] {
        allow(&place.path, of_file);
        allow(place.directory.path(), of_directory);
        let said = without_privilege(|| {
            let mut store = place.store();
            let tested = store.write_test(&space(), now());
            [unavailable(acquire(&mut store)), unavailable(tested)]
        });
        allow(place.directory.path(), 0o755);
        for said in said {
            said.says(expected);
        }
    }
    // A user with read permission can check it.
    without_privilege(|| place.store().check(&space(), now()).unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_may_not_be_written_gets_no_file() {
    let place = Place::new();
    allow(place.directory.path(), 0o555);
    let init = Init::new(History::New, now());
    let said = without_privilege(|| unavailable(place.store().init(&space(), &init)));
    assert_says(&said, &["ermission denied", "leases.db"]);
}

#[test]
fn a_link_leads_to_the_file() {
    let place = Place::initialised();
    let link = place.beside("link.db");
    std::os::unix::fs::symlink(&place.path, &link).unwrap();
    acquire(&mut place.store()).unwrap();
    acquire(&mut store(&link)).unwrap();
    assert_eq!(place.list().blocks.len(), 2);
    // The journal lies beside the file, where everybody looks for it.
    assert!(place.journal().exists());
    assert!(!place.beside("link.db-journal").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_system_in_memory_is_refused_unless_accepted() {
    let directory = TempDir::new_in("/dev/shm").unwrap();
    let path = directory.path().join("leases.db");
    let mut strict = SqliteStore::new(&path, &OpenOptions::new()).unwrap();
    let refused = strict.init(&space(), &kit::begin());
    assert_says(&not_durable(refused), &["leases.db", "tmpfs"]);
    assert!(!path.exists());

    let logged = warnings(|| {
        let mut store = store(&path);
        kit::init(&mut store, &space());
        acquire(&mut store).unwrap();
        for history in [History::New, History::Unused] {
            let init = Init::new(history, now());
            history_unknown(store.init_if_new(&kit::space("other"), &init)).says("tmpfs");
        }
        match store.check(&space(), now()).unwrap().durability {
            Durability::BestEffort { reason } => assert_says(&reason, &["tmpfs"]),
            other => panic!("{other}"),
        }
    });
    let [line] = &logged[..] else {
        panic!("{logged:?}");
    };
    assert_says(line, &["store not durable", "tmpfs"]);
    not_durable(acquire(&mut strict));
    not_durable(strict.check(&space(), now()));
}

#[test]
fn a_second_name_is_refused_unless_accepted() {
    let place = Place::initialised();
    let mut strict = SqliteStore::new(&place.path, &OpenOptions::new()).unwrap();
    let expected = match strict.check(&space(), now()) {
        Err(StoreError::NotDurable { .. }) => "the file system",
        report => {
            assert_eq!(report.unwrap().durability, Durability::Durable);
            "2 names"
        }
    };
    fs::hard_link(&place.path, place.beside("second.db")).unwrap();
    assert_says(&not_durable(acquire(&mut strict)), &["leases.db", expected]);

    acquire(&mut place.store()).unwrap();
    let found = place.store().check(&space(), now()).unwrap().durability;
    assert!(matches!(found, Durability::BestEffort { .. }), "{found:?}");
}
