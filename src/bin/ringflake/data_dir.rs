//! The directory in which runs on one machine remember things.

use std::fs::{DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use etcetera::BaseStrategy;

use crate::args::path_variable;

pub(crate) use self::past::{Lock, Past};

mod past;

/// Where the secret and the leases are kept. It need not exist yet.
#[derive(Clone, Debug)]
pub(crate) struct DataDir {
    /// `None` if none was given and the platform knows no home directory.
    path: Option<PathBuf>,
}

impl DataDir {
    /// The directory `given`, or that of the environment, or the platform's.
    pub(crate) fn new(given: Option<PathBuf>) -> Self {
        let path = given
            .or_else(|| path_variable("RINGFLAKE_DATA_DIR"))
            .or_else(|| {
                let strategy = etcetera::choose_base_strategy().ok()?;
                Some(strategy.data_dir().join("ringflake"))
            });
        Self { path }
    }

    /// The directory.
    pub(crate) fn path(&self) -> Result<&Path> {
        self.path.as_deref().context(
            "there is no home directory to keep a data directory in: \
             give one with --data-dir or RINGFLAKE_DATA_DIR",
        )
    }

    /// The file of this name in the directory; `None` if there can be none.
    pub(crate) fn file(&self, name: &str) -> Option<PathBuf> {
        self.path.as_ref().map(|path| path.join(name))
    }

    /// The store of leases in the directory.
    pub(crate) fn leases(&self) -> Result<PathBuf> {
        Ok(self.path()?.join(past::STORE_NAME))
    }

    /// Makes the directory, for its owner alone, unless it exists.
    pub(crate) fn create(&self) -> Result<&Path> {
        let path = self.path()?;
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(path)
            .with_context(|| format!("the data directory {} can't be made", path.display()))?;
        Ok(path)
    }

    /// Keeps other processes from the same for as long as the lock is held. Makes
    /// the directory unless it exists.
    pub(crate) fn lock(&self) -> Result<Lock> {
        Lock::of(self.create()?)
    }
}

/// Makes the names in `directory` durable, where the system can do that.
pub(crate) fn sync(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(directory)?.sync_all()
    } else {
        Ok(())
    }
}
