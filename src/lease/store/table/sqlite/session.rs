//! One transaction on the file, from opening it to closing it.
//!
//! # States
//! ```text
//! open --> settings checked --BEGIN--> holds the lock --COMMIT--> done
//!                                           |             |
//!                                           |             +-- busy until the deadline
//!                                           |             |      --> undone: Unavailable
//!                                           |             +-- any other failure
//!                                           |                    --> unknown: Ambiguous
//!                                           +-- any failure --> undone: Unavailable
//! ```
//! Closing the connection undoes an open transaction.
//!
//! # Why a connection for each transaction
//! A process writes once a minute, and opening takes a fraction of the syncs that follow. In
//! between, a fork finds no descriptor, lock or map to copy, and none can belong to a file replaced
//! meanwhile. A failure leaves nothing to clean up.
//!
//! # Why a commit survives a loss of power
//! With a rollback journal, `synchronous=EXTRA` syncs the journal with its
//! directory entry before the first page of the database is written, the
//! database after the last, and then the end of the journal, which is what
//! commits. `journal_mode=TRUNCATE` makes that end a truncation through the
//! descriptor that is already open, followed by a sync whose failure is
//! reported. `DELETE` would need to open the directory in order to sync it, and
//! SQLite passes over it in silence when it can't: with no descriptor left, say.
//! (`unixDelete` in SQLite's `os_unix.c`; `pager_end_transaction` in `pager.c`.)
//!
//! A file that somebody has put into WAL mode, to replicate it for example, is
//! left in it: with EXTRA, which means FULL there, the log is synced at each
//! commit. It is NORMAL that would lose commits.
//!
//! # Why a failure at COMMIT is ambiguous
//! Busy is certain: SQLite reports it before it begins to commit, and leaves the
//! transaction open. A full disk or a failed write comes before the journal is
//! ended, and is rolled back by the next process; a failure to end the journal
//! may have ended it, or not for long. The codes don't tell the two apart in
//! every mode: in WAL mode, a frame that was written whole may come back when
//! the log is recovered. So all of them count as unknown. That costs one block,
//! and rarely even that: on a full disk the journal fails before, at the first
//! change.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::locked::Locked;
use super::process::Operation;
use super::queue;
use crate::lease::error::StoreError;
use crate::lease::store::table::Commit;

/// The rights of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lease) enum Access {
    Read,
    Write,
}

/// A failure inside a transaction, before its commit.
#[derive(Debug)]
pub(super) enum StepError {
    Store(StoreError),
    Driver(rusqlite::Error),
}

impl From<StoreError> for StepError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<rusqlite::Error> for StepError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Driver(error)
    }
}

impl StepError {
    /// As an error of the store with this name. Nothing was written.
    pub(super) fn into_error(self, store: &str) -> StoreError {
        let error = match self {
            Self::Store(error) => return error,
            Self::Driver(error) => error,
        };
        let detail = match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => format!("{store} is not a database of SQLite"),
            Some(ErrorCode::DatabaseCorrupt) => format!("{store} is damaged"),
            // A statement that can't be compiled, or one that breaks a rule. None
            // is for a value that is not of the type asked for.
            Some(ErrorCode::Unknown | ErrorCode::ConstraintViolation) | None => {
                format!("the tables in {store} are not as they were created")
            }
            Some(_) => return StoreError::unavailable(error),
        };
        StoreError::Corrupt {
            detail,
            source: Some(error.into()),
        }
    }
}

/// An open transaction. Dropping it undoes it.
#[derive(Debug)]
pub(super) struct Session {
    connection: Connection,
    deadline: Instant,
    _queue_lock: Option<Locked>,
}

impl Session {
    /// Opens the file, which must exist, and begins. The operation must last until the session,
    /// and what is locked beside it, has ended.
    pub(super) fn begin(
        path: &Path,
        access: Access,
        deadline: Instant,
    ) -> Result<(Operation, Self), StepError> {
        let queue_lock = match access {
            Access::Read => None,
            Access::Write => queue::lock(path, deadline),
        };
        let operation = Operation::begin().map_err(StoreError::unavailable)?;
        // Without NOFOLLOW: a link is resolved, and the journal lies beside the
        // file itself. Without URI: the path is a path.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let session = Self {
            connection: Connection::open_with_flags(path, flags)?,
            deadline,
            _queue_lock: queue_lock,
        };
        session.wait_until_deadline()?;
        session.settle(path)?;
        session.wait_until_deadline()?;
        let connection = &session.connection;
        match access {
            Access::Read => connection.execute_batch("BEGIN")?,
            Access::Write if connection.is_readonly("main")? => {
                let text = format!("this process may not write to {}", path.display());
                let denied = io::Error::new(io::ErrorKind::PermissionDenied, text);
                return Err(StoreError::unavailable(denied).into());
            }
            Access::Write => connection.execute_batch("BEGIN IMMEDIATE")?,
        }
        Ok((operation, session))
    }

    /// Makes commits durable, and sees that they are.
    fn settle(&self, path: &Path) -> Result<(), StepError> {
        let connection = &self.connection;
        connection.execute_batch(
            "PRAGMA synchronous = EXTRA; \
             PRAGMA fullfsync = ON; \
             PRAGMA checkpoint_fullfsync = ON;",
        )?;
        for (pragma, wanted) in [
            ("synchronous", 3),
            ("fullfsync", 1),
            ("checkpoint_fullfsync", 1),
        ] {
            let found: i64 = connection.pragma_query_value(None, pragma, |row| row.get(0))?;
            if found != wanted {
                return Err(not_kept(path, pragma, &found.to_string()).into());
            }
        }
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if mode == "wal" {
            return Ok(());
        }
        let mode: String =
            connection
                .pragma_update_and_check(None, "journal_mode", "TRUNCATE", |row| row.get(0))?;
        match mode.as_str() {
            "truncate" | "wal" => Ok(()),
            other => Err(not_kept(path, "journal_mode", other).into()),
        }
    }

    /// Lets SQLite wait for locks that it finds taken from now on.
    fn wait_until_deadline(&self) -> rusqlite::Result<()> {
        /// SQLite counts milliseconds in 31 bits.
        const LONGEST: Duration = Duration::from_secs(20 * 24 * 3600);
        let left = self.deadline.saturating_duration_since(Instant::now());
        self.connection.busy_timeout(left.min(LONGEST))
    }

    /// The connection, inside the transaction.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Ends the transaction. Once this returns [`Commit::Done`], it is durable.
    pub(super) fn commit(self) -> Result<Commit, StoreError> {
        self.wait_until_deadline()
            .map_err(StoreError::unavailable)?;
        match self.connection.execute_batch("COMMIT") {
            Ok(()) => Ok(Commit::Done),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                Err(StoreError::unavailable(error))
            }
            Err(error) => Ok(Commit::Unknown(error.into())),
        }
    }
}

fn not_kept(path: &Path, pragma: &str, found: &str) -> StoreError {
    StoreError::NotDurable {
        store: format!("sqlite:{}", path.display()),
        reason: format!("SQLite keeps its setting {pragma} at {found}"),
    }
}
