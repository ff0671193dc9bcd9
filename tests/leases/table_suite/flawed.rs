//! A table that breaks one promise, over the one in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ringflake::SystemClock;
use ringflake::lease::Incarnation;
use ringflake::lease::table::{
    Blocks, ClockError, Commit, Description, Key, MemoryTable, Query, Snapshot, StoreTime, Table,
    TableError, Txn,
};

use super::flaws::Flaw;

/// Long enough for another thread to come between, on a busy machine too.
const MEANWHILE: Duration = Duration::from_millis(10);

/// Names a connection, a read or a commit.
static NUMBER: AtomicU64 = AtomicU64::new(0);

fn number() -> u64 {
    NUMBER.fetch_add(1, Relaxed)
}

/// The state that all connections share.
#[derive(Clone, Debug)]
pub(crate) struct FlawedServer {
    flaw: Option<Flaw>,
    table: MemoryTable,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Debug, Default)]
struct Notes {
    /// The first rank of each block.
    ranks: BTreeMap<Key, u64>,
    names: BTreeSet<String>,
    time: Option<StoreTime>,
    commits: u64,
    /// The entries of the last read, by query.
    lag: HashMap<String, BTreeMap<Key, String>>,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct FlawedTable {
    server: FlawedServer,
    table: MemoryTable,
    number: u64,
    cached: HashMap<String, BTreeMap<Key, String>>,
}

impl FlawedServer {
    pub(crate) fn new(flaw: Option<Flaw>) -> Self {
        Self {
            flaw,
            table: MemoryTable::new(Arc::new(SystemClock)),
            notes: Arc::default(),
        }
    }

