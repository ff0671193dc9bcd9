//! A table in a Redis.
//!
//! | promise | by |
//! |---|---|
//! | T1 | one script compares and writes, and nothing runs beside it; [`durability`] |
//! | T2 | one script |
//! | T3 | `TIME`, in the script |
//! | T4 | `run_id/master_replid` of `INFO`, in the script |
//! | T5 | [`verdict`](mod@verdict): what may have reached the server is unknown |
//!
//! Replicas may lack a commit that was done; what follows is at
//! [`RedisStore`](crate::lease::RedisStore).
//!
//! | table | Redis |
//! |---|---|
//! | `NAMESPACE/FIELD` | field `FIELD` of the hash `ringflake:{NAMESPACE}` |
//! | rank of `NAMESPACE/FIELD` | score of `FIELD` in the sorted set `ringflake:{NAMESPACE}:rank` |
//! | `.secret/FINGERPRINT` | field `FINGERPRINT` of the hash `ringflake:secrets` |
//!
//! Ranks are doubles, exact up to 2^53. They are an index only.

mod config;
mod connect;
mod connection;
mod durability;
mod script;
mod sentinel;
mod verdict;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use self::config::Config;
use self::connection::Connection;
use self::script::{Call, Entries, Reply};
use self::verdict::{Verdict, not_done, unavailable, verdict};
use super::{Commit, Description, Key, Query, Snapshot, StoreTime, Table, TableError, Txn};
use crate::lease::connect::deadline::{self, Deadline};
use crate::lease::key::StoreKey;
use crate::lease::options::{OpenError, OpenOptions};
use crate::lease::record::Incarnation;

/// A commit within this time after a reply needs no proof that the connection is alive.
const FRESH: Duration = Duration::from_millis(100);

/// The table of a [`RedisStore`](crate::lease::RedisStore).
#[derive(Debug)]
pub struct RedisTable {
    config: Config,
    options: OpenOptions,
    key: StoreKey,
    /// None before the first operation and after a failure.
    connection: Option<Connection>,
    /// Values of the last snapshot that are not UTF-8.
    raw: HashMap<Key, Vec<u8>>,
}

impl RedisTable {
    /// The server at `url`. Connects to nothing yet.
    pub(in crate::lease) fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        Ok(Self {
            config: Config::from_url(url, options)?,
            options: options.clone(),
            key: StoreKey::new(url, options),
            connection: None,
            raw: HashMap::new(),
        })
    }

    fn deadline(&self) -> Deadline {
        Deadline::after(self.options.operation_timeout())
    }

    /// Takes the connection, or opens one. One that has not answered within `trusted` is tried
    /// first. Put it back unless something failed.
    fn connect(
        &mut self,
        trusted: Duration,
        deadline: &Deadline,
    ) -> Result<Connection, TableError> {
        if let Some(mut kept) = self.connection.take() {
            let probe = Deadline::after(deadline::of_a_try(self.options.operation_timeout()));
            if kept.answered_within(trusted) || kept.is_alive(&probe) {
                return Ok(kept);
            }
        }
        connect::open(&self.config, &self.options, deadline)
    }

    fn snapshot(&mut self, entries: Entries) -> Snapshot {
        self.raw.clear();
        let mut texts = BTreeMap::new();
        for (key, value) in entries.values {
            let text = String::from_utf8(value).unwrap_or_else(|error| {
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                self.raw.insert(key.clone(), error.into_bytes());
                text
            });
            texts.insert(key, text);
        }
        Snapshot {
            entries: texts,
            complete: entries.is_complete,
            time: Ok(StoreTime::exactly(entries.unix_ms)),
            incarnation: Incarnation::new(entries.incarnation),
        }
    }

    /// The bytes of a value that was read as this text.
    fn bytes_of<'a>(&'a self, key: &Key, text: &'a str) -> &'a [u8] {
        let raw = self.raw.get(key);
        let raw = raw.filter(|raw| String::from_utf8_lossy(raw) == text);
        raw.map_or(text.as_bytes(), Vec::as_slice)
    }

    /// The error for a reply that is not the expected one. Nothing was written.
    fn refusal(&self, reply: &Reply) -> TableError {
        unavailable(match reply {
            Reply::TooFew(online) => format!(
                "{online} replicas are online, where wait is {}",
                self.config.wait.unwrap_or(0)
            ),
            Reply::Replica => "the server is a replica".to_owned(),
            Reply::Anonymous => "INFO shows no run_id or no master_replid".to_owned(),
            Reply::Done(_) | Reply::Snapshot(_) => "the script returned another reply".to_owned(),
        })
    }
}

impl Table for RedisTable {
    fn read(&mut self, query: &Query) -> Result<Snapshot, TableError> {
        let deadline = self.deadline();
        let call = Call::read(query);
        let mut connection = self.connect(Duration::ZERO, &deadline)?;
        connection.limit(&deadline).map_err(unavailable)?;
        let reply = connection.run(&script::READ, &call).map_err(not_done)?;
        match call.parse(reply) {
            Ok(Reply::Snapshot(entries)) => {
                self.connection = Some(connection);
                Ok(self.snapshot(entries))
            }
            Ok(other) => Err(self.refusal(&other)),
            Err(error) => Err(TableError::Corrupt {
                detail: "the reply is not one of ringflake's script".to_owned(),
                source: Some(Box::new(error)),
            }),
        }
    }

    fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, TableError> {
        let deadline = self.deadline();
        let mut connection = self.connect(FRESH, &deadline)?;
        let bytes_of = |key: &Key, text| self.bytes_of(key, text);
        let call = Call::commit(txn, bytes_of, self.config.wait.unwrap_or(0), instead);
        connection.limit(&deadline).map_err(unavailable)?;
        let reply = match connection.run(&script::COMMIT, &call) {
            Ok(reply) => reply,
            Err(error) if verdict(&error) == Verdict::Unknown => {
                return Ok(Commit::Unknown(Box::new(error)));
            }
            Err(error) => return Err(not_done(error)),
        };
        let commit = match call.parse(reply) {
            Ok(Reply::Done(online)) => {
                let replicas = self.config.wait.unwrap_or(online);
                if let Err(error) = connection.wait_for(replicas, &deadline) {
                    return Ok(Commit::Unknown(error));
                }
                Commit::Done
            }
            Ok(Reply::Snapshot(entries)) => Commit::Conflict(self.snapshot(entries)),
            Ok(other) => return Err(self.refusal(&other)),
            Err(error) => return Ok(Commit::Unknown(Box::new(error))),
        };
        self.connection = Some(connection);
        Ok(commit)
    }

    /// Connects anew, which is when the settings are read.
    fn describe(&mut self) -> Result<Description, TableError> {
        self.connection = None;
        let connection = connect::open(&self.config, &self.options, &self.deadline())?;
        let gate = &connection.gate;
        let description = Description::new(gate.store(), gate.durability());
        self.connection = Some(connection);
        Ok(description)
    }

    fn key(&self) -> Option<StoreKey> {
        Some(self.key.clone())
    }
}
