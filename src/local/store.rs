//! The store in the data directory, as one process uses it.

use super::directory::PATIENCE;
use super::error::LocalError;
use super::space::LocalSpace;
use crate::clock::{Clock, SystemClock};
use crate::lease::{Acquire, Block, Epoch, Grant, LeaseStore, Namespace, SqliteStore, StoreError};

/// The leases of a [`LocalSpace`]: makes the record of its namespace anew if
/// `leases.db` is lost, and writes all releases at once when it is dropped.
///
/// As [`SqliteStore`] in everything else.
#[derive(Debug)]
pub struct LocalStore {
    space: LocalSpace,
    store: SqliteStore,
    /// Released, but not yet written to the file.
    released: Vec<(Block, Epoch)>,
}

impl LocalSpace {
    /// The store of leases. It makes the record anew should `leases.db` be lost
    /// while it is in use.
    ///
    /// # Errors
    /// [`LocalError::Place`] for a path that can't name a file.
    pub fn store(&self) -> Result<LocalStore, LocalError> {
        // A renewal that would wait for longer fails, and is reported.
        let mut space = self.clone();
        let patience = space.directory.patience().min(PATIENCE);
        space.directory = space.directory.with_patience(patience);
        let store = space.sqlite()?;
        Ok(LocalStore {
            space,
            store,
            released: Vec::new(),
        })
    }
}

fn in_words_of_a_store(error: LocalError) -> StoreError {
    match error {
        LocalError::Store(error) => error,
        LocalError::Copied { directory } => StoreError::Copied {
            store: format!("the directory {}", directory.display()),
            recorded: "a directory with a leases.db.lock of its own".to_owned(),
            found: "another".to_owned(),
        },
        error => StoreError::unavailable(error),
    }
}

impl LeaseStore for LocalStore {
    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        match self.store.acquire(namespace, acquire) {
            Err(StoreError::NotInitialised { .. }) => {
                self.space.begin_again().map_err(in_words_of_a_store)?;
                let mut acquire = acquire.clone();
                // Others may have been first, and slow.
                acquire.now_unix_ms = SystemClock.unix_ms();
                self.store.acquire(namespace, &acquire)
            }
            answer => answer,
        }
    }

    /// Notes it, and writes many at once: a release is informational, and a
    /// process that ends releases all its blocks, one after the other.
    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        const MANY: usize = 256;
        self.released.push((block, epoch));
        if self.released.len() < MANY {
            return Ok(());
        }
        let released = std::mem::take(&mut self.released);
        self.store.release_all(namespace, &released)
    }

    crate::forward_store! { |self| self.store =>
        init renew renew_all list raise_floor repair check write_test
    }
}

impl Drop for LocalStore {
    /// Writes the releases, many in a transaction.
    fn drop(&mut self) {
        if !self.released.is_empty() {
            // Optional: the blocks come free by themselves.
            let namespace = &self.space.namespace;
            let _ = self.store.release_all(namespace, &self.released);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{DataDir, Local};
    use crate::layout::Layout;

    #[test]
    fn a_store_cuts_the_patience_of_its_directory_to_30_s() {
        let place = tempfile::tempdir().unwrap();
        let directory = DataDir::new(place.path()).with_patience(Duration::from_secs(3600));
        let local = Local::new("orders").in_data_dir(directory);
        let local = local.accept_best_effort(true);
        let space = local.make(&Layout::RANDFLAKE).unwrap();
        assert!(format!("{:?}", space.sqlite()).contains("3600s"));
        let store = space.store().unwrap();
        for waiting in [
            format!("{:?}", store.store),
            format!("{:?}", store.space.directory),
        ] {
            assert!(
                waiting.contains(": 30s") && !waiting.contains("3600s"),
                "{waiting}"
            );
        }
    }
}
