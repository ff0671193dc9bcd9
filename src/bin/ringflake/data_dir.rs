//! The directory in which runs on one machine remember things.

use std::fs::{DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use etcetera::BaseStrategy;

use crate::args::path_variable;

/// Where the secret and the high-water marks are kept. It need not exist yet.
#[derive(Debug)]
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

    /// The file of this name in the directory; `None` if there can be none.
    pub(crate) fn file(&self, name: &str) -> Option<PathBuf> {
        self.path.as_ref().map(|path| path.join(name))
    }

    /// Makes the directory, for its owner alone, unless it exists.
    pub(crate) fn create(&self) -> Result<&Path> {
        let path = self.path.as_deref().context(
            "there is no home directory to keep a data directory in: \
             give one with --data-dir or RINGFLAKE_DATA_DIR",
        )?;
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(path)
            .with_context(|| format!("the data directory {} can't be made", path.display()))?;
        Ok(path)
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
