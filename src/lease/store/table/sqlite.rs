//! A table in a file of SQLite's. ARCHITECTURE.md shows how it keeps T1 to T5.
//!
//! A copy of the file can be read. A commit to it is refused, unless it
//! [adopts](Txn::adopts) the copy.
//!
//! A [tier](crate::lease::TierStore) keeps its grant logs in such a file, too. It takes whole
//! [transactions](transaction::Transaction), in which it decides under the lock.

mod entries;
mod filesystem;
mod identity;
pub(in crate::lease) mod location;
pub(in crate::lease) mod locked;
mod process;
mod queue;
mod schema;
pub(in crate::lease) mod session;
pub(in crate::lease) mod system;
pub(in crate::lease) mod transaction;
mod witness;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::location::Location;
pub(in crate::lease) use self::schema::Kind;
use self::session::Access;
use self::transaction::{FilePast, Transaction};
pub(in crate::lease) use self::witness::Verdict;
use super::{Commit, Description, Key, Query, Snapshot, StoreTime, Table, Txn};
use crate::clock::{Clock, SystemClock};
use crate::lease::error::StoreError;
use crate::lease::store::key::StoreKey;
use crate::lease::store::options::{OpenError, OpenOptions};
use crate::lease::store::record::Incarnation;
use crate::lease::store::report::Durability;

/// The table of a [`SqliteStore`](crate::lease::SqliteStore).
#[derive(Debug)]
pub struct SqliteTable {
    location: Location,
    /// None for a file whose name is no text, and with a clock of its own.
    key: Option<StoreKey>,
    kind: Kind,
    timeout: Duration,
    clock: Arc<dyn Clock>,
}

impl SqliteTable {
    /// The file at `path`. Touches nothing yet.
    pub(in crate::lease) fn new(
        kind: Kind,
        path: &Path,
        options: &OpenOptions,
    ) -> Result<Self, OpenError> {
        let location = Location::new(kind.scheme(), path, options)?;
        let key = location.path().to_str();
        Ok(Self {
            key: key.map(|path| StoreKey::new(&format!("sqlite:{path}"), options)),
            location,
            kind,
            timeout: options.operation_timeout(),
            clock: Arc::new(SystemClock),
        })
    }

    /// Another clock than the system's, for tests.
    pub(in crate::lease) fn set_clock(&mut self, clock: Arc<dyn Clock>) {
        self.clock = clock;
        self.key = None;
    }

    /// The file, as an absolute path.
    pub(in crate::lease) fn path(&self) -> &Path {
        self.location.path()
    }

    /// The store's name in errors and reports.
    pub(in crate::lease) fn name(&self) -> &str {
        self.location.name()
    }

    /// How long a call may take.
    pub(in crate::lease) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The machine's clock, in milliseconds since 1970.
    pub(in crate::lease) fn unix_ms(&self) -> u64 {
        self.clock.unix_ms()
    }

    /// Sees that the file's directory keeps files, before one is made there.
    pub(crate) fn admit(&mut self) -> Result<Durability, StoreError> {
        self.location.admit()
    }

    /// Begins a transaction, once the file's lock is had; none if there is no file.
    pub(in crate::lease) fn begin(
        &mut self,
        access: Access,
    ) -> Result<Option<Transaction>, StoreError> {
        let deadline = self.deadline();
        Transaction::begin(&mut self.location, self.kind, &self.clock, access, deadline)
    }

    /// Creates the file, without any content, unless it exists, and begins a transaction.
    pub(in crate::lease) fn create(&mut self) -> Result<Option<Transaction>, StoreError> {
        self.location.create()?;
        self.begin(Access::Write)
    }

    /// Sees that the file can be written, if there is one, and changes nothing.
    pub(crate) fn try_to_write(&mut self) -> Result<(), StoreError> {
        let opened = self.begin(Access::Write)?;
        opened.map_or(Ok(()), |opened| opened.refuse_copy())
    }

    /// What may be missing in the file.
    pub(in crate::lease) fn past(&mut self) -> Result<FilePast, StoreError> {
        let opened = self.begin(Access::Read)?;
        Ok(opened.map(|opened| opened.past()).unwrap_or_default())
    }

    /// The records of all namespaces, by key.
    pub(in crate::lease) fn records(&mut self) -> Result<Vec<(Key, String)>, StoreError> {
        let opened = self.begin(Access::Read)?;
        opened.map_or(Ok(Vec::new()), |opened| opened.records())
    }

    fn deadline(&self) -> Instant {
        const LONG: Duration = Duration::from_secs(365 * 24 * 3600);
        Instant::now() + self.timeout.min(LONG)
    }

    /// The outcome of a commit that may not create the tables it is for.
    fn without_tables(&self, txn: &Txn) -> Result<Commit, StoreError> {
        match txn.compare.iter().any(|(_, expected)| expected.is_some()) {
            true => Ok(Commit::Conflict(self.nothing())),
            false => Err(StoreError::TableMissing {
                source: format!("{} has no tables", self.name()).into(),
            }),
        }
    }

    /// The snapshot of a missing file.
    fn nothing(&self) -> Snapshot {
        Snapshot {
            entries: Default::default(),
            complete: true,
            time: Ok(StoreTime::exactly(self.clock.unix_ms())),
            incarnation: Incarnation::new(""),
        }
    }
}

impl Table for SqliteTable {
    fn read(&mut self, query: &Query) -> Result<Snapshot, StoreError> {
        let Some(opened) = self.begin(Access::Read)? else {
            return Ok(self.nothing());
        };
        opened.select(query)
    }

    fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, StoreError> {
        let opened = match txn.creates {
            true => self.create()?,
            false => self.begin(Access::Write)?,
        };
        let Some(mut opened) = opened else {
            return self.without_tables(txn);
        };
        if txn.creates {
            opened.create_tables()?;
        } else if !opened.has_tables() {
            return self.without_tables(txn);
        }
        if !txn.adopts {
            opened.refuse_copy()?;
        }
        if !opened.holds(txn)? {
            return Ok(Commit::Conflict(opened.select(instead)?));
        }
        for put in &txn.puts {
            opened.put(put)?;
        }
        opened.commit()
    }

    fn describe(&mut self) -> Result<Description, StoreError> {
        match self.begin(Access::Read)? {
            Some(opened) => opened.inspect(),
            None => {
                let durability = self.location.admit()?;
                Ok(Description::new(self.name(), durability))
            }
        }
    }

    fn key(&self) -> Option<StoreKey> {
        self.key.clone()
    }
}
