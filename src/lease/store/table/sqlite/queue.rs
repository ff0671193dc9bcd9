//! Waiting for the file's write lock, in the order of arrival.
//!
//! SQLite's lock has no queue: waiters poll it, and hundreds of polling processes leave little CPU
//! time to the one that holds the lock. So a writer first locks the file's directory. The operating
//! system queues these locks, and wakes one waiter at a time.
//!
//! The directory's lock only orders writers. After a time-out, or where the directory can't be
//! read, a writer goes on without it. SQLite's own lock, which readers and other programs hold as
//! well, is polled every few milliseconds.

use std::cell::Cell;
use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::locked::Locked;

/// The lock on the directory of a file, which orders the writers of that file.
#[derive(Debug)]
pub(super) struct QueueLock {
    _directory: Locked,
}

impl QueueLock {
    fn new(directory: File) -> Self {
        let directory = Locked::new(directory);
        Self {
            _directory: directory,
        }
    }

    /// Waits for the lock until `deadline`.
    pub(super) fn acquire(path: &Path, deadline: Instant) -> Option<Self> {
        let directory = File::open(path.parent()?).ok()?;
        match directory.try_lock() {
            Ok(()) => return Some(Self::new(directory)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(_)) => return None,
        }
        // The system call has no time-out. After the deadline the thread releases the lock as soon
        // as it gets it.
        let (sender, receiver) = mpsc::channel();
        let wait = move || {
            if directory.lock().is_ok() {
                let _ = sender.send(Self::new(directory));
            }
        };
        let name = "ringflake-queue".to_owned();
        thread::Builder::new().name(name).spawn(wait).ok()?;
        let left = deadline.saturating_duration_since(Instant::now());
        receiver.recv_timeout(left).ok()
    }
}

thread_local! {
    /// The deadline of the transaction that this thread has open.
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Returns what was there. While the thread ends, there is nothing and nothing is kept, so that
/// the store fails at once when it finds the lock taken.
fn replace_deadline(deadline: Option<Instant>) -> Option<Instant> {
    let replaced = DEADLINE.try_with(|current| current.replace(deadline));
    replaced.ok().flatten()
}

/// While it lives, [`busy_handler`] waits on this thread until a deadline. It stays on its
/// thread, and guards must be dropped in reverse order of creation.
#[derive(Debug)]
pub(super) struct BusyWait {
    previous: Option<Instant>,
    not_send: PhantomData<*const ()>,
}

impl BusyWait {
    pub(super) fn until(deadline: Instant) -> Self {
        Self {
            previous: replace_deadline(Some(deadline)),
            not_send: PhantomData,
        }
    }
}

impl Drop for BusyWait {
    fn drop(&mut self) {
        replace_deadline(self.previous.take());
    }
}

/// SQLite's busy handler: waits after the lock was found taken, and returns whether to try
/// again. Older versions of rusqlite accept only a plain `fn`, so the deadline comes from
/// this thread's [`BusyWait`].
pub(super) fn busy_handler(_attempt: i32) -> bool {
    let deadline = DEADLINE.try_with(Cell::get).ok().flatten();
    deadline.is_some_and(wait)
}

/// Sleeps for 1 to 9 ms, at random so that nobody is always late; false after the deadline.
fn wait(deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return false;
    }
    let random = RandomState::new().hash_one(0);
    let pause = Duration::from_micros(1000 + random % 8000);
    thread::sleep(pause.min(left));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_the_deadline() {
        let deadline = Instant::now() + Duration::from_millis(20);
        while wait(deadline) {}
        assert!(Instant::now() >= deadline);
        assert!(!wait(deadline));
    }

    #[test]
    fn busy_handler_uses_the_deadline_of_the_innermost_transaction() {
        assert!(!busy_handler(0), "no transaction is open");
        let outer = BusyWait::until(Instant::now() + Duration::from_secs(60));
        let inner = BusyWait::until(Instant::now());
        assert!(!busy_handler(0), "the inner deadline has passed");
        drop(inner);
        assert!(busy_handler(0), "the outer deadline has not");
        drop(outer);
        assert!(!busy_handler(0), "no transaction is open any more");
    }

    #[test]
    fn only_one_holds_the_queue_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("leases.db");
        let long = || Instant::now() + Duration::from_secs(60);
        let first = QueueLock::acquire(&path, long()).unwrap();
        assert!(
            QueueLock::acquire(&path, Instant::now()).is_none(),
            "out of time"
        );
        thread::scope(|scope| {
            let second = scope.spawn(|| QueueLock::acquire(&path, long()).is_some());
            drop(first);
            assert!(second.join().unwrap());
        });
        // The waiter that timed out has released it.
        assert!(QueueLock::acquire(&path, long()).is_some());
        assert!(QueueLock::acquire(&path.join("missing/leases.db"), long()).is_none());
    }
}
