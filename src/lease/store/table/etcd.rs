//! A table in an etcd cluster. ARCHITECTURE.md shows how it keeps T1 to T5.
//!
//! etcd's own interface has no time, but its JSON gateway sends the date that HTTP asks for. The
//! time of the member then lies in `[date, date + 1 s)`. Decisions use the beginning of that
//! second, so that no grant reaches beyond the horizon. Two clocks are apart by no less than the
//! nearest moment at which the member can have sent its reply. The date belongs to a read that
//! comes before the transaction, which is done only if nothing has changed since. So the date is
//! older than the transaction, never newer.
//!
//! A commit with a latest time is for values that the time has gone into. etcd can't compare
//! its clock, so such a commit is sent within that time by this machine's clock, counted from
//! the date that was read, and only if each key was not written since.
//!
//! Keys are those of the table after `ringflake/`. Ranks are not kept: values begin with the
//! mark in 20 digits, and etcd sorts by value.

mod config;
mod gateway;
mod history;
mod verdict;
mod wire;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::config::Config;
use self::gateway::{Gateway, Reply};
use self::history::History;
use self::wire::{Header, RangeReply, Span, TxnReply};
use super::failure::Failure;
use super::{Blocks, Commit, Description, Key, Query, Snapshot, StoreTime, Table, Txn};
use crate::lease::block::Block;
use crate::lease::error::StoreError;
use crate::lease::store::connect::deadline::Deadline;
use crate::lease::store::key::StoreKey;
use crate::lease::store::options::{OpenError, OpenOptions};
use crate::lease::store::record::Incarnation;
use crate::lease::store::report::Durability;

const PREFIX: &str = "ringflake/";
const HISTORY: &str = "ringflake/.history";

/// Reads in one transaction, and in a page. etcd takes 128 operations.
const MAX_OPS: usize = 120;
const PAGE: u64 = 2_000;

/// The table of an [`EtcdStore`](crate::lease::EtcdStore).
pub struct EtcdTable {
    gateway: Gateway,
    timeout: Duration,
    key: StoreKey,
    last: Last,
}

/// What the last replies showed.
#[derive(Clone, Debug, Default)]
struct Last {
    /// The value of [`HISTORY`], and the history that the cluster has by it.
    recorded: Option<String>,
    history: Option<History>,
    header: Header,
    /// The last revision that was seen in a history, as long as nothing contradicts it: what
    /// is lost stays noticed until somebody has recorded that.
    seen: Option<(Incarnation, i64)>,
    /// The latest date, in milliseconds since 1970, and when the call for it began.
    date_ms: u64,
    at: Option<Instant>,
    /// The revisions at which the entries of the last snapshot were written.
    written: HashMap<Key, i64>,
}

