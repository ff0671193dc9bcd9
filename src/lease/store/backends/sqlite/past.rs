//! Whether leases were granted from a file before that may be missing now.
//!
//! Leases start at once where nothing was ever issued, and have to start above
//! all that may have been issued where that is not known. So a store that
//! needs a record that is not there has to know why it isn't. A [note] beside the file
//! says so. It stands in a lock file, and is only read under a lock that all processes
//! share:
//!
//! | `leases.db` | note | any secret | the past |
//! |---|---|---|---|
//! | missing | none, or begun | missing | none |
//! | the one noted | whole | | recorded: what `leases.db` doesn't know of never was |
//! | missing | names one | | lost: `leases.db` was removed |
//! | another than noted | names one | | lost: it was put back, or brought here |
//! | missing | none, or begun | there | lost: the secret may have been used elsewhere |
//! | there | none, or begun | | lost: `leases.db` was brought here |
//! | | "another was lost" | | lost: so what `leases.db` doesn't know of may have been |
//! | | written in another file | | another's: the directory is a copy; lost, once it was adopted |
//!
//! The lock file is `PATH.lock` beside the file, and so `leases.db.lock` in a data
//! directory: all stores of one file find the same note. Whether there is a
//! secret matters in a data directory alone, which keeps them.
//!
//! # Why it is right
//! Where there is no past, the note is begun before anything else; then comes an
//! empty `leases.db`, then the line that names it, then a secret, then the first
//! record. Whatever a crash leaves of that, no ID was issued yet, and the table says
//! "none", "recorded" or "lost", which costs some seconds and is never wrong.
//! From then on every lease is a change to `leases.db` that is durable before it is
//! used. Once something was lost, the note says so before there is a `leases.db`
//! again, and for good: each namespace was lost with it, not only the one that is
//! asked for first.
//!
//! A `leases.db` that was put back by renaming is another inode than the one noted,
//! or the same one born at another time. One whose contents were overwritten in place
//! is the same; then the count of records tells: the note says how many there are at
//! least, once they are there, and a file that has fewer is missing some. A crash
//! between a record and its line leaves a count that is too low, until the next look
//! under the lock.
//!
//! "Recorded" is about the directory. A secret that is there, or is given, while its namespace is
//! not on record may have been brought from elsewhere. So each secret drawn here leaves its mark in
//! the note, before it can be read anywhere; one without is [refused](mod@crate::local).
//!
//! The note names the inode of the file that it is in and its time of birth,
//! which a copy of the lock file does not have. `leases.db` itself tells a copy
//! only for the namespaces on record; two copies that both took another one for
//! new would issue the same IDs.
//!
//! # Locks
//! Closing `leases.db` would drop the locks that other threads of this process have
//! on it (see [`SqliteStore`](crate::lease::SqliteStore)). So it is never opened
//! here but to make it, and then never closed.

mod note;

use std::fs::{Metadata, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use self::note::{Line, Note};
use crate::lease::store::table::sqlite::location::{
    create_file, private_file, refuse_foreign, sync,
};
use crate::lease::store::table::sqlite::locked::Locked;
use crate::lease::store::table::sqlite::system::FileNumbers;

/// The file of a store in the hands of one process.
#[derive(Debug)]
pub(crate) struct Lock {
    /// The store's.
    path: PathBuf,
    /// Unlocked when this is dropped. If this process is killed first, when the last
    /// child that has inherited the open file is gone, too.
    file: Locked,
}

/// The past of a file: whether leases of it may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Past {
    /// There are none.
    None,
    /// All are on record in the file.
    Recorded,
    /// All that the note knows of are on record, but the file may have been put back to an
    /// earlier state together with the note.
    Doubtful,
    /// There may be some that are on record nowhere.
    Lost,
    /// This is a copy of a file from which leases may still be granted.
    AnothersCopy,
}

impl Lock {
    /// Waits for up to `patience` until no other process has the lock file of the store at
    /// `path`. The lock file is made if it is missing.
    pub(crate) fn of(path: impl Into<PathBuf>, patience: Duration) -> io::Result<Self> {
        Self::of_with_notice(path, patience, |_| ())
    }