    pub(crate) fn connect(&self) -> FlawedTable {
        FlawedTable {
            server: self.clone(),
            table: self.table.clone(),
            number: number(),
            cached: HashMap::new(),
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn corrupt(detail: &str) -> TableError {
    TableError::Corrupt {
        detail: detail.to_owned(),
        source: None,
    }
}

fn namespace_of(key: &Key) -> &str {
    key.as_str().split('/').next().unwrap_or_default()
}

fn is_block(key: &Key) -> bool {
    key.as_str().contains("/block/")
}

fn index_of(key: &Key) -> Option<u64> {
    key.as_str().rsplit('/').next()?.parse().ok()
}

/// The mark in a value, which begins with it.
fn mark_of(value: &str) -> u64 {
    let digits: String = value
        .chars()
        .skip_while(|it| !it.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap_or(0)
}

fn all_of(namespace: &str) -> Query {
    Query {
        keys: Vec::new(),
        blocks: Some(Blocks::All {
            namespace: namespace.to_owned(),
        }),
    }
}

impl FlawedTable {
    fn has(&self, flaw: Flaw) -> bool {
        self.server.flaw == Some(flaw)
    }

    fn inner(&mut self, query: &Query) -> Snapshot {
        self.table.read(query).expect("it is in memory")
    }

    fn all(&mut self, namespace: &str) -> BTreeMap<Key, String> {
        self.inner(&all_of(namespace)).entries
    }

    fn stored(&mut self, key: &Key) -> Option<String> {
        let query = Query {
            keys: vec![key.clone()],
            blocks: None,
        };
        self.inner(&query).entries.remove(key)
    }

    /// The entries of a query, as they are shown.
    fn show(&mut self, query: &Query) -> Result<Snapshot, TableError> {
        let mut snapshot = match self.server.flaw {
            Some(Flaw::ReadsAreTorn | Flaw::PagesAreTorn) => self.torn(query),
            _ => self.inner(query),
        };
        self.show_keys(query, &mut snapshot)?;
        if let Some(blocks) = &query.blocks {
            self.show_blocks(query, blocks, &mut snapshot);
        }
        self.show_server(&mut snapshot);
        Ok(snapshot)
    }

    /// The first part of a query, and the rest of it later.
    fn torn(&mut self, query: &Query) -> Snapshot {
        let at = match self.server.flaw {
            Some(Flaw::ReadsAreTorn) => 1,
            _ => 120,
        };
        let (first, rest) = query.keys.split_at(at.min(query.keys.len()));
        let part = |keys: &[Key], blocks| Query {
            keys: keys.to_vec(),
            blocks,
        };
        let mut snapshot = self.inner(&part(first, None));
        thread::sleep(MEANWHILE);
        let later = self.inner(&part(rest, query.blocks.clone()));
        snapshot.entries.extend(later.entries);
        snapshot.complete = later.complete;
        snapshot
    }

    fn show_keys(&mut self, query: &Query, snapshot: &mut Snapshot) -> Result<(), TableError> {
        let Some(flaw) = self.server.flaw else {
            return Ok(());
        };
        let entries = &mut snapshot.entries;
        let cache_key = format!("{query:?}");
        let repeated = |key: &Key| query.keys.iter().filter(|it| *it == key).count() > 1;
        match flaw {
            Flaw::MissingIsAnError if entries.is_empty() => return Err(corrupt("no table")),
            Flaw::RepeatedIsAnError if query.keys.iter().any(repeated) => {
                return Err(corrupt("a key was named twice"));
            }
            Flaw::RepeatedIsLost => entries.retain(|key, _| !repeated(key)),
            Flaw::AbsentReadsAsEmptyText => {
                for key in &query.keys {
                    entries.entry(key.clone()).or_default();
                }
            }
            Flaw::HundredRead => {
                for key in query.keys.iter().skip(100) {
                    entries.remove(key);
                }
            }
            Flaw::OneNamespaceRead => {
                let first = query.keys.first().map(namespace_of);
                entries.retain(|key, _| first.is_none_or(|name| namespace_of(key) == name));
            }
            Flaw::ReadsAreCached => {
                let known = self
                    .cached
                    .entry(cache_key)
                    .or_insert_with(|| entries.clone());
                entries.clone_from(known);
            }
            Flaw::ReadsLag => {
                let mut notes = self.server.notes();
                let before = notes.lag.insert(cache_key, entries.clone());
                *entries = before.unwrap_or_else(|| entries.clone());
            }
            _ => {}
        }
        Ok(())
    }

    fn show_blocks(&mut self, query: &Query, blocks: &Blocks, snapshot: &mut Snapshot) {
        let Some(flaw) = self.server.flaw else {
            return;
        };
        let prefix = blocks.prefix();
        let name = prefix.trim_end_matches("/block/").to_owned();
        let is_here = |key: &Key| key.as_str().starts_with(&prefix);
        let all = self.all(&name);
        let entries = &mut snapshot.entries;
        match (flaw, blocks) {
            (Flaw::NamesArePatterns | Flaw::NamesArePrefixes, _) => {
                let names = self.server.notes().names.clone();
                let matches = |other: &&String| match flaw {
                    Flaw::NamesArePrefixes => other.starts_with(&name),
                    _ => is_like(&name, other),
                };
                for other in names.iter().filter(matches) {
                    let found = self.all(other);
                    snapshot.entries.extend(found);
                }
            }
            (Flaw::OverlapIsLost, _) => {
                let keys: BTreeSet<_> = query.keys.iter().collect();
                entries.retain(|key, _| !(is_here(key) && keys.contains(key)));
            }
            (Flaw::LastBlockLost, Blocks::All { .. }) => {
                entries.retain(|key, _| index_of(key) != Some(u64::MAX));
            }
            (Flaw::TwoThousandRead, Blocks::All { .. }) => {
                let late = all.keys().skip(2_000);
                late.for_each(|key| _ = entries.remove(key));
            }
            (_, Blocks::Lowest { limit, window, .. }) => {
                let limit = *limit as usize;
                let is_within = |key: &Key| index_of(key).is_some_and(|it| window.contains(&it));
                let counts = |key: &Key| is_here(key) && is_within(key);
                let mut by_rank: Vec<_> = all.keys().collect();
                by_rank.sort_by_key(|key| (mark_of(&all[*key]), *key));
                let mut kept: BTreeSet<_> = by_rank.iter().copied().take(limit).collect();
                let within: Vec<_> = all.keys().filter(|key| is_within(key)).collect();
                match flaw {
                    Flaw::CompleteAlways => snapshot.complete = true,
                    Flaw::CompleteNever => snapshot.complete = false,
                    Flaw::CompleteBelowLimit => snapshot.complete = all.len() < limit,
                    Flaw::CompleteByEntries => {
                        snapshot.complete = query.keys.len() + all.len() <= limit;
                    }
                    Flaw::LowestByKey => kept = all.keys().take(limit).collect(),
                    Flaw::LowestByDigits => {
                        by_rank.sort_by_key(|key| mark_of(&all[*key]).to_string());
                        kept = by_rank.into_iter().take(limit).collect();
                    }
                    Flaw::LimitIgnored => kept = all.keys().collect(),
                    Flaw::LimitOffByOne => kept = by_rank.into_iter().take(limit - 1).collect(),
                    Flaw::FirstRankStays => {
                        let ranks = self.server.notes().ranks.clone();
                        by_rank.sort_by_key(|key| ranks.get(*key).copied());
                        kept = by_rank.into_iter().take(limit).collect();
                    }
                    Flaw::WindowIgnored | Flaw::WindowOfTheLowest | Flaw::WindowEndIncluded => {}
                    _ => return,
                }
                match flaw {
                    Flaw::WindowIgnored => {}
                    Flaw::WindowOfTheLowest => kept.retain(|key| counts(key)),
                    _ => kept.extend(within),
                }
                if flaw == Flaw::WindowEndIncluded {
                    kept.extend(all.keys().filter(|key| index_of(key) == Some(window.end)));
                }
                entries.retain(|key, _| !is_here(key) || query.keys.contains(key));
                let shown = all.iter().filter(|(key, _)| kept.contains(key));
                entries.extend(shown.map(|(key, value)| (key.clone(), value.clone())));
            }
            _ => {}
        }
    }

    fn show_server(&mut self, snapshot: &mut Snapshot) {
        let Ok(time) = &mut snapshot.time else {
            return;
        };
        let incarnation = match self.server.flaw {
            Some(Flaw::IncarnationByRead) => number(),
            Some(Flaw::IncarnationByConnection) => self.number,
            Some(Flaw::IncarnationByCommit) => self.server.notes().commits,
            Some(Flaw::TimeInSeconds) => {
                *time = StoreTime::exactly(time.unix_ms / 1_000);
                return;
            }
            Some(Flaw::TimeStandsStill) => {
                *time = *self.server.notes().time.get_or_insert(*time);
                return;
            }
            Some(Flaw::TimeIsOutOfRange) => {
                time.latest_unix_ms = time.unix_ms - 1;
                return;
            }
            Some(Flaw::TimeIsMissing) => {
                snapshot.time = Err(ClockError("it is not shown".to_owned()));
                return;
            }
            _ => return,
        };
        snapshot.incarnation = Incarnation::new(incarnation.to_string());
    }

    /// A value as it is stored.
    fn stored_as(&self, value: &str) -> String {
        match self.server.flaw {
            Some(Flaw::SpacesTrimmed) => value.trim_end().to_owned(),
            Some(Flaw::LowerCased) => value.to_lowercase(),
            Some(Flaw::JsonNormalised) => value.replace("{ ", "{").replace(" :", ":"),
            Some(Flaw::BackslashesHalved) => value.replace(r"\\", r"\"),
            Some(Flaw::CutAt255Bytes) => {
                let most = (0..=255).rev().find(|at| value.is_char_boundary(*at));
                value[..most.unwrap_or(0).min(value.len())].to_owned()
            }
            Some(Flaw::NonAsciiLost) => value
                .chars()
                .map(|it| if it.is_ascii() { it } else { '?' })
                .collect(),
            _ => value.to_owned(),
        }
    }

    /// Whether two values are equal by the comparison of this table.
    fn are_equal(&self, stored: &str, expected: &str) -> bool {
        let compose = |text: &str| text.replace("e\u{301}", "é");
        let words = |text: &str| text.replace(' ', "");
        stored == expected
            || match self.server.flaw {
                Some(Flaw::CaseIgnored) => stored.to_lowercase() == expected.to_lowercase(),
                Some(Flaw::TrailingSpacesIgnored) => stored.trim_end() == expected.trim_end(),
                Some(Flaw::AccentsComposed) => compose(stored) == compose(expected),
                Some(Flaw::JsonCompared) => words(stored) == words(expected),
                Some(Flaw::PatternsCompared) => is_like(expected, stored),
                _ => false,
            }
    }

    /// The conditions and writes that this table makes of a commit.
    fn changed(&mut self, txn: &Txn) -> Txn {
        let mut txn = txn.clone();
        for put in &mut txn.puts {
            put.value = self.stored_as(&put.value);
        }
        for (key, expected) in &mut txn.compare {
            let Some(stored) = self.stored(key) else {
                continue;
            };
            if expected
                .as_deref()
                .is_some_and(|it| self.are_equal(&stored, it))
            {
                *expected = Some(stored);
            }
        }
        let Some(flaw) = self.server.flaw else {
            return txn;
        };
        let written: BTreeSet<_> = txn.puts.iter().map(|put| put.key.clone()).collect();
        let compared = txn.compare.iter().map(|(key, _)| key);
        let named = Query {
            keys: compared.chain(&written).cloned().collect(),
            blocks: None,
        };
        let known = self.inner(&named);
        let (present, known) = (known.entries, known.incarnation);
        let present: BTreeSet<_> = present.into_keys().collect();
        match flaw {
            Flaw::UnwrittenNotCompared => txn.compare.retain(|(key, _)| written.contains(key)),
            Flaw::WrittenNotCompared => txn.compare.retain(|(key, _)| !written.contains(key)),
            Flaw::AbsenceNotCompared => txn.compare.retain(|(_, expected)| expected.is_some()),
            Flaw::AbsentMatchesAny => txn.compare.retain(|(key, _)| present.contains(key)),
            Flaw::EmptyIsAbsent => {
                let is_empty = |expected: &Option<String>| expected.as_deref() == Some("");
                for (_, expected) in &mut txn.compare {
                    if is_empty(expected) {
                        *expected = None;
                    }
                }
            }
            Flaw::FirstCompared => txn.compare.truncate(1),
            Flaw::LastCompared => drop(txn.compare.drain(..txn.compare.len().saturating_sub(1))),
            Flaw::HundredCompared => txn.compare.truncate(100),
            Flaw::HundredWritten => txn.puts.truncate(100),
            Flaw::NotBeforeIgnored => txn.not_before_unix_ms = 0,
            Flaw::NotAfterIgnored => txn.not_after_unix_ms = u64::MAX,
            Flaw::NotBeforeRejected if txn.not_before_unix_ms > 0 => {
                txn.not_before_unix_ms = u64::MAX;
            }
            Flaw::NotAfterRejected if txn.not_after_unix_ms < u64::MAX => {
                txn.not_after_unix_ms = 0;
            }
            Flaw::IncarnationIgnored => txn.incarnation = None,
            Flaw::IncarnationByPrefix => {
                let is_prefix = |it: &Incarnation| it.as_str().starts_with(known.as_str());
                if txn.incarnation.as_ref().is_some_and(is_prefix) {
                    txn.incarnation = Some(known);
                }
            }
            // The first commit of all is that of the check.
            Flaw::IncarnationRequired if !txn.compare.is_empty() => {
                let none = || Incarnation::new("none");
                txn.incarnation.get_or_insert_with(none);
            }
            Flaw::OneNamespaceWritten => {
                let first = txn
                    .puts
                    .first()
                    .map(|put| namespace_of(&put.key).to_owned());
                txn.puts
                    .retain(|put| first.as_deref() == Some(namespace_of(&put.key)));
            }
            Flaw::CreatesOverwrites if txn.creates => txn.compare.clear(),
            Flaw::FirstValueStays => txn.puts.retain(|put| !present.contains(&put.key)),
            _ => {}
        }
        txn
    }

    fn apply(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, TableError> {
        self.table.commit(txn, instead)
    }

    /// Checks some conditions first, and writes later under the others.
    fn apply_later(
        &mut self,
        txn: &Txn,
        instead: &Query,
        is_first: impl Fn(&Key, Option<&str>) -> bool,
    ) -> Result<Commit, TableError> {
        let checked = Txn {
            puts: Vec::new(),
            ..txn.clone()
        };
        if let Commit::Conflict(snapshot) = self.apply(&checked, instead)? {
            return Ok(Commit::Conflict(snapshot));
        }
        thread::sleep(MEANWHILE);
        let mut rest = txn.clone();
        rest.compare
            .retain(|(key, expected)| !is_first(key, expected.as_deref()));
        self.apply(&rest, instead)
    }

    /// The snapshot of a conflict, as it is shown.
    fn conflict(
        &mut self,
        txn: &Txn,
        instead: &Query,
        snapshot: Snapshot,
    ) -> Result<Snapshot, TableError> {
        let mut puts = txn.puts.clone();
        match self.server.flaw {
            Some(Flaw::ConflictWritesFirst) => puts.truncate(1),
            Some(Flaw::ConflictWritesAll) => {}
            _ => puts.clear(),
        }
        let write = Txn {
            puts,
            ..Txn::default()
        };
        self.apply(&write, &Query::default())?;
        let mut query = instead.clone();
        match self.server.flaw {
            // As it was before the writes.
            Some(Flaw::ConflictWritesFirst | Flaw::ConflictWritesAll) => return Ok(snapshot),
            Some(Flaw::ConflictIsEmpty) => query = Query::default(),
            Some(Flaw::ConflictLacksBlocks) => query.blocks = None,
            Some(Flaw::ConflictShowsCompared) => {
                query.keys = txn.compare.iter().map(|(key, _)| key.clone()).collect();
            }
            _ => {}
        }
        let mut snapshot = self.show(&query)?;
        if self.has(Flaw::ConflictLacksTime) {
            snapshot.time = Err(ClockError("it is not shown".to_owned()));
        }
        Ok(snapshot)
    }
}

/// Whether a text matches a pattern of SQL, in which `_` is any character, and `%` any text.
fn is_like(pattern: &str, text: &str) -> bool {
    match (pattern.chars().next(), text.chars().next()) {
        (None, None) => true,
        (Some('%'), _) => {
            let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            let mut rests = ends.map(|at| &text[at..]);
            rests.any(|rest| is_like(&pattern[1..], rest))
        }
        (Some(expected), Some(found)) if expected == '_' || expected == found => {
            is_like(&pattern[expected.len_utf8()..], &text[found.len_utf8()..])
        }
        _ => false,
    }
}

impl Table for FlawedTable {
    fn read(&mut self, query: &Query) -> Result<Snapshot, TableError> {
        self.show(query)
    }

    fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, TableError> {
        match self.server.flaw {
            Some(Flaw::CreatesNothing) => return Err(corrupt("no table")),
            Some(Flaw::OutcomeUnknown) => return Ok(Commit::Unknown("no reply".into())),
            _ => {}
        }
        {
            let mut notes = self.server.notes();
            notes.commits += 1;
            for put in txn.puts.iter().filter(|put| is_block(&put.key)) {
                notes.names.insert(namespace_of(&put.key).to_owned());
                let rank = put.rank.unwrap_or(0);
                notes.ranks.entry(put.key.clone()).or_insert(rank);
            }
        }
        let written: BTreeSet<_> = txn.puts.iter().map(|put| &put.key).collect();
        let changed = self.changed(txn);
        let outcome = match self.server.flaw {
            Some(Flaw::CheckedThenWritten) => self.apply_later(&changed, instead, |_, _| true),
            Some(Flaw::WritesMaySkew) => self.apply_later(&changed, instead, |key, expected| {
                expected.is_some() && !written.contains(key)
            }),
            Some(Flaw::InsertsMaySkew) => self.apply_later(&changed, instead, |key, expected| {
                expected.is_none() && !written.contains(key)
            }),
            _ => self.apply(&changed, instead),
        };
        match outcome? {
            Commit::Conflict(snapshot) => {
                let shown = self.conflict(&changed, instead, snapshot)?;
                Ok(Commit::Conflict(shown))
            }
            other => Ok(other),
        }
    }

    fn describe(&mut self) -> Result<Description, TableError> {
        let mut description = self.table.describe()?;
        match self.server.flaw {
            Some(Flaw::NoName) => description.store.clear(),
            Some(Flaw::DescriptionFails) => return Err(corrupt("no permission")),
            _ => {}
        }
        Ok(description)
    }
}
