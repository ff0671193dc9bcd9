//! A transaction on the file, from the lock to the commit.

use std::time::{Duration, Instant};

use super::session::{Access, Session, StepError, unavailable};
use super::tables::{self, FileRow, Space};
use super::txn::Txn;
use super::witness::{self, Note, Verdict, Witness};
use super::{SqliteStore, identity};
use crate::layout::Layout;
use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::namespace::Namespace;
use crate::lease::report::Durability;

/// A transaction on the file, with the state of the place and the clock before it began.
#[derive(Debug)]
pub(in crate::lease::stores) struct Opened {
    pub(in crate::lease::stores) name: String,
    durability: Durability,
    arrived_unix_ms: u64,
    deadline: Instant,
    /// None for a file without any content.
    file: Option<OpenedFile>,
    // Ended before the note is let go.
    pub(in crate::lease::stores) session: Session,
    /// Locked for a transaction that writes; none where there are no notes.
    witness: Option<Witness>,
}

/// What the file says of itself, and its note of it.
#[derive(Clone, Debug)]
struct OpenedFile {
    row: FileRow,
    device: u64,
    verdict: Verdict,
}

impl OpenedFile {
    /// The life that the file is in: a new one where it may be an older state of itself.
    fn life(&self) -> u64 {
        let is_new = self.verdict != Verdict::Last;
        self.row.life.saturating_add(u64::from(is_new))
    }
}

impl SqliteStore {
    pub(super) fn deadline(&self) -> Instant {
        const LONG: Duration = Duration::from_secs(365 * 24 * 3600);
        Instant::now() + self.timeout.min(LONG)
    }

    pub(in crate::lease::stores) fn open(
        &mut self,
        namespace: &Namespace,
        access: Access,
    ) -> Result<Opened, StoreError> {
        /// A file in WAL mode can be written between a look at it and one at its note.
        const LOOKS: u32 = 3;

        let mut looks = 0;
        loop {
            let opened = self.open_once(namespace, access)?;
            let is_doubtful = matches!(&opened.file, Some(file) if file.verdict == Verdict::Older);
            looks += 1;
            if access == Access::Write || !is_doubtful || looks == LOOKS {
                return Ok(opened);
            }
        }
    }

    fn open_once(&mut self, namespace: &Namespace, access: Access) -> Result<Opened, StoreError> {
        let deadline = self.deadline();
        let arrived_unix_ms = self.clock.unix_ms();
        let found = self.location.find()?;
        let durability = found.ok_or_else(|| namespace.not_initialised())?;
        let name = self.location.name().to_owned();
        let session = Session::begin(self.path(), access, &self.queue, deadline)
            .and_then(|session| {
                tables::refuse_other_kind(session.connection(), &name, self.kind)?;
                Ok(session)
            })
            .map_err(|error| error.into_error(&name))?;
        let mut opened = Opened {
            name,
            durability,
            arrived_unix_ms,
            deadline,
            file: None,
            session,
            witness: None,
        };
        self.look_at_file(&mut opened, access)?;
        Ok(opened)
    }

    /// Compares the file with its note, once it has tables. A transaction that writes locks the
    /// note.
    pub(in crate::lease::stores) fn look_at_file(
        &self,
        opened: &mut Opened,
        access: Access,
    ) -> Result<(), StoreError> {
        let connection = opened.session.connection();
        let described = |error: StepError| error.into_error(&opened.name);
        if opened.file.is_some() || !tables::exist(connection, &opened.name).map_err(described)? {
            return Ok(());
        }
        let row = tables::read_file(connection).map_err(described)?;
        let found = self.path().metadata().map_err(unavailable)?;
        let device = witness::device(&found);
        let note = match access {
            _ if !witness::is_possible() => None,
            Access::Read => witness::peek(&row.name),
            Access::Write => {
                let locked = Witness::lock(&row.name, &found, opened.deadline);
                let witness = opened.witness.insert(locked.map_err(unavailable)?);
                witness.note().map_err(unavailable)?
            }
        };
        let verdict = match witness::is_possible() {
            // Of a file that was made in this transaction nothing can be older.
            true if row.writes > 0 => Verdict::of(note, row.writes, device),
            _ => Verdict::Last,
        };
        opened.file = Some(OpenedFile {
            row,
            device,
            verdict,
        });
        Ok(())
    }