    /// The same. Calls `notice`, once, if it waits for longer than a moment.
    pub(crate) fn of_with_notice(
        path: impl Into<PathBuf>,
        patience: Duration,
        notice: impl FnOnce(io::Error),
    ) -> io::Result<Self> {
        /// Between two attempts.
        const PAUSE: Duration = Duration::from_millis(5);
        /// Turns are shorter as a rule.
        const MOMENT: Duration = Duration::from_secs(1);

        let path = path.into();
        // A link is no other file.
        let path = path.canonicalize().unwrap_or(path);
        let lock = lock_file(&path);
        if !lock.exists() {
            refuse_foreign(&lock)?;
        }
        let file = private_file().create(true).truncate(false).open(&lock)?;
        let asked = Instant::now();
        let kept_by_another = || {
            let seconds = asked.elapsed().as_secs();
            let text = format!(
                "another process has kept {} locked for {seconds} s, and is perhaps suspended: \
                 `fuser {}` shows its PID",
                lock.display(),
                crate::cipher::shell_quoted(lock.display())
            );
            io::Error::new(io::ErrorKind::TimedOut, text)
        };
        let mut notice = Some(notice);
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if asked.elapsed() < patience => {
                    if asked.elapsed() >= MOMENT
                        && let Some(notice) = notice.take()
                    {
                        notice(kept_by_another());
                    }
                    thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Err(kept_by_another()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        let file = Locked::new(file);
        Ok(Self { path, file })
    }

    /// The past as far as it is known, where a secret may have been used (or not).
    pub(crate) fn past(&self, secret: bool) -> io::Result<Past> {
        let note = self.note()?;
        let store = self.store()?;
        let is_blank = note.found == 0;
        Ok(match (&note.written_in, store) {
            (Some(file), _) if *file != identity(&self.file.metadata()?) => Past::AnothersCopy,
            _ if note.lost => Past::Lost,
            (Some(_), Some(found)) if note.store.as_ref() == Some(&found) => Past::Recorded,
            (Some(_), None) if note.store.is_none() && !secret => Past::None,
            (None, None) if is_blank && !secret => Past::None,
            _ => Past::Lost,
        })
    }

    /// Makes an empty file unless there is one, and the note that goes with this
    /// past, so that from now on what is not on record was not granted.
    pub(crate) fn begin(&self, past: Past) -> io::Result<()> {
        match past {
            Past::None => self.begin_note()?,
            Past::Lost => self.note_lost()?,
            // What it says already holds.
            Past::Recorded | Past::Doubtful | Past::AnothersCopy => return Ok(()),
        }
        // The name of the note first.
        sync(self.path.parent().unwrap_or(&self.path))?;
        create_file(&self.path)?;
        let store = self.store()?;
        match store {
            Some(store) if self.note()?.store.as_ref() != Some(&store) => {
                self.add(&Line::Store(&store))
            }
            _ => Ok(()),
        }
    }

    /// Makes a note that was copied here this file's own, and notes that what leases.db does not
    /// know of may have been lost.
    pub(crate) fn adopt(&self) -> io::Result<()> {
        let mut bytes = self.bytes()?;
        let note = Note::parse(&bytes);
        let here = identity(&self.file.metadata()?);
        if note.written_in.is_none_or(|file| file == here) {
            return self.note_lost();
        }
        bytes.truncate(note.len);
        let rest = bytes.splitn(2, |&byte| byte == b'\n').nth(1).unwrap_or(&[]);
        let rest = String::from_utf8_lossy(rest);
        // A crash in between leaves less than that, which is a past that was lost, too.
        let text = Line::WrittenIn(&here).text() + &Line::Lost.text() + &rest;
        self.write(0, &text)
    }

    /// Notes that the file has so many records, and answers whether it had more.
    pub(crate) fn note_records(&self, records: u64) -> io::Result<bool> {
        let noted = self.note()?.records;
        if noted < records {
            self.add(&Line::Records(records))?;
        }
        Ok(noted > records)
    }

    /// Whether a secret with this mark was drawn here.
    pub(crate) fn has_secret(&self, mark: &str) -> io::Result<bool> {
        Ok(self.note()?.secrets.contains(mark))
    }

    /// Notes that a secret with this mark is drawn here. Begins the note, but makes
    /// no file of leases.
    pub(crate) fn note_secret(&self, mark: &str) -> io::Result<()> {
        if self.note()?.secrets.contains(mark) {
            return Ok(());
        }
        self.begin_note()?;
        self.add(&Line::Secret(mark))
    }

    /// Notes that a secret with this mark is used elsewhere from now on.
    pub(crate) fn note_secret_elsewhere(&self, mark: &str) -> io::Result<()> {
        if self.note()?.elsewhere.contains(mark) {
            return Ok(());
        }
        self.begin_note()?;
        self.add(&Line::SecretElsewhere(mark))
    }

    /// Notes that something may be missing, unless that is noted already.
    fn note_lost(&self) -> io::Result<()> {
        self.begin_note()?;
        match self.note()?.lost {
            true => Ok(()),
            false => self.add(&Line::Lost),
        }
    }

    /// Sees that there is a first line. One that is no note is replaced, and what it
    /// may have said counts as lost.
    fn begin_note(&self) -> io::Result<()> {
        let note = self.note()?;
        if note.written_in.is_some() {
            return Ok(());
        }
        let here = identity(&self.file.metadata()?);
        let mut text = Line::WrittenIn(&here).text();
        if note.found > 0 {
            text += &Line::Lost.text();
        }
        self.write(0, &text)
    }

    fn note(&self) -> io::Result<Note> {
        Ok(Note::parse(&self.bytes()?))
    }

    fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&*self.file).rewind()?;
        (&*self.file).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// After the last whole line.
    fn add(&self, line: &Line<'_>) -> io::Result<()> {
        self.write(self.note()?.len as u64, &line.text())
    }

    fn write(&self, at: u64, text: &str) -> io::Result<()> {
        self.file.set_len(at)?;
        (&*self.file).seek(SeekFrom::Start(at))?;
        (&*self.file).write_all(text.as_bytes())?;
        self.file.sync_all()
    }

    /// Which file the store is, if there is one.
    fn store(&self) -> io::Result<Option<String>> {
        match self.path.metadata() {
            Ok(found) => Ok(Some(identity(&found))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The lock file of the store at this path, with the note.
pub(crate) fn lock_file(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Whether the note of the store at this path says that a secret with this mark is used
/// elsewhere. Takes no lock, and makes nothing.
pub(crate) fn is_elsewhere(path: &Path, mark: &str) -> io::Result<bool> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match std::fs::read(lock_file(&path)) {
        Ok(bytes) => Ok(Note::parse(&bytes).elsewhere.contains(mark)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The identity of a file in words, which its copies do not have.
fn identity(found: &Metadata) -> String {
    let born = found.created().ok();
    let born = born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let born = born.map_or(0, |born| born.as_nanos());
    let inode = FileNumbers::of(found).map_or(0, |numbers| numbers.inode);
    format!("inode {inode}, born {born}")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn directory() -> TempDir {
        tempfile::tempdir().unwrap()
    }

    const STORE_NAME: &str = "leases.db";
    const LOCK_NAME: &str = "leases.db.lock";
    const SECRET_NAME: &str = "secret";

    fn lock(directory: &Path) -> Lock {
        Lock::of(directory.join(STORE_NAME), Duration::from_secs(60)).unwrap()
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
    fn a_lock_that_another_process_keeps_is_waited_for_in_vain_only_for_a_while() {
        let directory = directory();
        let held = lock(directory.path());
        let path = directory.path().join(STORE_NAME);
        let error = Lock::of(&path, Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("fuser"), "{error}");
        drop(held);
        Lock::of(&path, Duration::from_millis(20)).unwrap();
    }

    #[test]
    fn a_beginning_that_was_cut_short_is_nothing_or_counts_as_lost() {
        let whole = directory();
        begin(whole.path());
        let note = fs::read_to_string(whole.path().join(LOCK_NAME)).unwrap();
        let lines: Vec<_> = note.lines().collect();
        assert_eq!(lines.len(), 2, "{note}");
        let cut = directory();
        let cut = cut.path();
        put(cut, LOCK_NAME, "");
        assert_eq!(past(cut), Past::None);
        put(cut, SECRET_NAME, "x");
        assert_eq!(past(cut), Past::Lost, "a secret was brought");
        fs::remove_file(cut.join(SECRET_NAME)).unwrap();
        put(cut, LOCK_NAME, &note[..20]);
        assert_eq!(past(cut), Past::Lost);
        begin(cut);
        assert_eq!(past(cut), Past::Lost);

        // In place, so that it is the same file.
        let begun = directory();
        let begun = begun.path();
        lock(begun).note_secret("of a file elsewhere").unwrap();
        assert_eq!(past(begun), Past::None, "no leases.db was made");
        put(begun, SECRET_NAME, "x");
        assert_eq!(past(begun), Past::Lost, "a secret was brought");
        fs::remove_file(begun.join(SECRET_NAME)).unwrap();
        put(begun, STORE_NAME, "");
        assert_eq!(past(begun), Past::Lost, "it isn't named yet");
        fs::remove_file(begun.join(STORE_NAME)).unwrap();
        begin(begun);
        assert_eq!(past(begun), Past::Recorded);
        assert!(lock(begun).has_secret("of a file elsewhere").unwrap());
    }

    #[test]
    fn a_file_that_was_put_back_has_lost_something_for_good() {
        let directory = directory();
        let directory = directory.path();
        begin(directory);
        let (store, backup) = (directory.join(STORE_NAME), directory.join("backup"));
        fs::copy(&store, &backup).unwrap();
        fs::rename(&backup, &store).unwrap();
        assert_eq!(past(directory), Past::Lost);
        begin(directory);
        assert_eq!(past(directory), Past::Lost);
        // The file that is there is known from then on.
        for (records, had_more) in [(3, false), (3, false), (2, true), (4, false)] {
            let noted = lock(directory).note_records(records).unwrap();
            assert_eq!(noted, had_more, "{records}");
        }
        let note = fs::read_to_string(directory.join(LOCK_NAME)).unwrap();
        begin(directory);
        let same = fs::read_to_string(directory.join(LOCK_NAME)).unwrap();
        assert_eq!(note, same);
    }

    #[test]
    fn a_copy_is_distinguished_from_the_directory_until_it_is_adopted() {
        let (original, copy) = (directory(), directory());
        let [original, copy] = [&original, &copy].map(|directory| directory.path());
        begin(original);
        lock(original).note_secret("0123").unwrap();
        for name in [STORE_NAME, LOCK_NAME] {
            fs::copy(original.join(name), copy.join(name)).unwrap();
        }
        assert_eq!(past(copy), Past::AnothersCopy);
        // Also after it was taken into use, and without its store.
        begin(copy);
        assert_eq!(past(copy), Past::AnothersCopy);
        let store = fs::read(copy.join(STORE_NAME)).unwrap();
        fs::remove_file(copy.join(STORE_NAME)).unwrap();
        assert_eq!(past(copy), Past::AnothersCopy);
        fs::write(copy.join(STORE_NAME), store).unwrap();
        // Until it is adopted, with what it says.
        for _ in 0..2 {
            lock(copy).adopt().unwrap();
            assert_eq!(past(copy), Past::Lost);
            assert!(lock(copy).has_secret("0123").unwrap());
        }

        let moved = copy.join("moved");
        fs::rename(original, &moved).unwrap();
        assert_eq!(past(&moved), Past::Recorded);
        fs::rename(&moved, original).unwrap();
        // Other contents were written over this file.
        lock(original).adopt().unwrap();
        assert_eq!(past(original), Past::Lost);
    }
}
