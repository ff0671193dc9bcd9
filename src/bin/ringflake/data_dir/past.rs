//! Whether IDs were made from a data directory before.
//!
//! Leases start at once where nothing was ever issued, and have to start above
//! all that may have been issued where that is not known. So whoever needs a
//! record that is not there has to know why it isn't. Three files tell, and are
//! only looked at under a lock that all processes share:
//!
//! | `leases.db` | note in `leases.lock` | `secret` | the past |
//! |---|---|---|---|
//! | missing | none | missing | none |
//! | there | whole | | recorded: what `leases.db` doesn't know of never was |
//! | missing | any | | lost: `leases.db` was removed |
//! | missing | none | there | lost: the secret may have been used elsewhere |
//! | there | none | | lost: `leases.db` was brought here |
//! | there | "another was lost" | | lost: so what `leases.db` doesn't know of may have been |
//! | | about another file | | another's: the directory is a copy |
//!
//! # Why it is right
//! Where there is no past, the note is made before anything else, then an empty
//! `leases.db`, then the secret, then the first record. Whatever a crash leaves of
//! that, no ID was issued yet, and the table says "none", "recorded" or, where only
//! a part became durable, "lost", which costs some seconds and is never wrong.
//! From then on every lease is a change to `leases.db` that is durable before it is
//! used. Once something was lost, the note says so before there is a `leases.db`
//! again, and for good: each namespace was lost with it, not only the one that is
//! asked for first.
//!
//! The note names the inode of the file that it is in and its time of birth,
//! which a copy does not have. `leases.db` itself tells a copy only for the
//! namespaces on record; two copies that both took another one for new would
//! issue the same IDs.
//!
//! A secret that is given with `--secret-file` leaves no trace here of its use
//! elsewhere. Those who share one have to share a store.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};

use super::sync;
use crate::secret;

pub(super) const STORE_NAME: &str = "leases.db";
const LOCK_NAME: &str = "leases.lock";

/// A data directory in the hands of one process.
#[derive(Debug)]
pub(crate) struct Lock {
    directory: PathBuf,
    /// Unlocked when it is closed, so also when this process is killed.
    file: File,
}

/// What is known of the IDs made from a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Past {
    /// There are none.
    None,
    /// All are on record in `leases.db`.
    Recorded,
    /// There may be some that are on record nowhere.
    Lost,
    /// This is a copy of a directory from which IDs may still be made.
    AnothersCopy,
}

impl Lock {
    pub(super) fn of(directory: &Path) -> Result<Self> {
        let lock = || {
            let file = open(&directory.join(LOCK_NAME))?;
            file.lock()?;
            Ok::<_, io::Error>(file)
        };
        let file = lock().with_context(|| complaint(directory, LOCK_NAME))?;
        Ok(Self {
            directory: directory.to_owned(),
            file,
        })
    }

    /// What is known of the past.
    pub(crate) fn past(&self) -> Result<Past> {
        self.look()
            .with_context(|| complaint(&self.directory, LOCK_NAME))
    }

    fn look(&self) -> io::Result<Past> {
        let mut note = String::new();
        (&self.file).rewind()?;
        (&self.file).read_to_string(&mut note)?;
        let whole = self.note()?;
        let there = |name: &str| fs::exists(self.directory.join(name));
        let (store, secret) = (there(STORE_NAME)?, there(secret::FILE_NAME)?);
        Ok(if !note.starts_with(&whole) && !whole.starts_with(&note) {
            Past::AnothersCopy
        } else if store && note == whole {
            Past::Recorded
        } else if !store && note.is_empty() && !secret {
            Past::None
        } else {
            Past::Lost
        })
    }

    /// Makes an empty `leases.db` unless there is one, and the note that goes with
    /// this past, so that from now on what is not on record was not issued.
    pub(crate) fn begin(&self, past: Past) -> Result<()> {
        let begin = || {
            let note = match past {
                Past::None => self.note()?,
                Past::Lost => self.note()? + "another was lost\n",
                // What it says already holds.
                Past::Recorded | Past::AnothersCopy => String::new(),
            };
            (&self.file).rewind()?;
            (&self.file).write_all(note.as_bytes())?;
            self.file.sync_all()?;
            sync(&self.directory)?;
            // Nobody in this process has a connection to it, so closing it drops
            // no locks.
            drop(open(&self.directory.join(STORE_NAME))?);
            sync(&self.directory)
        };
        begin().with_context(|| complaint(&self.directory, STORE_NAME))
    }

