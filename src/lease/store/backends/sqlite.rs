//! The store in a file, for the processes of one machine.

mod init_if_new;
pub(crate) mod past;

use std::path::Path;
use std::sync::Arc;

use crate::clock::Clock;
use crate::lease::block::{Block, Epoch};
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::store::connect::file_url;
use crate::lease::store::format::decode_record;
use crate::lease::store::lease_store::LeaseStore;
use crate::lease::store::leases::Leases;
use crate::lease::store::options::{OpenError, OpenOptions};
use crate::lease::store::record::{Incarnation, StoreRecord};
use crate::lease::store::request::{Floor, Init};
use crate::lease::store::table::sqlite::{Kind, SqliteTable};

/// A store in a file of SQLite's: the embedded default, for any number of
/// processes on one machine. Needs the feature `sqlite`, which builds SQLite and
/// so needs a C compiler. The [runbook](crate::lease::guide::runbook_sqlite) says how to set it up,
/// what lies beside the file, what operations cost, and what to do after a copy, a restore or a move.
///
/// # What is promised
/// Each change is one transaction under the file's write lock, and is synced before it is
/// answered: `synchronous=EXTRA`, with a rollback journal that is truncated, or with the log of a
/// file that somebody has put into WAL mode. SQLite's settings are read back each time. A process
/// may be killed at any moment, and the power may fail, as long as the disk reports syncs
/// truthfully.
///
/// The file must lie on a local disk. A network file system, FUSE, FAT, a file system in memory
/// or one that is not known is [`NotDurable`]. So is a file with a second name or one that is
/// mounted by itself, which separates it from its journal. [`OpenOptions::accept_best_effort`]
/// accepts all of them, with a warning. Only on Linux is the kind of file system known.
///
/// # The URL
/// `sqlite:leases.db` (relative to the directory in which the process is when it opens the
/// store), `sqlite:/var/lib/app/leases.db` or `sqlite:///var/lib/app/leases.db`. The path is taken
/// as it stands, without percent-encoding. There are no parameters; a path with a question mark
/// can be given to [`SqliteStore::new`].
///
/// # The file
/// [`init`] and [`init_if_new`] create the file, for its owner alone (mode 0600); its directory
/// must exist. All other methods return [`NotInitialised`] if the file is missing. If twenty
/// processes call `init` at once, one succeeds; the others get [`AlreadyInitialised`], and can go
/// on. [`History::New`] is true only where no earlier file can have been. `init` leaves a note in
/// `leases.db.lock`. By this note [`init_if_new`] refuses `New` if a noted file is gone, or if a
/// file is there that was not noted.
///
/// **A process that uses the store must not open the file by other means**, not even to copy it: when
/// it closes the file, POSIX drops the locks of all of the process.
///
/// The file holds its own identity: the machine, the inode, the time of birth, on btrfs the
/// subvolume. A copy can be read.
/// Everything else fails with [`Copied`], or as a fenced renewal, because the original could still
/// be granting. Once no process uses the original any more, [`raise_floor`] with [`OverLostGrants`]
/// on any namespace adopts the copy. An older state that was put back is noticed by a note in the
/// machine's shared memory; its namespaces raise their floors by themselves.
///
/// # Forks
/// A store may be used in a forked child, unless the process was forked while another thread was
/// inside one: then every call in the child is [`Unavailable`], for good. The store can't see the
/// process's own connections to SQLite.
///
/// [`AlreadyInitialised`]: crate::lease::StoreError::AlreadyInitialised
/// [`Copied`]: crate::lease::StoreError::Copied
/// [`History::New`]: crate::lease::History::New
/// [`NotDurable`]: crate::lease::StoreError::NotDurable
/// [`NotInitialised`]: crate::lease::StoreError::NotInitialised
/// [`OverLostGrants`]: crate::lease::Floor::OverLostGrants
/// [`Unavailable`]: crate::lease::StoreError::Unavailable
/// [`raise_floor`]: crate::lease::LeaseStore::raise_floor
/// [`init`]: crate::lease::LeaseStore::init
/// [`init_if_new`]: crate::lease::LeaseStore::init_if_new
///
/// # Examples
/// ```
/// use ringflake::{Clock, Layout, SystemClock};
/// use ringflake::lease::{
///     Acquire, Fingerprint, History, Init, LeaseStore, Namespace, OpenOptions, SqliteStore,
///     StoreError,
/// };
///
/// let directory = tempfile::tempdir()?;
/// // The examples run on any file system. Leave this out.
/// let options = OpenOptions::new().accept_best_effort(true);
/// let mut store = SqliteStore::new(directory.path().join("leases.db"), &options)?;
///
/// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
/// match store.init(&orders, &Init::new(History::New, SystemClock.unix_ms())) {
///     // Another process was first.
///     Ok(_) | Err(StoreError::AlreadyInitialised { .. }) => {}
///     Err(error) => return Err(error.into()),
/// }
/// let grants = store.acquire(&orders, &Acquire::new(1, 600, SystemClock.unix_ms()))?;
/// assert_eq!(grants[0].to_lease(&orders)?.nodes(), 0..32);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SqliteStore {
    leases: Leases<SqliteTable>,
}

