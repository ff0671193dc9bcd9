//! Waiting for the file's write lock, in the order of arrival.
//!
//! SQLite's lock has no queue: waiters poll it, and hundreds of polling processes leave little CPU
//! time to the one that holds the lock. So a writer first locks the file's directory. The operating
//! system queues these locks, and wakes one waiter at a time.
//!
//! The directory's lock only orders writers. After a time-out, or where the directory can't be
//! read, a writer goes on without it. SQLite's own lock, which readers and other programs hold as
//! well, is polled by SQLite.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use super::locked::Locked;

/// Waits until `deadline` for the lock on the directory of this file, which orders its writers.
pub(super) fn lock(path: &Path, deadline: Instant) -> Option<Locked> {
    let directory = File::open(path.parent()?).ok()?;
    match directory.try_lock() {
        Ok(()) => return Some(Locked::new(directory)),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(_)) => return None,
    }
    // The system call has no time-out. After the deadline the thread releases the lock as soon
    // as it gets it.
    let (sender, receiver) = mpsc::channel();
    let wait = move || {
        if directory.lock().is_ok() {
            let _ = sender.send(Locked::new(directory));
        }
    };
    let name = "ringflake-queue".to_owned();
    thread::Builder::new().name(name).spawn(wait).ok()?;
    let left = deadline.saturating_duration_since(Instant::now());
    receiver.recv_timeout(left).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_one_holds_the_queue_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("leases.db");
        let long = || Instant::now() + Duration::from_secs(60);
        let first = lock(&path, long()).unwrap();
        assert!(lock(&path, Instant::now()).is_none(), "out of time");
        thread::scope(|scope| {
            let second = scope.spawn(|| lock(&path, long()).is_some());
            drop(first);
            assert!(second.join().unwrap());
        });
        // The waiter that timed out has released it.
        assert!(lock(&path, long()).is_some());
        assert!(lock(&path.join("missing/leases.db"), long()).is_none());
    }
}
