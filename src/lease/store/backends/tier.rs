//! A store between the processes of a machine and the store of the cluster.
//!
//! The machine holds blocks of the upstream store, and keeps their grants in one place, its
//! grant log. Its processes get sub-grants of them. So they start, restart
//! and go on while the upstream store is away, for as long as the machine's own grants
//! reach; and a process needs no connection to the cluster's store to be covered.
//!
//! # States of an upstream grant
//! ```text
//!    a reply is            renewed: the longer          renewal ambiguous,
//!    written down          end is written down          or the store lost its history
//!   -------------> held --------------------> held ----------------------> draining
//!                   |                                                         |
//!                   +-- somebody else moved the end or has the block ---------+
//!                   |                                                         |
//!                   +-- the grant log is a copy ------------------------------+--> closed
//! ```
//! Of held and draining ones sub-grants are made, up to the end on record; only held
//! ones are renewed. A block that the upstream store grants again takes the place of
//! the grant before, whatever that was.
//!
//! # Why no ID is issued twice
//! *Each sub-grant lies inside one upstream grant whose reply is durable.* It is cut to
//! `[start, end)` of the upstream grant on record, in the transaction that writes it
//! down ([`GrantLog::acquire`]); a renewal moves it only if its end lies in that grant,
//! and not past the grant's ([`GrantLog::limit_of`]). Upstream ends are written only
//! from positive replies, in a transaction of their own, before.
//!
//! *Sub-grants of one grant log are disjoint.* The grant log is a store of its own, with the
//! rules S1 to S8 on each block's mark, one transaction a step. The mark of a block
//! stays where it is when another upstream grant of the block comes: that begins at or
//! after the end of the one before (S1 upstream), and so at or after the mark
//! ([`GrantLog::adopt`] checks both).
//!
//! *Grant logs are disjoint.* Upstream grants are, by S1 to S8 of the upstream store.
//!
//! *A grant log that is lost* has taken its upstream grants with it: the next grant log of
//! the machine has others. So none need ever be initialised by hand.
//!
//! *A grant log that is copied* is detected by its place, like any file of the
//! [`SqliteStore`](crate::lease::SqliteStore). It then closes all of its upstream grants, and is as
//! good as lost.
//!
//! *A grant log that may be an older state of itself* keeps its upstream grants. They are this
//! machine's, whatever the log has forgotten of them since. It raises its floor over all sub-grants
//! that may be lost, which end within its horizon (S7), before it makes or renews any. Where the
//! place can't tell, because a machine was resumed with its memory, the confirmations of its
//! processes count as evidence (S8). After the first renewal of one of two copies, the upstream
//! store fences the other, which closes the grant. But sub-grants that both passed on until then
//! exist twice. [`raise_floor`](LeaseStore::raise_floor) on the tier, run before anything else,
//! prevents that.
//!
//! *A process that has ended* has its sub-grants released, which is a release like any other: the
//! next sub-grant begins at the mark.
//!
//! *A process that dies between a reply and its transaction* leaves an upstream grant
//! shorter on record than it is, or unknown. Nobody uses the difference.
//!
//! *Clocks* decide nothing but where a sub-grant starts, which is never below the mark.

#[cfg(feature = "sqlite")]
mod alive;
#[cfg(feature = "sqlite")]
mod file;
mod grant_log;
mod memory;
mod operation;
mod requests;
mod storage;
#[cfg(all(test, feature = "conformance"))]
mod tests;
mod upstream;
#[cfg(feature = "sqlite")]
mod values;

use std::time::Duration;

use self::grant_log::{AcquireStep, Caller, GrantLog};
pub use self::memory::{MemoryTier, TierSnapshot};
use self::operation::Operation;
use self::requests::{describe, refusal};
use self::storage::TierStorage;
use crate::events::Throttle;
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::events;
use crate::lease::grant::Grant;
use crate::lease::namespace::Namespace;
use crate::lease::store::key::StoreKey;
use crate::lease::store::lease_store::LeaseStore;
#[cfg(feature = "sqlite")]
use crate::lease::store::leases::Leases;
#[cfg(feature = "sqlite")]
use crate::lease::store::options::{OpenError, OpenOptions};
use crate::lease::store::record::StoreRecord;
use crate::lease::store::report::{Listing, StoreReport};
use crate::lease::store::request::{Acquire, Floor, History, Init, Renew};
#[cfg(feature = "sqlite")]
use crate::lease::store::table::sqlite::{Kind, SqliteTable};

