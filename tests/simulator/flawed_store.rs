//! The library's store over a table that can be made to break a rule.
//!
//! Every rule of a store is in `Leases`, which runs here as it is. A mutation takes one away
//! from outside: the table shows other values than it holds, or writes others than it is
//! given. Where it shows another value, a commit that compares that one is compared with the
//! value that is stored.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringflake::ManualClock;
use ringflake::lease::table::{
    Commit, Description, Key, MemoryTable, Put, Query, Snapshot, Table, Txn,
};
use ringflake::lease::{
    Acquire, Block, Confirmed, Grant, Incarnation, Init, LeaseStore, Leases, Listing,
    MemorySnapshot, MemoryStore, Namespace, Renew, StoreError, StoreRecord,
};
use serde_json::{Map, Value};

use crate::mutations::{Mutation, Promise};
use crate::oracle::{Violation, broken};
use crate::scenario::{LAYOUT, OTHER_SECRET, START_MS, namespace, tick};

/// The connection of those that are no process: operators, impostors, imports.
pub(crate) const OTHERS: usize = usize::MAX;

#[derive(Debug)]
pub(crate) struct FlawedStore {
    memory: MemoryStore,
    clock: ManualClock,
    mutation: Option<Mutation>,
    notes: Arc<Mutex<Notes>>,
    connections: BTreeMap<usize, Leases<FlawedTable>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Contents {
    memory: MemorySnapshot,
    notes: Notes,
}

/// What only a flawed server keeps.
#[derive(Clone, Debug, Default)]
struct Notes {
    /// When the holder's time is up, by block.
    times_up: BTreeMap<u64, u64>,
    acquired: BTreeMap<u64, Vec<Grant>>,
    renewed: BTreeMap<u64, u64>,
}

/// All that a server and the connections to it can remember, to go on from it more than once.
/// The state that connections share with the server is restored with it.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    contents: Contents,
    connections: BTreeMap<usize, Leases<FlawedTable>>,
}

/// The moment of a request, and what distinguishes it from all others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) unix_ms: u64,
    /// The time that passes whatever the clock shows, for TTLs.
    pub(crate) uptime_ms: u64,
    pub(crate) token: u64,
}

/// Another acquisition, between the read of a request and its commit.
#[derive(Debug, Default)]
pub(crate) struct Rival {
    /// What it knows, until it acts.
    evidence: Option<Vec<Confirmed>>,
    /// The reply to it.
    answer: Option<Result<Vec<Grant>, StoreError>>,
}

impl Clone for Rival {
    /// A copy of a process has none.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl FlawedStore {
    pub(crate) fn new(namespace: &Namespace, init: &Init, mutation: Option<Mutation>) -> Self {
        let mut store = Self::empty(mutation);
        store.clock.set(init.now_unix_ms);
        let made = store.memory.init(namespace, init);
        made.expect("the limits are valid");
        store
    }

    fn empty(mutation: Option<Mutation>) -> Self {
        let clock = ManualClock::new(0);
        Self {
            memory: MemoryStore::new(Arc::new(clock.clone())),
            clock,
            mutation,
            notes: Arc::default(),
            connections: BTreeMap::new(),
        }
    }

    pub(crate) fn snapshot(&self) -> MemorySnapshot {
        self.memory.snapshot()
    }

    pub(crate) fn contents(&self) -> Contents {
        Contents {
            memory: self.snapshot(),
            notes: lock(&self.notes).clone(),
        }
    }

    pub(crate) fn restore(&mut self, contents: &Contents) {
        self.memory.restore(&contents.memory);
        lock(&self.notes).clone_from(&contents.notes);
    }

    pub(crate) fn memory(&self) -> Memory {
        Memory {
            contents: self.contents(),
            connections: self.connections.clone(),
        }
    }

    pub(crate) fn remember(&mut self, memory: &Memory) {
        self.restore(&memory.contents);
        self.connections.clone_from(&memory.connections);
    }

