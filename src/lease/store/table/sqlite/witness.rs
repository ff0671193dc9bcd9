//! A note of a file's last write, which no backup of the file brings back.
//!
//! Good backup tools bring back everything that is in a file or on its inode: contents, times,
//! extended attributes, and with a snapshot the inode itself. So the note lies outside, in the
//! machine's shared memory (`/dev/shm`, a file system that ends with each boot), under a random
//! name that the file holds. It has the token of the last write, which is drawn for each, and the
//! device that the file was on.
//!
//! # A write
//! ```text
//! lock the note --> compare --> "pending u after t" --> COMMIT --> "done u" --> answer
//!                      |
//!                      `--> differs, or there is none: a new life of the file
//! ```
//! | note | file has | |
//! |---|---|---|
//! | done t | token t, same device | the file is the one last written |
//! | pending u after t | token t or u, same device | the same: nobody was answered write u |
//! | any | anything else | unknown: it may be an older state |
//! | none, or unreadable | | unknown |
//!
//! A file of which that is unknown begins a new *life*: its next write counts the life up, as
//! part of the file's incarnation. So every namespace raises its floor over lost grants before
//! it grants or renews again.
//!
//! # Why it is right
//! * **An older state is noticed.** Every answered write has left its token behind before the
//!   answer. No two writes have the same one, so a file with the note's token is in the state that
//!   this write has left. A number that counts writes would not do: it repeats once a state was
//!   put back, and then another.
//! * **Two files with one name** (a clone of the file system beside the original) share the note,
//!   where both see the same `/dev/shm`. Each write holds its lock from the comparison to "done",
//!   so their writes are one sequence, in which each finds the other's token or device and begins a
//!   new life above all that was granted before.
//! * **No note** after a reboot, or where it was removed, costs a raised floor and no duplicate.
//! * **Not noticed:** a machine that was suspended, snapshot with its memory and resumed twice; and
//!   a clone of the file system beside the original where each has a `/dev/shm` of its own. A
//!   snapshot of a btrfs subvolume is another file: see `identity`.
//!
//! A note ends with the path of its file. Making a new note removes this user's notes that are
//! a day old and whose files are gone.
//!
//! # Who shares a note
//! Processes that use one file must see the same `/dev/shm`, and may read and write the note: it
//! has the file's mode, and its owner and group as far as the process that makes it may give it
//! away. Containers that share a file need a common one (`--ipc`); without it each begins a new
//! life of the file whenever the other has written, which costs time, and no duplicate.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::identity::at;
use super::locked::Locked;
use super::system::{self, FileNumbers};

/// Where notes lie.
const DIRECTORY: &str = "/dev/shm";

/// What their names begin with.
const PREFIX: &str = "ringflake-note-";

/// The number by which Linux knows a file system in memory.
const TMPFS: u32 = 0x0102_1994;

/// How long to wait between two attempts to lock a note.
const PAUSE: Duration = Duration::from_millis(2);

/// The note of a file, under lock until this is dropped.
#[derive(Debug)]
pub(super) struct Witness {
    /// Of the file.
    name: String,
    note: Locked,
}

/// What a note says, beside the path of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// Of the last write.
    pub(super) token: String,
    /// Of the write before, if the last one may not have been committed.
    pub(super) pending_after: Option<String>,
    pub(super) device: u64,
}

impl Note {
    /// Whether a file with this token, on this device, is the one last written.
    pub(super) fn agrees(&self, token: &str, device: u64) -> bool {
        let is_before = self.pending_after.as_deref() == Some(token);
        self.device == device && (self.token == token || is_before)
    }

    fn parse(text: &str) -> Option<Self> {
        let (state, rest) = text.strip_suffix('\n')?.split_once(" device ")?;
        let (device, _) = rest.split_once(" file ")?;
        let token = |text: &str| {
            let is_token = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_token.then(|| text.to_owned())
        };
        let (last, pending_after) = match state.strip_prefix("done ") {
            Some(last) => (last, None),
            None => {
                let (last, before) = state.strip_prefix("pending ")?.split_once(" after ")?;
                (last, Some(token(before)?))
            }
        };
        Some(Self {
            token: token(last)?,
            pending_after,
            device: device.parse().ok()?,
        })
    }

