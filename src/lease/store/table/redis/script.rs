//! The two scripts, their arguments and their replies.

use std::collections::HashMap;
use std::sync::LazyLock;

use redis::{FromRedisValue, ParsingError, RedisResult, Script, Value, from_redis_value};

use crate::lease::block::Block;
use crate::lease::store::record::Incarnation;
use crate::lease::store::table::{Blocks, Key, Query, Txn};

/// With `no-writes`, Redis runs it while it refuses writes.
pub(super) static READ: LazyLock<Script> = LazyLock::new(|| {
    let snapshot = include_str!("snapshot.lua");
    Script::new(&format!(
        "#!lua flags=no-writes\n{snapshot}\nreturn snapshot()\n"
    ))
});

pub(super) static COMMIT: LazyLock<Script> = LazyLock::new(|| {
    let (snapshot, commit) = (include_str!("snapshot.lua"), include_str!("commit.lua"));
    Script::new(&format!("{snapshot}\n{commit}"))
});

/// The namespaces that have secrets. No namespace's hash has this name.
const SECRETS: &str = "ringflake:secrets";

/// Lua's numbers are exact up to this. No clock shows this time.
const LATEST_MS: u64 = 1 << 53;

/// The hash with the entries of a namespace.
fn hash_of(namespace: &str) -> String {
    format!("ringflake:{{{namespace}}}")
}

/// The sorted set with the ranks of a hash's fields.
fn ranks_of(hash: &str) -> String {
    format!("{hash}:rank")
}

/// The hash and the field of an entry.
fn place(key: &Key) -> (String, &str) {
    match key.as_str().split_once('/') {
        Some((".secret", fingerprint)) => (SECRETS.to_owned(), fingerprint),
        Some((namespace, field)) => (hash_of(namespace), field),
        None => (hash_of(key.as_str()), ""),
    }
}

/// A call of a script.
#[derive(Debug, Default)]
pub(super) struct Call {
    keys: Vec<String>,
    /// The places of `keys`, from 1 on.
    places: HashMap<String, usize>,
    arguments: Vec<Vec<u8>>,
    /// The entries that are read, and the prefix of the blocks that are.
    wanted: Vec<Key>,
    prefix: Option<String>,
}

impl Call {
    /// For [`READ`].
    pub(super) fn read(query: &Query) -> Self {
        let mut call = Self::default();
        call.add_query(query);
        call
    }

    /// For [`COMMIT`]. `bytes_of` returns the bytes that are stored for a value that was read.
    pub(super) fn commit<'a>(
        txn: &'a Txn,
        bytes_of: impl Fn(&Key, &'a str) -> &'a [u8],
        replicas: u64,
        instead: &Query,
    ) -> Self {
        let mut call = Self::default();
        call.add_number(txn.not_before_unix_ms.min(LATEST_MS));
        call.add_number(txn.not_after_unix_ms.min(LATEST_MS));
        call.add(txn.incarnation.as_ref().map_or("", Incarnation::as_str));
        call.add_number(replicas);
        call.add_fields(txn.compare.iter().map(|(key, _)| key));
        for (key, value) in &txn.compare {
            call.add(match value {
                None => Vec::new(),
                Some(value) => [b"=", bytes_of(key, value)].concat(),
            });
        }
        call.add_number(txn.puts.len() as u64);
        for put in &txn.puts {
            let (hash, field) = place(&put.key);
            call.add_key(&hash);
            call.add(field);
            call.add(&*put.value);
            match put.rank {
                Some(_) => call.add_key(&ranks_of(&hash)),
                None if put.key.is_check() => call.add_key(&ranks_of(&hash)),
                None => call.add_number(0),
            }
            call.add(put.rank.map_or(String::new(), |rank| rank.to_string()));
        }
        call.add_query(instead);
        call
    }

    pub(super) fn run(
        &self,
        script: &Script,
        driver: &mut redis::Connection,
    ) -> RedisResult<Value> {
        let mut invocation = script.prepare_invoke();
        for key in &self.keys {
            invocation.key(key);
        }
        for argument in &self.arguments {
            invocation.arg(argument);
        }
        invocation.invoke(driver)
    }

    fn add_query(&mut self, query: &Query) {
        self.wanted.clone_from(&query.keys);
        if let Some(Blocks::Lowest {
            namespace, window, ..
        }) = &query.blocks
        {
            let blocks = window.clone().map(Block::new);
            self.wanted
                .extend(blocks.map(|block| Key::block(namespace, block)));
        }
        let wanted = std::mem::take(&mut self.wanted);
        self.add_fields(&wanted);
        self.wanted = wanted;
        self.prefix = query.blocks.as_ref().map(Blocks::prefix);
        match &query.blocks {
            None => self.add(""),
            Some(Blocks::All { namespace }) => {
                self.add("all");
                self.add_key(&hash_of(namespace));
            }
            Some(Blocks::Lowest {
                namespace, limit, ..
            }) => {
                let hash = hash_of(namespace);
                self.add("lowest");
                self.add_key(&hash);
                self.add_key(&ranks_of(&hash));
                self.add_number(u64::from(*limit));
            }
        }
    }

