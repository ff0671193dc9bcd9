//! Whether leases were granted from a file before that may be missing now.
//!
//! Leases start at once where nothing was ever issued, and have to start above
//! all that may have been issued where that is not known. So whoever needs a
//! record that is not there has to know why it isn't. These files tell, and are
//! only looked at under a lock that all processes share:
//!
//! | `leases.db` | note in the lock file | any secret | the past |
//! |---|---|---|---|
//! | missing | none | missing | none |
//! | there | whole | | recorded: what `leases.db` doesn't know of never was |
//! | missing | any | | lost: `leases.db` was removed |
//! | missing | none | there | lost: the secret may have been used elsewhere |
//! | there | none | | lost: `leases.db` was brought here |
//! | there | "another was lost" | | lost: so what `leases.db` doesn't know of may have been |
//! | | about another file | | another's: the directory is a copy |
//!
//! The lock file is `leases.lock` in a data directory, and `PATH.lock` beside the
//! file of any other store. Whether there is a secret matters in a data directory
//! alone, which keeps them.
//!
//! # Why it is right
//! Where there is no past, the note is made before anything else, then an empty
//! `leases.db`, then a secret, then the first record. Whatever a crash leaves of
//! that, no ID was issued yet, and the table says "none", "recorded" or, where only
//! a part became durable, "lost", which costs some seconds and is never wrong.
//! From then on every lease is a change to `leases.db` that is durable before it is
//! used. Once something was lost, the note says so before there is a `leases.db`
//! again, and for good: each namespace was lost with it, not only the one that is
//! asked for first.
//!
//! "Recorded" is about the directory. A secret of a namespace's own that is there
//! while the namespace is not on record may have been brought from elsewhere; the
//! [data directory](mod@crate::local) takes its history for unknown.
//!
//! The note names the inode of the file that it is in and its time of birth,
//! which a copy of the lock file does not have. `leases.db` itself tells a copy
//! only for the namespaces on record; two copies that both took another one for
//! new would issue the same IDs.
//!
//! A secret that is given with `--secret-file` leaves no trace here of its use
//! elsewhere. Those who share one have to share a store.
//!
//! # Locks
//! Closing `leases.db` would drop the locks that other threads of this process have
//! on it (see [`SqliteStore`](crate::lease::SqliteStore)). So it is never opened
//! here but to make it, and then never closed.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The file of a store in the hands of one process.
#[derive(Debug)]
pub(crate) struct Lock {
    /// The store's.
    path: PathBuf,
    /// Unlocked when this is dropped. If this process is killed first, when the last
    /// child that has inherited the open file is gone, too.
    file: File,
    /// The process that locked it.
    process: u32,
}

/// What is known of the leases granted from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Past {
    /// There are none.
    None,
    /// All are on record in the file.
    Recorded,
    /// There may be some that are on record nowhere.
    Lost,
    /// This is a copy of a file from which leases may still be granted.
    AnothersCopy,
}

impl Lock {
    /// Waits until no other process has the lock file of the store at `path`, which
    /// is made if it is missing.
    pub(crate) fn of(lock: &Path, path: impl Into<PathBuf>) -> io::Result<Self> {
        let file = options().create(true).truncate(false).open(lock)?;
        file.lock()?;
        Ok(Self {
            path: path.into(),
            file,
            process: std::process::id(),
        })
    }

    /// What is known of the past, where a secret may have been used (or not).
    pub(crate) fn past(&self, secret: bool) -> io::Result<Past> {
        let mut note = String::new();
        (&self.file).rewind()?;
        (&self.file).read_to_string(&mut note)?;
        let whole = self.note()?;
        let store = fs::exists(&self.path)?;
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

    /// Makes an empty file unless there is one, and the note that goes with this
    /// past, so that from now on what is not on record was not granted.
    pub(crate) fn begin(&self, past: Past) -> io::Result<()> {
        let note = match past {
            Past::None => self.note()?,
            Past::Lost => self.note()? + "another was lost\n",
            // What it says already holds.
            Past::Recorded | Past::AnothersCopy => String::new(),
        };
        let directory = self.path.parent().unwrap_or(&self.path);
        (&self.file).rewind()?;
        (&self.file).write_all(note.as_bytes())?;
        self.file.sync_all()?;
        sync(directory)?;
        match options().create_new(true).open(&self.path) {
            // See "Locks" above. Lost is one descriptor, once in a file's life.
            Ok(file) => std::mem::forget(file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        sync(directory)
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

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing it would not do while a child that another thread has forked has
        // the same open file; such a child, in turn, must not unlock it.
        if self.process == std::process::id() {
            // Nothing more can be done than to close it.
            let _ = self.file.unlock();
        }
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn inode(found: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(found)
}

#[cfg(not(unix))]
fn inode(_found: &Metadata) -> u64 {
    0
}

/// Makes the names in `directory` durable, where the system can do that.
pub(crate) fn sync(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(directory)?.sync_all()
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn directory() -> TempDir {
        tempfile::tempdir().unwrap()
    }

    const STORE_NAME: &str = "leases.db";
    const LOCK_NAME: &str = "leases.lock";
    const SECRET_NAME: &str = "secret";

    fn lock(directory: &Path) -> Lock {
        Lock::of(&directory.join(LOCK_NAME), directory.join(STORE_NAME)).unwrap()
    }

    fn past(directory: &Path) -> Past {
        let secret = directory.join(SECRET_NAME).exists();
        lock(directory).past(secret).unwrap()
    }

    fn begin(directory: &Path) {
        let past = past(directory);
        lock(directory).begin(past).unwrap();
    }

    fn put(directory: &Path, name: &str, contents: &str) {
        fs::write(directory.join(name), contents).unwrap();
    }

    #[test]
    fn a_lock_that_a_forked_child_has_inherited_is_let_go() {
        let directory = directory();
        let free = || {
            let file = File::open(directory.path().join(LOCK_NAME)).unwrap();
            file.try_lock().is_ok()
        };
        let held = lock(directory.path());
        // The same open file, as a child has it.
        let inherited = held.file.try_clone().unwrap();
        assert!(!free());
        drop(held);
        assert!(free());
        // And one that a child drops is its parent's still.
        let mut parents = lock(directory.path());
        parents.process += 1;
        let locked = parents.file.try_clone().unwrap();
        drop(parents);
        assert!(!free());
        drop((inherited, locked));
    }

    #[test]
    fn a_directory_without_a_past_begins_once() {
        let directory = directory();
        let directory = directory.path();
        assert_eq!(past(directory), Past::None);
        begin(directory);
        assert_eq!(past(directory), Past::Recorded);
        put(directory, SECRET_NAME, "x");
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
        for (name, contents) in [(SECRET_NAME, "x"), (STORE_NAME, ""), (STORE_NAME, "x")] {
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