    /// What the note says of the file; the last one written, if there is none.
    pub(super) fn verdict(&mut self) -> Result<Verdict, StoreError> {
        if self.location.find()?.is_none() {
            return Ok(Verdict::Last);
        }
        // The namespace is for an error of a file that is missing.
        let any = Namespace::new("any", &Layout::RANDFLAKE, Fingerprint::PLAIN);
        let any = any.map_err(unavailable)?;
        let opened = self.open(&any, Access::Read)?;
        Ok(opened.file.map_or(Verdict::Last, |file| file.verdict))
    }

    pub(in crate::lease::stores) fn txn<'a>(
        &self,
        opened: &'a Opened,
        space: Space,
    ) -> Result<Txn<'a>, StoreError> {
        let life = opened.file.as_ref().map_or(1, OpenedFile::life);
        let incarnation = identity::incarnation(self.path(), life).map_err(unavailable)?;
        Ok(Txn {
            connection: opened.session.connection(),
            store: &opened.name,
            durability: &opened.durability,
            space,
            incarnation,
            arrived_unix_ms: opened.arrived_unix_ms,
            unix_ms: self.clock.unix_ms(),
            uptime: self.uptime.and_then(|read| read()),
        })
    }

    /// Runs one step on a namespace that was initialised. Its writes are
    /// kept if it answers, be it a refusal; its outer error undoes them.
    pub(in crate::lease::stores) fn run<T>(
        &mut self,
        operation: &'static str,
        namespace: &Namespace,
        access: Access,
        step: impl FnOnce(&mut Txn<'_>) -> Result<Result<T, StoreError>, StepError>,
    ) -> Result<T, StoreError> {
        let opened = self.open(namespace, access)?;
        let described = |error: StepError| error.into_error(&opened.name);
        let space = tables::read_space(opened.session.connection(), &opened.name, namespace)
            .map_err(described)?
            .ok_or_else(|| namespace.not_initialised())?;
        space.record.verify(namespace)?;
        let mut txn = self.txn(&opened, space)?;
        let answer = step(&mut txn).map_err(described)?;
        match access {
            Access::Read => answer,
            Access::Write => {
                let committed = self.commit(opened, operation);
                // A refusal is one, whether it could be noted or not.
                answer.and_then(|answer| committed.map(|()| answer))
            }
        }
    }

    /// Counts the write, and ends the transaction between the two notes of it.
    pub(in crate::lease::stores) fn commit(
        &self,
        opened: Opened,
        operation: &'static str,
    ) -> Result<(), StoreError> {
        let Opened {
            name,
            file,
            session,
            mut witness,
            deadline,
            ..
        } = opened;
        let note = match file {
            // Nothing was written, so that there is nothing to count.
            Some(_) if session.connection().total_changes() == 0 => None,
            None => None,
            Some(file) => {
                let described = |error: StepError| error.into_error(&name);
                let present = tables::read_file(session.connection()).map_err(described)?;
                if present.name != file.row.name && witness.is_some() {
                    let found = self.path().metadata().map_err(unavailable)?;
                    let locked = Witness::lock(&present.name, &found, deadline);
                    witness = Some(locked.map_err(unavailable)?);
                }
                let row = FileRow {
                    writes: file.row.writes.saturating_add(1),
                    life: file.life(),
                    name: present.name,
                };
                tables::write_file(session.connection(), &row).map_err(described)?;
                Some(Note {
                    writes: row.writes,
                    pending: true,
                    device: file.device,
                })
            }
        };
        let mut noting = witness.as_mut().zip(note);
        if let Some((witness, note)) = &mut noting {
            witness.write(*note, self.path()).map_err(unavailable)?;
        }
        session.commit(operation)?;
        if let Some((witness, note)) = noting {
            let note = Note {
                pending: false,
                ..note
            };
            // What was not noted as done must not be answered.
            let noted = witness.write(note, self.path());
            noted.map_err(|error| StoreError::Ambiguous {
                operation,
                source: error.into(),
            })?;
        }
        Ok(())
    }
}
