//! All operations of a store, implemented over any [`Table`]. The design and the proofs are at
//! the head of [`table`](crate::lease::store::table).

mod acquire;
mod attempts;
mod cache;
mod changes;
mod selection;

use std::time::Duration;

use self::attempts::Attempts;
use self::cache::{CachedRecord, ValueCache};
use self::selection::BlockSelection;
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::grant::Grant;
use crate::lease::namespace::Namespace;
use crate::lease::store::format::{encode_block, encode_record, judge_block, read_mark};
use crate::lease::store::key::StoreKey;
use crate::lease::store::lease_store::LeaseStore;
use crate::lease::store::quarantine::{Judged, Quarantined};
use crate::lease::store::record::StoreRecord;
use crate::lease::store::report::{Listing, StoreReport};
use crate::lease::store::request::{Acquire, Floor, Init, Renew};
use crate::lease::store::table::{
    Blocks, Commit, Key, Put, Query, Snapshot, StoreTime, Table, Txn,
};
use crate::lease::store::voucher::Voucher;

/// A store of leases over a table.
///
/// # Contention
/// If a compared value has changed when an operation commits, the operation is decided again.
/// Two processes that ask for the same block at once conflict, and so does a raised floor.
/// Blocks are selected at random, so few processes pick the same ones. An
/// operation that still conflicts after its [patience](Self::with_patience) is
/// [`StoreError::Unavailable`], and nothing was done.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use ringflake::lease::{
///     Acquire, Fingerprint, History, Init, Leases, LeaseStore, Namespace, table::MemoryTable,
/// };
/// use ringflake::{Clock, Layout, SystemClock};
///
/// let now = SystemClock.unix_ms();
/// let mut store = Leases::over(MemoryTable::new(Arc::new(SystemClock)));
/// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
/// store.init(&orders, &Init::new(History::New, now))?;
/// assert_eq!(store.acquire(&orders, &Acquire::new(3, 60, now))?.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Leases<T> {
    table: T,
    selection: BlockSelection,
    cache: ValueCache,
    patience: Duration,
    /// Nothing depends on how long calls take.
    is_repeatable: bool,
}

/// A namespace's record as it was read, with the server's state.
#[derive(Debug)]
struct Opened {
    record: StoreRecord,
    /// The record's value.
    value: String,
    snapshot: Snapshot,
}

impl<T> Leases<T> {
    /// The leases in this table. Free blocks are granted in random order.
    pub fn over(table: T) -> Self {
        Self {
            table,
            selection: BlockSelection::random(),
            cache: ValueCache::default(),
            patience: Duration::from_secs(5),
            is_repeatable: false,
        }
    }

    /// How long an operation is decided again after conflicts, 5 seconds by default. Each call
    /// of the table has the table's own time-out beside that.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Selects free blocks by this seed, gives up after 1,000 conflicts, and ignores how long
    /// calls take: for tests that must be repeatable.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.selection = BlockSelection::seeded(seed);
        self.is_repeatable = true;
        self
    }

    /// The leases in a table that nobody else uses. The lowest free block is granted first.
    pub(in crate::lease) fn in_order(table: T) -> Self {
        let mut leases = Self::over(table);
        leases.selection = BlockSelection::Lowest;
        leases.is_repeatable = true;
        leases
    }

    /// The leases in a table that few use at once: the lowest free block is granted first, and
    /// after a conflict a random one.
    #[cfg(feature = "sqlite")]
    pub(in crate::lease) fn lowest_first(table: T) -> Self {
        let mut leases = Self::over(table);
        leases.selection = BlockSelection::lowest_first();
        leases
    }

    fn attempts(&self) -> Attempts {
        Attempts::new(self.patience, self.is_repeatable)
    }

    /// The table.
    pub fn table(&self) -> &T {
        &self.table
    }

    /// The table alone.
    pub fn into_table(self) -> T {
        self.table
    }

    /// The table, to change how it is reached.
    pub fn table_mut(&mut self) -> &mut T {
        &mut self.table
    }
}