    fn note(&self) -> io::Result<String> {
        let found = self.file.metadata()?;
        let born = found.created().ok();
        let born = born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        Ok(format!(
            "leases.db was made beside this file, inode {}, born {}\n",
            inode(&found),
            born.map_or(0, |born| born.as_nanos()),
        ))
    }
}

/// Opens a file that only its owner may read; makes it if it is missing.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn inode(found: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(found)
}

#[cfg(not(unix))]
fn inode(_found: &Metadata) -> u64 {
    0
}

fn complaint(directory: &Path, name: &str) -> String {
    let path = directory.join(name);
    format!("{} can't be used to keep runs apart", path.display())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn directory() -> TempDir {
        tempfile::tempdir().unwrap()
    }

    fn past(directory: &Path) -> Past {
        Lock::of(directory).unwrap().past().unwrap()
    }

    fn begin(directory: &Path) {
        let lock = Lock::of(directory).unwrap();
        lock.begin(lock.past().unwrap()).unwrap();
    }

    fn put(directory: &Path, name: &str, contents: &str) {
        fs::write(directory.join(name), contents).unwrap();
    }

    #[test]
    fn a_directory_without_a_past_begins_once() {
        let directory = directory();
        let directory = directory.path();
        assert_eq!(past(directory), Past::None);
        begin(directory);
        assert_eq!(past(directory), Past::Recorded);
        put(directory, secret::FILE_NAME, "x");
        begin(directory);
        assert_eq!(past(directory), Past::Recorded);
    }

    #[test]
    fn a_beginning_that_was_cut_short_is_nothing_or_counts_as_lost() {
        let whole = directory();
        begin(whole.path());
        let note = fs::read_to_string(whole.path().join(LOCK_NAME)).unwrap();
        let cut = directory();
        let cut = cut.path();
        put(cut, LOCK_NAME, "");
        assert_eq!(past(cut), Past::None);
        // In place, so that it is the same file; up to where the inode begins.
        put(cut, LOCK_NAME, &note[..20]);
        assert_eq!(past(cut), Past::Lost);
        begin(cut);
        assert_eq!(past(cut), Past::Lost);
    }

    #[test]
    fn what_was_lost_is_lost_for_good() {
        let removed = directory();
        let removed = removed.path();
        begin(removed);
        for _ in 0..2 {
            fs::remove_file(removed.join(STORE_NAME)).unwrap();
            assert_eq!(past(removed), Past::Lost);
            begin(removed);
            assert_eq!(past(removed), Past::Lost);
        }
        for (name, contents) in [
            (secret::FILE_NAME, "x"),
            (STORE_NAME, ""),
            (STORE_NAME, "x"),
        ] {
            let brought = directory();
            put(brought.path(), name, contents);
            assert_eq!(past(brought.path()), Past::Lost, "{name}");
            begin(brought.path());
            assert_eq!(past(brought.path()), Past::Lost, "{name}");
        }
    }

    #[test]
    fn a_copy_is_told_from_the_directory() {
        let (original, copy) = (directory(), directory());
        let [original, copy] = [&original, &copy].map(|directory| directory.path());
        begin(original);
        for name in [STORE_NAME, LOCK_NAME] {
            fs::copy(original.join(name), copy.join(name)).unwrap();
        }
        assert_eq!(past(copy), Past::AnothersCopy);
        // Also after it was taken into use, and without its store.
        begin(copy);
        assert_eq!(past(copy), Past::AnothersCopy);
        fs::remove_file(copy.join(STORE_NAME)).unwrap();
        assert_eq!(past(copy), Past::AnothersCopy);

        let moved = copy.join("moved");
        fs::rename(original, &moved).unwrap();
        assert_eq!(past(&moved), Past::Recorded);
        fs::rename(&moved, original).unwrap();
    }
}