    fn text(&self, file: &Path) -> String {
        let (token, device) = (&self.token, self.device);
        let state = match &self.pending_after {
            None => format!("done {token}"),
            Some(before) => format!("pending {token} after {before}"),
        };
        format!("{state} device {device} file {}\n", file.display())
    }
}

/// What a note says of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::lease) enum Verdict {
    /// It is the file that was written last.
    #[default]
    Last,
    /// It is an older state of that, or another file with its name.
    Older,
    /// There is no note, as after a reboot.
    Unwitnessed,
}

impl Verdict {
    pub(super) fn of(note: Option<&Note>, token: &str, device: u64) -> Self {
        match note {
            None => Self::Unwitnessed,
            Some(note) if note.agrees(token, device) => Self::Last,
            Some(_) => Self::Older,
        }
    }
}

/// Why there can be no notes here; none if there can. Elsewhere than on Linux there are none,
/// and that is no objection.
pub(super) fn objection() -> Option<String> {
    let wrong = match system::file_system_type(Path::new(DIRECTORY)) {
        Ok(None | Some(TMPFS)) => return None,
        Ok(Some(_)) => "it is no file system in memory".to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!(
        "{DIRECTORY} can't hold a note of the last write ({wrong}), so a file that was put back \
         to an earlier state can't be told: mount a tmpfs there"
    ))
}

/// Whether files have notes here.
pub(super) fn is_possible() -> bool {
    cfg!(target_os = "linux") && objection().is_none()
}

/// The device that a file is on.
pub(super) fn device(file: &Metadata) -> u64 {
    FileNumbers::of(file).map_or(0, |numbers| numbers.device)
}

