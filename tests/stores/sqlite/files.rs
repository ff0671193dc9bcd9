//! The file: how it comes to be, where it may lie, and who may use it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;
use std::thread;

use ringflake::lease::conformance::Given;
use ringflake::lease::{
    Durability, Floor, History, Init, LeaseStore, OpenError, OpenOptions, SqliteStore, StoreError,
    StoreLimits, open,
};

use crate::kit::{invalid, not_initialised};

use super::{Place, acquire, ask, now, options, space, store, unavailable};

#[test]
fn a_url_names_a_file_and_nothing_else() {
    let here = std::env::current_dir().unwrap();
    for (url, path) in [
        ("sqlite:leases.db", here.join("leases.db")),
        ("sqlite:./a/leases.db", here.join("a/leases.db")),
        ("sqlite:/a/leases.db", "/a/leases.db".into()),
        ("sqlite:///a/leases.db", "/a/leases.db".into()),
        (
            "sqlite:///a/100%/le ases#1.db",
            "/a/100%/le ases#1.db".into(),
        ),
    ] {
        let store = SqliteStore::from_url(url, &options()).unwrap();
        assert_eq!(store.path(), path, "{url}");
    }
    for (url, reason) in [
        ("sqlite:", "names no file"),
        ("sqlite://", "host"),
        ("sqlite:///", "names no file"),
        ("sqlite:/a/", "names no file"),
        ("sqlite:..", "names no file"),
        ("sqlite:a\0b", "names no file"),
        ("sqlite::memory:", "memory"),
        ("sqlite://host/leases.db", "host"),
        ("sqlite:leases.db?mode=memory", "no parameters"),
        ("sqlite:///leases.db?", "no parameters"),
        ("postgres:///leases.db", "sqlite:"),
    ] {
        match SqliteStore::from_url(url, &options()).unwrap_err() {
            OpenError::Invalid {
                scheme: "sqlite",
                reason: found,
            } => assert!(found.contains(reason), "{url}: {found}"),
            other => panic!("{url}: {other}"),
        }
    }
}

#[test]
fn a_url_opens_the_store() {
    let place = Place::initialised();
    let url = format!("sqlite:{}", place.path.display());
    let mut store = open(&url, &options()).unwrap();
    let report = store.check(&space(), now()).unwrap();
    assert_eq!(report.store, url);
    assert!(open("sqlite:", &options()).is_err());
}

#[test]
fn only_init_makes_a_file() {
    let place = Place::new();
    let mut store = place.store();
    let refused = |error: StoreError| {
        assert!(
            matches!(error, StoreError::NotInitialised { .. }),
            "{error}"
        );
        assert_eq!(fs::read_dir(place.directory.path()).unwrap().count(), 0);
    };
    refused(acquire(&mut store, 10).unwrap_err());
    refused(store.list(&space()).unwrap_err());
    refused(store.check(&space(), now()).unwrap_err());
    let floor = store.raise_floor(&space(), Floor::OverLostGrants, now());
    refused(floor.unwrap_err());

    place.init();
    acquire(&mut store, 10).unwrap();
    // As if the disk had been swapped for an empty one.
    fs::remove_file(&place.path).unwrap();
    fs::remove_file(place.journal()).unwrap();
    fs::remove_file(place.beside("leases.db.lock")).unwrap();
    refused(acquire(&mut store, 10).unwrap_err());
}

#[test]
fn what_is_out_of_range_leaves_no_file() {
    let place = Place::new();
    let limits = StoreLimits::default().with_skew(std::time::Duration::ZERO);
    let init = Init::new(History::New, now()).with_limits(limits);
    invalid(place.store().init(&space(), &init));
    assert!(!place.path.exists());
}

#[test]
fn the_file_is_its_owners_alone() {
    let place = Place::initialised();
    acquire(&mut place.store(), 10).unwrap();
    for path in [&place.path, &place.journal()] {
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
}

#[test]
fn an_empty_file_is_not_initialised_and_can_be() {
    // What an `init` leaves that was killed half-way.
    let place = Place::new();
    fs::write(&place.path, "").unwrap();
    not_initialised(acquire(&mut place.store(), 10));
    place.init();
    acquire(&mut place.store(), 10).unwrap();
}

#[test]
fn of_twenty_that_initialise_at_once_one_does() {
    let place = Place::new();
    let ready = Barrier::new(20);
    let (mut made, mut given) = (0, Given::default());
    let outcomes: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..20)
            .map(|_| {
                scope.spawn(|| {
                    let mut store = place.store();
                    ready.wait();
                    let init = Init::new(History::New, now());
                    let made = match store.init(&space(), &init) {
                        Ok(_) => 1,
                        Err(StoreError::AlreadyInitialised { .. }) => 0,
                        Err(other) => panic!("{other}"),
                    };
                    (made, acquire(&mut store, 10).unwrap())
                })
            })
            .collect();
        let join = |worker: thread::ScopedJoinHandle<'_, _>| worker.join().unwrap();
        workers.into_iter().map(join).collect()
    });
    for (one, grant) in outcomes {
        made += one;
        given.add(&grant);
    }
    assert_eq!((made, given.intervals()), (1, 20));
}

