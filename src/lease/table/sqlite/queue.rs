//! Waiting for the file's write lock, in the order of arrival.
//!
//! SQLite's lock has no queue: the store that asks while it is free has it, and who waits has to
//! ask again and again. Hundreds that do so leave little of the processor to the one that has the
//! lock. So a store that writes first waits for its *turn*: a lock on the file's directory, for
//! which the system keeps a queue and wakes one at a time.
//!
//! Turns order those that wait, and nothing else. Who is out of time, or can't read the directory,
//! goes on without. What is locked by others, a shell or readers, is asked for every few
//! milliseconds.

use std::cell::Cell;
use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A store's turn to write. No other store has one meanwhile.
#[derive(Debug)]
pub(super) struct Turn {
    directory: File,
}

impl Turn {
    /// Waits for the turn to write to the file at `path`. It lasts until it is dropped.
    pub(super) fn wait(path: &Path, deadline: Instant) -> Option<Self> {
        let directory = File::open(path.parent()?).ok()?;
        match directory.try_lock() {
            Ok(()) => return Some(Self { directory }),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(_)) => return None,
        }
        // The system's wait has no time-out. A thread that is still there after the deadline gives
        // its turn up when it comes.
        let (sender, receiver) = mpsc::channel();
        let wait = move || {
            if directory.lock().is_ok() {
                let _ = sender.send(Self { directory });
            }
        };
        let name = "ringflake-queue".to_owned();
        thread::Builder::new().name(name).spawn(wait).ok()?;
        let left = deadline.saturating_duration_since(Instant::now());
        receiver.recv_timeout(left).ok()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Explicitly: a child that was forked meanwhile has the same open file.
        let _ = self.directory.unlock();
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
    fn one_has_its_turn_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("leases.db");
        let long = || Instant::now() + Duration::from_secs(60);
        let first = Turn::wait(&path, long()).unwrap();
        assert!(Turn::wait(&path, Instant::now()).is_none(), "out of time");
        thread::scope(|scope| {
            let second = scope.spawn(|| Turn::wait(&path, long()).is_some());
            drop(first);
            assert!(second.join().unwrap());
        });
        // Whoever gave up stands in nobody's way.
        assert!(Turn::wait(&path, long()).is_some());
        assert!(Turn::wait(&path.join("missing/leases.db"), long()).is_none());
    }
}