impl<T: Table> Leases<T> {
    fn init_as(
        &mut self,
        namespace: &Namespace,
        init: &Init,
        voucher: Voucher,
    ) -> Result<StoreRecord, StoreError> {
        // Before anything is sent.
        init.limits.validate(namespace.layout())?;
        let mut attempts = self.attempts();
        let claims = namespace.claims(&init.same_secret);
        let key = Key::record(namespace.name());
        let secrets: Vec<_> = claims.iter().map(|&claimed| Key::secret(claimed)).collect();
        let query = Query {
            keys: std::iter::once(&key).chain(&secrets).cloned().collect(),
            blocks: Some(Blocks::Lowest {
                namespace: namespace.name().to_owned(),
                limit: 1,
                window: 0..0,
            }),
        };
        let mut snapshot = self.table.read(&query)?;
        loop {
            if snapshot.entries.contains_key(&key) {
                return Err(namespace.already_initialised());
            }
            if voucher.is_doubtful(init) {
                let durability = self.table.describe()?.durability;
                voucher.check(namespace, init, durability)?;
            }
            let time = attempts.time(&snapshot)?;
            let incarnation = &snapshot.incarnation;
            let record = StoreRecord::create_at(namespace, init, incarnation, time.unix_ms)?;
            let mut txn = Txn {
                compare: vec![(key.clone(), None)],
                incarnation: Some(incarnation.clone()),
                not_after_unix_ms: latest(&record, time),
                creates: true,
                ..Txn::default()
            };
            for (secret, &claimed) in secrets.iter().zip(&claims) {
                let owner = snapshot.entries.get(secret).cloned();
                namespace.check_secret(claimed, owner.as_deref())?;
                txn.compare.push((secret.clone(), owner));
            }
            if voucher.is_doubtful(init) {
                refuse_traces(namespace, &snapshot, secrets.first())?;
            }
            let client_ms = init.now_unix_ms;
            record.check_skew(time.nearest(client_ms), client_ms)?;
            txn.put(key.clone(), encode_record(&record), None);
            if let Some(own) = secrets.first() {
                txn.put(own.clone(), namespace.name().to_owned(), None);
            }
            match self.commit("init", &txn, &query)? {
                None => return Ok(record),
                Some(next) => snapshot = next,
            }
            attempts.again(&txn, &snapshot)?;
        }
    }

    /// Commits. Returns the other snapshot on a conflict.
    fn commit(
        &mut self,
        operation: &'static str,
        txn: &Txn,
        instead: &Query,
    ) -> Result<Option<Snapshot>, StoreError> {
        match self.table.commit(txn, instead)? {
            Commit::Done => Ok(None),
            Commit::Conflict(snapshot) => Ok(Some(snapshot)),
            Commit::Unknown(source) => Err(StoreError::Ambiguous { operation, source }),
        }
    }

    /// Decodes and verifies the record in a snapshot.
    fn open(&mut self, namespace: &Namespace, snapshot: Snapshot) -> Result<Opened, StoreError> {
        let CachedRecord { record, value, .. } = self.cache.read(namespace, &snapshot)?;
        Ok(Opened {
            record,
            value,
            snapshot,
        })
    }

    /// Reads the record and every block that was granted.
    fn read_all(&mut self, namespace: &Namespace) -> Result<Opened, StoreError> {
        let query = Query {
            keys: vec![Key::record(namespace.name()), Key::check(namespace.name())],
            blocks: Some(Blocks::All {
                namespace: namespace.name().to_owned(),
            }),
        };
        let snapshot = self.table.read(&query)?;
        self.open(namespace, snapshot)
    }