    pub(crate) fn disconnect(&mut self, process: usize) {
        self.connections.remove(&process);
    }

    /// A commit arrives whose process waits for it no longer.
    pub(crate) fn arrive(&mut self, txn: &Txn, unix_ms: u64) {
        self.clock.set(unix_ms);
        let done = self.memory.table().clone().commit(txn, &Query::default());
        done.expect("it is in memory");
    }

    /// Another server of the same service, with these contents.
    pub(crate) fn promote(&self, contents: &Contents) -> Self {
        let mut other = Self::empty(self.mutation);
        other.restore(contents);
        other
    }

    pub(crate) fn set_incarnation(&mut self, incarnation: Incarnation) {
        self.memory.set_incarnation(incarnation);
    }

    pub(crate) fn damage(&mut self, namespace: &Namespace, block: Block) -> bool {
        self.memory.damage(namespace, block)
    }

    pub(crate) fn listing(&mut self, namespace: &Namespace) -> Listing {
        self.memory.list(namespace).expect("it was made")
    }

    /// The connection of a copy of a process knows what that of the original knew.
    pub(crate) fn copy_connection(&mut self, original: usize, copy: usize) {
        if let Some(known) = self.connections.get(&original) {
            self.connections.insert(copy, known.clone());
        }
    }

    pub(crate) fn connect(&mut self, process: usize, now: Now) -> Connection<'_> {
        self.clock.set(now.unix_ms);
        let new = || {
            let table = FlawedTable {
                table: self.memory.table().clone(),
                mutation: self.mutation,
                notes: Arc::clone(&self.notes),
                now,
                operation: Operation::Other,
                shown: BTreeMap::new(),
                overlay: None,
                rival: Rival::default(),
                commits_until_loss: None,
                under_way: None,
            };
            Leases::over(table).with_seed(process as u64)
        };
        let leases = self.connections.entry(process).or_insert_with(new);
        leases.table_mut().now = now;
        Connection {
            leases,
            memory: &mut self.memory,
            mutation: self.mutation,
            notes: &self.notes,
            now,
        }
    }
}

/// The store as one process sees it during one request.
#[derive(Debug)]
pub(crate) struct Connection<'a> {
    leases: &'a mut Leases<FlawedTable>,
    memory: &'a mut MemoryStore,
    mutation: Option<Mutation>,
    notes: &'a Mutex<Notes>,
    now: Now,
}