impl Witness {
    /// Locks the note of the file with this name, which has these metadata. Makes an empty note
    /// if there is none.
    pub(super) fn lock(name: &str, file: &Metadata, deadline: Instant) -> io::Result<Self> {
        let path = path(name);
        loop {
            let note = match open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    remove_notes_of_files_that_are_gone();
                    make(&path, file)?
                }
                opened => opened?,
            };
            match note.try_lock() {
                // Unless it was removed meanwhile.
                Ok(()) if is_at(&note, &path) => {
                    let name = name.to_owned();
                    let note = Locked::new(note);
                    return Ok(Self { name, note });
                }
                Ok(()) => drop(Locked::new(note)),
                Err(std::fs::TryLockError::WouldBlock) if Instant::now() < deadline => {
                    thread::sleep(PAUSE);
                }
                Err(std::fs::TryLockError::WouldBlock) => {
                    let text = format!("{}: another process keeps it locked", path.display());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Whether it is the note of the file with this name.
    pub(super) fn is_of(&self, name: &str) -> bool {
        self.name == name
    }

    /// What it says; none if that can't be read.
    pub(super) fn note(&mut self) -> io::Result<Option<Note>> {
        let mut text = String::new();
        self.note.rewind()?;
        match self.note.read_to_string(&mut text) {
            Ok(_) => Ok(Note::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces its content. The path of `file` lets later writers remove stale notes.
    pub(super) fn write(&mut self, note: &Note, file: &Path) -> io::Result<()> {
        let text = note.text(file);
        self.note.rewind()?;
        let written = self.note.write_all(text.as_bytes());
        written.map_err(|error| at(&path(&self.name), &error))?;
        self.note.set_len(text.len() as u64)
    }
}

/// What the note of the file with this name says at this moment, without a lock; none if there
/// is no note, or it can't be read.
pub(super) fn peek(name: &str) -> Option<Note> {
    let text = std::fs::read_to_string(path(name)).ok()?;
    Note::parse(&text)
}

fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{PREFIX}{name}"))
}

/// Whether this open file is the one at `path`.
fn is_at(note: &File, path: &Path) -> bool {
    let found = note
        .metadata()
        .and_then(|open| Ok((open, path.metadata()?)));
    found.is_ok_and(|(open, there)| FileNumbers::of(&open) == FileNumbers::of(&there))
}

/// Nothing depends on it: a note that is missing costs time alone.
fn remove_notes_of_files_that_are_gone() {
    /// More than these are left for the next time.
    const MOST: usize = 1000;
    /// A file that was moved is found by its next write.
    const OLD: Duration = Duration::from_secs(24 * 3600);

    let Ok(entries) = std::fs::read_dir(DIRECTORY) else {
        return;
    };
    let notes = entries.filter_map(Result::ok).map(|entry| entry.path());
    let is_note = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PREFIX))
    };
    for path in notes.filter(is_note).take(MOST) {
        let Ok(note) = open(&path) else { continue };
        // Nobody writes it while it is locked.
        if note.try_lock().is_err() {
            continue;
        }
        let note = Locked::new(note);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let file = text.trim_end_matches('\n').split_once(" file ");
        let age = note
            .metadata()
            .and_then(|note| note.modified())
            .map(|then| then.elapsed());
        let is_old = matches!(age, Ok(Ok(age)) if age > OLD);
        if is_old && file.is_some_and(|(_, file)| !Path::new(file).exists()) {
            let _ = std::fs::remove_file(&path);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    // Without `create`: in a sticky directory that fails for a file of somebody else.
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map_err(|error| at(path, &error))
}

/// Makes a note with the mode of `file`, and its owner and group as far as the process may.
#[cfg(unix)]
fn make(path: &Path, file: &Metadata) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};

    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let note = match options.open(path) {
        Ok(note) => note,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return open(path),
        Err(error) => return Err(at(path, &error)),
    };
    let own = note.metadata()?;
    if own.uid() != file.uid() {
        // Only root can.
        let _ = fchown(&note, Some(file.uid()), None);
    }
    let has_group = own.gid() == file.gid() || fchown(&note, None, Some(file.gid())).is_ok();
    // Another group may have no rights in the file.
    let rights = if has_group { 0o666 } else { 0o606 };
    note.set_permissions(std::fs::Permissions::from_mode(file.mode() & rights))?;
    Ok(note)
}

#[cfg(not(unix))]
fn make(path: &Path, _file: &Metadata) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).open(path)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn done(token: &str) -> Note {
        Note {
            token: token.to_owned(),
            pending_after: None,
            device: 7,
        }
    }

    fn name() -> String {
        let number = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        format!("test-{}-{}", std::process::id(), number.unwrap().as_nanos())
    }

    #[test]
    fn a_note_agrees_with_the_last_write_and_a_pending_one_also_with_the_write_before() {
        let pending = Note {
            pending_after: Some("b".to_owned()),
            ..done("c")
        };
        for (note, token, device, agrees) in [
            (done("c"), "c", 7, true),
            (done("c"), "b", 7, false),
            (done("c"), "", 7, false),
            (done("c"), "c", 8, false),
            (pending.clone(), "c", 7, true),
            (pending.clone(), "b", 7, true),
            (pending.clone(), "a", 7, false),
            (pending, "b", 8, false),
        ] {
            let found = note.agrees(token, device);
            assert_eq!(found, agrees, "{note:?} {token} {device}");
        }
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let (name, file) = (name(), std::env::current_exe().unwrap());
        let file = file.metadata().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut witness = Witness::lock(&name, &file, deadline).unwrap();
        assert_eq!(witness.note().unwrap(), None);
        let pending = Note {
            pending_after: Some("01".to_owned()),
            ..done("0123456789abcdef")
        };
        for note in [pending, done("9")] {
            witness.write(&note, Path::new("/a file")).unwrap();
            assert_eq!(witness.note().unwrap().as_ref(), Some(&note));
            assert_eq!(peek(&name), Some(note));
        }
        let taken = Witness::lock(&name, &file, Instant::now()).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::TimedOut);
        // A forked child has the same open file.
        let inherited = witness.note.try_clone().unwrap();
        drop(witness);
        // Another process may look at it for a moment, to remove stale notes.
        Witness::lock(&name, &file, deadline).unwrap();
        drop(inherited);
        std::fs::remove_file(path(&name)).unwrap();
        assert_eq!(peek(&name), None);
    }

    #[test]
    fn anything_else_is_no_note() {
        let good = done("5a").text(Path::new("/a b"));
        assert_eq!(Note::parse(&good), Some(done("5a")));
        for bad in [
            "",
            "done",
            good.trim_end(),
            "done 5a device 7\n",
            "gone 5a device 7 file /a\n",
            "done 5x device 7 file /a\n",
            "done  device 7 file /a\n",
            "pending 5a device 7 file /a\n",
            "done 5a device -7 file /a\n",
        ] {
            assert_eq!(Note::parse(bad), None, "{bad:?}");
        }
    }
}
