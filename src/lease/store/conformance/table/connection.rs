//! A connection to the table under test. Any answer that no check expects is a panic.

use std::collections::BTreeMap;

use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::store::format::encode_block;
use crate::lease::store::table::{Blocks, Commit, Key, Put, Query, Snapshot, Table, Txn};

/// The entries of a snapshot.
pub(super) type Entries = BTreeMap<Key, String>;

#[derive(Debug)]
pub(super) struct Connection(pub(super) Box<dyn Table>);

impl Connection {
    #[track_caller]
    pub(super) fn read(&mut self, query: &Query) -> Snapshot {
        self.0
            .read(query)
            .unwrap_or_else(|error| panic!("{error}: reading {query:?}"))
    }

    #[track_caller]
    pub(super) fn entries(&mut self, query: &Query) -> Entries {
        self.read(query).entries
    }

    /// The value of one entry.
    #[track_caller]
    pub(super) fn value(&mut self, key: &Key) -> Option<String> {
        self.entries(&keys([key])).remove(key)
    }

    /// Commits. Returns the snapshot of a conflict.
    #[track_caller]
    pub(super) fn commit(&mut self, txn: &Txn, instead: &Query) -> Option<Snapshot> {
        match self.0.commit(txn, instead) {
            Ok(Commit::Done) => None,
            Ok(Commit::Conflict(snapshot)) => Some(snapshot),
            Ok(Commit::Unknown(source)) => panic!("the outcome is unknown ({source}) of {txn:?}"),
            Err(error) => panic!("{error}: committing {txn:?}"),
        }
    }

    /// Commits what must be applied.
    #[track_caller]
    pub(super) fn must_commit(&mut self, txn: &Txn) {
        if let Some(snapshot) = self.commit(txn, &Query::default()) {
            panic!("all conditions hold, and it was rejected: {txn:?}, {snapshot:?}");
        }
    }

    /// Commits what must be rejected.
    #[track_caller]
    pub(super) fn must_conflict(&mut self, txn: &Txn, instead: &Query) -> Snapshot {
        let conflict = self.commit(txn, instead);
        conflict.unwrap_or_else(|| panic!("a condition does not hold, and it was applied: {txn:?}"))
    }

    /// Writes entries without any condition.
    #[track_caller]
    pub(super) fn write(&mut self, puts: impl IntoIterator<Item = Put>) {
        self.must_commit(&Txn {
            puts: puts.into_iter().collect(),
            creates: true,
            ..Txn::default()
        });
    }
}

/// An entry with any value.
pub(super) fn put(key: &Key, value: &str) -> Put {
    let is_block = key.as_str().contains("/block/");
    Put {
        key: key.clone(),
        value: value.to_owned(),
        rank: is_block.then_some(0),
    }
}

/// A commit of one entry on this condition.
pub(super) fn guarded(compare: (&Key, Option<&str>), put: Put) -> Txn {
    let (key, expected) = compare;
    Txn {
        compare: vec![(key.clone(), expected.map(str::to_owned))],
        puts: vec![put],
        ..Txn::default()
    }
}

/// An entry of a block with this mark.
pub(super) fn marked(namespace: &str, index: u64, mark: u64) -> Put {
    let block = Block::new(index);
    Put {
        key: Key::block(namespace, block),
        value: encode_block(&BlockState::new(block, Epoch::FIRST, mark)),
        rank: Some(mark),
    }
}

pub(super) fn block(namespace: &str, index: u64) -> Key {
    Key::block(namespace, Block::new(index))
}

/// Reads these keys alone.
pub(super) fn keys<'a>(keys: impl IntoIterator<Item = &'a Key>) -> Query {
    Query {
        keys: keys.into_iter().cloned().collect(),
        blocks: None,
    }
}

/// Reads all blocks of a namespace.
pub(super) fn all_of(namespace: &str) -> Query {
    Query {
        keys: Vec::new(),
        blocks: Some(Blocks::All {
            namespace: namespace.to_owned(),
        }),
    }
}

/// Reads the blocks with the lowest ranks, and those of a window.
pub(super) fn lowest_of(namespace: &str, limit: u32, window: std::ops::Range<u64>) -> Query {
    Query {
        keys: Vec::new(),
        blocks: Some(Blocks::Lowest {
            namespace: namespace.to_owned(),
            limit,
            window,
        }),
    }
}

/// The entries that these puts write.
pub(super) fn written<'a>(puts: impl IntoIterator<Item = &'a Put>) -> Entries {
    let entry = |put: &Put| (put.key.clone(), put.value.clone());
    puts.into_iter().map(entry).collect()
}
