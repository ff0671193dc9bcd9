//! A table in the memory of one process: the reference for all others.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use super::{Blocks, Commit, Description, Key, Put, Query, Snapshot, StoreTime, Table, Txn};
use crate::clock::Clock;
use crate::lease::block::Block;
use crate::lease::error::StoreError;
use crate::lease::store::record::Incarnation;
use crate::lease::store::report::Durability;
use crate::sync::{Mutex, MutexGuard};

/// The table of a [`MemoryStore`](crate::lease::MemoryStore). Clones share one server.
#[derive(Clone, Debug)]
pub struct MemoryTable {
    server: Arc<Mutex<Server>>,
}

#[derive(Debug)]
struct Server {
    clock: Arc<dyn Clock>,
    incarnation: Incarnation,
    entries: Entries,
}

/// Values, with their ranks.
type Entries = BTreeMap<Key, (String, Option<u64>)>;

/// The contents of a [`MemoryStore`](crate::lease::MemoryStore) at some moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemorySnapshot {
    entries: Entries,
}

impl MemoryTable {
    /// An empty table on a server with this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            server: Arc::new(Mutex::new(Server {
                clock,
                incarnation: Incarnation::new("memory"),
                entries: BTreeMap::new(),
            })),
        }
    }

    /// Changes the server's incarnation.
    pub(in crate::lease) fn set_incarnation(&self, incarnation: Incarnation) {
        self.server().incarnation = incarnation;
    }

    /// Copies all entries.
    pub(in crate::lease) fn snapshot(&self) -> MemorySnapshot {
        MemorySnapshot {
            entries: self.server().entries.clone(),
        }
    }

    /// Puts copied entries back.
    pub(in crate::lease) fn restore(&self, snapshot: &MemorySnapshot) {
        self.server().entries.clone_from(&snapshot.entries);
    }

    /// Inserts or replaces an entry.
    pub(in crate::lease) fn put(&self, key: Key, value: String, rank: Option<u64>) {
        self.server().entries.insert(key, (value, rank));
    }

    /// Replaces the value of an entry by one that nobody writes; false if it is not there.
    pub(in crate::lease) fn damage(&self, key: &Key) -> bool {
        let mut server = self.server();
        let known = server.entries.get_mut(key);
        known
            .map(|(value, _)| *value = "damaged".to_owned())
            .is_some()
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        // Changes are applied only after every fallible step, so a panicking thread leaves a
        // sound state behind.
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    fn read(&self, query: &Query) -> Snapshot {
        let entry = |key: &Key| Some((key.clone(), self.entries.get(key)?.0.clone()));
        let mut entries: BTreeMap<_, _> = query.keys.iter().filter_map(entry).collect();
        let mut complete = true;
        if let Some(blocks) = &query.blocks {
            let prefix = blocks.prefix();
            let from = Key::from(prefix.clone());
            let all = self.entries.range(from..);
            let all = all.take_while(|(key, _)| key.as_str().starts_with(&prefix));
            let shown: Vec<_> = match blocks {
                Blocks::All { .. } => all.collect(),
                Blocks::Lowest {
                    namespace,
                    limit,
                    window,
                } => {
                    let mut lowest: Vec<_> = all.collect();
                    lowest.sort_by_key(|(_, (_, rank))| *rank);
                    complete = lowest.len() <= *limit as usize;
                    lowest.truncate(*limit as usize);
                    let [start, end] = [window.start, window.end]
                        .map(|index| Key::block(namespace, Block::new(index)));
                    lowest.extend(self.entries.range(start..end));
                    lowest
                }
            };
            entries.extend(
                shown
                    .iter()
                    .map(|(key, (value, _))| ((*key).clone(), value.clone())),
            );
        }
        Snapshot {
            entries,
            complete,
            time: Ok(StoreTime::exactly(self.clock.unix_ms())),
            incarnation: self.incarnation.clone(),
        }
    }

    fn holds(&self, txn: &Txn) -> bool {
        let value = |key| self.entries.get(key).map(|(value, _)| value);
        let incarnation = txn.incarnation.as_ref();
        (txn.not_before_unix_ms..=txn.not_after_unix_ms).contains(&self.clock.unix_ms())
            && incarnation.is_none_or(|incarnation| *incarnation == self.incarnation)
            && (txn.compare.iter()).all(|(key, expected)| value(key) == expected.as_ref())
    }
}

impl Table for MemoryTable {
    fn read(&mut self, query: &Query) -> Result<Snapshot, StoreError> {
        Ok(self.server().read(query))
    }

    fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, StoreError> {
        let mut server = self.server();
        if !server.holds(txn) {
            return Ok(Commit::Conflict(server.read(instead)));
        }
        for Put { key, value, rank } in &txn.puts {
            server.entries.insert(key.clone(), (value.clone(), *rank));
        }
        Ok(Commit::Done)
    }

    fn describe(&mut self) -> Result<Description, StoreError> {
        Ok(Description::new("memory", Durability::Volatile))
    }
}