    /// Reads the record and `keys`, commits what `decide` returns, and retries after a conflict.
    fn change<A>(
        &mut self,
        operation: &'static str,
        namespace: &Namespace,
        keys: &[Key],
        mut decide: impl FnMut(&mut Opened, &Attempts) -> Result<(Txn, A), StoreError>,
    ) -> Result<A, StoreError> {
        let mut attempts = self.attempts();
        let query = Query {
            keys: std::iter::once(Key::record(namespace.name()))
                .chain(keys.iter().cloned())
                .collect(),
            blocks: None,
        };
        let mut snapshot = self.table.read(&query)?;
        loop {
            let mut opened = self.open(namespace, snapshot)?;
            let (txn, answer) = decide(&mut opened, &attempts)?;
            match self.commit(operation, &txn, &query)? {
                None => return Ok(answer),
                Some(next) => snapshot = next,
            }
            attempts.again(&txn, &snapshot)?;
        }
    }
}

impl Opened {
    /// A transaction that compares the record, and requires the incarnation.
    fn txn(&self) -> Txn {
        Txn {
            compare: vec![(self.key(), Some(self.value.clone()))],
            incarnation: Some(self.snapshot.incarnation.clone()),
            ..Txn::default()
        }
    }

    fn key(&self) -> Key {
        Key::record(self.record.namespace.name())
    }

    /// Whether it is a copy of the table that granted, which may still grant.
    fn is_copy(&self) -> bool {
        let found = &self.snapshot.incarnation;
        found.is_copy_of(&self.record.incarnation)
    }

    /// The record as it is now, to be written.
    fn put(&self) -> Put {
        Put {
            key: self.key(),
            value: encode_record(&self.record),
            rank: None,
        }
    }

    /// A store's time in ticks, once the caller's clock was compared with it.
    fn now_near(&self, time: StoreTime, client_unix_ms: u64) -> Result<u64, StoreError> {
        let now = self.record.tick_at(time.unix_ms)?;
        let nearest = time.nearest(client_unix_ms);
        self.record.check_skew(nearest, client_unix_ms)?;
        Ok(now)
    }

    /// A block that was read, judged; none if it was never granted.
    fn judge(&self, block: Block) -> Option<Judged> {
        let namespace = &self.record.namespace;
        let value = self
            .snapshot
            .entries
            .get(&Key::block(namespace.name(), block))?;
        Some(judge_block(namespace, block, value))
    }

    /// Every block, judged, in order; and entries that are of no block.
    fn blocks(&self) -> impl Iterator<Item = Judged> {
        let namespace = &self.record.namespace;
        let prefix = Key::blocks(namespace.name());
        let entries = self.snapshot.entries.iter();
        let entries = entries.filter(move |(key, _)| key.as_str().starts_with(&prefix));
        entries.map(|(key, value)| match key.to_block(namespace.name()) {
            Some(block) => judge_block(namespace, block, value),
            None => {
                let reason = format!("key {:?} is of no block", key.as_str());
                Err(Quarantined::of_no_block(reason))
            }
        })
    }
}

impl Txn {
    fn put(&mut self, key: Key, value: String, rank: Option<u64>) {
        self.puts.push(Put { key, value, rank });
    }

    /// Writes a block that must have this value, or none.
    fn put_block(&mut self, namespace: &Namespace, before: Option<String>, after: &BlockState) {
        let key = Key::block(namespace.name(), after.block);
        self.compare.push((key.clone(), before));
        self.put(key, encode_block(after), Some(after.hwm_end));
    }
}

