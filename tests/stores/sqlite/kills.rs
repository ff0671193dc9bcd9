//! Processes that are killed, and disks that are full.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use ringflake::lease::{LeaseStore, MAX_ACQUIRE};

use super::{Place, acquire, ask, child, given_path, now, space, store};
use crate::kit::{ambiguous, unavailable};
use ringflake_kit::child::passes;

#[test]
fn a_change_cut_short_by_a_kill_is_undone_by_the_next() {
    if let Some(path) = given_path() {
        let raw = rusqlite::Connection::open(path).unwrap();
        // More than fits into the cache: pages reach the file before the commit.
        raw.execute_batch(
            "PRAGMA cache_size = 2;
             BEGIN IMMEDIATE;
             UPDATE ringflake SET value = value || ' ', rank = rank + 7;",
        )
        .unwrap();
        // SAFETY: a signal to the thread's own process.
        unsafe { libc::raise(libc::SIGKILL) };
    }
    let place = Place::initialised();
    for _ in 0..10 {
        place.store().acquire(&space(), &ask(MAX_ACQUIRE)).unwrap();
    }
    let (known, bytes) = (place.list(), fs::read(&place.path).unwrap());

    let output = child(&place.path).output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{output:?}");
    assert!(fs::read(&place.path).unwrap() != bytes);
    let journal = || place.journal().metadata().map_or(0, |found| found.len());
    assert!(journal() > 0);

    assert_eq!(place.list(), known);
    assert!(fs::read(&place.path).unwrap() == bytes);
    acquire(&mut place.store()).unwrap();
    assert_eq!(journal(), 0);
}

/// Lets no file of this process grow beyond `bytes`: every write there fails.
fn limit_files(bytes: u64) {
    // SAFETY: writes beyond the limit then fail instead of killing.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: reads the limit, and changes what this process may do.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    assert_eq!(set, 0);
}

#[test]
fn a_disk_that_takes_no_more_costs_no_rectangle() {
    if let Some(path) = given_path() {
        let mut store = store(&path);
        let known = store.list(&space()).unwrap();
        let length = path.metadata().unwrap().len();
        assert!(length > 120_000, "{length}");

        // Not even the journal: nothing was done.
        limit_files(600);
        let said = unavailable(acquire(&mut store));
        assert!(said.contains("I/O error"), "{said}");
        unavailable(store.write_test(&space(), now())).says("I/O error");
        limit_files(libc::RLIM_INFINITY);
        assert_eq!(store.list(&space()).unwrap(), known);

        // The journal, but not the end of the database: found out by the commit.
        limit_files(60_000);
        let said = ambiguous(acquire(&mut store));
        assert!(said.contains("acquire"), "{said}");
        limit_files(libc::RLIM_INFINITY);
        assert_eq!(store.list(&space()).unwrap(), known);
        acquire(&mut store).unwrap();
        return;
    }
    let place = Place::initialised();
    for _ in 0..20 {
        place.store().acquire(&space(), &ask(MAX_ACQUIRE)).unwrap();
    }
    passes(&mut child(&place.path));
    acquire(&mut place.store()).unwrap();
    // All of them apart.
    assert_eq!(place.list().blocks.len(), 20 * MAX_ACQUIRE as usize + 2);
}