/// How far a sub-grant reaches by default. A process that died leaves its block this far ahead of
/// the clock at most, which is less than a generator may borrow by default.
const SUB_GRANT: Duration = Duration::from_secs(120);

/// A store for the processes of one machine, fed by the store of the cluster.
///
/// The processes share a file, as with `SqliteStore` and under the same demands on the
/// disk. In it lie blocks that the upstream store has granted
/// to the machine, and a process is given sub-grants of them. Whichever process renews
/// while something is due upstream does that, too. So processes start, crash and are
/// replaced while the upstream store is away, until the machine's grants end. The
/// [guide](crate::lease::guide::tier) says how long that is, what it costs, and what happens to a
/// file that was lost, copied or put back.
///
/// A sub-grant reaches two minutes ahead at most, whatever the generator asks for;
/// [`with_sub_grants`](Self::with_sub_grants) sets another length.
///
/// # As a store
/// [`init`](LeaseStore::init) is the upstream store's. Ticks of the [past](Acquire::past) are
/// granted by the upstream store alone: a tier refuses them with
/// [`StoreError::PresentOnly`]. All else is about the machine: the listing shows sub-grants, the
/// floor is that of the file. [`StoreError::Exhausted`] and [`StoreError::FloorAhead`] are
/// answers of either. [`StoreError::Unavailable`] says that nothing is left of what the machine
/// has, and that the upstream store can't be had.
///
/// An operation takes as long as the upstream store's own time-out beside the file's. A renewal asks
/// it on behalf of the machine, one process at a time; so does an acquisition while it fails, at most
/// once every few seconds.
///
/// # Examples
/// ```
/// # #[cfg(feature = "sqlite")] {
/// use std::sync::Arc;
/// use ringflake::lease::{
///     Acquire, Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace, OpenOptions,
///     TierStore,
/// };
/// use ringflake::{Clock, Layout, SystemClock};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("tier.db");
/// // In the place of the cluster's store.
/// let mut cluster = MemoryStore::new(Arc::new(SystemClock));
/// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
/// cluster.init(&orders, &Init::new(History::New, SystemClock.unix_ms()))?;
///
/// // The examples run on any file system. Leave this out.
/// let options = OpenOptions::new().accept_best_effort(true);
/// let mut tier = TierStore::new(path, Box::new(cluster), &options)?;
/// let grants = tier.acquire(&orders, &Acquire::new(1, 60, SystemClock.unix_ms()))?;
/// assert_eq!(grants[0].to_lease(&orders)?.nodes(), 0..32);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TierStore {
    storage: TierStorage,
    upstream: Box<dyn LeaseStore>,
    sub_grant: Duration,
    failures: Throttle,
    /// None unless a URL says all there is to say.
    key: Option<StoreKey>,
}

impl TierStore {
    /// The tier in the file at `path`, over the store `upstream`. Touches no file.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] for a path that can't name a file.
    #[cfg(feature = "sqlite")]
    pub fn new(
        path: impl AsRef<std::path::Path>,
        upstream: Box<dyn LeaseStore>,
        options: &OpenOptions,
    ) -> Result<Self, OpenError> {
        let table = SqliteTable::new(Kind::Tier, path.as_ref(), options)?;
        let file = Leases::over(table).with_patience(options.operation_timeout());
        Ok(Self::at(TierStorage::File(Box::new(file)), upstream))
    }

    /// With this key, of a tier of which a URL says all there is to say.
    #[cfg(feature = "sqlite")]
    pub(super) fn with_key(mut self, key: Option<StoreKey>) -> Self {
        self.key = key;
        self
    }

