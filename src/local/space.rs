//! An ID space of this machine, and the making of its first record.

use std::path::PathBuf;

use super::definition::Local;
use super::directory::DataDir;
use super::error::LocalError;
use crate::cipher::Secret;
use crate::clock::{Clock, SystemClock};
use crate::lease::past::Lock;
use crate::lease::{History, Init, Namespace, SqliteStore, StoreError, StoreRecord};

/// An ID space that was found or made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LocalSpace {
    /// The namespace in `leases.db`.
    pub namespace: Namespace,
    /// The secret; none for plain IDs.
    pub secret: Option<Secret>,
    /// The file of the secret, if this call made it.
    pub made_secret: Option<PathBuf>,
    /// The history with which the namespace's record began, if this call made
    /// it.
    pub begun: Option<History>,
    pub(super) local: Local,
    pub(super) directory: DataDir,
}

impl LocalSpace {
    /// The directory.
    pub fn directory(&self) -> &DataDir {
        &self.directory
    }

    /// The store of leases as it is.
    ///
    /// # Errors
    /// [`LocalError::Place`] for a path that can't name a file.
    pub fn sqlite(&self) -> Result<SqliteStore, LocalError> {
        self.directory.store()
    }

    /// Makes the namespace's record by hand, with a history that somebody vouches
    /// for. That history holds for this namespace alone. The secret is this space's,
    /// whatever `init` says.
    ///
    /// # Errors
    /// [`LocalError`]; [`StoreError::AlreadyInitialised`] if there is a record.
    pub fn init(&self, init: &Init) -> Result<StoreRecord, LocalError> {
        self.directory.create()?;
        let mut store = self.sqlite()?;
        store.table_mut().admit()?;
        store.check_init(&self.namespace, init)?;
        let lock = self.directory.lock()?;
        self.directory.begin(&lock, &init.limits)?;
        let record = store.init_noted(&lock, &self.namespace, &self.with_secret(init.clone()))?;
        if let Some(secret) = &self.secret {
            self.directory.adopt(&lock, secret)?;
        }
        Ok(record)
    }

    /// Makes the record of a namespace that was on record before, after the loss of
    /// `leases.db`.
    pub(super) fn begin_again(&self) -> Result<(), LocalError> {
        let lock = self.directory.lock()?;
        self.local
            .refuse_elsewhere(&self.directory, self.secret.as_ref())?;
        self.directory.begin_history(&lock)?;
        // A process that has used it before knows that it has a past.
        match self.begin(&lock, History::Unknown) {
            Err(LocalError::Store(StoreError::AlreadyInitialised { .. })) => Ok(()),
            outcome => outcome,
        }
    }

    /// Makes the namespace's first record, under the lock.
    pub(super) fn begin(&self, lock: &Lock, history: History) -> Result<(), LocalError> {
        let limits = Local::limits(self.namespace.layout());
        let init = Init::new(history, SystemClock.unix_ms()).with_limits(limits);
        let init = self.with_secret(init);
        self.sqlite()?.init_noted(lock, &self.namespace, &init)?;
        if history == History::Unknown {
            let directory = self.directory.path().display().to_string();
            let namespace = self.namespace.name();
            tracing::warn!(target: "ringflake", directory, namespace, "history unknown");
        }
        Ok(())
    }

    fn with_secret(&self, init: Init) -> Init {
        match &self.secret {
            Some(secret) => init.with_secret(secret),
            None => init,
        }
    }
}