impl EtcdTable {
    /// The table in the cluster at `url`, whose form is that of
    /// [`EtcdStore`](crate::lease::EtcdStore). Connects to nothing yet.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] for another scheme, a parameter that does not exist, and a file
    /// that can't be read.
    pub fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let config = Config::from_url(url, options)?;
        let any = RandomState::new().build_hasher().finish() as usize;
        Ok(Self {
            gateway: Gateway::new(config, any),
            timeout: options.operation_timeout(),
            key: StoreKey::new(url, options),
            last: Last::default(),
        })
    }

    fn read_by(&mut self, query: &Query, deadline: &Deadline) -> Result<Snapshot, Failure> {
        let (ops, rest) = ops(query);
        let body = wire::txn(Vec::new(), ops, Vec::new());
        let reply: Reply<TxnReply> = self.gateway.ask("/v3/kv/txn", &body, deadline)?;
        self.snapshot(query, &reply, &rest, deadline)
    }

    /// The snapshot of a reply to [`ops`], and of further reads at its revision.
    fn snapshot(
        &mut self,
        query: &Query,
        reply: &Reply<TxnReply>,
        rest: &[Key],
        deadline: &Deadline,
    ) -> Result<Snapshot, Failure> {
        let body = &reply.body;
        let recorded = body.range(0)?.kvs.first();
        let recorded = recorded.map(|kv| text(&kv.value)).transpose()?;
        let incarnation = self.note(recorded, &body.header, reply.date_ms, deadline)?;
        let mut entries = BTreeMap::new();
        for range in body.responses.iter().skip(1) {
            self.add(&mut entries, &range.response_range)?;
        }
        let mut complete = true;
        match &query.blocks {
            Some(Blocks::Lowest { limit, .. }) => {
                complete = body.range(1)?.count <= u64::from(*limit);
            }
            Some(all @ Blocks::All { .. }) => {
                let mut page = body.range(1)?.clone();
                let mut span = span_of(all);
                while let (true, Some(last)) = (page.more, page.kvs.last()) {
                    // The first key that comes after it, whatever they are.
                    span.0 = [&*last.key, &[0]].concat();
                    page = self.page(wire::range(&span, PAGE), &body.header, deadline)?;
                    self.add(&mut entries, &page)?;
                }
            }
            None => {}
        }
        for key in rest {
            let page = self.page(wire::get(&path(key)), &body.header, deadline)?;
            self.add(&mut entries, &page)?;
        }
        let elapsed = u64::try_from(deadline.elapsed().as_millis()).unwrap_or(u64::MAX);
        let time = reply.date_ms.map(|date_ms| StoreTime {
            unix_ms: date_ms,
            earliest_unix_ms: date_ms.saturating_sub(elapsed),
            latest_unix_ms: date_ms.saturating_add(999),
        });
        Ok(Snapshot {
            entries,
            complete,
            time: time.ok_or_else(|| "the reply has no date".to_owned()),
            incarnation,
        })
    }

    /// Reads entries as they were when a reply with this header was given.
    fn page(
        &mut self,
        mut read: Value,
        header: &Header,
        deadline: &Deadline,
    ) -> Result<RangeReply, Failure> {
        read["revision"] = json!(header.revision.to_string());
        let reply: Reply<RangeReply> = self.gateway.ask("/v3/kv/range", &read, deadline)?;
        Ok(reply.body)
    }

    /// Notes what a reply showed. Returns the incarnation.
    fn note(
        &mut self,
        recorded: Option<String>,
        header: &Header,
        date_ms: Option<u64>,
        deadline: &Deadline,
    ) -> Result<Incarnation, Failure> {
        let history = match &recorded {
            None => History::beginning(header),
            Some(value) => {
                let known: History = serde_json::from_str(value).map_err(|error| {
                    Failure::corrupt(format!("{HISTORY} is not a history"), Some(error.into()))
                })?;
                let recorded = known.incarnation();
                let seen = self.last.seen.take();
                let seen = seen.filter(|(incarnation, _)| *incarnation == recorded);
                let history = known.continued(header, seen.as_ref().map(|(_, last)| *last));
                self.last.seen = match history.incarnation() == recorded {
                    true => Some((recorded, header.revision)),
                    false => seen,
                };
                history
            }
        };
        let incarnation = history.incarnation();
        self.last = Last {
            recorded,
            history: Some(history),
            header: *header,
            seen: self.last.seen.take(),
            date_ms: date_ms.unwrap_or(0),
            at: Some(deadline.start()),
            written: HashMap::new(),
        };
        Ok(incarnation)
    }

    fn add(
        &mut self,
        entries: &mut BTreeMap<Key, String>,
        range: &RangeReply,
    ) -> Result<(), Failure> {
        for kv in &range.kvs {
            let key = text(&kv.key)?;
            let key = Key::from(key.strip_prefix(PREFIX).unwrap_or(&key).to_owned());
            self.last.written.insert(key.clone(), kv.mod_revision);
            entries.insert(key, String::from_utf8_lossy(&kv.value).into_owned());
        }
        Ok(())
    }

    /// The comparison of a key. Where time has gone into what is written, the value must not
    /// have been written again either; that also compares a value that is no text.
    fn comparison(&self, txn: &Txn, key: &Key, expected: Option<&str>) -> Value {
        match (expected, self.last.written.get(key)) {
            (Some(_), Some(revision)) if txn.not_after_unix_ms < u64::MAX => {
                wire::unchanged(&path(key), *revision)
            }
            _ => wire::holds(&path(key), expected),
        }
    }

    /// Whether a commit may be sent by what is known of the clock and the history.
    fn admits(&self, txn: &Txn) -> bool {
        let Last {
            history,
            date_ms,
            at,
            ..
        } = &self.last;
        let known = history.as_ref().map(History::incarnation);
        let elapsed = at.map_or(Duration::MAX, |at| at.elapsed());
        let now = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let now = date_ms.saturating_add(now);
        known.is_some()
            && (txn.incarnation.is_none() || txn.incarnation == known)
            && *date_ms >= txn.not_before_unix_ms
            && (txn.not_after_unix_ms == u64::MAX || now <= txn.not_after_unix_ms)
    }

    /// The comparison of the history, and its write where it is new or has a higher term, or
    /// `always`.
    fn guard_history(&self, always: bool, compare: &mut Vec<Value>, puts: &mut Vec<Value>) {
        compare.push(wire::holds(HISTORY, self.last.recorded.as_deref()));
        let Some(history) = &self.last.history else {
            return;
        };
        // Of texts and numbers alone; it can't fail.
        let value = serde_json::to_string(history).ok();
        let is_new = |value: &String| self.last.recorded.as_ref() != Some(value);
        if let Some(value) = value.filter(|value| always || is_new(value)) {
            puts.push(wire::put(HISTORY, &value));
        }
    }
}

