//! A transaction on the file, from the lock to the commit.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use rusqlite::Connection;

use super::entries::{self, Entries};
use super::identity;
use super::location::Location;
use super::process::Operation;
use super::schema::{self, FileRow, Kind};
use super::session::{Access, Session, StepError};
use super::witness::{self, Note, Verdict, Witness};
use crate::clock::Clock;
use crate::lease::error::StoreError;
use crate::lease::store::record::Incarnation;
use crate::lease::store::report::Durability;
use crate::lease::store::table::{Commit, Description, Key, Put, Query, Snapshot, StoreTime, Txn};

/// A transaction on a file. Dropping it undoes it.
#[derive(Debug)]
pub(in crate::lease) struct Transaction {
    store: String,
    kind: Kind,
    path: PathBuf,
    durability: Durability,
    deadline: Instant,
    /// The clock before the lock was waited for, in milliseconds since 1970.
    arrived_unix_ms: u64,
    /// The clock when the lock was held, in milliseconds since 1970.
    unix_ms: u64,
    /// Of the file at hand; see `identity`.
    identity: String,
    /// None without tables.
    file: Option<OpenedFile>,
    /// There is something to commit.
    is_changed: bool,
    // Ended before the note is let go.
    session: Session,
    /// Locked for a transaction that writes; none where there are no notes.
    witness: Option<Witness>,
    /// Ended last: a child that is forked before would have the note locked.
    _operation: Operation,
}

/// The known past of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::lease) struct FilePast {
    /// The verdict of the note on the last write; the last one written, if there is no file.
    pub(in crate::lease) verdict: Verdict,
    /// It was written for another place, and nobody has adopted it.
    pub(in crate::lease) is_copy: bool,
    /// When the file was last found to be a copy, or no certain state, in milliseconds since
    /// 1970; 0 if never.
    pub(in crate::lease) life_began_unix_ms: u64,
}

/// What the file says of itself, and its note of it.
#[derive(Clone, Debug)]
struct OpenedFile {
    row: FileRow,
    device: u64,
    verdict: Verdict,
}

impl Transaction {
    /// Begins a transaction, once the file's lock is had; none if there is no file.
    pub(super) fn begin(
        location: &mut Location,
        kind: Kind,
        clock: &Arc<dyn Clock>,
        access: Access,
        deadline: Instant,
    ) -> Result<Option<Self>, StoreError> {
        /// A file in WAL mode can be written between a look at it and one at its note.
        const LOOKS: u32 = 3;

        let mut looks = 0;
        loop {
            let Some(opened) = Self::begin_once(location, kind, clock, access, deadline)? else {
                return Ok(None);
            };
            looks += 1;
            let is_doubtful = opened.verdict() != Verdict::Last;
            if access == Access::Write || !is_doubtful || looks == LOOKS {
                return Ok(Some(opened));
            }
        }
    }

    fn begin_once(
        location: &mut Location,
        kind: Kind,
        clock: &Arc<dyn Clock>,
        access: Access,
        deadline: Instant,
    ) -> Result<Option<Self>, StoreError> {
        let arrived_unix_ms = clock.unix_ms();
        let Some(durability) = location.find()? else {
            return Ok(None);
        };
        let store = location.name().to_owned();
        let path = location.path().to_owned();
        let session = Session::begin(&path, access, deadline);
        let (operation, session) = session.map_err(|error| error.into_error(&store))?;
        let mut opened = Self {
            identity: identity::identity(&path).map_err(StoreError::unavailable)?,
            store,
            kind,
            path,
            durability,
            deadline,
            arrived_unix_ms,
            unix_ms: arrived_unix_ms,
            file: None,
            is_changed: false,
            session,
            witness: None,
            _operation: operation,
        };
        opened.look_at_file(access)?;
        // No clock is read before all locks are held.
        opened.unix_ms = clock.unix_ms();
        Ok(Some(opened))
    }

    /// Creates the tables in a file without any content.
    pub(in crate::lease) fn create_tables(&mut self) -> Result<(), StoreError> {
        if self.file.is_none() {
            self.run(|connection| schema::create(connection, self.kind))?;
            self.is_changed = true;
            self.look_at_file(Access::Write)?;
        }
        Ok(())
    }

