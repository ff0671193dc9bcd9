//! A forked child. Each test forks from a process of its own, in which nothing
//! else uses SQLite.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use ringflake::lease::{Grant, SqliteStore, StoreError};
use ringflake_kit::{child, eventually};
use rusqlite::Connection;

use super::{Place, acquire, given_path, options, store};
use crate::kit::all_of;

/// Runs `act` in a fork of this process, and gives what it returns.
fn in_a_fork(path: &Path, act: impl FnOnce() -> String) -> String {
    let answer = path.with_extension("answer");
    let status = child::in_a_fork(|| u8::from(fs::write(&answer, act()).is_err()));
    assert_eq!(status, Ok(0));
    fs::read_to_string(answer).unwrap()
}

fn in_words(granted: Result<Grant, StoreError>) -> String {
    granted.map_or_else(|error| all_of(&error), |_| "granted".to_owned())
}

/// The place after a child of this test used its store without a refusal.
#[track_caller]
fn left_by_a_child() -> Place {
    let place = Place::initialised();
    child::passes(&mut super::child(&place.path));
    place
}

#[test]
fn a_child_and_its_parent_get_disjoint_grants() {
    let Some(path) = given_path() else {
        // Each of nine grants has a block of its own.
        assert_eq!(left_by_a_child().list().blocks.len(), 9);
        return;
    };
    let mut inherited = store(&path);
    for _ in 0..3 {
        acquire(&mut inherited).unwrap();
        let words = in_a_fork(&path, || in_words(acquire(&mut inherited)));
        assert_eq!(words, "granted");
        let words = in_a_fork(&path, || in_words(acquire(&mut store(&path))));
        assert_eq!(words, "granted");
    }
}

#[test]
fn a_child_of_a_process_that_was_inside_sqlite_is_refused() {
    let Some(path) = given_path() else {
        assert_eq!(left_by_a_child().list().blocks.len(), 2);
        return;
    };
    let impatient = || {
        let options = options().timeout(Duration::from_millis(1));
        SqliteStore::new(&path, &options).unwrap()
    };
    let mut inherited = impatient();
    // Any other process may look at the note of this file for a moment.
    eventually("it has a block", || acquire(&mut inherited).is_ok());

    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| acquire(&mut store(&path)));
        eventually("the other thread has come to where it waits", || {
            let words = in_a_fork(&path, || {
                let inherited = in_words(acquire(&mut inherited));
                let own = in_words(acquire(&mut impatient()));
                format!("{inherited}\n{own}")
            });
            let all_say = |what| words.lines().all(|line| line.contains(what));
            let refused = all_say("forked while another thread");
            assert!(refused || all_say("locked"), "{words}");
            refused
        });
        // The parent is not concerned.
        drop(raw);
        waiting.join().unwrap().unwrap();
    });
}
