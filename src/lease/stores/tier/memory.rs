//! A tier in memory, for tests.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, Weak};

use super::ledger::{Ledger, Sight};
use crate::clock::Clock;
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::record::Incarnation;
use crate::lease::report::{Durability, Listing, StoreReport};
use crate::sync::{Mutex, MutexGuard};

/// What the processes of one machine share, in the memory of one process: for tests
/// of what becomes of a tier.
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
    ledgers: BTreeMap<String, Ledger>,
    /// The processes that have a tier open, by number.
    processes: Vec<Weak<()>>,
}

/// What a [`MemoryTier`] held at some moment.
#[derive(Clone, Debug)]
pub struct TierSnapshot {
    ledgers: BTreeMap<String, Ledger>,
}

impl MemoryTier {
    /// An empty one, in the first process of a machine with this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::of_process(Arc::new(Mutex::new(Shared {
            clock,
            incarnation: Incarnation::new("1"),
            ledgers: BTreeMap::new(),
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

    /// What it holds now.
    pub fn snapshot(&self) -> TierSnapshot {
        TierSnapshot {
            ledgers: self.shared().ledgers.clone(),
        }
    }

    /// Puts it back to what it held, here or on another machine. That is noticed, as a
    /// file notices it: it is another file then, or one that has noted more.
    pub fn put_back(&self, snapshot: &TierSnapshot) {
        let mut shared = self.shared();
        let ledgers = snapshot.ledgers.values();
        let recorded = ledgers.map(|ledger| ledger.record.incarnation.as_str().to_owned());
        let names = recorded.chain([shared.incarnation.as_str().to_owned()]);
        let last = names.filter_map(|name| name.parse::<u64>().ok()).max();
        let next = last.unwrap_or(0).saturating_add(1);
        shared.incarnation = Incarnation::new(next.to_string());
        shared.ledgers.clone_from(&snapshot.ledgers);
    }

    /// As [`put_back`](Self::put_back), unnoticed: a whole machine that was put back to
    /// a snapshot. It is what tests of the checks themselves must catch.
    pub fn put_back_unnoticed(&self, snapshot: &TierSnapshot) {
        let mut shared = self.shared();
        if let Some(ledger) = snapshot.ledgers.values().next() {
            shared.incarnation = ledger.record.incarnation.clone();
        }
        shared.ledgers.clone_from(&snapshot.ledgers);
    }

    /// Forgets everything, as if the file were removed.
    pub fn lose(&self) {
        self.shared().ledgers.clear();
    }

    pub(super) fn create(&self, mut ledger: Ledger) {
        let mut shared = self.shared();
        ledger.record.incarnation = shared.incarnation.clone();
        let name = ledger.record.namespace.name().to_owned();
        shared.ledgers.entry(name).or_insert(ledger);
    }

    pub(super) fn unix_ms(&self) -> u64 {
        self.shared().clock.unix_ms()
    }

    pub(super) fn change<T>(
        &self,
        namespace: &Namespace,
        step: impl FnOnce(&mut Ledger, &Sight) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut shared = self.shared();
        let mut ledger = shared.ledger(namespace)?.clone();
        let gone = |user: &str| {
            let number = user.parse::<usize>().ok();
            let process = number.and_then(|number| shared.processes.get(number));
            process.is_none_or(|process| process.strong_count() == 0)
        };
        ledger.bury(gone);
        let unix_ms = shared.clock.unix_ms();
        if ledger.record.incarnation != shared.incarnation {
            ledger.forget(&shared.incarnation, unix_ms);
        }
        let sight = Sight {
            user: Some(self.number.to_string()),
            arrived_unix_ms: unix_ms,
            unix_ms,
        };
        let answer = step(&mut ledger, &sight);
        if Ledger::is_to_be_kept(&answer) {
            shared.ledgers.insert(namespace.name().to_owned(), ledger);
        }
        answer
    }

    pub(super) fn list(&self, namespace: &Namespace) -> Result<Listing, StoreError> {
        let shared = self.shared();
        let ledger = shared.ledger(namespace)?;
        let blocks = ledger.blocks.values().cloned();
        Ok(Listing::new(ledger.record.clone(), blocks.collect()))
    }

    pub(super) fn check(
        &self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        let shared = self.shared();
        let ledger = shared.ledger(namespace)?;
        let store_unix_ms = shared.clock.unix_ms();
        let now = ledger.record.tick_at(store_unix_ms)?;
        let report = StoreReport::new(
            "tier in memory",
            ledger.record.clone(),
            shared.incarnation.clone(),
            Durability::Volatile,
            now_unix_ms,
        );
        let blocks = ledger.blocks.values().cloned().map(Ok);
        Ok(report.at(store_unix_ms).with_blocks(now, blocks))
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn ledger(&self, namespace: &Namespace) -> Result<&Ledger, StoreError> {
        let ledger = self.ledgers.get(namespace.name());
        let ledger = ledger.ok_or_else(|| namespace.not_initialised())?;
        ledger.record.verify(namespace)?;
        Ok(ledger)
    }
}
