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
//! would share. One atomic word says how many operations the process is in, and how many of its
//! threads are forking:
//!
//! | process in the word | operations | forks | an operation begins |
//! |---|---|---|---|
//! | this one | any | 0 | yes |
//! | this one | any | some | after the forks, or after [`PATIENCE`] |
//! | another, or none | 0 | any | yes: a child in whose copy nothing was going on, or the first use |
//! | another | some | any | never: a child that was forked while SQLite was at work |
//!
//! # Forks wait
//! `fork(2)` calls [`before_fork`] first. It counts the fork, so that no operation begins, and
//! waits until the last one has ended. Both changes are to the same word, so of an operation and
//! a fork that come together one sees the other. An operation takes milliseconds, unless another
//! process holds the file's lock; after [`PATIENCE`] the fork goes ahead, and its child is refused.
//! So is a child of `_Fork(3)` or of a raw system call, which run no handler.
//!
//! The count goes up before SQLite is entered (Acquire: nothing of the operation moves before it)
//! and down after it was left (Release, which `before_fork` acquires). So where a copy of the
//! memory shows 0, no operation in it is half done. A process is known by its number, and a child
//! also by the handler of `fork`. Connections to SQLite that other code in the process has open are
//! not seen.

use std::error::Error;
use std::fmt;
use std::process;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time for which a fork and an operation wait for each other.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_micros(200);

/// The process in the upper 32 bits, its forks in the next 8, its operations in the lower 24.
static WORD: AtomicU64 = AtomicU64::new(0);
const FORK: u64 = 1 << 24;
const OPERATIONS: u64 = FORK - 1;
const FORKS: u64 = 0xff * FORK;

/// An operation of this process, until it is dropped.
#[derive(Debug)]
pub(super) struct Operation(());

impl Operation {
    /// Begins one, after the forks that are under way.
    pub(super) fn begin() -> Result<Self, Forked> {
        register_handlers();
        let deadline = Instant::now() + PATIENCE;
        while !begin(&WORD, process::id(), Instant::now() >= deadline)? {
            thread::sleep(PAUSE);
        }
        Ok(Self(()))
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        WORD.fetch_sub(1, Release);
    }
}

/// Counts an operation; false while this process forks, unless it is not to wait for that.
fn begin(word: &AtomicU64, this: u32, at_once: bool) -> Result<bool, Forked> {
    let this = u64::from(this);
    let counted = word.fetch_update(Acquire, Relaxed, |word| {
        match (word >> 32 == this, word & OPERATIONS) {
            (true, _) => (at_once || word & FORKS == 0).then_some(word + 1),
            (false, 0) => Some((this << 32) + 1),
            (false, _) => None,
        }
    });
    match counted {
        Ok(_) => Ok(true),
        Err(word) if word >> 32 == this => Ok(false),
        Err(_) => Err(Forked),
    }
}

/// Counts a fork; false in a child that is refused.
#[cfg(any(unix, test))]
fn begin_fork(word: &AtomicU64, this: u32) -> bool {
    let fresh = u64::from(this) << 32;
    let counted = word.fetch_update(Relaxed, Relaxed, |word| {
        match (word >> 32 == u64::from(this), word & OPERATIONS) {
            (true, _) if word & FORKS == FORKS => None,
            (true, _) => Some(word + FORK),
            (false, 0) => Some(fresh + FORK),
            (false, _) => None,
        }
    });
    counted.is_ok()
}

/// Whether no operation is under way.
#[cfg(any(unix, test))]
fn is_idle(word: &AtomicU64) -> bool {
    word.load(Acquire) & OPERATIONS == 0
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
        let code = unsafe {
            libc::pthread_atfork(
                Some(before_fork),
                Some(after_fork),
                Some(after_fork_in_child),
            )
        };
        REGISTERED.store(code == 0, Relaxed);
    }
}

#[cfg(not(unix))]
fn register_handlers() {}

/// Runs before a fork: holds off operations, and waits for those under way.
#[cfg(unix)]
unsafe extern "C" fn before_fork() {
    if !begin_fork(&WORD, process::id()) {
        return;
    }
    let deadline = Instant::now() + PATIENCE;
    while !is_idle(&WORD) && Instant::now() < deadline {
        thread::sleep(PAUSE);
    }
}

