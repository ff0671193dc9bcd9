//! Reading and writing: the steps of every operation.
//!
//! ```text
//! read (record, blocks) --decide--> write if (record, blocks) are unchanged
//!          ^                             | done: the answer
//!          +--- what is there instead ---+ overtaken
//! ```
//! The write compares the revisions at which the record and each block were last
//! written, 0 for a block without a key. So each decision holds for
//! the keys as they stand at the moment of the write (S1, S6). A write whose fate is
//! unknown ends the operation; it is never sent again. A floor that must stay is
//! a write of its own.

use serde_json::{Value, json};

use super::gateway::{Failure, Gateway, Reply};
use super::history::Histories;
use super::verdict::Verdict;
use super::wire::{self, Header, KeyValue, MembersReply, RangeReply, Span, StatusReply, TxnReply};
use super::{clock, record};
use crate::lease::block::{Block, BlockState};
use crate::lease::connect::deadline::Deadline;
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::quarantine::Judged;
use crate::lease::record::{Incarnation, StoreRecord};

/// A cluster, and the histories that were seen of it.
pub(super) struct Cluster {
    gateway: Gateway,
    histories: Histories,
}

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
    /// Somebody else was first. The reply has the keys as they are now.
    Overtaken(Reply<TxnReply>),
}

/// The decision of an operation.
pub(super) struct Change<T> {
    /// The writes; if there are none, nothing is sent.
    pub(super) puts: Vec<Value>,
    /// The operation's answer once they are done.
    pub(super) answer: T,
}

impl Cluster {
    pub(super) fn new(gateway: Gateway) -> Self {
        Self {
            gateway,
            histories: Histories::default(),
        }
    }

    pub(super) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

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
        let Some(kv) = reply.key_value(0)? else {
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

    /// Reads `keys`, lets `decide` decide on their values, and writes if all of them
    /// are unchanged; over and over until nobody was faster.
    pub(super) fn change<T>(
        &mut self,
        operation: &'static str,
        keys: &[String],
        deadline: &Deadline,
        decide: impl FnMut(&mut Self, &Reply<TxnReply>) -> Result<Change<T>, StoreError>,
    ) -> Result<T, StoreError> {
        self.change_where(operation, keys, None, deadline, decide)
    }

    /// As [`change`](Self::change); where a span is given, its first key is read behind
    /// `keys`, and what is decided is written only if the span has no key.
    pub(super) fn change_where<T>(
        &mut self,
        operation: &'static str,
        keys: &[String],
        absent: Option<&Span>,
        deadline: &Deadline,
        mut decide: impl FnMut(&mut Self, &Reply<TxnReply>) -> Result<Change<T>, StoreError>,
    ) -> Result<T, StoreError> {
        let ops = || {
            let keys = keys.iter().map(|key| wire::get(key));
            let span = absent.map(|span| wire::range(span, 1));
            keys.chain(span).map(wire::read).collect()
        };
        let mut reply = self.read(ops(), deadline)?;
        loop {
            let Change { puts, answer } = decide(self, &reply)?;
            if puts.is_empty() {
                return Ok(answer);
            }
            let mut compare = Vec::with_capacity(keys.len());
            for (place, key) in keys.iter().enumerate() {
                let revision = reply.body.key_value(place)?.map_or(0, |kv| kv.mod_revision);
                compare.push(wire::unchanged(key, revision));
            }
            compare.extend(absent.map(wire::absent));
            let header = &reply.body.header;
            match self.write(operation, header, compare, puts, ops(), deadline)? {
                Written::Done => return Ok(answer),
                Written::Overtaken(again) => reply = again,
            }
        }
    }

    /// As [`change`](Self::change), of one block: `decide` makes its new state out of
    /// the record and the key as it stands, if it does.
    pub(super) fn change_block(
        &mut self,
        operation: &'static str,
        namespace: &Namespace,
        block: Block,
        deadline: &Deadline,
        decide: impl Fn(&Opened, &Reply<TxnReply>, Option<&KeyValue>) -> Result<BlockState, StoreError>,
    ) -> Result<BlockState, StoreError> {
        let keys = [
            record::record_key(namespace),
            record::block_key(namespace, block),
        ];
        let [record_key, block_key] = &keys;
        self.change(operation, &keys, deadline, |cluster, reply| {
            let opened = cluster.open(namespace, &reply.body)?;
            let changed = decide(&opened, reply, reply.body.key_value(1)?)?;
            let mut puts = vec![wire::put(block_key, &record::encode_block(&changed)?)];
            puts.extend(opened.new_term(record_key)?);
            Ok(Change {
                puts,
                answer: changed,
            })
        })
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
        let mut page = first.body.range(1)?.clone();
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

    /// Which cluster this is, in words.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] where it has raised an alarm: it then refuses
    /// to write.
    pub(super) fn describe(&mut self, deadline: &Deadline) -> Result<String, StoreError> {
        let nothing = json!({});
        let mut ask = |path| self.gateway.ask(path, &nothing, deadline);
        let status: Reply<StatusReply> = ask("/v3/maintenance/status").map_err(unavailable)?;
        let status = status.body;
        if !status.errors.is_empty() {
            let text = format!("etcd has raised an alarm: {}", status.errors.join(", "));
            return Err(StoreError::Unavailable {
                source: text.into(),
            });
        }
        let members = self
            .gateway
            .ask("/v3/cluster/member/list", &nothing, deadline);
        let members: Reply<MembersReply> = members.map_err(unavailable)?;
        let members = members.body.members;
        let leader = members.iter().find(|member| member.id == status.leader);
        let leader = leader.map_or("unknown", |member| &member.name);
        let host = self.gateway.member().map(ToString::to_string);
        Ok(format!(
            "etcd {} at {}, {} members, leader {leader}",
            status.version,
            host.unwrap_or_default(),
            members.len()
        ))
    }
}

impl Opened {
    /// Compares a client's clock with the member's, as of a reply of this operation,
    /// which began with `deadline`.
    pub(super) fn check_skew(
        &self,
        date_ms: u64,
        deadline: &Deadline,
        client_ms: u64,
    ) -> Result<(), StoreError> {
        let nearest = clock::nearest(date_ms, deadline.elapsed(), client_ms);
        self.record.check_skew(nearest, client_ms)
    }

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

fn unavailable(failure: Failure) -> StoreError {
    let source = failure.source;
    match failure.verdict {
        Verdict::Denied => StoreError::Denied { source },
        _ => StoreError::Unavailable { source },
    }
}
