//! SQLite in a forked child.
//!
//! SQLite can't be carried across a `fork(2)`. A connection must not even be
//! closed in the child: that would roll back what the parent is doing. And a new
//! one is not safe either while a connection of the parent was at work: SQLite
//! keeps one account of the locks of each file for the whole process. The child
//! has a copy of it, which says that locks are held, while in truth POSIX locks
//! stay with the parent. A connection in the child would take them for its own
//! and read and write without.
//!
//! So no connection outlives an operation, nor does the lock on a file's note, which a child
//! would share. Each process counts the operations that it is in. A child counts its own, and looks
//! first at its copy of the parent's count:
//!
//! | operations of the parent | the child |
//! |---|---|
//! | none | may use SQLite |
//! | some, or the parent was refused itself | is refused: it was forked while SQLite was at work |
//!
//! # Forks wait
//! `fork(2)` calls [`before_fork`] first. It counts the fork, so that no operation begins, and
//! waits until the last one has ended. Both counts are in the same word, so of an operation and
//! a fork that come together one sees the other. An operation takes milliseconds, unless another
//! process holds the file's lock; after [`PATIENCE`] the fork goes ahead, and its child is refused.
//! So is a child of `_Fork(3)` or of a raw system call, which run no handler, where the kernel wipes
//! memory in children (Linux); elsewhere it is not noticed.
//!
//! The count goes up before SQLite is entered (Acquire: nothing of the operation moves before it)
//! and down after it was left (Release, which `before_fork` acquires). So where a copy of the
//! memory shows 0, no operation in it is half done. Connections to SQLite that other code in the
//! process has open are not seen.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::fork::{Marked, PerProcess};

/// The longest time for which a fork and an operation wait for each other.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_micros(200);

static USE: PerProcess<SqliteUse> = PerProcess::new();

/// The use of SQLite by one process.
#[derive(Debug)]
struct SqliteUse {
    /// The process was forked while SQLite was at work.
    is_refused: bool,
    /// Its forks under way in the upper 32 bits, its operations in the lower.
    word: AtomicU64,
}

const FORK: u64 = 1 << 32;

impl SqliteUse {
    fn new(parent: Option<&Self>) -> Self {
        Self {
            is_refused: parent.is_some_and(|parent| parent.is_refused || !parent.is_idle()),
            word: AtomicU64::new(0),
        }
    }

    /// Whether no operation is under way.
    fn is_idle(&self) -> bool {
        self.word.load(Acquire).is_multiple_of(FORK)
    }

    /// Counts an operation; false while the process forks, unless it is not to wait for that.
    fn begin(&self, at_once: bool) -> bool {
        let count = |word| (at_once || word < FORK).then_some(word + 1);
        self.word.fetch_update(Acquire, Relaxed, count).is_ok()
    }

    fn end(&self) {
        self.word.fetch_sub(1, Release);
    }

    #[cfg(any(unix, test))]
    fn begin_fork(&self) {
        self.word.fetch_add(FORK, Relaxed);
    }

    #[cfg(any(unix, test))]
    fn end_fork(&self) {
        let uncount = |word: u64| word.checked_sub(FORK);
        // Not counted if the first operation has begun since.
        let _ = self.word.fetch_update(Relaxed, Relaxed, uncount);
    }
}

/// An operation of this process, until it is dropped.
#[derive(Debug)]
pub(super) struct Operation(&'static Marked<SqliteUse>);

impl Operation {
    /// Begins one, after the forks that are under way.
    pub(super) fn begin() -> io::Result<Self> {
        register_handlers();
        let process = USE.get(|parent| Ok(SqliteUse::new(parent)))?;
        if process.is_refused {
            return Err(io::Error::other(
                "this process was forked while another thread used SQLite, so the state of its \
                 locks is unknown: fork before the store is used, or start the child by exec",
            ));
        }
        let deadline = Instant::now() + PATIENCE;
        while !process.begin(Instant::now() >= deadline) {
            thread::sleep(PAUSE);
        }
        Ok(Self(process))
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        // In a child the operation is its parent's.
        if !self.0.is_inherited() {
            self.0.end();
        }
    }
}

/// Registers the handlers of forks, unless that is known to be done.
///
/// Two threads that come first together register them twice, which counts each fork twice, and
/// ends both counts. If the system has no memory for them, forks are not held off.
#[cfg(unix)]
fn register_handlers() {
    // Relaxed: the flag stands for nothing but the call itself.
    static REGISTERED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    if !REGISTERED.load(Relaxed) {
        // SAFETY: the handlers are plain functions. They run in the forking thread of the parent,
        // allocate nothing, and lock nothing.
        let code = unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), None) };
        REGISTERED.store(code == 0, Relaxed);
    }
}

#[cfg(not(unix))]
fn register_handlers() {}

/// Runs before a fork: holds off operations, and waits for those under way.
#[cfg(unix)]
unsafe extern "C" fn before_fork() {
    let Some(process) = USE.made() else {
        return;
    };
    process.begin_fork();
    let deadline = Instant::now() + PATIENCE;
    while !process.is_idle() && Instant::now() < deadline {
        thread::sleep(PAUSE);
    }
}

/// Runs in the parent after a fork, or after one that failed.
#[cfg(unix)]
unsafe extern "C" fn after_fork() {
    if let Some(process) = USE.made() {
        process.end_fork();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_refused_for_good_if_something_was_going_on() {
        let parent = SqliteUse::new(None);
        assert!(parent.begin(false));
        let child = SqliteUse::new(Some(&parent));
        assert!(child.is_refused && SqliteUse::new(Some(&child)).is_refused);
        parent.end();
        parent.begin_fork();
        assert!(!SqliteUse::new(Some(&parent)).is_refused);
    }

    #[test]
    fn fork_holds_off_operations_and_sees_those_under_way() {
        let process = SqliteUse::new(None);
        process.begin_fork();
        process.begin_fork();
        assert!(!process.begin(false), "two forks");
        process.end_fork();
        assert!(!process.begin(false), "one fork");
        process.end_fork();
        process.end_fork();
        assert!(process.begin(false), "none");
        process.begin_fork();
        assert!(!process.is_idle() && process.begin(true), "out of patience");
        process.end();
        process.end();
        assert!(process.is_idle());
        process.end_fork();
        assert_eq!(process.word.load(Relaxed), 0);
    }
}