    fn add_fields<'a>(&mut self, keys: impl IntoIterator<Item = &'a Key>) {
        let places: Vec<_> = keys.into_iter().map(place).collect();
        let runs: Vec<_> = places.chunk_by(|a, b| a.0 == b.0).collect();
        self.add_number(runs.len() as u64);
        for run in runs {
            self.add_key(&run[0].0);
            self.add_number(run.len() as u64);
            run.iter().for_each(|(_, field)| self.add(*field));
        }
    }

    fn add_key(&mut self, key: &str) {
        let place = match self.places.get(key) {
            Some(place) => *place,
            None => {
                self.keys.push(key.to_owned());
                self.places.insert(key.to_owned(), self.keys.len());
                self.keys.len()
            }
        };
        self.add_number(place as u64);
    }

    fn add_number(&mut self, number: u64) {
        self.add(number.to_string());
    }

    fn add(&mut self, argument: impl Into<Vec<u8>>) {
        self.arguments.push(argument.into());
    }

    /// Parses the reply to this call.
    pub(super) fn parse(self, reply: Value) -> Result<Reply, ParsingError> {
        let mut parts = Vec::<Value>::from_redis_value(reply)?;
        let tag: String = from_redis_value(parts.first().cloned().unwrap_or(Value::Nil))?;
        Ok(match (&*tag, parts.len()) {
            ("replica", 1) => Reply::Replica,
            ("anonymous", 1) => Reply::Anonymous,
            ("few", 2) => Reply::TooFew(from_redis_value(parts.remove(1))?),
            ("done", 2) => Reply::Done(from_redis_value(parts.remove(1))?),
            ("snapshot", 6) => {
                let mut next = || parts.remove(1);
                let unix_ms = from_redis_value(next())?;
                let incarnation = from_redis_value(next())?;
                let values: Vec<Option<Vec<u8>>> = from_redis_value(next())?;
                let blocks: Vec<(Vec<u8>, Vec<u8>)> = from_redis_value(next())?;
                let has_more: bool = from_redis_value(next())?;
                if values.len() != self.wanted.len() {
                    return Err("the script returned another number of values".into());
                }
                let wanted = self.wanted.into_iter().zip(values);
                let wanted = wanted.filter_map(|(key, value)| Some((key, value?)));
                let blocks = blocks.into_iter().filter_map(|(field, value)| {
                    // Other entries of the namespace can be among them.
                    let field = String::from_utf8_lossy(&field);
                    let index = field.strip_prefix("block/")?;
                    Some((Key::from(self.prefix.clone()? + index), value))
                });
                Reply::Snapshot(Entries {
                    unix_ms,
                    incarnation,
                    values: wanted.chain(blocks).collect(),
                    is_complete: !has_more,
                })
            }
            (tag, parts) => {
                return Err(format!("the script returned {parts} parts: {tag:?}").into());
            }
        })
    }
}

/// The reply of a script.
#[derive(Debug, PartialEq)]
pub(super) enum Reply {
    /// All is written, with so many replicas online.
    Done(u64),
    Snapshot(Entries),
    /// So many replicas are online, fewer than needed.
    TooFew(u64),
    Replica,
    /// `INFO` shows no incarnation.
    Anonymous,
}

/// Entries as they are stored.
#[derive(Debug, PartialEq)]
pub(super) struct Entries {
    pub(super) unix_ms: u64,
    pub(super) incarnation: String,
    pub(super) values: Vec<(Key, Vec<u8>)>,
    pub(super) is_complete: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::store::table::Put;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn lowest(window: std::ops::Range<u64>) -> Query {
        Query {
            keys: vec![Key::record("orders")],
            blocks: Some(Blocks::Lowest {
                namespace: "orders".into(),
                limit: 3,
                window,
            }),
        }
    }

    #[test]
    fn a_call_declares_every_key_once() {
        let read = Call::read(&lowest(7..9));
        assert_eq!(read.keys, ["ringflake:{orders}", "ringflake:{orders}:rank"]);
        let words: Vec<_> = (read.arguments.iter())
            .map(|word| str::from_utf8(word).unwrap())
            .collect();
        let [seven, eight] = ["block/00000000000000000007", "block/00000000000000000008"];
        let expected = [
            "1", "1", "3", "record", seven, eight, "lowest", "1", "2", "3",
        ];
        assert_eq!(words, expected);

        let secret = Key::from(".secret/00".to_owned());
        let put = |key: &Key, rank| Put {
            key: key.clone(),
            value: "{}".into(),
            rank,
        };
        let txn = Txn {
            compare: vec![(secret.clone(), None), (Key::record("a"), Some("x".into()))],
            puts: vec![
                put(&secret, None),
                put(&Key::block("b.c", Block::new(0)), Some(1)),
            ],
            ..Txn::default()
        };
        let commit = Call::commit(&txn, |_, value| value.as_bytes(), 0, &Query::default());
        let expected = [
            "ringflake:secrets",
            "ringflake:{a}",
            "ringflake:{b.c}",
            "ringflake:{b.c}:rank",
        ];
        assert_eq!(commit.keys, expected);
    }

    #[test]
    fn other_replies_are_errors() {
        for reply in [
            Value::Nil,
            bulk("OK"),
            Value::Array(vec![bulk("granted")]),
            Value::Array(vec![bulk("done")]),
            Value::Array(vec![bulk("snapshot"), Value::Int(0), bulk("r")]),
        ] {
            Call::read(&lowest(0..0)).parse(reply).unwrap_err();
        }
    }
}
