//! Reading and writing: what every operation is made of.
//!
//! ```text
//! read (record, blocks) --decide--> write if (record, blocks) are unchanged
//!          ^                             | done: the answer
//!          +--- what is there instead ---+ overtaken
//! ```
//! The write compares the revisions at which the record and each block were last
//! written, 0 for a block without a key. So whatever was decided was decided on
//! what stood there at the moment of the write (S1, S6). A write whose fate is
//! unknown ends the operation; it is never sent again. A floor that must stay is
//! a write of its own.

use std::error::Error;

use serde_json::Value;

use super::gateway::{Failure, Reply};
use super::verdict::Verdict;
use super::wire::{self, Header, RangeReply, TxnReply};
use super::{EtcdStore, record};
use crate::lease::block::{Block, BlockState};
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::quarantine::Judged;
use crate::lease::record::{Incarnation, StoreRecord};
use crate::lease::stores::deadline::Deadline;
use crate::lease::stores::row::corrupt;

/// A namespace's record as it was read.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) record: StoreRecord,
    /// The highest raft term on record.
    pub(super) raft_term: u64,
    pub(super) mod_revision: i64,
    pub(super) header: Header,
    /// The cluster's incarnation at present.
    pub(super) incarnation: Incarnation,
}

/// A writing transaction that was carried out, one way or the other.
pub(super) enum Written {
    Done,
    /// Somebody else was first, and this is what they left.
    Overtaken(Reply<TxnReply>),
}

impl EtcdStore {
    /// Reads several ranges at one revision.
    pub(super) fn read(
        &mut self,
        ops: Vec<Value>,
        deadline: &Deadline,
    ) -> Result<Reply<TxnReply>, StoreError> {
        let body = wire::txn(Vec::new(), ops, Vec::new());
        let reply = self.gateway.ask("/v3/kv/txn", &body, deadline);
        reply.map_err(unavailable)
    }

    /// Writes `puts` if everything is as it was read; else reads `instead`.
    pub(super) fn write(
        &mut self,
        operation: &'static str,
        read: &Header,
        compare: Vec<Value>,
        puts: Vec<Value>,
        instead: Vec<Value>,
        deadline: &Deadline,
    ) -> Result<Written, StoreError> {
        let ambiguous = |source| StoreError::Ambiguous { operation, source };
        let body = wire::txn(compare, puts, instead);
        let reply: Reply<TxnReply> = match self.gateway.send_once("/v3/kv/txn", &body, deadline) {
            Ok(reply) => reply,
            Err(failure) if failure.verdict == Verdict::Unknown => {
                return Err(ambiguous(failure.source));
            }
            Err(failure) => return Err(unavailable(failure)),
        };
        if !reply.body.succeeded {
            return Ok(Written::Overtaken(reply));
        }
        let header = &reply.body.header;
        let same = header.cluster_id == read.cluster_id
            && header.raft_term >= read.raft_term
            && header.revision > read.revision;
        if !same {
            return Err(ambiguous("the cluster was replaced meanwhile".into()));
        }
        Ok(Written::Done)
    }

    /// The record out of the first range of a reply.
    pub(super) fn open(
        &mut self,
        namespace: &Namespace,
        reply: &TxnReply,
    ) -> Result<Opened, StoreError> {
        let Some(kv) = range(reply, 0)?.kvs.first() else {
            return Err(namespace.not_initialised());
        };
        let (record, raft_term) = record::decode_record(namespace, kv)?;
        record.verify(namespace)?;
        let (name, header) = (namespace.name(), reply.header);
        let known = &record.incarnation;
        let incarnation = self.histories.incarnation(name, &header, known, raft_term);
        if incarnation == *known {
            self.histories.remember(name, known, header.revision);
        }
        Ok(Opened {
            mod_revision: kv.mod_revision,
            header,
            incarnation,
            raft_term,
            record,
        })
    }