impl SqliteStore {
    /// The store that a URL names. Touches no file.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] for what is not a URL of this store.
    ///
    /// # Examples
    /// ```
    /// use ringflake::lease::{OpenOptions, SqliteStore};
    ///
    /// let options = OpenOptions::new();
    /// let store = SqliteStore::from_url("sqlite:///var/lib/app/leases.db", &options)?;
    /// assert_eq!(store.path().to_str(), Some("/var/lib/app/leases.db"));
    /// assert!(SqliteStore::from_url("sqlite://host/leases.db", &options).is_err());
    /// # Ok::<(), ringflake::lease::OpenError>(())
    /// ```
    pub fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        Self::new(file_url::parse_sqlite(url)?, options)
    }

    /// The store in the file at `path`. Touches no file.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] for a path that can't name a file.
    pub fn new(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, OpenError> {
        let table = SqliteTable::new(Kind::Store, path.as_ref(), options)?;
        let leases = Leases::lowest_first(table).with_patience(options.operation_timeout());
        Ok(Self { leases })
    }

    /// With another clock than the system's, for tests.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.table_mut().set_clock(clock);
        self
    }

    /// The file, as an absolute path.
    pub fn path(&self) -> &Path {
        self.leases.table().path()
    }

    /// The table, which has no rules of leases.
    #[must_use]
    pub fn into_table(self) -> SqliteTable {
        self.leases.into_table()
    }

    pub(crate) fn table_mut(&mut self) -> &mut SqliteTable {
        self.leases.table_mut()
    }

    /// The namespaces that the file has on record, by name; none if there is no
    /// file.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn namespaces(&mut self) -> Result<Vec<Namespace>, StoreError> {
        let records = self.records()?.into_iter();
        Ok(records.map(|record| record.namespace).collect())
    }

    fn records(&mut self) -> Result<Vec<StoreRecord>, StoreError> {
        let records = self.table_mut().records()?.into_iter();
        let decoded = records.map(|(key, value)| decode_record(key.namespace(), &value));
        decoded.collect()
    }

    /// Raises the floor [over lost grants](Floor::OverLostGrants) of every namespace in the
    /// file, as somebody does who takes a copy into use. Returns each with its floor.
    ///
    /// # Errors
    /// Those of [`raise_floor`](LeaseStore::raise_floor); then some may have been raised.
    pub fn raise_all_floors(
        &mut self,
        now_unix_ms: u64,
    ) -> Result<Vec<(Namespace, u64)>, StoreError> {
        self.adopt_note()?;
        let namespaces = self.namespaces()?.into_iter();
        let raise = |namespace: Namespace| {
            let floor = Floor::OverLostGrants;
            let raised = self.leases.raise_floor(&namespace, floor, now_unix_ms)?;
            Ok((namespace, raised))
        };
        namespaces.map(raise).collect()
    }

    /// Refuses what is out of range, and a caller's clock that is far from this machine's,
    /// before anything is written, and before locks are waited for.
    pub(crate) fn check_init(&self, namespace: &Namespace, init: &Init) -> Result<(), StoreError> {
        let unix_ms = self.leases.table().unix_ms();
        StoreRecord::create(namespace, init, &Incarnation::new(""), unix_ms).map(drop)
    }

    /// As [`release`](LeaseStore::release) for each of these grants, up to 60 of them in
    /// one transaction. Those that are not their block's last are passed over.
    ///
    /// # Errors
    /// Those of every method of [`LeaseStore`]; then some may not have been released.
    pub fn release_all(
        &mut self,
        namespace: &Namespace,
        grants: &[(Block, Epoch)],
    ) -> Result<(), StoreError> {
        self.leases.release_all(namespace, grants)
    }
}

impl LeaseStore for SqliteStore {
    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        self.init_for_a_person(namespace, init)
    }

    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        self.init_for_a_program(namespace, init)
    }

    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        if floor == Floor::OverLostGrants {
            self.adopt_note()?;
        }
        self.leases.raise_floor(namespace, floor, now_unix_ms)
    }

    crate::forward_store! { |self| self.leases =>
        acquire renew renew_all release list repair check write_test key
    }
}