impl<T: Table> LeaseStore for Leases<T> {
    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        self.init_as(namespace, init, Voucher::Person)
    }

    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        self.init_as(namespace, init, Voucher::Program)
    }

    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        self.acquire_many(namespace, acquire)
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        self.renew_one(namespace, renew)
    }

    fn renew_all(&mut self, renewals: &[(&Namespace, &Renew)]) -> Vec<Result<u64, StoreError>> {
        self.renew_many(renewals)
    }

    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        self.release_one(namespace, block, epoch)
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        let opened = self.read_all(namespace)?;
        Ok(Listing::of_judged(opened.record.clone(), opened.blocks()))
    }

    fn repair(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        let key = Key::block(namespace.name(), block);
        self.change(
            "repair",
            namespace,
            std::slice::from_ref(&key),
            |opened, attempts| {
                let time = attempts.time(&opened.snapshot)?;
                let now = opened.now_near(time, now_unix_ms)?;
                let Some(Err(Quarantined { block: Some(_), .. })) = opened.judge(block) else {
                    return Err(StoreError::NotQuarantined { block });
                };
                let value = opened.snapshot.entries.get(&key).cloned();
                let mark = value.as_deref().and_then(read_mark);
                let repaired = opened.record.repaired(now, block, mark);
                let mut txn = opened.txn();
                txn.incarnation = None;
                txn.not_after_unix_ms = latest(&opened.record, time);
                txn.put_block(namespace, value, &repaired);
                Ok((txn, repaired))
            },
        )
    }

    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        self.change("raise_floor", namespace, &[], |opened, attempts| {
            let mut txn = opened.txn();
            txn.incarnation = None;
            let time = match floor {
                Floor::OverLostGrants | Floor::Tick(_) => Some(attempts.time(&opened.snapshot)?),
                // Whatever the clocks show.
                Floor::AnyTick(_) => None,
            };
            let now = match time {
                Some(time) => {
                    txn.not_after_unix_ms = latest(&opened.record, time);
                    opened.now_near(time, now_unix_ms)?
                }
                None => 0,
            };
            if floor == Floor::OverLostGrants {
                // Whatever was lost lies below it: nothing is left to observe.
                let incarnation = opened.snapshot.incarnation.clone();
                opened.record.observe(&incarnation, now);
                txn.incarnation = Some(incarnation);
                txn.adopts = true;
            }
            opened.record.raise_floor(floor, now)?;
            txn.puts.push(opened.put());
            Ok((txn, opened.record.floor))
        })
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        let store = self.table.describe()?;
        let attempts = self.attempts();
        let opened = self.read_all(namespace)?;
        let time = attempts.time(&opened.snapshot)?;
        let now = opened.record.tick_at(time.unix_ms)?;
        let listing = Listing::of_judged(opened.record.clone(), opened.blocks());
        let held = listing.blocks.iter().filter(|block| block.is_held(now));
        Ok(StoreReport {
            store: store.store,
            incarnation: opened.snapshot.incarnation.clone(),
            durability: store.durability,
            is_copy: store.is_copy || opened.is_copy(),
            store_unix_ms: Some(time.nearest(now_unix_ms)),
            client_unix_ms: now_unix_ms,
            granted_blocks: listing.blocks.len() as u64,
            held_blocks: held.count() as u64,
            quarantined: listing.quarantined,
            record: listing.record,
        })
    }

    fn write_test(&mut self, namespace: &Namespace, now_unix_ms: u64) -> Result<(), StoreError> {
        self.change("write_test", namespace, &[], |opened, _| {
            let mut txn = opened.txn();
            txn.incarnation = None;
            let value = format!("{{\"checked_unix_ms\":{now_unix_ms}}}");
            txn.put(Key::check(namespace.name()), value, None);
            Ok((txn, ()))
        })
    }

    fn key(&self) -> Option<StoreKey> {
        self.table.key()
    }

    fn rest(&mut self, at_least: Duration) {
        self.table.rest(at_least);
    }
}

/// The latest time at which a mark or a floor that was computed from this time still lies
/// above all that it must. The failover time covers twice the skew.
fn latest(record: &StoreRecord, time: StoreTime) -> u64 {
    time.unix_ms.saturating_add(record.limits.skew_ms())
}

/// Rejects a program's claim that there is no history if its secret or blocks are still there.
fn refuse_traces(
    namespace: &Namespace,
    snapshot: &Snapshot,
    own_secret: Option<&Key>,
) -> Result<(), StoreError> {
    if own_secret.is_some_and(|key| snapshot.entries.contains_key(key)) {
        let reason = "its secret is noted as its own, though its record is missing";
        return Err(namespace.history_unknown(reason));
    }
    let prefix = Key::blocks(namespace.name());
    let mut keys = snapshot.entries.keys();
    if keys.any(|key| key.as_str().starts_with(&prefix)) {
        let reason = "there are blocks of it, though its record is missing";
        return Err(namespace.history_unknown(reason));
    }
    Ok(())
}