impl Table for EtcdTable {
    fn read(&mut self, query: &Query) -> Result<Snapshot, StoreError> {
        let read = self.read_by(query, &Deadline::after(self.timeout));
        read.map_err(Failure::into_error)
    }

    fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, StoreError> {
        let deadline = Deadline::after(self.timeout);
        if !self.admits(txn) {
            let snapshot = self.read_by(instead, &deadline);
            let snapshot = snapshot.map_err(Failure::into_error)?;
            if !self.admits(txn) || txn.not_after_unix_ms < u64::MAX {
                return Ok(Commit::Conflict(snapshot));
            }
        }
        let mut compare = Vec::with_capacity(txn.compare.len() + 1);
        for (key, expected) in &txn.compare {
            compare.push(self.comparison(txn, key, expected.as_deref()));
        }
        let put = |put: &super::Put| wire::put(&path(&put.key), &put.value);
        let mut puts: Vec<_> = txn.puts.iter().map(put).collect();
        let tries = txn.puts.iter().any(|put| put.key.is_check());
        self.guard_history(tries, &mut compare, &mut puts);
        let (ops, rest) = ops(instead);
        let body = wire::txn(compare, puts, ops);
        let reply: Reply<TxnReply> = match self.gateway.send_once("/v3/kv/txn", &body, &deadline) {
            Ok(reply) => reply,
            Err(Failure::Unknown(cause)) => return Ok(Commit::Unknown(cause)),
            Err(failure) => return Err(failure.into_error()),
        };
        if !reply.body.succeeded {
            let snapshot = self.snapshot(instead, &reply, &rest, &deadline);
            return snapshot.map(Commit::Conflict).map_err(Failure::into_error);
        }
        let (before, header) = (self.last.header, reply.body.header);
        let same = header.cluster_id == before.cluster_id
            && header.raft_term >= before.raft_term
            && header.revision > before.revision;
        if !same {
            self.last = Last {
                seen: self.last.seen.take(),
                ..Last::default()
            };
            return Ok(Commit::Unknown("the cluster was replaced meanwhile".into()));
        }
        if let Some(history) = &self.last.history {
            self.last.recorded = serde_json::to_string(history).ok();
            self.last.seen = Some((history.incarnation(), header.revision));
        }
        self.last.header = header;
        self.last.date_ms = reply.date_ms.unwrap_or(self.last.date_ms);
        Ok(Commit::Done)
    }