    /// Compares the file with its note, once it has tables. A transaction that writes locks the
    /// note.
    fn look_at_file(&mut self, access: Access) -> Result<(), StoreError> {
        if !self.run(|connection| schema::exist(connection, &self.store, self.kind))? {
            return Ok(());
        }
        let row = self.run(FileRow::read)?;
        let found = self.path.metadata().map_err(StoreError::unavailable)?;
        let device = witness::device(&found);
        let note = match access {
            _ if !witness::is_possible() => None,
            Access::Read => witness::peek(&row.name),
            Access::Write => {
                let locked = Witness::lock(&row.name, &found, self.deadline);
                let witness = self
                    .witness
                    .insert(locked.map_err(StoreError::unavailable)?);
                witness.note().map_err(StoreError::unavailable)?
            }
        };
        let verdict = match witness::is_possible() {
            // Of a file that was made in this transaction nothing can be older.
            true if !row.token.is_empty() => Verdict::of(note.as_ref(), &row.token, device),
            _ => Verdict::Last,
        };
        self.file = Some(OpenedFile {
            row,
            device,
            verdict,
        });
        Ok(())
    }

    pub(in crate::lease) fn has_tables(&self) -> bool {
        self.file.is_some()
    }

    /// The store's name in errors.
    pub(in crate::lease) fn store(&self) -> &str {
        &self.store
    }

    /// The file at hand and its life: a new one if the file is a copy, or may be an older state
    /// of itself.
    pub(in crate::lease) fn incarnation(&self) -> Incarnation {
        identity::incarnation(&self.identity, self.life())
    }

    fn life(&self) -> u64 {
        match &self.file {
            None => 1,
            Some(file) => {
                let is_new = file.verdict != Verdict::Last || self.is_copy();
                file.row.life.saturating_add(u64::from(is_new))
            }
        }
    }

    /// The note's verdict on the file; the last one written, if there are no tables.
    pub(super) fn verdict(&self) -> Verdict {
        self.file
            .as_ref()
            .map_or(Verdict::Last, |file| file.verdict)
    }

    /// What may be missing in the file.
    pub(super) fn past(&self) -> FilePast {
        FilePast {
            verdict: self.verdict(),
            is_copy: self.is_copy(),
            life_began_unix_ms: self.file.as_ref().map_or(0, |it| it.row.life_began_unix_ms),
        }
    }

    /// The place that the file was written for, and this one, if they differ.
    pub(in crate::lease) fn copied(&self) -> Option<(&str, &str)> {
        let recorded = self.file.as_ref()?.row.identity.as_str();
        let is_copy = !recorded.is_empty() && recorded != self.identity;
        is_copy.then_some((recorded, self.identity.as_str()))
    }

    fn is_copy(&self) -> bool {
        self.copied().is_some()
    }

    pub(super) fn refuse_copy(&self) -> Result<(), StoreError> {
        match self.copied() {
            None => Ok(()),
            Some((recorded, found)) => Err(StoreError::Copied {
                store: self.store.clone(),
                recorded: recorded.to_owned(),
                found: found.to_owned(),
            }),
        }
    }

    /// Gives a copy another name, so that it shares no note with its original. It is adopted by
    /// the commit.
    pub(in crate::lease) fn part_from_original(&mut self) -> Result<(), StoreError> {
        let name = self.run(schema::draw)?;
        if let Some(file) = &mut self.file {
            file.row.name = name;
            self.is_changed = true;
        }
        Ok(())
    }

    /// The clock before the lock was waited for, in milliseconds since 1970.
    pub(in crate::lease) fn arrived_unix_ms(&self) -> u64 {
        self.arrived_unix_ms
    }

    /// The clock now that the lock is held, in milliseconds since 1970.
    pub(in crate::lease) fn unix_ms(&self) -> u64 {
        self.unix_ms
    }

