//! The store in a file, for the processes of one machine.

pub(in crate::lease::stores) mod clock_step;
mod filesystem;
mod identity;
mod init_if_new;
mod location;
pub(in crate::lease::stores) mod opening;
pub(crate) mod past;
mod process;
mod queue;
mod renewals;
pub(in crate::lease::stores) mod session;
pub(in crate::lease::stores) mod steps;
mod system;
pub(in crate::lease::stores) mod tables;
pub(in crate::lease::stores) mod txn;
mod witness;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use self::clock_step::Uptime;
use self::location::Location;
use self::queue::Queue;
use self::tables::Kind;
use crate::clock::{Clock, SystemClock};
use crate::lease::connect::file_url;
use crate::lease::error::StoreError;
use crate::lease::key::StoreKey;
use crate::lease::options::{OpenError, OpenOptions};

/// A store in a file of SQLite's: the embedded default, for any number of
/// processes on one machine. Needs the feature `sqlite`, which builds SQLite and
/// so needs a C compiler.
///
/// # What is promised
/// Each change is one transaction under the file's write lock, and is synced
/// before it is answered: `synchronous=EXTRA`, with a rollback journal that is
/// truncated, or with the log if somebody has put the file into WAL mode. A
/// process may be killed at any moment, and the power may fail, as long as the
/// disk tells the truth about syncs. SQLite's settings are read back each time.
///
/// The file must lie on a local disk. A network file system, FUSE, FAT, a file
/// system in memory or one that is not known is [`NotDurable`], as is a file with
/// a second name or one that is mounted by itself; the last two separate the file
/// from its journal. [`OpenOptions::accept_best_effort`] accepts all of them, with
/// a warning. An overlay, the root of a container, counts as local; but the file
/// goes when the container goes, so a volume is the better place. Elsewhere than
/// on Linux the kind of file system is not known, and it is up to you.
///
/// # The URL
/// `sqlite:leases.db` (relative to the directory in which the process is when it
/// opens the store), `sqlite:/var/lib/app/leases.db` or
/// `sqlite:///var/lib/app/leases.db`. The path is taken as it stands, without
/// percent-encoding. There are no parameters; a path with a question mark can be
/// given to [`SqliteStore::new`].
///
/// # The file
/// [`init`] makes the file, for its owner alone (mode 0600), in a directory that
/// must exist. No other method makes one: a missing file is [`NotInitialised`].
/// Of twenty processes that call `init` at once, one succeeds; for the others it
/// is [`AlreadyInitialised`], and they can go on. [`History::New`] is true only
/// where no earlier file can have been. `init` leaves a note in
/// `leases.db.lock`, by which [`init_if_new`] refuses `New` where a file that was noted is gone, or one is
/// there that was not.
///
/// It holds the tables `ringflake_namespace` and `ringflake_block`, the latter
/// with a row for each block that was ever granted, and beside it lies
/// `leases.db-journal`, empty between changes. The two belong together. SQLite's
/// shell can read the tables; triggers keep it from lowering a mark, and a
/// transaction that it leaves open keeps everybody waiting. A process that uses
/// the store must not open the file by other means, not even to copy it: when it
/// closes the file, POSIX drops the locks of all of the process.
///
/// # Copies, backups, moves
/// The record carries the identity of the file: the machine, the inode, its time
/// of birth. A copy is [`Copied`], and grants nothing for as long as nobody adopts
/// it, since the original could still be granting. The file may be renamed within its file
/// system, together with its journal, while no process uses it.
///
/// A note of the last write lies outside of the file, in the machine's shared memory
/// (`/dev/shm`). A file that does not agree with it was put back to an earlier state, by
/// whichever tool, or is a snapshot that is used beside the original: its namespaces raise their
/// floors over all that may have been granted, by themselves. The same happens once after each
/// reboot, which leaves no note: grants then begin the horizon ahead, after the failover time.
/// Linux only; elsewhere a file that was put back in place goes unnoticed.
///
/// What goes unnoticed is a virtual machine that was put back to a snapshot with its memory.
/// Call [`raise_floor`] then.
///
/// Processes that share a file must see the same `/etc/machine-id` and the same `/dev/shm`, so
/// mount both into containers that have others. On systems where the machine ID changes with
/// each boot, so does the identity.
///
/// After a restore, or to move to another disk or machine:
/// 1. see to it that no process uses the original any more, for good;
/// 2. call [`raise_floor`] with [`OverLostGrants`] on each namespace of the copy. In
///    one transaction it raises the floor over all that the original granted, and
///    adopts the copy.
///
/// # Clocks
/// The store's clock is the machine's. When that is set while the machine runs,
/// in either direction, by more than the horizon and more than a minute,
/// [`ClockStepped`] is the answer to `acquire`, `renew` and to raising the floor
/// over lost grants, until the clock has kept its new time for a minute: a short
/// step must not push marks years ahead. In `check`, the store's time is the one
/// that was expected meanwhile. After a reboot every time is believed. A clock
/// that stays wrong for longer is believed too, and the blocks granted meanwhile
/// are out of use until their marks have passed; no ID is issued twice. Linux
/// only, and with the system's clock only.
///
/// # Forks
/// A store may be used in a forked child, unless the process was forked while
/// another thread was inside one: then every call in the child is
/// [`Unavailable`], for good. Connections to SQLite that the process has on its
/// own are not seen.
///
/// # Cost
/// Each call opens the file and closes it again. A change takes five syncs: a
/// millisecond in all on a fast disk, fifty on a slow one. Up to 128 renewals of one
/// namespace in [one call](crate::lease::LeaseStore::renew_all) are one change. Changes follow each
/// other, so that, times twenty, is what the last of twenty processes waits. A
/// process waits for the lock for as long as [`OpenOptions::operation_timeout`]
/// says, in no order but with equal chances; then it is [`Unavailable`]. A sync that the disk holds up is
/// not cut short. Time grows with the logarithm of the number of blocks ever
/// granted, but for `list` and `check`, which read all of them.
///
/// [`AlreadyInitialised`]: crate::lease::StoreError::AlreadyInitialised
/// [`ClockStepped`]: crate::lease::StoreError::ClockStepped
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
    location: Location,
    /// None for a file whose name is no text, and with a clock of its own.
    key: Option<StoreKey>,
    kind: Kind,
    queue: Queue,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    /// None for a clock that has nothing to do with the machine's uptime.
    uptime: Option<fn() -> Option<Uptime>>,
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
        Self::of_kind(Kind::Store, path.as_ref(), options)
    }

    pub(in crate::lease::stores) fn of_kind(
        kind: Kind,
        path: &Path,
        options: &OpenOptions,
    ) -> Result<Self, OpenError> {
        let location = Location::new(kind.scheme(), path, options)?;
        Ok(Self {
            key: key_of(&location, options),
            location,
            kind,
            queue: Queue::default(),
            timeout: options.operation_timeout(),
            clock: Arc::new(SystemClock),
            uptime: Some(Uptime::read),
        })
    }

    /// With another clock than the system's, for tests. Its steps are not
    /// watched: it need not run with the machine's uptime.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self.uptime = None;
        self.key = None;
        self
    }

    /// The store's name, without credentials.
    pub(in crate::lease::stores) fn name(&self) -> &str {
        self.location.name()
    }

    /// The machine's clock, in milliseconds since 1970.
    pub(in crate::lease::stores) fn unix_ms(&self) -> u64 {
        self.clock.unix_ms()
    }

    /// Makes the file, without any content, unless it exists.
    pub(in crate::lease::stores) fn create_file(&mut self) -> Result<(), StoreError> {
        self.location.create()
    }

    /// On a machine with this clock and this uptime, where every place keeps files.
    #[cfg(test)]
    pub(in crate::lease::stores) fn on_machine(
        mut self,
        clock: Arc<dyn Clock>,
        uptime: fn() -> Option<Uptime>,
    ) -> Self {
        self.location.objection = |_| Ok(None);
        self.clock = clock;
        self.uptime = Some(uptime);
        self.key = None;
        self
    }

    /// The file, as an absolute path.
    pub fn path(&self) -> &Path {
        self.location.path()
    }
}

