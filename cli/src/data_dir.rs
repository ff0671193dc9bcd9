//! The directory in which runs on one machine remember things.

use std::path::PathBuf;

use anyhow::{Context, Result};
use ringflake::Local;
use ringflake::local::{self, LocalError};

/// The directory as the command line gives it.
#[derive(Clone, Debug)]
pub(crate) struct DataDir {
    given: Option<PathBuf>,
}

impl DataDir {
    /// The directory `given`, or that of the environment, or the platform's.
    pub(crate) fn new(given: Option<PathBuf>) -> Self {
        Self { given }
    }

    /// The directory that the command line names.
    #[cfg(all(unix, feature = "serve"))]
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
        match &self.given {
            Some(path) => Some(local::DataDir::new(path)),
            None => match local::DataDir::of_this_user() {
                Err(LocalError::NoHome) => None,
                found => found.ok(),
            },
        }
    }

    /// The space in this directory.
    pub(crate) fn hold(&self, local: Local) -> Result<Local> {
        Ok(local.in_directory(self.find()?.path()))
    }
}