impl Connection<'_> {
    /// Lets a process that knows this much acquire a block before the first commit.
    pub(crate) fn with_rival(self, evidence: Vec<Confirmed>) -> Self {
        self.leases.table_mut().rival.evidence = Some(evidence);
        self
    }

    pub(crate) fn take_rival(&mut self) -> Option<Result<Vec<Grant>, StoreError>> {
        std::mem::take(&mut self.leases.table_mut().rival).answer
    }

    /// Chooses among blocks by this seed from now on.
    pub(crate) fn seeded(self, seed: u64) -> Self {
        *self.leases = self.leases.clone().with_seed(seed);
        self
    }

    /// Loses the reply to a commit, after this many that are answered. It is
    /// [under way](Self::take_under_way) then.
    pub(crate) fn losing(self, after: u32) -> Self {
        self.leases.table_mut().commits_until_loss = Some(after);
        self
    }

    pub(crate) fn take_under_way(&mut self) -> Option<Txn> {
        let table = self.leases.table_mut();
        table.commits_until_loss = None;
        table.under_way.take()
    }

    /// S5: one with another secret asks for a block.
    pub(crate) fn resist(mut self, space: &Namespace) -> Result<(), Violation> {
        let other = namespace(OTHER_SECRET, space.block_bits());
        let acquire = Acquire::new(1, 5, self.now.unix_ms);
        match self.acquire(&other, &acquire) {
            Err(StoreError::FingerprintMismatch { .. }) => Ok(()),
            other => broken(
                Promise::S5,
                format!("another secret was answered {other:?}"),
            ),
        }
    }

    pub(crate) fn repair_all(mut self, space: &Namespace, listing: &Listing) {
        let now_ms = self.now.unix_ms;
        for found in &listing.quarantined {
            let block = found.block.expect("every record is of a block");
            let repaired = self.repair(space, block, now_ms);
            assert!(repaired.expect("it is quarantined").released);
        }
    }

    fn lacks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    fn begin(&mut self, operation: Operation) {
        let table = self.leases.table_mut();
        table.operation = operation;
        table.shown.clear();
        table.overlay = None;
    }

    fn forward<T>(
        &mut self,
        operation: &str,
        ask: impl FnOnce(&mut Leases<FlawedTable>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.begin(match operation {
            "release" => Operation::Release,
            "repair" => Operation::Repair,
            _ => Operation::Other,
        });
        ask(self.leases)
    }

    /// The namespace to ask for: that on record, where the secret is not compared.
    fn accepted(&mut self, namespace: &Namespace) -> Namespace {
        if !self.lacks(Mutation::FingerprintIgnored) {
            return namespace.clone();
        }
        let recorded = self
            .memory
            .list(namespace)
            .map(|found| found.record.namespace);
        match recorded {
            Err(StoreError::FingerprintMismatch { recorded, .. }) => {
                Namespace::new(namespace.name(), namespace.layout(), recorded)
                    .and_then(|space| space.with_block_bits(namespace.block_bits()))
                    .expect("it is on record")
            }
            _ => namespace.clone(),
        }
    }

    /// The evidence as the mutation lets it count.
    fn evidence(&mut self, namespace: &Namespace, evidence: &[Confirmed]) -> Vec<Confirmed> {
        if self.mutation.is_none() {
            return evidence.to_vec();
        }
        let Ok(listing) = self.memory.list(namespace) else {
            return evidence.to_vec();
        };
        let floor = listing.record.floor;
        let ignores_floor =
            self.lacks(Mutation::AcquireIgnoresFloor) || self.lacks(Mutation::PastIgnoresFloor);
        let count = |confirmed: &Confirmed| {
            let mut confirmed = *confirmed;
            let known = listing.blocks.iter().find(|it| it.block == confirmed.block);
            match self.mutation {
                Some(Mutation::UnknownBlockIsNoLoss) if known.is_none() => return None,
                Some(Mutation::LowerEndIsNoLoss) => {
                    let mark = known.map_or(confirmed.end, |known| known.hwm_end);
                    confirmed.end = confirmed.end.min(mark);
                }
                Some(Mutation::SettledLossIsOne) => {
                    let is_forgotten = known.is_none_or(|known| {
                        known.epoch < confirmed.epoch || known.hwm_end < confirmed.end
                    });
                    if is_forgotten {
                        confirmed.end = confirmed.end.max(floor + 1);
                    }
                }
                // The table will show no floor, which is not what this is about.
                _ if ignores_floor && confirmed.end <= floor => return None,
                _ => {}
            }
            Some(confirmed)
        };
        evidence.iter().filter_map(count).collect()
    }
}