fn key_of(location: &Location, options: &OpenOptions) -> Option<StoreKey> {
    let path = location.path().to_str()?;
    Some(StoreKey::new(&format!("sqlite:{path}"), options))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use tempfile::TempDir;
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber, subscriber};

    use super::*;
    use crate::clock::ManualClock;
    use crate::layout::Layout;
    use crate::lease::fingerprint::Fingerprint;
    use crate::lease::grant::Grant;
    use crate::lease::limits::StoreLimits;
    use crate::lease::namespace::Namespace;
    use crate::lease::report::Durability;
    use crate::lease::request::{Acquire, Floor, History, Init, Renew};
    use crate::lease::store::LeaseStore;

    const START_MS: u64 = 1_760_000_000_000;
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

    thread_local! {
        /// How long the machine of this thread has been up, in milliseconds.
        static UPTIME: Cell<u64> = const { Cell::new(0) };
    }

    fn space() -> Namespace {
        Namespace::new("test", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap()
    }

    /// A file, and a machine whose clock can be set.
    struct Machine {
        directory: TempDir,
        clock: ManualClock,
    }

    impl Machine {
        fn new() -> Self {
            Self {
                directory: tempfile::tempdir().unwrap(),
                clock: ManualClock::new(START_MS),
            }
        }

        fn store(&self, options: &OpenOptions) -> SqliteStore {
            let path = self.directory.path().join("leases.db");
            let uptime = || {
                Some(Uptime {
                    boot: "one".to_owned(),
                    ms: UPTIME.get(),
                })
            };
            SqliteStore::new(path, options)
                .unwrap()
                .on_machine(Arc::new(self.clock.clone()), uptime)
        }

        fn initialised(&self) -> SqliteStore {
            let mut store = self.store(&OpenOptions::new());
            let init = Init::new(History::New, self.clock.unix_ms());
            store.init(&space(), &init).unwrap();
            store
        }

        /// Time passes, and the clock shows it.
        fn pass(&self, time: Duration) {
            self.clock.advance(time);
            UPTIME.set(UPTIME.get() + time.as_millis() as u64);
        }

        fn acquire(&self, store: &mut SqliteStore) -> Result<Grant, StoreError> {
            let ask = Acquire::new(1, 100, self.clock.unix_ms());
            Ok(store.acquire(&space(), &ask)?.remove(0))
        }
    }

    #[track_caller]
    fn stepped<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Duration {
        match result {
            Err(StoreError::ClockStepped { retry_after, .. }) => retry_after,
            other => panic!("{other:?}, not a step of the clock"),
        }
    }

    #[test]
    fn a_clock_that_jumps_years_ahead_and_back_moves_nothing() {
        let machine = Machine::new();
        let mut store = machine.initialised();
        let grant = machine.acquire(&mut store).unwrap();
        machine.pass(Duration::from_secs(30));
        let known = store.list(&space()).unwrap();

        machine.clock.advance(10 * YEAR);
        let now = machine.clock.unix_ms();
        let renew = Renew::new(&grant, grant.ticks.end + 1_000_000_000, now);
        assert_eq!(
            stepped(machine.acquire(&mut store)),
            Duration::from_secs(60)
        );
        stepped(store.renew(&space(), &renew));
        stepped(store.raise_floor(&space(), Floor::OverLostGrants, now));
        assert_eq!(store.list(&space()).unwrap(), known);
        let report = store.check(&space(), now).unwrap();
        assert_eq!(report.skew_ms(), Some((10 * YEAR).as_millis() as u64));
        assert_eq!(report.held_blocks, 1);

        machine.clock.step_back(10 * YEAR);
        let next = machine.acquire(&mut store).unwrap();
        assert_eq!(next.ticks.start, grant.ticks.start + 30);
    }

    #[test]
    fn a_clock_that_was_set_right_is_believed_after_a_minute() {
        let machine = Machine::new();
        let grant = machine.acquire(&mut machine.initialised()).unwrap();
        machine.clock.advance(YEAR);
        // Each time another process, which knows only what is in the file.
        let mut left = Duration::from_secs(60);
        for _ in 0..3 {
            let mut store = machine.store(&OpenOptions::new());
            assert_eq!(stepped(machine.acquire(&mut store)), left);
            machine.pass(Duration::from_secs(20));
            left -= Duration::from_secs(20);
        }
        let mut store = machine.store(&OpenOptions::new());
        let later = machine.acquire(&mut store).unwrap();
        assert_eq!(later.ticks.start, grant.ticks.start + YEAR.as_secs() + 60);
    }

    #[test]
    fn a_step_within_the_horizon_or_a_minute_is_none() {
        for (horizon, step) in [(1, 59), (600, 599)] {
            let machine = Machine::new();
            let mut store = machine.store(&OpenOptions::new());
            let horizon = Duration::from_secs(horizon);
            let limits = StoreLimits::default().with_horizon(horizon);
            let init = Init::new(History::New, START_MS).with_limits(limits);
            store.init(&space(), &init).unwrap();
            machine.clock.advance(Duration::from_secs(step));
            machine.acquire(&mut store).unwrap();
            machine.clock.advance(Duration::from_secs(step + 3));
            stepped(machine.acquire(&mut store));
        }
    }

    #[test]
    fn what_no_clock_decides_is_done_whatever_it_shows() {
        let machine = Machine::new();
        let mut store = machine.initialised();
        let grant = machine.acquire(&mut store).unwrap();
        machine.clock.advance(YEAR);
        let floor = Floor::Tick(grant.ticks.end);
        let now = machine.clock.unix_ms();
        store.raise_floor(&space(), floor, now).unwrap();
        // Far by the time that was expected, however near by the clock.
        let near_the_clock = Floor::Tick(grant.ticks.end + YEAR.as_secs());
        let error = store
            .raise_floor(&space(), near_the_clock, now)
            .unwrap_err();
        assert!(matches!(error, StoreError::FloorTooFar { .. }), "{error}");
        store.release(&space(), grant.block, grant.epoch).unwrap();
        stepped(machine.acquire(&mut store));
    }

    /// Counts warnings, and checks what they say.
    #[derive(Clone, Default)]
    struct Warnings(Arc<AtomicUsize>);

    impl Subscriber for Warnings {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= Level::WARN
        }

        fn event(&self, event: &Event<'_>) {
            assert_eq!(event.metadata().target(), "ringflake");
            let fields = event.metadata().fields().iter().map(|field| field.name());
            assert!(fields.eq(["message", "store", "reason"]));
            self.0.fetch_add(1, Relaxed);
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn a_place_that_does_not_keep_files_is_refused_unless_accepted() {
        let machine = Machine::new();
        let init = Init::new(History::New, START_MS);
        let on_nfs = |options: &OpenOptions| {
            let mut store = machine.store(options);
            store.location.objection = |_| Ok(Some("the file system is nfs".to_owned()));
            store
        };
        let mut strict = on_nfs(&OpenOptions::new());
        let refused = |error: StoreError| match error {
            StoreError::NotDurable { store, reason } => {
                assert!(store.starts_with("sqlite:/"), "{store}");
                assert_eq!(reason, "the file system is nfs");
            }
            other => panic!("{other}"),
        };
        refused(strict.init(&space(), &init).unwrap_err());
        assert!(!strict.path().exists());

        let warnings = Warnings::default();
        subscriber::with_default(warnings.clone(), || {
            let mut store = on_nfs(&OpenOptions::new().accept_best_effort(true));
            store.init(&space(), &init).unwrap();
            machine.acquire(&mut store).unwrap();
            let report = store.check(&space(), START_MS).unwrap();
            let reason = "the file system is nfs".to_owned();
            assert_eq!(report.durability, Durability::BestEffort { reason });
        });
        assert_eq!(warnings.0.load(Relaxed), 1);

        refused(machine.acquire(&mut strict).unwrap_err());
        refused(strict.check(&space(), START_MS).unwrap_err());
        let mut local = machine.store(&OpenOptions::new());
        let report = local.check(&space(), START_MS).unwrap();
        assert_eq!(report.durability, Durability::Durable);
    }
}
