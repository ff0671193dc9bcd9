//! The values that this process has read or written last, for renewals in one round trip.
//!
//! Nothing is refused by them. A stale value makes a commit conflict, and the conflict brings
//! the present one.

use std::collections::HashMap;

use crate::lease::block::BlockState;
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::store::format::{decode_record, encode_block};
use crate::lease::store::record::{Incarnation, StoreRecord};
use crate::lease::store::table::{Key, Snapshot};

#[derive(Clone, Debug, Default)]
pub(super) struct ValueCache {
    /// By the namespace's name.
    records: HashMap<String, CachedRecord>,
    /// Blocks that this process has written and not released.
    blocks: HashMap<Key, (BlockState, String)>,
}

/// A namespace's record, and the server's incarnation when it was read.
#[derive(Clone, Debug)]
pub(super) struct CachedRecord {
    pub(super) record: StoreRecord,
    pub(super) value: String,
    pub(super) incarnation: Incarnation,
}

impl ValueCache {
    /// Reads, verifies and notes the record in a snapshot.
    pub(super) fn read(
        &mut self,
        namespace: &Namespace,
        snapshot: &Snapshot,
    ) -> Result<CachedRecord, StoreError> {
        let name = namespace.name();
        let value = snapshot.entries.get(&Key::record(name));
        let value = value.ok_or_else(|| namespace.not_initialised())?;
        let record = decode_record(name, value)?;
        record.verify(namespace)?;
        let seen = CachedRecord {
            record,
            value: value.clone(),
            incarnation: snapshot.incarnation.clone(),
        };
        self.records.insert(name.to_owned(), seen.clone());
        Ok(seen)
    }

    /// Notes a block that was written.
    pub(super) fn block(&mut self, namespace: &Namespace, state: &BlockState) {
        let key = Key::block(namespace.name(), state.block);
        match state.released {
            true => self.blocks.remove(&key),
            false => {
                let value = encode_block(state);
                self.blocks.insert(key, (state.clone(), value))
            }
        };
    }

    /// Forgets a block whose grant was refused a change.
    pub(super) fn forget(&mut self, key: &Key) {
        self.blocks.remove(key);
    }

    pub(super) fn record_of(&self, namespace: &Namespace) -> Option<&CachedRecord> {
        let seen = self.records.get(namespace.name())?;
        (seen.record.namespace == *namespace).then_some(seen)
    }

    pub(super) fn block_of(&self, key: &Key) -> Option<&(BlockState, String)> {
        self.blocks.get(key)
    }
}