    /// Reads the record and one block, lets `change` decide, and writes what it
    /// makes of the block, over and over until nobody was faster.
    pub(super) fn change_block<T>(
        &mut self,
        operation: &'static str,
        namespace: &Namespace,
        block: Block,
        mut change: impl FnMut(
            &Opened,
            Option<u64>,
            Option<BlockState>,
        ) -> Result<(BlockState, T), StoreError>,
    ) -> Result<T, StoreError> {
        let deadline = self.deadline();
        let record_key = record::record_key(namespace);
        let block_key = record::block_key(namespace, block);
        let ops = || {
            let keys = [&record_key, &block_key];
            keys.map(|key| wire::read(wire::get(key))).to_vec()
        };
        let mut reply = self.read(ops(), &deadline)?;
        loop {
            let opened = self.open(namespace, &reply.body)?;
            let kv = range(&reply.body, 1)?.kvs.first();
            let known = kv.map(|kv| record::judge(namespace, kv)).transpose();
            let known = known.map_err(|found| found.fence(namespace, block))?;
            let (changed, answer) = change(&opened, reply.date_ms, known)?;
            let mut compare = vec![wire::unchanged(&record_key, opened.mod_revision)];
            let before = kv.map_or(0, |kv| kv.mod_revision);
            compare.push(wire::unchanged(&block_key, before));
            let mut puts = vec![wire::put(&block_key, &record::encode_block(&changed)?)];
            puts.extend(opened.new_term(&record_key)?);
            let header = &opened.header;
            match self.write(operation, header, compare, puts, ops(), &deadline)? {
                Written::Done => return Ok(answer),
                Written::Overtaken(again) => reply = again,
            }
        }
    }

    /// Every block that was granted, at one revision, with the record.
    pub(super) fn read_all(
        &mut self,
        namespace: &Namespace,
        deadline: &Deadline,
    ) -> Result<(Opened, Vec<Judged>, Option<u64>), StoreError> {
        const PAGE: u64 = 2_000;

        let record = wire::get(&record::record_key(namespace));
        let mut span = record::all_blocks(namespace);
        let ops = vec![wire::read(record), wire::read(wire::range(&span, PAGE))];
        let first = self.read(ops, deadline)?;
        let opened = self.open(namespace, &first.body)?;
        let mut page = range(&first.body, 1)?.clone();
        let mut blocks = Vec::new();
        loop {
            blocks.extend(page.kvs.iter().map(|kv| record::judge(namespace, kv)));
            let last = page.kvs.last().map(|kv| kv.key.clone());
            let (true, Some(mut next)) = (page.more, last) else {
                return Ok((opened, blocks, first.date_ms));
            };
            // The first key that comes after it, whatever they are.
            next.push(0);
            span.0 = next;
            let body = wire::range_at(&span, PAGE, opened.header.revision);
            let reply: Reply<RangeReply> = self
                .gateway
                .ask("/v3/kv/range", &body, deadline)
                .map_err(unavailable)?;
            page = reply.body;
        }
    }
}

impl Opened {
    /// The record with a raft term that has risen since it was written.
    pub(super) fn new_term(&self, record_key: &str) -> Result<Option<Value>, StoreError> {
        let same_history = self.incarnation == self.record.incarnation;
        if !same_history || self.header.raft_term <= self.raft_term {
            return Ok(None);
        }
        let value = record::encode_record(&self.record, self.header.raft_term)?;
        Ok(Some(wire::put(record_key, &value)))
    }
}

/// One of the ranges that were asked for.
pub(super) fn range(reply: &TxnReply, place: usize) -> Result<&RangeReply, StoreError> {
    let found = reply.responses.get(place).map(|op| &op.response_range);
    found.ok_or_else(|| corrupt("a reply lacks a range that was asked for".into()))
}

pub(super) fn dated(date_ms: Option<u64>) -> Result<u64, StoreError> {
    date_ms.ok_or_else(|| StoreError::Unavailable {
        source: Box::<dyn Error + Send + Sync>::from("the member's reply tells no date"),
    })
}

pub(super) fn unavailable(failure: Failure) -> StoreError {
    let source = failure.source;
    match failure.verdict {
        Verdict::Denied => StoreError::Denied { source },
        _ => StoreError::Unavailable { source },
    }
}
