//! A table that breaks one promise, over the one in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ringflake::SystemClock;
use ringflake::lease::table::{
    Blocks, Commit, Description, Key, MemoryTable, Query, Snapshot, StoreTime, Table, Txn,
};
use ringflake::lease::{Incarnation, StoreError};

/// Long enough for another thread to come between, on a busy machine too.
const MEANWHILE: Duration = Duration::from_millis(10);

/// A second flaw for the check `a_commit_is_bounded_in_time`.
pub(crate) const NO_NOT_BEFORE: &str = "no not_before";

/// A connection to a server with the flaw that one check is for.
#[derive(Clone, Debug)]
pub(crate) struct FlawedTable {
    /// The name of that check, or of a second flaw; another name is no flaw.
    check: &'static str,
    table: MemoryTable,
    /// What this connection has read, by query.
    cached: HashMap<String, BTreeMap<Key, String>>,
    /// The first rank of each block.
    ranks: Arc<Mutex<HashMap<Key, Option<u64>>>>,
    reads: Arc<AtomicU64>,
}

impl FlawedTable {
    pub(crate) fn new(check: &'static str) -> Self {
        Self {
            check,
            table: MemoryTable::new(Arc::new(SystemClock)),
            cached: HashMap::new(),
            ranks: Arc::default(),
            reads: Arc::default(),
        }
    }

    fn stored(&mut self, keys: &[Key], blocks: Option<Blocks>) -> Result<Snapshot, StoreError> {
        let keys = keys.to_vec();
        self.table.read(&Query { keys, blocks })
    }

    /// Checks some conditions first, and writes later under the others.
    fn commit_later(
        &mut self,
        txn: &Txn,
        instead: &Query,
        is_first: impl Fn(&Key, Option<&str>) -> bool,
    ) -> Result<Commit, StoreError> {
        let mut part = txn.clone();
        part.puts.clear();
        if let conflict @ Commit::Conflict(_) = self.table.commit(&part, instead)? {
            return Ok(conflict);
        }
        thread::sleep(MEANWHILE);
        part.puts.clone_from(&txn.puts);
        part.compare
            .retain(|(key, expected)| !is_first(key, expected.as_deref()));
        self.table.commit(&part, instead)
    }
}

fn corrupt(detail: &str) -> StoreError {
    StoreError::Corrupt {
        detail: detail.to_owned(),
        source: None,
    }
}

fn namespace_of(key: &Key) -> &str {
    key.as_str().split('/').next().unwrap_or_default()
}

impl Table for FlawedTable {
    fn read(&mut self, query: &Query) -> Result<Snapshot, StoreError> {
        let mut snapshot = self.table.read(query)?;
        let Snapshot {
            entries,
            complete,
            time: Ok(time),
            incarnation,
        } = &mut snapshot
        else {
            unreachable!("memory has a clock");
        };
        match (self.check, &query.blocks) {
            ("missing_entries_read_as_empty", _) if entries.is_empty() => {
                return Err(corrupt("no table"));
            }
            ("a_commit_shows_on_every_connection", _) => {
                let cached = self.cached.entry(format!("{query:?}"));
                entries.clone_from(cached.or_insert_with(|| entries.clone()));
            }
            ("a_query_has_up_to_250_keys", _) => {
                let late = query.keys.iter().skip(100);
                late.for_each(|key| _ = entries.remove(key));
            }
            ("complete_tells_whether_blocks_are_left_out", _) => *complete = true,
            ("thousands_of_blocks_are_read", Some(Blocks::All { .. })) => {
                *entries = std::mem::take(entries).into_iter().take(2_000).collect();
            }
            // As a prefix.
            ("similar_names_are_kept_apart", Some(Blocks::All { namespace })) => {
                let namespace = format!("{namespace}2");
                let longer = self.stored(&[], Some(Blocks::All { namespace }))?;
                entries.extend(longer.entries);
            }
            ("keys_may_repeat_and_overlap_blocks", _) => {
                let times = |key: &Key| query.keys.iter().filter(|it| *it == key).count();
                entries.retain(|key, _| times(key) <= 1);
            }
            ("a_read_shows_one_moment", _) => {
                let (first, rest) = query.keys.split_at(1.min(query.keys.len()));
                *entries = self.stored(first, None)?.entries;
                thread::sleep(MEANWHILE);
                entries.extend(self.stored(rest, query.blocks.clone())?.entries);
            }
            // Ten times too slow, and right each hour.
            ("the_clock_moves_on", _) => {
                let behind = time.unix_ms % 3_600_000 / 10 * 9;
                *time = StoreTime::exactly(time.unix_ms - behind);
            }
            ("the_incarnation_is_stable", _) => {
                let read = self.reads.fetch_add(1, Relaxed);
                *incarnation = Incarnation::new(read.to_string());
            }
            _ => {}
        }
        Ok(snapshot)
    }

    fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, StoreError> {
        let mut changed = txn.clone();
        let Txn { puts, compare, .. } = &mut changed;
        let is_written = |key: &Key| txn.puts.iter().any(|put| put.key == *key);
        match self.check {
            "creates_makes_the_first_entries" => return Err(corrupt("no table")),
            "values_come_back_byte_for_byte" => {
                for put in puts {
                    put.value.truncate(put.value.trim_end().len());
                }
            }
            "a_put_replaces_the_value" => {
                let keys: Vec<_> = puts.iter().map(|put| put.key.clone()).collect();
                let present = self.stored(&keys, None)?.entries;
                puts.retain(|put| !present.contains_key(&put.key));
            }
            "values_are_compared_byte_by_byte" => {
                let keys: Vec<_> = compare.iter().map(|(key, _)| key.clone()).collect();
                let present = self.stored(&keys, None)?.entries;
                for (key, expected) in compare {
                    let (Some(value), Some(stored)) = (expected, present.get(key)) else {
                        continue;
                    };
                    if value.eq_ignore_ascii_case(stored) {
                        value.clone_from(stored);
                    }
                }
            }
            "a_commit_needs_every_compared_value" => compare.retain(|(key, _)| is_written(key)),
            "a_commit_is_bounded_in_time" => changed.not_after_unix_ms = u64::MAX,
            NO_NOT_BEFORE => changed.not_before_unix_ms = 0,
            "a_commit_is_bound_to_an_incarnation" => changed.incarnation = None,
            "a_commit_spans_namespaces" => {
                let names: BTreeSet<_> =
                    txn.puts.iter().map(|put| namespace_of(&put.key)).collect();
                puts.retain(|put| names.first() == Some(&namespace_of(&put.key)));
            }
            "a_commit_has_up_to_127_keys" => compare.truncate(100),
            // Of equal ranks the first keys are shown.
            "the_lowest_ranks_are_found" => {
                for put in puts {
                    put.rank = put.rank.map(|_| 0);
                }
            }
            "a_rank_changes_with_its_entry" => {
                let mut ranks = self.ranks.lock().unwrap();
                for put in puts {
                    put.rank = *ranks.entry(put.key.clone()).or_insert(put.rank);
                }
            }
            "no_update_is_lost" => return self.commit_later(txn, instead, |_, _| true),
            "compared_keys_are_protected_from_writes" => {
                return self.commit_later(txn, instead, |key, expected| {
                    expected.is_some() && !is_written(key)
                });
            }
            "absent_keys_are_protected_from_inserts" => {
                return self.commit_later(txn, instead, |key, expected| {
                    expected.is_none() && !is_written(key)
                });
            }
            _ => {}
        }
        match self.check {
            "a_conflict_shows_what_instead_reads" => self.table.commit(&changed, &Query::default()),
            _ => self.table.commit(&changed, instead),
        }
    }

    fn describe(&mut self) -> Result<Description, StoreError> {
        let mut description = self.table.describe()?;
        if self.check == "the_server_is_described" {
            description.store.clear();
        }
        Ok(description)
    }
}
