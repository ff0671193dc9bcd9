//! A forked child. Each test forks from a process of its own, in which nothing
//! else uses SQLite.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::conformance::Given;
use ringflake::lease::{Block, Epoch, Grant, SqliteStore, StoreError};

use super::{Place, acquire, child, job, options};

/// Runs `act` in a fork of this process, and gives what it returns.
fn in_a_fork(path: &Path, act: impl FnOnce() -> String) -> String {
    let told = path.with_extension("told");
    let _ = fs::remove_file(&told);
    // SAFETY: the child does what the store promises to allow, and exits. That it
    // takes no lock that another thread held is what is tested.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        let written = done.is_ok_and(|text| fs::write(&told, text).is_ok());
        // SAFETY: ends the child without running what belongs to its parent.
        unsafe { libc::_exit(i32::from(!written)) };
    }
    let mut status = 0;
    let deadline = Instant::now() + Duration::from_secs(60);
    // SAFETY: `status` is ours to write, and the child is nobody else's.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > deadline {
            // SAFETY: our child, not waited for yet.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        "{status:#x}"
    );
    fs::read_to_string(told).unwrap()
}

fn in_words(result: Result<Grant, StoreError>) -> String {
    match result {
        Ok(grant) => format!(
            "{} {} {} {}",
            grant.block, grant.epoch, grant.ticks.start, grant.ticks.end
        ),
        Err(StoreError::Unavailable { source }) => source.to_string(),
        Err(other) => other.to_string(),
    }
}

fn grant_in(words: &str) -> Grant {
    let numbers: Vec<_> = words.split(' ').map(|word| word.parse().unwrap()).collect();
    Grant::new(
        Block::new(numbers[0]),
        Epoch::new(numbers[1]),
        numbers[2]..numbers[3],
    )
}

#[track_caller]
fn run(test: &str, job: &str) -> Place {
    let place = Place::initialised();
    let output = child(test, job, &place.path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    place
}

#[test]
fn a_child_and_its_parent_get_disjoint_grants() {
    let Some(path) = job("idle") else {
        let place = run(
            "sqlite::forks::a_child_and_its_parent_get_disjoint_grants",
            "idle",
        );
        assert_eq!(place.list().blocks.len(), 9);
        return;
    };
    let mut given = Given::default();
    let mut store = super::store(&path);
    for _ in 0..3 {
        given.add(&acquire(&mut store, 10).unwrap());
        // The store of its parent, and one of its own.
        let words = in_a_fork(&path, || in_words(acquire(&mut store, 10)));
        given.add(&grant_in(&words));
        let words = in_a_fork(&path, || in_words(acquire(&mut super::store(&path), 10)));
        given.add(&grant_in(&words));
    }
}

#[test]
fn a_child_of_a_process_that_was_inside_sqlite_is_refused() {
    let Some(path) = job("busy") else {
        let place = run(
            "sqlite::forks::a_child_of_a_process_that_was_inside_sqlite_is_refused",
            "busy",
        );
        assert_eq!(place.list().blocks.len(), 2);
        return;
    };
    let impatient = options().timeout(Duration::from_millis(1));
    let mut inherited = SqliteStore::new(&path, &impatient).unwrap();
    acquire(&mut inherited, 10).unwrap();

    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut patient = super::store(&path);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| acquire(&mut patient, 10));
        // Until the other thread has come to where it waits.
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let words = in_a_fork(&path, || {
                let inherited = in_words(acquire(&mut inherited, 10));
                let own = SqliteStore::new(&path, &impatient).unwrap();
                let own = in_words(acquire(&mut { own }, 10));
                format!("{inherited}\n{own}")
            });
            let refused = |line: &str| line.contains("forked while another thread");
            if words.lines().all(refused) {
                break;
            }
            assert!(Instant::now() < deadline, "{words}");
            assert!(words.lines().all(|line| line.contains("locked")), "{words}");
        }
        // The parent is not concerned.
        drop(raw);
        waiting.join().unwrap().unwrap();
    });
}
