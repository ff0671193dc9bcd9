//! A tier in memory, for tests.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, Weak};

use super::grant_log::{Caller, GrantLog};
use crate::clock::Clock;
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::store::format::{encode_block, encode_record};
use crate::lease::store::leases::Leases;
use crate::lease::store::record::Incarnation;
use crate::lease::store::table::Key;
use crate::lease::store::table::memory::MemoryTable;
use crate::sync::{Mutex, MutexGuard};

/// The tier of one machine, shared by its processes, in the memory of one process: for
/// tests of a tier.
///
/// Each process has one, made by [`process`](Self::process) of another's; clones are the
/// same process, which ends with the last of them. It can be lost, copied to another
/// machine, and put back to what it was.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use ringflake::lease::{
///     Acquire, Fingerprint, History, Init, LeaseStore, MemoryStore, MemoryTier, Namespace,
///     TierStore,
/// };
/// use ringflake::{Clock, Layout, ManualClock};
///
/// let clock = Arc::new(ManualClock::new(1_760_000_000_000));
/// let mut server = MemoryStore::new(clock.clone());
/// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
/// server.init(&orders, &Init::new(History::New, clock.unix_ms()))?;
///
/// let machine = MemoryTier::new(clock.clone());
/// let mut process = TierStore::in_memory(&machine, Box::new(server));
/// let grants = process.acquire(&orders, &Acquire::new(1, 60, clock.unix_ms()))?;
/// assert_eq!(grants[0].ticks, 30_000_000..30_000_060);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemoryTier {
    shared: Arc<Mutex<Shared>>,
    number: usize,
    _alive: Arc<()>,
}

#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    /// Of the place: another one for each copy, and after each state put back.
    incarnation: Incarnation,
    logs: BTreeMap<String, GrantLog>,
    /// The processes that have a tier open, by number.
    processes: Vec<Weak<()>>,
}

/// The contents of a [`MemoryTier`] at some moment.
#[derive(Clone, Debug)]
pub struct TierSnapshot {
    logs: BTreeMap<String, GrantLog>,
}

impl MemoryTier {
    /// An empty one, in the first process of a machine with this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::of_process(Arc::new(Mutex::new(Shared {
            clock,
            incarnation: Incarnation::new("1"),
            logs: BTreeMap::new(),
            processes: Vec::new(),
        })))
    }

    /// The same one, in another process of the machine.
    #[must_use]
    pub fn process(&self) -> Self {
        Self::of_process(Arc::clone(&self.shared))
    }

    fn of_process(shared: Arc<Mutex<Shared>>) -> Self {
        let alive = Arc::new(());
        let mut machine = lock(&shared);
        machine.processes.push(Arc::downgrade(&alive));
        let number = machine.processes.len() - 1;
        drop(machine);
        Self {
            shared,
            number,
            _alive: alive,
        }
    }

    /// Its contents now.
    pub fn snapshot(&self) -> TierSnapshot {
        TierSnapshot {
            logs: self.shared().logs.clone(),
        }
    }

    /// Puts these contents back, here or on another machine. That is noticed, as a
    /// file notices it: it is another file then, or one that has noted more.
    pub fn put_back(&self, snapshot: &TierSnapshot) {
        let mut shared = self.shared();
        let logs = snapshot.logs.values();
        let recorded = logs.map(|log| log.record.incarnation.as_str().to_owned());
        let names = recorded.chain([shared.incarnation.as_str().to_owned()]);
        let last = names.filter_map(|name| name.parse::<u64>().ok()).max();
        let next = last.unwrap_or(0).saturating_add(1);
        shared.incarnation = Incarnation::new(next.to_string());
        shared.logs.clone_from(&snapshot.logs);
    }

    /// As [`put_back`](Self::put_back), unnoticed: a whole machine that was put back to
    /// a snapshot. It is what tests of the checks themselves must catch.
    pub fn put_back_unnoticed(&self, snapshot: &TierSnapshot) {
        let mut shared = self.shared();
        if let Some(log) = snapshot.logs.values().next() {
            shared.incarnation = log.record.incarnation.clone();
        }
        shared.logs.clone_from(&snapshot.logs);
    }

    /// Forgets everything, as if the file were removed.
    pub fn lose(&self) {
        self.shared().logs.clear();
    }

    pub(super) fn create(&self, mut log: GrantLog) {
        let mut shared = self.shared();
        log.record.incarnation = shared.incarnation.clone();
        let name = log.record.namespace.name().to_owned();
        shared.logs.entry(name).or_insert(log);
    }

    pub(super) fn unix_ms(&self) -> u64 {
        self.shared().clock.unix_ms()
    }

    pub(super) fn change<T>(
        &self,
        namespace: &Namespace,
        step: impl FnOnce(&mut GrantLog, &Caller) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut shared = self.shared();
        let log = shared.logs.get(namespace.name());
        let mut log = log.ok_or_else(|| namespace.not_initialised())?.clone();
        log.record.verify(namespace)?;
        let gone = |user: &str| {
            let number = user.parse::<usize>().ok();
            let process = number.and_then(|number| shared.processes.get(number));
            process.is_none_or(|process| process.strong_count() == 0)
        };
        log.reap(gone);
        let unix_ms = shared.clock.unix_ms();
        if log.record.incarnation != shared.incarnation {
            log.forget(&shared.incarnation, unix_ms);
        }
        let caller = Caller {
            user: Some(self.number.to_string()),
            arrived_unix_ms: unix_ms,
            unix_ms,
        };
        let answer = step(&mut log, &caller);
        if GrantLog::is_to_be_kept(&answer) {
            shared.logs.insert(namespace.name().to_owned(), log);
        }
        answer
    }

    /// Its entries now, as a store.
    pub(super) fn leases(&self) -> Leases<MemoryTable> {
        let shared = self.shared();
        let table = MemoryTable::new(Arc::clone(&shared.clock));
        table.set_incarnation(shared.incarnation.clone());
        for (name, log) in &shared.logs {
            table.put(Key::record(name), encode_record(&log.record), None);
            for (&block, state) in &log.blocks {
                let key = Key::block(name, block);
                table.put(key, encode_block(state), Some(state.hwm_end));
            }
        }
        Leases::in_order(table)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