impl LeaseStore for Connection<'_> {
    fn init(&mut self, space: &Namespace, _: &Init) -> Result<StoreRecord, StoreError> {
        Err(StoreError::AlreadyInitialised {
            namespace: space.name().to_owned(),
        })
    }

    fn acquire(&mut self, space: &Namespace, acquire: &Acquire) -> Result<Vec<Grant>, StoreError> {
        if self.lacks(Mutation::Tokens)
            && let Some(grants) = lock(self.notes).acquired.get(&self.now.token)
        {
            return Ok(grants.clone());
        }
        let space = self.accepted(space);
        let mut acquire = acquire.clone();
        acquire.evidence = self.evidence(&space, &acquire.evidence);
        if self.lacks(Mutation::SkewIgnored) {
            acquire.now_unix_ms = self.now.unix_ms;
        }
        self.begin(Operation::Acquire {
            past: acquire.past.clone(),
            evidence: acquire.evidence.iter().map(|it| it.block).collect(),
        });
        let grants = self.leases.acquire(&space, &acquire)?;
        if self.lacks(Mutation::Tokens) {
            lock(self.notes)
                .acquired
                .insert(self.now.token, grants.clone());
        }
        Ok(grants)
    }

    fn renew(&mut self, space: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        if self.lacks(Mutation::Tokens)
            && let Some(end) = lock(self.notes).renewed.get(&self.now.token)
        {
            return Ok(*end);
        }
        self.begin(Operation::Renew(renew.clone()));
        let end = self.leases.renew(space, renew)?;
        if self.lacks(Mutation::Tokens) {
            lock(self.notes).renewed.insert(self.now.token, end);
        }
        Ok(end)
    }

    ringflake::forward_store! { self.forward =>
        release list repair raise_floor check write_test
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Operation {
    Acquire {
        past: Option<Range<u64>>,
        /// Its blocks are shown as they are, to be compared.
        evidence: Vec<Block>,
    },
    Renew(Renew),
    Release,
    Repair,
    Other,
}

#[derive(Clone, Debug)]
pub(crate) struct FlawedTable {
    table: MemoryTable,
    mutation: Option<Mutation>,
    notes: Arc<Mutex<Notes>>,
    now: Now,
    operation: Operation,
    /// Values shown in place of stored ones, in this operation.
    shown: BTreeMap<Key, (Option<String>, Option<String>)>,
    /// A record that was said to be written, and is not.
    overlay: Option<(Key, String)>,
    rival: Rival,
    /// None if no reply gets lost.
    commits_until_loss: Option<u32>,
    under_way: Option<Txn>,
}

/// The rules of a record, as this table needs them.
struct Rules {
    floor: u64,
    /// In ticks.
    horizon: u64,
    failover: u64,
    incarnation: String,
}

impl Rules {
    fn of(record: &str) -> Self {
        let fields = parse(record).expect("the record is sound");
        let number = |field: &str| fields[field].as_u64().expect("it is a number");
        Self {
            floor: number("floor"),
            horizon: number("horizon_ms") / LAYOUT.tick_ms(),
            failover: number("failover_ms").div_ceil(LAYOUT.tick_ms()),
            incarnation: fields["incarnation"]
                .as_str()
                .expect("it is a text")
                .to_owned(),
        }
    }
}

impl FlawedTable {
    fn lacks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// The snapshot as the mutation shows it.
    fn show(&mut self, mut snapshot: Snapshot) -> Snapshot {
        if self.mutation.is_none() {
            return snapshot;
        }
        self.shown.clear();
        if let Some((key, value)) = self.overlay.clone() {
            self.replace(&mut snapshot, &key, Some(value));
        }
        let Some(record_key) = snapshot.entries.keys().find(|key| is_record(key)).cloned() else {
            return snapshot;
        };
        let rules = Rules::of(&snapshot.entries[&record_key]);
        self.show_record(&mut snapshot, &record_key, &rules);
        let blocks: Vec<_> = (snapshot.entries.iter())
            .filter_map(|(key, value)| Some((key.clone(), index_of(key)?, value.clone())))
            .collect();
        for (key, index, value) in blocks {
            self.show_block(&mut snapshot, &rules, &key, index, &value);
        }
        snapshot
    }

    fn replace(&mut self, snapshot: &mut Snapshot, key: &Key, value: Option<String>) {
        let stored = match &value {
            Some(value) => snapshot.entries.insert(key.clone(), value.clone()),
            None => snapshot.entries.remove(key),
        };
        // A second lie about one entry still hides what is stored.
        let stored = self
            .shown
            .get(key)
            .map_or(stored, |(_, first)| first.clone());
        self.shown.insert(key.clone(), (value, stored));
    }

    fn show_record(&mut self, snapshot: &mut Snapshot, key: &Key, rules: &Rules) {
        const LONG_MS: u64 = 366 * 24 * 3600 * 1000;
        let change: fn(&mut Map<String, Value>) = match (self.mutation, &self.operation) {
            (Some(Mutation::AcquireIgnoresFloor), Operation::Acquire { past: None, .. })
            | (Some(Mutation::PastIgnoresFloor), Operation::Acquire { past: Some(_), .. })
            | (Some(Mutation::RenewalIgnoresFloor), Operation::Renew(_)) => {
                |record| _ = record.insert("floor".into(), 0.into())
            }
            (Some(Mutation::AcquireIgnoresHorizon), Operation::Acquire { .. })
            | (Some(Mutation::RenewalIgnoresHorizon), Operation::Renew(_)) => {
                |record| _ = record.insert("horizon_ms".into(), LONG_MS.into())
            }
            (Some(Mutation::AcquireIgnoresIncarnation), Operation::Acquire { .. })
            | (Some(Mutation::RenewalIgnoresIncarnation), Operation::Renew(_)) => {
                snapshot.incarnation = Incarnation::new(rules.incarnation.clone());
                return;
            }
            _ => return,
        };
        let value = edit(&snapshot.entries[key], change);
        self.replace(snapshot, key, value);
    }

    fn show_block(
        &mut self,
        snapshot: &mut Snapshot,
        rules: &Rules,
        key: &Key,
        index: u64,
        value: &str,
    ) {
        let Some(mut block) = parse(value) else {
            if self.lacks(Mutation::QuarantineIgnored)
                && matches!(self.operation, Operation::Acquire { .. })
            {
                self.replace(snapshot, key, None);
            }
            return;
        };
        let (epoch, known_mark) = (epoch_of(&block), mark_of(&block));
        match &self.operation {
            Operation::Acquire { past, evidence } => {
                if evidence.contains(&Block::new(index)) {
                    return;
                }
                let start = match past {
                    Some(past) => past.start,
                    None => tick(self.now.unix_ms).max(rules.floor),
                };
                let released = block["released"] == Value::Bool(true);
                match self.mutation {
                    Some(Mutation::PastIgnoresMark) if past.is_some() => {}
                    Some(Mutation::AcquireIgnoresMark) if known_mark <= start || released => {}
                    Some(Mutation::TimeToLive) => {
                        let time_up = lock(&self.notes).times_up.get(&index).copied();
                        if time_up.unwrap_or(0) > self.now.uptime_ms {
                            set_mark(&mut block, LAYOUT.ticks());
                            block.insert("released".into(), false.into());
                            self.replace(snapshot, key, Some(text(block)));
                            return;
                        }
                    }
                    _ => return,
                }
                // The lowest that can be true.
                set_mark(&mut block, epoch);
            }
            Operation::Renew(renew) if renew.block.index() == index => match self.mutation {
                Some(Mutation::RenewalIgnoresEnd | Mutation::RenewalKeepsMark) => {
                    set_mark(&mut block, renew.known_end);
                }
                Some(Mutation::RenewalIgnoresEpoch) => {
                    block.insert("epoch".into(), renew.epoch.get().into());
                }
                Some(Mutation::RenewalIgnoresEpochAndEnd) => {
                    block.insert("epoch".into(), renew.epoch.get().into());
                    set_mark(&mut block, renew.known_end);
                }
                _ => return,
            },
            _ => return,
        }
        self.replace(snapshot, key, Some(text(block)));
    }

    /// The value that is stored under a key.
    fn stored(&mut self, key: &Key) -> Option<String> {
        let query = Query {
            keys: vec![key.clone()],
            blocks: None,
        };
        let snapshot = self.table.read(&query).expect("it is in memory");
        snapshot.entries.get(key).cloned()
    }

    /// The commit as the mutation writes it; none if it is only said to be done.
    fn written(&mut self, txn: &Txn) -> Option<Txn> {
        let mut txn = txn.clone();
        if self.mutation.is_none() {
            return Some(txn);
        }
        for (key, expected) in &mut txn.compare {
            if let Some((shown, stored)) = self.shown.get(key)
                && shown == expected
            {
                expected.clone_from(stored);
            }
        }
        let is_renewal = matches!(self.operation, Operation::Renew(_));
        match self.mutation {
            Some(Mutation::CommitIgnoresRecord) => txn.compare.retain(|(key, _)| !is_record(key)),
            Some(Mutation::CommitIgnoresBlocks) => {
                txn.compare.retain(|(key, _)| index_of(key).is_none());
            }
            Some(Mutation::CommitIgnoresTime) => {
                (txn.not_before_unix_ms, txn.not_after_unix_ms) = (0, u64::MAX);
            }
            Some(Mutation::AcquireIgnoresIncarnation) if !is_renewal => {
                txn.incarnation = None;
                self.take_over_incarnation(&mut txn);
            }
            Some(Mutation::RenewalIgnoresIncarnation) if is_renewal => txn.incarnation = None,
            // Their ends are not the ones on record.
            Some(
                Mutation::RenewalIgnoresEnd
                | Mutation::RenewalIgnoresEpoch
                | Mutation::RenewalIgnoresEpochAndEnd
                | Mutation::RenewalKeepsMark,
            ) if is_renewal => self.forgive(&mut txn),
            Some(Mutation::RenewalIgnoresFloor) if is_renewal => {
                txn.compare.retain(|(key, _)| !is_record(key));
            }
            _ => {}
        }
        let mut puts = Vec::new();
        for put in std::mem::take(&mut txn.puts) {
            match index_of(&put.key) {
                Some(_) => puts.push(self.block_put(put)),
                None if is_record(&put.key) => puts.extend(self.record_put(put)),
                None => puts.push(put),
            }
        }
        if puts.is_empty() {
            return None;
        }
        txn.puts = puts;
        Some(txn)
    }

    /// Compares no more of the blocks than the mutation does, where the caller went by what
    /// it had seen before.
    fn forgive(&mut self, txn: &mut Txn) {
        let ignores_epoch = matches!(
            self.mutation,
            Some(Mutation::RenewalIgnoresEpoch | Mutation::RenewalIgnoresEpochAndEnd)
        );
        let ignores_end = !self.lacks(Mutation::RenewalIgnoresEpoch);
        let mut compare = std::mem::take(&mut txn.compare);
        for (key, expected) in &mut compare {
            let (Some(_), Some(stored)) = (index_of(key), self.stored(key)) else {
                continue;
            };
            let (Some(held), Some(known)) = (expected.as_deref().and_then(parse), parse(&stored))
            else {
                continue;
            };
            if (ignores_epoch || epoch_of(&held) == epoch_of(&known))
                && (ignores_end || mark_of(&held) == mark_of(&known))
            {
                *expected = Some(stored);
            }
        }
        txn.compare = compare;
    }

    /// Notes another incarnation without a look at the floor.
    fn take_over_incarnation(&mut self, txn: &mut Txn) {
        let snapshot = self.table.read(&Query::default()).expect("it is in memory");
        let record = txn.compare.iter().find(|(key, _)| is_record(key));
        let Some((key, Some(stored))) = record.cloned() else {
            return;
        };
        let incarnation = snapshot.incarnation.as_str().to_owned();
        let value = edit(&stored, |record| {
            record.insert("incarnation".into(), incarnation.into());
        });
        if txn.puts.iter().all(|put| put.key != key) {
            let value = value.expect("the record is sound");
            let rank = None;
            txn.puts.push(Put { key, value, rank });
        }
    }

    /// The write of a record; none where it is only said to be done.
    fn record_put(&mut self, put: Put) -> Option<Put> {
        let Some(stored) = self.stored(&put.key) else {
            return Some(put);
        };
        let (before, after) = (Rules::of(&stored), Rules::of(&put.value));
        let is_loss = before.incarnation == after.incarnation;
        let mut floor = after.floor;
        if self.lacks(Mutation::AcquireIgnoresHorizon) {
            // Undo the raise caused by the long horizon.
            floor = floor.saturating_sub(after.horizon) + before.horizon;
        }
        let short = match self.mutation {
            Some(Mutation::FloorIgnoresFailover) if !is_loss => before.failover,
            Some(Mutation::FloorIgnoresHorizon) if !is_loss => before.horizon,
            Some(Mutation::LossIgnoresHorizon) if is_loss => before.horizon,
            _ => 0,
        };
        let floor = before.floor.max(floor.saturating_sub(short));
        let limits = parse(&stored).expect("the record is sound");
        let value = edit(&put.value, |record| {
            record.insert("floor".into(), floor.into());
            record.insert("horizon_ms".into(), limits["horizon_ms"].clone());
        });
        let value = value.expect("the record is sound");
        let acquires = matches!(self.operation, Operation::Acquire { .. });
        if acquires && self.lacks(Mutation::FloorNotKept) && !is_loss && self.overlay.is_none() {
            self.overlay = Some((put.key, value));
            return None;
        }
        if acquires && self.lacks(Mutation::LossIsNotKept) && is_loss {
            return None;
        }
        Some(Put { value, ..put })
    }

    fn block_put(&mut self, mut put: Put) -> Put {
        let index = index_of(&put.key).expect("it is a block's");
        let now = tick(self.now.unix_ms);
        let stored = self.stored(&put.key).and_then(|value| parse(&value));
        let mut block = parse(&put.value).expect("the library writes sound blocks");
        let (epoch, mark) = (epoch_of(&block), mark_of(&block));
        let times_up = match self.operation {
            Operation::Acquire { .. } | Operation::Renew(_) => {
                let left = mark.saturating_sub(now).saturating_mul(LAYOUT.tick_ms());
                self.now.uptime_ms + left
            }
            _ => 0,
        };
        lock(&self.notes).times_up.insert(index, times_up);
        let known_mark = stored.as_ref().map_or(epoch, mark_of);
        match (self.mutation, &self.operation) {
            (Some(Mutation::ReleaseLowersMark), Operation::Release) => {
                set_mark(&mut block, mark.min(now).max(epoch));
            }
            (Some(Mutation::RenewalKeepsMark), Operation::Renew(_)) => {
                set_mark(&mut block, known_mark);
            }
            (Some(Mutation::RenewalCutsMark), Operation::Renew(_)) => {
                let horizon = self.record_rules(&put.key).map_or(0, |rules| rules.horizon);
                set_mark(&mut block, mark.min(now + horizon).max(epoch));
            }
            (
                Some(Mutation::RenewalIgnoresEpoch | Mutation::RenewalIgnoresEpochAndEnd),
                Operation::Renew(_),
            ) => {
                let recorded = stored.as_ref().map_or(epoch, epoch_of);
                block.insert("epoch".into(), recorded.into());
            }
            (Some(Mutation::PastKeepsMark), Operation::Acquire { past: Some(_), .. }) => {
                set_mark(&mut block, known_mark.max(epoch));
            }
            (Some(Mutation::RepairIgnoresHorizon), Operation::Repair) => {
                let horizon = self.record_rules(&put.key).map_or(0, |rules| rules.horizon);
                let mark = mark.saturating_sub(horizon);
                block.insert("epoch".into(), mark.into());
                set_mark(&mut block, mark);
            }
            _ => return put,
        }
        put.rank = Some(mark_of(&block));
        put.value = text(block);
        put
    }

    /// The rules of the namespace that a block is of.
    fn record_rules(&mut self, block: &Key) -> Option<Rules> {
        let (namespace, _) = block.as_str().split_once('/')?;
        self.stored(&Key::record(namespace))
            .map(|record| Rules::of(&record))
    }

    fn let_rival_act(&mut self, txn: &Txn) {
        let Some(evidence) = self.rival.evidence.take() else {
            return;
        };
        let record = txn
            .compare
            .iter()
            .find_map(|(key, _)| key.as_str().strip_suffix("/record"));
        let stored = record.and_then(|name| self.stored(&Key::record(name)));
        let Some(namespace) = stored.and_then(|record| namespace_of(&record)) else {
            return;
        };
        let mut rival = Leases::over(self.table.clone()).with_seed(self.now.token);
        // By a sound clock: two that are broken can agree on the wrong time.
        let ask = Acquire::new(1, 3, START_MS + self.now.uptime_ms).with_evidence(evidence);
        self.rival.answer = Some(rival.acquire(&namespace, &ask));
    }
}

impl Table for FlawedTable {
    fn read(&mut self, query: &Query) -> Result<Snapshot, StoreError> {
        let snapshot = self.table.read(query)?;
        Ok(self.show(snapshot))
    }

    fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, StoreError> {
        self.let_rival_act(txn);
        let Some(mut written) = self.written(txn) else {
            return Ok(Commit::Done);
        };
        if let Some((key, value)) = self.overlay.take() {
            // Write the withheld record together with its consequences.
            let rank = None;
            written.puts.push(Put { key, value, rank });
        }
        match &mut self.commits_until_loss {
            Some(0) => {
                self.commits_until_loss = None;
                self.under_way = Some(written);
                return Ok(Commit::Unknown("no reply".into()));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(match self.table.commit(&written, instead)? {
            Commit::Conflict(snapshot) => Commit::Conflict(self.show(snapshot)),
            done => done,
        })
    }

    fn describe(&mut self) -> Result<Description, StoreError> {
        self.table.describe()
    }
}

fn lock(notes: &Mutex<Notes>) -> MutexGuard<'_, Notes> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_record(key: &Key) -> bool {
    key.as_str().ends_with("/record")
}

/// The block that a key is of, if it is one's.
fn index_of(key: &Key) -> Option<u64> {
    let (_, digits) = key.as_str().split_once("/block/")?;
    digits.parse().ok()
}

/// None for an entry that is damaged.
fn parse(value: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(value).ok()
}

fn text(fields: Map<String, Value>) -> String {
    Value::Object(fields).to_string()
}

fn edit(value: &str, change: impl FnOnce(&mut Map<String, Value>)) -> Option<String> {
    let mut fields = parse(value)?;
    change(&mut fields);
    Some(text(fields))
}

fn mark_of(block: &Map<String, Value>) -> u64 {
    let digits = block["hwm_end"].as_str().expect("it is sound");
    digits.parse().expect("it is sound")
}

fn set_mark(block: &mut Map<String, Value>, mark: u64) {
    block.insert("hwm_end".into(), format!("{mark:020}").into());
}

fn epoch_of(block: &Map<String, Value>) -> u64 {
    block["epoch"].as_u64().expect("it is sound")
}

/// The namespace of a record.
fn namespace_of(record: &str) -> Option<Namespace> {
    let fields = parse(record)?;
    let digits = fields["fingerprint"].as_str()?;
    let fingerprint = u128::from_str_radix(digits, 16).ok()?.to_be_bytes();
    let fingerprint = ringflake::lease::Fingerprint::from_bytes(fingerprint);
    let block_bits = u32::try_from(fields["block_bits"].as_u64()?).ok()?;
    let space = Namespace::new(fields["name"].as_str()?, &LAYOUT, fingerprint).ok()?;
    space.with_block_bits(block_bits).ok()
}