    /// With another clock than the machine's, for tests.
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn with_clock(mut self, clock: std::sync::Arc<dyn crate::clock::Clock>) -> Self {
        if let TierStorage::File(file) = &mut self.storage {
            file.table_mut().set_clock(clock);
        }
        self.key = None;
        self
    }

    /// The tier in the memory of this process, for tests.
    pub fn in_memory(machine: &MemoryTier, upstream: Box<dyn LeaseStore>) -> Self {
        Self::at(TierStorage::Memory(machine.clone()), upstream)
    }

    fn at(storage: TierStorage, upstream: Box<dyn LeaseStore>) -> Self {
        Self {
            storage,
            upstream,
            sub_grant: SUB_GRANT,
            failures: Throttle::new(),
            key: None,
        }
    }

    /// With sub-grants that reach so far ahead at most: from one tick to the upstream
    /// store's horizon, two minutes by default. Noted in the file when it is made, and
    /// for as long as it exists.
    #[must_use]
    pub fn with_sub_grants(mut self, length: Duration) -> Self {
        self.sub_grant = length;
        self.key = None;
        self
    }

    /// Runs a step on the grant log, which is made if there is none.
    fn change<T>(
        &mut self,
        operation: Operation,
        namespace: &Namespace,
        mut step: impl FnMut(&mut GrantLog, &Caller) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.storage.change(operation, namespace, &mut step) {
            Err(StoreError::NotInitialised { .. }) => {
                let now_unix_ms = self.storage.unix_ms();
                let upstream = self.upstream.check(namespace, now_unix_ms)?.record;
                self.storage.create(self.first(upstream, now_unix_ms))?;
                self.storage.change(operation, namespace, &mut step)
            }
            answer => answer,
        }
    }

    /// Adopts a copied file for the tier, as every step on the grant log does.
    fn adopt(&mut self, namespace: &Namespace) -> Result<(), StoreError> {
        (self.storage).change(Operation::ADOPT, namespace, |_, _| Ok(()))
    }

    /// The grant log of a machine that has nothing yet.
    fn first(&self, upstream: StoreRecord, unix_ms: u64) -> GrantLog {
        let now = upstream.tick_at(unix_ms).unwrap_or(0);
        let tick = Duration::from_millis(upstream.namespace.layout().tick_ms());
        let horizon = upstream.limits.horizon();
        let reach = upstream.limits.horizon_ms() / upstream.namespace.layout().tick_ms();
        let limits = (upstream.limits).with_horizon(self.sub_grant.max(tick).min(horizon));
        let first_epoch = Epoch::new(now.max(Epoch::FIRST.get()));
        GrantLog::new(StoreRecord { limits, ..upstream }, first_epoch, reach)
    }
}