#[test]
fn a_missing_directory_is_named() {
    let place = Place::new();
    let directory = place.beside("not mounted");
    let mut store = store(&directory.join("leases.db"));
    let init = Init::new(History::New, now());
    for reason in [
        unavailable(store.init(&space(), &init)),
        unavailable(store.acquire(&space(), &ask(1, 10))),
        unavailable(store.check(&space(), now())),
    ] {
        assert!(
            reason.contains(&directory.display().to_string()),
            "{reason}"
        );
        assert!(reason.contains("make it, or mount"), "{reason}");
    }
    assert!(!directory.exists());
}

#[test]
fn a_directory_is_no_file() {
    let place = Place::new();
    let mut store = store(place.directory.path());
    let reason = unavailable(acquire(&mut store, 10));
    assert!(reason.contains("is not a file"), "{reason}");
}

/// Does something without the rights of root, if it has them.
#[cfg(target_os = "linux")]
fn without_privilege<T>(act: impl FnOnce() -> T) -> T {
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
    let open = Permissions::from_mode(0o755);
    fs::set_permissions(place.directory.path(), open).unwrap();
    for (mode, expected) in [(0o444, "may not write"), (0o000, "unable to open")] {
        fs::set_permissions(&place.path, Permissions::from_mode(mode)).unwrap();
        let reason = without_privilege(|| unavailable(acquire(&mut place.store(), 10)));
        assert!(reason.contains(expected), "{mode:o}: {reason}");
    }
    fs::set_permissions(&place.path, Permissions::from_mode(0o444)).unwrap();
    // Who may read can see how it stands.
    without_privilege(|| place.store().check(&space(), now()).unwrap());

    fs::set_permissions(place.directory.path(), Permissions::from_mode(0o000)).unwrap();
    let reason = without_privilege(|| unavailable(acquire(&mut place.store(), 10)));
    fs::set_permissions(place.directory.path(), Permissions::from_mode(0o755)).unwrap();
    assert!(reason.contains("ermission denied"), "{reason}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_may_not_be_written_gets_no_file() {
    let place = Place::new();
    let closed = Permissions::from_mode(0o555);
    fs::set_permissions(place.directory.path(), closed).unwrap();
    let init = Init::new(History::New, now());
    let reason = without_privilege(|| unavailable(place.store().init(&space(), &init)));
    assert!(reason.contains("ermission denied"), "{reason}");
    assert!(reason.contains("leases.db"), "{reason}");
}

#[test]
fn a_link_leads_to_the_file() {
    let place = Place::initialised();
    let link = place.beside("link.db");
    std::os::unix::fs::symlink(&place.path, &link).unwrap();
    let mut given = Given::default();
    given.add(&acquire(&mut place.store(), 10).unwrap());
    given.add(&acquire(&mut store(&link), 10).unwrap());
    // The journal lies beside the file, where everybody looks for it.
    assert!(place.journal().exists());
    assert!(!place.beside("link.db-journal").exists());
}

/// Whether the file system that temporary files are on is one to rely on.
fn durable_here() -> io::Result<bool> {
    let place = Place::initialised();
    let strict = OpenOptions::new();
    let mut store = SqliteStore::new(&place.path, &strict).map_err(io::Error::other)?;
    match store.check(&space(), now()) {
        Ok(report) => {
            assert_eq!(report.durability, Durability::Durable);
            Ok(true)
        }
        Err(StoreError::NotDurable { reason, .. }) => {
            assert!(reason.contains("file system"), "{reason}");
            Ok(false)
        }
        Err(other) => Err(io::Error::other(other)),
    }
}

#[test]
fn a_second_name_is_refused_unless_accepted() {
    if !durable_here().unwrap() {
        // Refused for the file system already, which is what was asserted.
        return;
    }
    let place = Place::initialised();
    fs::hard_link(&place.path, place.beside("second.db")).unwrap();
    let strict = OpenOptions::new();
    let mut store = SqliteStore::new(&place.path, &strict).unwrap();
    match acquire(&mut store, 10).unwrap_err() {
        StoreError::NotDurable { store, reason } => {
            assert!(store.contains("leases.db"), "{store}");
            assert!(reason.contains("2 names"), "{reason}");
        }
        other => panic!("{other}"),
    }
    let mut accepted = place.store();
    acquire(&mut accepted, 10).unwrap();
    let report = accepted.check(&space(), now()).unwrap();
    assert!(
        matches!(report.durability, Durability::BestEffort { .. }),
        "{report:?}"
    );
}
