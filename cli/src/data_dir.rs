//! The directory in which runs on one machine remember things.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use ringflake::Local;
use ringflake::lease::{Fingerprint, OpenOptions, SqliteStore};
use ringflake::local;

use crate::report::say_waiting;

/// The directory as the command line gives it.
#[derive(Clone, Debug)]
pub(crate) struct DataDir {
    given: Option<PathBuf>,
    patience: Option<Duration>,
}

impl DataDir {
    /// The directory `given`, or that of the environment, or the platform's.
    pub(crate) fn new(given: Option<PathBuf>) -> Self {
        Self {
            given,
            patience: None,
        }
    }

    /// Waits for no longer than `patience` for other processes in it.
    pub(crate) fn with_patience(&self, patience: Duration) -> Self {
        Self {
            patience: Some(patience),
            ..self.clone()
        }
    }

    /// The directory that the command line names.
    pub(crate) fn given(&self) -> Option<&PathBuf> {
        self.given.as_ref()
    }

    /// The directory. It need not exist.
    pub(crate) fn find(&self) -> Result<local::DataDir> {
        self.try_find().context(
            "there is no home directory to keep a data directory in: \
             give one with --data-dir or RINGFLAKE_DATA_DIR",
        )
    }

    /// The same; `None` if there can be none.
    pub(crate) fn try_find(&self) -> Option<local::DataDir> {
        let found = match &self.given {
            Some(path) => local::DataDir::new(path),
            None => local::DataDir::of_this_user().ok()?,
        };
        let found = match self.patience {
            Some(patience) => found.with_patience(patience),
            None => found,
        };
        Some(found.on_wait_hook(say_waiting))
    }

    /// The namespaces that have a secret of their own in the directory, in order.
    pub(crate) fn with_secrets(&self) -> Vec<String> {
        let files = self
            .try_find()
            .and_then(|dir| fs::read_dir(dir.path()).ok());
        let names = files.into_iter().flatten().filter_map(|file| {
            let file = file.ok()?.file_name().into_string().ok()?;
            Some(file.strip_suffix(".secret")?.to_owned())
        });
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names
    }

    /// The encrypted namespaces on record in the directory that have no secret of their own
    /// there.
    pub(crate) fn without_secrets(&self) -> Result<Vec<String>> {
        let directory = self.find()?;
        // It is only read, whatever it can lose.
        let options = OpenOptions::new().accept_best_effort(true);
        let records = SqliteStore::new(directory.leases(), &options)?.namespaces()?;
        let names = records.iter().filter(|record| {
            record.fingerprint() != Fingerprint::PLAIN
                && !directory.secret_of(record.name()).exists()
        });
        Ok(names.map(|record| record.name().to_owned()).collect())
    }

    pub(crate) fn hold(&self, local: Local) -> Result<Local> {
        Ok(local.in_data_dir(self.find()?))
    }
}