impl LeaseStore for TierStore {
    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        self.upstream.init(namespace, init)?;
        self.change(Operation::INIT, namespace, |log, _| Ok(log.record.clone()))
    }

    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        let mut init = init.clone();
        // This machine has had leases of it: if it is gone, it was lost.
        match self.storage.leases(|store| store.list(namespace)) {
            Err(StoreError::NotInitialised { .. }) => {}
            Ok(_) => init.history = History::Unknown,
            Err(error) => return Err(error),
        }
        self.upstream.init_if_new(namespace, &init)?;
        self.change(Operation::INIT, namespace, |log, _| Ok(log.record.clone()))
    }

    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        acquire.validate()?;
        if acquire.past.is_some() {
            // It has upstream grants of the present, and sub-grants lie inside of them.
            let store = "a tier of leases".to_owned();
            return Err(StoreError::PresentOnly { store });
        }
        let step = self.change(Operation::ACQUIRE, namespace, |log, at| {
            log.acquire(at, acquire)
        })?;
        let (request, is_probe) = match step {
            AcquireStep::Granted(grants) => return Ok(grants),
            AcquireStep::Ask { request, is_probe } => (request, is_probe),
        };
        let there = match is_probe {
            true => self
                .upstream
                .check(namespace, self.storage.unix_ms())
                .map(drop),
            false => Ok(()),
        };
        let asked = there.and_then(|()| self.ask(namespace, request, acquire.holder.as_ref()));
        if let Err(error) = &asked {
            self.log_failure(error);
        }
        // In one step, so that no other process takes the blocks asked for here.
        let (granted, is_spent, before) =
            self.change(Operation::ACQUIRE, namespace, |log, at| {
                let before = log.upstream_state.failing.clone();
                // Another refusal is an answer.
                let failing = asked.as_ref().err().filter(|error| error.is_away());
                let failing = failing.map(describe);
                match is_probe {
                    true => log.upstream_state.end(at.unix_ms, failing),
                    false => log.upstream_state.note(at.unix_ms, failing),
                }
                if let Ok(grants) = &asked {
                    log.adopt(grants)?;
                }
                let granted = log.grant(at, acquire);
                Ok((granted, log.is_spent(at), before))
            })?;
        if let (Ok(_), Some(before)) = (&asked, before) {
            events::upstream_recovered(before.since_unix_ms);
        }
        match (granted, asked) {
            (Err(ours), Err(theirs)) => Err(refusal(ours, theirs, is_spent)),
            (granted, _) => granted,
        }
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        renew.validate()?;
        let (first, due) = self.change(Operation::RENEW, namespace, |log, at| {
            Ok((log.renew(at, renew)?, log.due_requests(at)))
        })?;
        let Some(due) = due else {
            return first.end();
        };
        self.run(namespace, due);
        if first.cut_off.is_none() {
            return first.end();
        }
        // The upstream grant may reach further now.
        let again = |log: &mut GrantLog, at: &Caller| log.renew(at, renew);
        self.change(Operation::RENEW, namespace, again)?.end()
    }

    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        self.change(Operation::RELEASE, namespace, |log, _| {
            log.release(block, epoch)
        })
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        match self.storage.leases(|store| store.list(namespace)) {
            Err(StoreError::NotInitialised { .. }) => {
                let now_unix_ms = self.storage.unix_ms();
                let upstream = self.upstream.check(namespace, now_unix_ms)?.record;
                Ok(Listing::new(
                    self.first(upstream, now_unix_ms).record,
                    Vec::new(),
                ))
            }
            listing => listing,
        }
    }

    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        self.change(Operation::RAISE, namespace, |log, at| {
            if floor.heeds_clocks() {
                log.record.check_skew(at.arrived_unix_ms, now_unix_ms)?;
            }
            if floor == Floor::OverLostGrants {
                let here = log.record.incarnation.clone();
                log.forget(&here, at.unix_ms);
            }
            let now = log.record.tick_at(at.unix_ms)?;
            log.record.raise_floor(floor, now)?;
            Ok(log.record.floor)
        })
    }

    fn repair(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        self.adopt(namespace)?;
        self.storage
            .leases(|store| store.repair(namespace, block, now_unix_ms))
    }

    /// About the file, and the upstream store only where there is no file yet.
    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        match self
            .storage
            .leases(|store| store.check(namespace, now_unix_ms))
        {
            Err(StoreError::NotInitialised { .. }) => {
                let mut report = self.upstream.check(namespace, now_unix_ms)?;
                (report.granted_blocks, report.held_blocks) = (0, 0);
                report.record = self.first(report.record, now_unix_ms).record;
                Ok(report)
            }
            report => report,
        }
    }

    /// Of the file; of the upstream store where there is no file yet.
    fn write_test(&mut self, namespace: &Namespace, now_unix_ms: u64) -> Result<(), StoreError> {
        let adopted = self.adopt(namespace);
        match adopted.and_then(|()| {
            self.storage
                .leases(|store| store.write_test(namespace, now_unix_ms))
        }) {
            Err(StoreError::NotInitialised { .. }) => {
                self.upstream.write_test(namespace, now_unix_ms)
            }
            tested => tested,
        }
    }

    fn key(&self) -> Option<StoreKey> {
        self.key.clone()
    }

    fn rest(&mut self, at_least: Duration) {
        self.upstream.rest(at_least);
    }
}