    fn describe(&mut self) -> Result<Description, StoreError> {
        let deadline = Deadline::after(self.timeout);
        let nothing = json!({});
        let mut ask = |path| -> Result<Value, StoreError> {
            let reply: Result<Reply<Value>, _> = self.gateway.ask(path, &nothing, &deadline);
            Ok(reply.map_err(Failure::into_error)?.body)
        };
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let status = ask("/v3/maintenance/status")?;
        let alarms = list(&status["errors"]);
        if !alarms.is_empty() {
            let alarms: Vec<_> = alarms.iter().filter_map(Value::as_str).collect();
            let text = format!("etcd has raised an alarm: {}", alarms.join(", "));
            return Err(StoreError::unavailable(text));
        }
        let members = list(&ask("/v3/cluster/member/list")?["members"]);
        let leader = members
            .iter()
            .find(|member| member["ID"] == status["leader"]);
        let leader = leader.and_then(|member| member["name"].as_str());
        let host = self.gateway.member().map(ToString::to_string);
        let store = format!(
            "etcd {} at {}, {} members, leader {}",
            status["version"].as_str().unwrap_or_default(),
            host.unwrap_or_default(),
            members.len(),
            leader.unwrap_or("unknown")
        );
        // etcd can't be asked about `--unsafe-no-fsync`.
        Ok(Description::new(store, Durability::Durable))
    }

    fn key(&self) -> Option<StoreKey> {
        Some(self.key.clone())
    }
}

/// The reads of a query, of which the first is that of [`HISTORY`], and the blocks that are
/// found by rank or page come second; and the keys for which there is no room.
fn ops(query: &Query) -> (Vec<Value>, Vec<Key>) {
    let mut ops = vec![wire::read(wire::get(HISTORY))];
    match &query.blocks {
        None => {}
        Some(all @ Blocks::All { .. }) => ops.push(wire::read(wire::range(&span_of(all), PAGE))),
        Some(
            lowest @ Blocks::Lowest {
                namespace,
                limit,
                window,
            },
        ) => {
            let least = wire::least(&span_of(lowest), u64::from(*limit));
            ops.push(wire::read(least));
            let [start, end] = [window.start, window.end]
                .map(|index| path(&Key::block(namespace, Block::new(index))).into_bytes());
            if start < end {
                ops.push(wire::read(wire::range(&Span(start, end), 0)));
            }
        }
    }
    let room = MAX_OPS.saturating_sub(ops.len()).min(query.keys.len());
    let (now, later) = query.keys.split_at(room);
    ops.extend(now.iter().map(|key| wire::read(wire::get(&path(key)))));
    (ops, later.to_vec())
}

fn path(key: &Key) -> String {
    format!("{PREFIX}{key}")
}

/// All keys with the prefix of these blocks.
fn span_of(blocks: &Blocks) -> Span {
    let first = format!("{PREFIX}{}", blocks.prefix()).into_bytes();
    // '0' comes after '/'.
    let mut end = first.clone();
    if let Some(last) = end.last_mut() {
        *last = b'0';
    }
    Span(first, end)
}

fn text(bytes: &[u8]) -> Result<String, Failure> {
    String::from_utf8(bytes.to_vec()).map_err(|error| {
        let detail = format!("a key or a value under {PREFIX} is not UTF-8");
        Failure::corrupt(detail, Some(error.into()))
    })
}

impl fmt::Debug for EtcdTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdTable")
            .field("gateway", &self.gateway)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_fits_a_transaction_and_the_rest_comes_after() {
        let query = Query {
            keys: (0..200).map(|i| Key::block("a", Block::new(i))).collect(),
            blocks: Some(Blocks::Lowest {
                namespace: "a".into(),
                limit: 18,
                window: 3..3,
            }),
        };
        let (read, rest) = ops(&query);
        assert_eq!((read.len(), rest.len()), (MAX_OPS, 200 - (MAX_OPS - 2)));
    }

    #[test]
    fn the_span_of_blocks_has_their_keys_alone() {
        let blocks = Blocks::All {
            namespace: "orders".into(),
        };
        let Span(first, end) = span_of(&blocks);
        let is_within = |key: &Key| (&*first..&*end).contains(&path(key).as_bytes());
        assert!(is_within(&Key::block("orders", Block::new(u64::MAX))));
        assert!(!is_within(&Key::record("orders")) && !is_within(&Key::check("orders")));
        assert!(!is_within(&Key::block("orders2", Block::new(0))));
    }
}
