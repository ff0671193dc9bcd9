//! Data directories that were prepared once, and are copied for each server.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// What a server's own program makes of an empty directory, kept beside what cargo has
/// built. Held by one thread at a time, so that the first makes it for all.
pub(super) struct Template {
    kept: PathBuf,
    _only: MutexGuard<'static, ()>,
}

impl Template {
    /// Of this program, in this version.
    pub(super) fn of(name: &str, program: &Path) -> Self {
        static ONLY: Mutex<()> = Mutex::new(());
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        let built = fs::metadata(program).unwrap().modified().unwrap();
        let built = built.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let tests = env::current_exe().unwrap();
        let home = tests.parent().unwrap();
        Self {
            kept: home.join(format!("ringflake-{name}-{}", built.as_secs())),
            _only: only,
        }
    }

    /// Makes `directory` a copy of it, where it is there.
    pub(super) fn copy_to(&self, directory: &Path) -> bool {
        let is_there = self.kept.is_dir();
        if is_there {
            copy(&self.kept, directory);
        }
        is_there
    }

    /// Keeps a copy of `directory`, which no server may use now.
    pub(super) fn keep(&self, directory: &Path) {
        // Another process may do the same now.
        let fresh = self.kept.with_extension(std::process::id().to_string());
        copy(directory, &fresh);
        if fs::rename(&fresh, &self.kept).is_err() {
            fs::remove_dir_all(fresh).unwrap();
        }
    }
}

/// With its owners and rights.
pub(super) fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(done.unwrap().success(), "{from:?} could not be copied");
}