/// Runs in the parent after a fork, or after one that failed.
#[cfg(unix)]
unsafe extern "C" fn after_fork() {
    end_fork(&WORD, process::id());
}

/// Runs in the child, in its only thread.
#[cfg(unix)]
unsafe extern "C" fn after_fork_in_child() {
    WORD.store(in_child(WORD.load(Relaxed)), Relaxed);
}

/// The word of a child: no fork is under way there. Operations that were under way are those of no
/// process, even if the child has its parent's number, in another namespace of numbers.
#[cfg(any(unix, test))]
fn in_child(word: u64) -> u64 {
    match word & OPERATIONS {
        0 => 0,
        operations => u64::from(u32::MAX) << 32 | operations,
    }
}

/// Ends what [`begin_fork`] has counted.
#[cfg(any(unix, test))]
fn end_fork(word: &AtomicU64, this: u32) {
    // Nothing is counted in a child that is refused.
    let _ = word.fetch_update(Relaxed, Relaxed, |word| {
        let is_counted = word >> 32 == u64::from(this) && word & FORKS > 0;
        is_counted.then(|| word - FORK)
    });
}

/// This process was forked while SQLite was at work.
#[derive(Debug)]
pub(super) struct Forked;

impl fmt::Display for Forked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "this process was forked while another thread used SQLite, so the state of its locks is \
             unknown: fork before the store is used, or start the child by exec"
        )
    }
}

impl Error for Forked {}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: u32 = 7;
    const CHILD: u32 = 8;

    /// Whether an operation begins at once.
    fn begins(word: &AtomicU64, process: u32) -> bool {
        begin(word, process, false).unwrap()
    }

    fn copy(word: &AtomicU64) -> AtomicU64 {
        AtomicU64::new(word.load(Relaxed))
    }

    fn end(word: &AtomicU64) {
        word.fetch_sub(1, Release);
    }

    #[test]
    fn child_may_begin_only_where_nothing_was_going_on() {
        let word = AtomicU64::new(0);
        assert!(begins(&word, PARENT) && begins(&word, PARENT));
        end(&word);
        let in_between = copy(&word);
        assert!(begin(&in_between, CHILD, false).is_err());
        // Not a question of time: nothing will ever count it down there.
        assert!(begin(&in_between, CHILD, true).is_err());
        assert!(!begin_fork(&in_between, CHILD));
        end_fork(&in_between, CHILD);
        assert!(begin(&in_between, CHILD, false).is_err());

        end(&word);
        let idle = copy(&word);
        assert!(begins(&idle, CHILD) && begins(&idle, CHILD));
        end(&idle);
        end(&idle);
        assert!(begins(&idle, CHILD + 1));
        // The parent's word is its own.
        assert!(begins(&word, PARENT));
    }

    #[test]
    fn child_with_the_number_of_its_parent_is_refused_or_starts_anew() {
        let word = AtomicU64::new(0);
        assert!(begins(&word, PARENT) && begin_fork(&word, PARENT));
        let child = AtomicU64::new(in_child(word.load(Relaxed)));
        assert!(begin(&child, PARENT, true).is_err());
        end(&word);
        let child = AtomicU64::new(in_child(word.load(Relaxed)));
        assert!(begins(&child, PARENT), "no fork is under way there");
    }

    #[test]
    fn fork_holds_off_operations_and_sees_those_under_way() {
        let word = AtomicU64::new(0);
        assert!(begin_fork(&word, PARENT) && begin_fork(&word, PARENT));
        assert!(!begins(&word, PARENT), "two forks");
        end_fork(&word, PARENT);
        assert!(!begins(&word, PARENT), "one fork");
        assert!(begins(&copy(&word), CHILD), "the child forks nothing");
        end_fork(&word, PARENT);
        end_fork(&word, PARENT);
        assert!(begins(&word, PARENT));

        assert!(begin_fork(&word, PARENT) && !is_idle(&word));
        assert!(begin(&word, PARENT, true).unwrap(), "out of patience");
        end(&word);
        end(&word);
        assert!(is_idle(&word));
        end_fork(&word, PARENT);
        assert_eq!(word.load(Relaxed), u64::from(PARENT) << 32);
    }
}
