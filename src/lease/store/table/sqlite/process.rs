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
//! So no connection outlives an operation, and one atomic word says how many
//! operations the process is in:
//!
//! | process in the word | operations | who asks | answer |
//! |---|---|---|---|
//! | this one | any | | one more |
//! | another, or none | 0 | a child in whose copy nothing was going on, or the first | this one, 1 |
//! | another | some | a child that was forked while SQLite was at work | refused, for good |
//!
//! The count goes up before SQLite is entered (Acquire: nothing of the operation moves before it)
//! and down after it was left (Release). So where a copy of the memory shows 0, no operation in it
//! is half done. A process is known by its number. Connections to SQLite that other code in the
//! process has open are not seen.

use std::error::Error;
use std::fmt;
use std::process;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The process in the upper 32 bits, its operations in the lower.
static OPERATIONS: AtomicU64 = AtomicU64::new(0);

/// An operation of this process, until it is dropped.
#[derive(Debug)]
pub(super) struct Operation(());

impl Operation {
    /// Begins one.
    pub(super) fn begin() -> Result<Self, Forked> {
        begin(&OPERATIONS, process::id()).map(|()| Self(()))
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        OPERATIONS.fetch_sub(1, Release);
    }
}

fn begin(operations: &AtomicU64, this: u32) -> Result<(), Forked> {
    let this = u64::from(this);
    operations
        .fetch_update(Acquire, Relaxed, |word| {
            match (word >> 32, word & u64::from(u32::MAX)) {
                (process, _) if process == this => Some(word + 1),
                (_, 0) => Some((this << 32) + 1),
                _ => None,
            }
        })
        .map(drop)
        .map_err(|_| Forked)
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

    #[test]
    fn a_child_may_begin_only_where_nothing_was_going_on() {
        let (parent, child) = (7, 8);
        let operations = AtomicU64::new(0);
        let copy = || AtomicU64::new(operations.load(Relaxed));
        let end = |operations: &AtomicU64| operations.fetch_sub(1, Release);

        begin(&operations, parent).unwrap();
        begin(&operations, parent).unwrap();
        end(&operations);
        let in_between = copy();
        assert!(begin(&in_between, child).is_err());
        // Not a question of time: nobody will ever count it down there.
        assert!(begin(&in_between, child).is_err());

        end(&operations);
        let idle = copy();
        begin(&idle, child).unwrap();
        begin(&idle, child).unwrap();
        end(&idle);
        end(&idle);
        begin(&idle, child + 1).unwrap();
        // The parent's word is its own.
        begin(&operations, parent).unwrap();
    }
}