    pub(super) fn holds(&self, txn: &Txn) -> Result<bool, StoreError> {
        let window = txn.not_before_unix_ms..=txn.not_after_unix_ms;
        let incarnation = self.incarnation();
        if !window.contains(&self.unix_ms)
            || (txn.incarnation.as_ref()).is_some_and(|wanted| *wanted != incarnation)
        {
            return Ok(false);
        }
        for (key, expected) in &txn.compare {
            if self.get(key)? != *expected {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn select(&self, query: &Query) -> Result<Snapshot, StoreError> {
        let (entries, complete) = match self.has_tables() {
            false => (Entries::new(), true),
            true => self.run(|connection| entries::select(connection, query))?,
        };
        let time = StoreTime {
            unix_ms: self.unix_ms,
            earliest_unix_ms: self.arrived_unix_ms.min(self.unix_ms),
            latest_unix_ms: self.unix_ms,
        };
        Ok(Snapshot {
            entries,
            complete,
            time: Ok(time),
            incarnation: self.incarnation(),
        })
    }

    pub(in crate::lease) fn entries_of(&self, namespace: &str) -> Result<Entries, StoreError> {
        let prefix = format!("{namespace}/");
        let found = self.run(|connection| entries::with_prefix(connection, &prefix))?;
        Ok(found.into_iter().collect())
    }

    pub(in crate::lease) fn get(&self, key: &Key) -> Result<Option<String>, StoreError> {
        self.run(|connection| entries::get(connection, key))
    }

    /// Every record of a namespace.
    pub(super) fn records(&self) -> Result<Vec<(Key, String)>, StoreError> {
        match self.has_tables() {
            true => self.run(entries::records),
            false => Ok(Vec::new()),
        }
    }

    pub(in crate::lease) fn put(&mut self, put: &Put) -> Result<(), StoreError> {
        self.is_changed = true;
        self.run(|connection| entries::put(connection, put))
    }

    /// Looks for damage, and describes the store.
    pub(super) fn inspect(&self) -> Result<Description, StoreError> {
        if self.has_tables() {
            self.run(|connection| schema::inspect(connection, &self.store))?;
        }
        Ok(Description {
            store: self.store.clone(),
            durability: self.durability.clone(),
            is_copy: self.is_copy(),
        })
    }

    fn run<T>(
        &self,
        step: impl FnOnce(&Connection) -> Result<T, StepError>,
    ) -> Result<T, StoreError> {
        step(self.session.connection()).map_err(|error| error.into_error(&self.store))
    }

    /// Counts the write, and ends the transaction between the two notes of it. What is adopted
    /// by it is this file, in this life.
    pub(in crate::lease) fn commit(mut self) -> Result<Commit, StoreError> {
        if !self.is_changed {
            return Ok(Commit::Done);
        }
        let life = self.life();
        let Some(mut file) = self.file.take() else {
            return Err(StoreError::corrupt(format!("{} has no tables", self.store)));
        };
        let token = self.run(schema::draw)?;
        let before = std::mem::replace(&mut file.row.token, token);
        file.row.identity.clone_from(&self.identity);
        if file.row.life != life {
            file.row.life = life;
            file.row.life_began_unix_ms = self.unix_ms;
        }
        self.run(|connection| file.row.write(connection))?;
        let mut note = Note {
            token: file.row.token.clone(),
            pending_after: Some(before).filter(|before| !before.is_empty()),
            device: file.device,
        };
        if let Some(witness) = &mut self.witness {
            let mut lock = || -> std::io::Result<()> {
                if !witness.is_of(&file.row.name) {
                    let found = self.path.metadata()?;
                    *witness = Witness::lock(&file.row.name, &found, self.deadline)?;
                }
                witness.write(&note, &self.path)
            };
            lock().map_err(StoreError::unavailable)?;
        }
        let ended = self.session.commit()?;
        if let (Commit::Done, Some(witness)) = (&ended, &mut self.witness) {
            note.pending_after = None;
            // Without the note the commit must not be reported as done.
            if let Err(error) = witness.write(&note, &self.path) {
                return Ok(Commit::Unknown(error.into()));
            }
        }
        Ok(ended)
    }
}
