//! Notices that files have been replaced, such as certificates of a mounted Kubernetes secret.
//!
//! Compares what `stat` says and reads nothing. A change is reported once it has held for two
//! looks in a row, so that a certificate and its key that are written one after the other are
//! read together.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use crate::lock::lock;

#[derive(Debug)]
pub(crate) struct WatchedFiles {
    paths: Vec<PathBuf>,
    /// As they were when they were read, and at the last look.
    stamps: Mutex<[Vec<Option<Stamp>>; 2]>,
}

/// Changes when a file is written or replaced, or gets another owner or mode; symbolic links are
/// followed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    /// Seconds and nanoseconds. Nobody can set it back.
    changed: (i64, i64),
    bytes: u64,
    /// Device and inode.
    file: (u64, u64),
}

impl WatchedFiles {
    /// Takes the files as they are now for those that were read.
    pub(crate) fn new(paths: Vec<PathBuf>) -> Self {
        let files = Self {
            paths,
            stamps: Mutex::default(),
        };
        files.mark_read();
        files
    }

    /// The same again.
    pub(crate) fn mark_read(&self) {
        let now = self.look();
        *lock(&self.stamps) = [now.clone(), now];
    }

    /// Whether one of them has changed and was the same at the look before this one. Reports
    /// each change once.
    pub(crate) fn have_changed(&self) -> bool {
        let now = self.look();
        let mut stamps = lock(&self.stamps);
        let [read, seen] = &mut *stamps;
        let is_settled = now == *seen;
        *seen = now;
        if !is_settled || read == seen {
            return false;
        }
        read.clone_from(seen);
        true
    }

    fn look(&self) -> Vec<Option<Stamp>> {
        self.paths.iter().map(|path| Stamp::of(path)).collect()
    }
}

impl Stamp {
    /// `None` where there is no such file, or it can't be reached.
    fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            modified: metadata.modified().ok(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            bytes: metadata.len(),
            file: (metadata.dev(), metadata.ino()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_change_is_reported_once_and_when_it_has_settled() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let files = WatchedFiles::new(vec![path("a.pem"), path("a.key")]);
        assert!(!files.have_changed());
        fs::write(path("a.pem"), "one").unwrap();
        assert!(!files.have_changed(), "it is still being written");
        fs::write(path("a.key"), "two").unwrap();
        assert!(!files.have_changed(), "so is the other one");
        assert!(files.have_changed());
        assert!(!files.have_changed());
        fs::remove_file(path("a.key")).unwrap();
        assert!(!files.have_changed());
        assert!(files.have_changed());
        fs::write(path("a.pem"), "another length").unwrap();
        files.mark_read();
        assert_eq!([files.have_changed(), files.have_changed()], [false; 2]);
        // One that was refused for its mode can be read now.
        ringflake_kit::tls::allow(&path("a.pem"), 0o640);
        ringflake_kit::tls::only_for_us(&path("a.pem"));
        assert_eq!([files.have_changed(), files.have_changed()], [false, true]);
    }

    #[test]
    fn a_mounted_secret_is_replaced_by_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for version in ["1", "2"] {
            fs::create_dir(path(version)).unwrap();
            fs::write(path(version).join("tls.crt"), "same length").unwrap();
        }
        symlink("1", path("..data")).unwrap();
        symlink("..data/tls.crt", path("tls.crt")).unwrap();
        let files = WatchedFiles::new(vec![path("tls.crt")]);
        symlink("2", path("..data_tmp")).unwrap();
        fs::rename(path("..data_tmp"), path("..data")).unwrap();
        assert_eq!([files.have_changed(), files.have_changed()], [false, true]);
    }
}
