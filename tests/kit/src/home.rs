//! A directory in which a test runs the program.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::server::data_directory;
use crate::tls::{allow, only_for_us};
use crate::{unix_ms, words};

pub struct Home {
    directory: TempDir,
    /// When it was made, which is before any program of it began.
    pub began_ms: u64,
}

impl Home {
    pub fn new() -> Self {
        Self::of(data_directory())
    }

    pub fn of(directory: TempDir) -> Self {
        // A secret must lie where nobody else could put one.
        allow(directory.path(), 0o700);
        Self {
            directory,
            began_ms: unix_ms(),
        }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Where the data directory will be; it does not exist yet.
    pub fn data_dir(&self) -> PathBuf {
        self.file("data")
    }

    /// Writes a file that nobody else may read.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, contents).unwrap();
        only_for_us(&path);
        path
    }

    /// The program with the words of this line as its arguments. It inherits the environment,
    /// except four variables that would change what it does.
    pub fn command(&self, program: &str, line: &str) -> Command {
        let mut command = Command::new(program);
        command
            .args(words(line))
            .env_remove("RINGFLAKE_SECRET_FILE")
            .env_remove("RINGFLAKE_BACKEND")
            .env_remove("RINGFLAKE_STORE")
            .env_remove("NOTIFY_SOCKET")
            // It may lie in memory.
            .env("RINGFLAKE_BEST_EFFORT", "1")
            .env("RINGFLAKE_DATA_DIR", self.data_dir())
            .stdin(Stdio::null());
        command
    }
}
