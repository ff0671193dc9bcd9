//! The table that a store keeps its records in: the only thing that a backend implements.
//!
//! [`Leases`](crate::lease::Leases) has all operations and all rules of leases, once, over any
//! [`Table`]. A table is a map from keys to short texts with three methods: read some entries,
//! write some if others still have the values that were read, describe the server. It knows
//! nothing of leases.
//!
//! # Entries
//! | key | value | rank |
//! |---|---|---|
//! | `NAMESPACE/record` | layout, limits, floor, incarnation | none |
//! | `NAMESPACE/block/INDEX`, in 20 digits | mark, epoch, released, holder; absent before the first grant | the mark |
//! | `NAMESPACE/check` | the time of the last `write_test` | none |
//! | `.secret/FINGERPRINT` | the name of the namespace that has this secret | none |
//!
//! Each value is one line of JSON, readable in `psql`, `redis-cli` and `etcdctl`; those of
//! `.secret` are plain names. A backend stores and compares them as texts and never needs to
//! parse one. The rank is an index, by which a table finds the blocks with the lowest marks. A
//! wrong rank can delay a grant. It cannot cause an overlap: decisions use values only.
//!
//! # Operations
//! ```text
//! read (record, blocks) --decide--> commit if (record, blocks) still have these values
//!          ^                           | Done: the answer
//!          |                           | Unknown: nothing is granted, nothing is repeated
//!          +------- Conflict ----------+
//! ```
//! | operation | reads | compares | writes |
//! |---|---|---|---|
//! | `init` | record, secrets, one block | record absent, secrets as read | record, secret |
//! | `acquire` | record, evidence, some blocks | record, chosen blocks | chosen blocks |
//! | `acquire`, new incarnation or lost history | as above | record | record with a raised floor |
//! | `renew`, `release` | nothing if cached, or record and block | record, block | block |
//! | `renew_all` | the same for many | records, blocks | blocks |
//! | `repair` | record, block | record, block | block |
//! | `raise_floor` | record | record | record |
//! | `write_test` | record | record | `check` |
//! | `list`, `check` | record, all blocks | | |
//!
//! # What a table promises
//! * **T1** [`commit`](Table::commit) is atomic and linearizable: all of its puts or none, and
//!   only if every compared key has the given value at that moment. It is durable before
//!   [`Commit::Done`] is returned.
//! * **T2** [`read`](Table::read) shows the entries as they all were at one moment during the
//!   call.
//! * **T3** The time is the server's own. A commit applies only if the server's clock shows a
//!   time within [`Txn::not_before_unix_ms`] and [`Txn::not_after_unix_ms`]. If the server
//!   can't compare its clock in a commit, a reading from before the commit is compared.
//! * **T4** The incarnation is the server's. It changes whenever committed writes may have been
//!   lost, as far as the server can show that. A former value can come back only with entries from
//!   before it, or with a server that was put back unnoticed, which is for people to say, with
//!   `raise_floor`. A commit
//!   applies only in [`Txn::incarnation`], where that is given; if a difference shows only
//!   afterwards, the commit is [`Commit::Unknown`].
//! * **T5** If the table can't tell whether a commit was applied, it returns
//!   [`Commit::Unknown`]. The table never sends it again.
//!
//! # Why S1 to S8 follow
//! *Values are compared, never version numbers.* A decision depends on the values that were
//! read and on the server's time, so it is right for whatever has the same values at the moment
//! of the commit, within the time that it allows. A counter can repeat after a history was
//! lost; a value that repeats is the same case.
//!
//! * **S1** By T1 the committed values of a block form one sequence, and each was decided from
//!   the one before. [`StoreRecord::granted`](crate::lease::StoreRecord::granted),
//!   [`renewed`](crate::lease::StoreRecord::renewed) and
//!   [`released`](crate::lease::StoreRecord::released) never return a mark below the one they were
//!   given, and a grant starts at or after that mark. A
//!   [repaired](crate::lease::StoreRecord::repaired) mark lies above all that can have been granted
//!   by the time of the commit, since `not_after` bounds that time.
//! * **S2** An operation answers with a grant only after `Done`. `Unknown` becomes
//!   [`StoreError::Ambiguous`].
//! * **S5** Every commit but that of `init` compares the record, which was verified against the
//!   caller's namespace. `init` compares the entry of each fingerprint of the secret, so of two
//!   that use one secret the second finds the first.
//! * **S6** T1.
//! * **S7** A commit requires a server time from which each end lies within the horizon,
//!   independent of the clock that proposed the end.
//! * **S8** Every grant and renewal compares the record, and by T4 requires the incarnation
//!   on record. Raising the floor writes the record, unless the floor is that high already. So
//!   a commit that was decided below the new floor conflicts, and is decided again above it;
//!   **no renewal slips past a raised floor**, whether it read the record a moment or an hour
//!   ago. A floor over lost grants is computed from a time that `not_after` keeps current.
//!   Evidence is read in the same snapshot as the blocks that are chosen.
//!
//! Clients ensure S3 and S4; the tier ensures S9.
//!
//! # One round trip for a renewal
//! A renewal names epoch and end. The rest is cached: this process wrote the block and read
//! the record. So `Leases` commits at once from the cached values, if the end asked for lies
//! within the horizon by the caller's clock. If a value has changed, or the server's clock
//! disagrees, the conflict returns the entries as they are, and the renewal is decided from
//! those. A refusal is never decided from cached values.
//!
//! # Contention
//! Nothing is locked between read and commit. Acquirers select a random run of the blocks that
//! the rules leave open, so few of those that start together conflict. After a conflict more
//! blocks are read, and an operation is decided again until its
//! [patience](crate::lease::Leases::with_patience) ends.
//!
//! # For those who write a backend
//! * Compare values byte by byte. Collations, padded texts and normalised JSON break that.
//! * Keys that are compared and not written must be locked or validated, too, and a key that
//!   must be absent must be protected from inserts. Under snapshot isolation alone a renewal
//!   and a raised floor would both commit.
//! * A value that is no text must be shown as some text that compares equal in a commit.
//! * Names hold `_`, `.` and `-`. They have up to 64 bytes, keys up to 100 and values up to
//!   1,000.
//! * A query has up to 130 keys and evidence, may name one twice, and may name keys that are
//!   also among its blocks. A commit compares up to 127 keys, and writes as many.
//! * The snapshot of a conflict is read when the commit is rejected, or later.
//! * While [`Snapshot::time`] is an error, reject every commit whose `not_before_unix_ms` is
//!   above 0.
//! * A commit that writes `check` takes every permission that the grant of a block takes.
//! * Without tables, a commit that does not create them is [`StoreError::TableMissing`].
//! * A table that can be copied, as a file can, rejects all commits to a copy that nobody
//!   [adopted](Txn::adopts). Its original has the same blocks to grant. A database on a server that
//!   has others names its incarnation `SERVER/database D`: then [`Leases`](crate::lease::Leases)
//!   refuses a copy.

#[cfg(feature = "etcd")]
pub(crate) mod etcd;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
#[cfg_attr(
    not(all(
        feature = "etcd",
        feature = "mysql",
        feature = "postgres",
        feature = "redis"
    )),
    allow(dead_code, reason = "each server uses a part of it")
)]
mod failure;
pub(crate) mod memory;
#[cfg(feature = "mysql")]
pub(crate) mod mysql;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "redis")]
pub(crate) mod redis;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
#[cfg_attr(
    not(all(feature = "mysql", feature = "postgres", feature = "redis")),
    allow(dead_code, reason = "each server uses a part of it")
)]
mod session;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod sql;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

#[cfg(feature = "etcd")]
pub use self::etcd::EtcdTable;
pub use self::memory::MemoryTable;
#[cfg(feature = "mysql")]
pub use self::mysql::MysqlTable;
#[cfg(feature = "postgres")]
pub use self::postgres::PostgresTable;
#[cfg(feature = "redis")]
pub use self::redis::RedisTable;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
pub(in crate::lease) use self::session::{ServerTable, Session};
#[cfg(feature = "sqlite")]
pub use self::sqlite::SqliteTable;
use crate::lease::block::Block;
use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::store::key::StoreKey;
use crate::lease::store::record::Incarnation;
use crate::lease::store::report::Durability;

/// A small linearizable, durable table. The head of this module says what it promises.
///
/// Implement this for a server of your own, and wrap it in [`Leases`](crate::lease::Leases). With the
/// feature `conformance`, `lease::conformance::TableSuite` tests the table, and
/// `lease::conformance::Suite` tests the store that `Leases` makes of it.
///
/// Methods block the caller until their own time-out. A table that has lost its connection
/// opens a new one at the next call.
///
/// # Errors
/// A table fails with [`StoreError::Unavailable`], [`Denied`](StoreError::Denied),
/// [`NotDurable`](StoreError::NotDurable), [`Copied`](StoreError::Copied),
/// [`TableMissing`](StoreError::TableMissing) or [`Corrupt`](StoreError::Corrupt). Nothing was
/// written then: a commit that may have been applied is [`Commit::Unknown`].
pub trait Table: Send + fmt::Debug {
    /// Reads entries, the server's time and its incarnation. A missing table reads as empty.
    fn read(&mut self, query: &Query) -> Result<Snapshot, StoreError>;

    /// Applies all puts if every condition holds. If one does not, returns what `instead`
    /// reads. With [`Txn::creates`], creates missing tables first.
    fn commit(&mut self, txn: &Txn, instead: &Query) -> Result<Commit, StoreError>;

    /// Describes the server, and its durability under the current settings.
    fn describe(&mut self) -> Result<Description, StoreError>;

    /// See [`LeaseStore::key`](crate::lease::LeaseStore::key).
    fn key(&self) -> Option<StoreKey> {
        None
    }

    /// See [`LeaseStore::rest`](crate::lease::LeaseStore::rest).
    fn rest(&mut self, at_least: Duration) {
        let _ = at_least;
    }
}

/// The key of an entry. Keys are ordered as their texts are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// The record of a namespace.
    pub fn record(namespace: &str) -> Self {
        Self(format!("{namespace}/record"))
    }

    /// A block of a namespace. In 20 digits, so that keys are in the order of the blocks.
    pub fn block(namespace: &str, block: Block) -> Self {
        Self(format!("{namespace}/block/{:020}", block.index()))
    }

    /// Written by `write_test`, to prove that the table accepts writes.
    pub fn check(namespace: &str) -> Self {
        Self(format!("{namespace}/check"))
    }

    /// Whether this is the key of a [check](Self::check).
    #[cfg(any(feature = "etcd", feature = "redis"))]
    pub(in crate::lease) fn is_check(&self) -> bool {
        self.0.ends_with("/check")
    }

    /// The text that all keys of a namespace's blocks begin with.
    pub(in crate::lease) fn blocks(namespace: &str) -> String {
        format!("{namespace}/block/")
    }

    /// The namespace that has this secret. No namespace's name begins with a dot.
    pub fn secret(fingerprint: Fingerprint) -> Self {
        Self(format!(".secret/{fingerprint}"))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the namespace whose entry this is.
    pub fn namespace(&self) -> &str {
        self.0.split_once('/').map_or("", |(name, _)| name)
    }

    /// The block of `namespace` that this is the key of, if it is one.
    pub(in crate::lease) fn to_block(&self, namespace: &str) -> Option<Block> {
        let digits = self.0.strip_prefix(namespace)?.strip_prefix("/block/")?;
        let block = Block::new(digits.parse().ok()?);
        (Self::block(namespace, block) == *self).then_some(block)
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What to read, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Entries to read; absent ones are left out.
    pub keys: Vec<Key>,
    /// Blocks to read as well.
    pub blocks: Option<Blocks>,
}

/// Some of a namespace's blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Every entry whose key begins with `NAMESPACE/block/`.
    All {
        /// The namespace's name.
        namespace: String,
    },
    /// Those with the lowest ranks, and those whose index lies in a window.
    Lowest {
        /// The namespace's name.
        namespace: String,
        /// How many of the lowest ranks; at least 1.
        limit: u32,
        /// The window of indices.
        window: Range<u64>,
    },
}

impl Blocks {
    /// The text that all keys of the namespace's blocks begin with.
    pub fn prefix(&self) -> String {
        let (Self::All { namespace } | Self::Lowest { namespace, .. }) = self;
        Key::blocks(namespace)
    }

    /// The keys that are read whatever their rank: all of the namespace's blocks, or those of
    /// the window.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(in crate::lease) fn keys(&self) -> Range<String> {
        match self {
            // '0' comes after '/'.
            Self::All { .. } => self.prefix()..self.prefix().replace("/block/", "/block0"),
            Self::Lowest {
                namespace, window, ..
            } => {
                let key = |index| Key::block(namespace, Block::new(index)).0;
                key(window.start)..key(window.end)
            }
        }
    }
}

/// What a table held at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The entries that were asked for and are there.
    pub entries: BTreeMap<Key, String>,
    /// Whether `entries` has all blocks of the namespace; true unless the limit of
    /// [`Blocks::Lowest`] has left some out.
    pub complete: bool,
    /// The server's time, or why it shows none. Without it no grant can be decided.
    pub time: Result<StoreTime, String>,
    /// The server's incarnation.
    pub incarnation: Incarnation,
}

/// A reading of a server's clock, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTime {
    /// The time that decides where grants start and end. It must not be ahead of the server's
    /// clock.
    pub unix_ms: u64,
    /// The clock's earliest time since the call began, for comparing it with the caller's.
    pub earliest_unix_ms: u64,
    /// The clock's latest time by the end of the call.
    pub latest_unix_ms: u64,
}

impl StoreTime {
    /// A clock that was read to the millisecond, without a wait before.
    pub fn exactly(unix_ms: u64) -> Self {
        Self {
            unix_ms,
            earliest_unix_ms: unix_ms,
            latest_unix_ms: unix_ms,
        }
    }

    /// The time in this range that is closest to `client_unix_ms`.
    pub(in crate::lease) fn nearest(&self, client_unix_ms: u64) -> u64 {
        let earliest = self.earliest_unix_ms.min(self.latest_unix_ms);
        client_unix_ms.clamp(earliest, self.latest_unix_ms)
    }
}

/// Writes, and the conditions under which they are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Txn {
    /// Keys, with the value that each must have; none where it must be absent.
    pub compare: Vec<(Key, Option<String>)>,
    /// What to write.
    pub puts: Vec<Put>,
    /// The incarnation that the server must have, if it matters.
    pub incarnation: Option<Incarnation>,
    /// The earliest time by the server's clock, in milliseconds since 1970.
    pub not_before_unix_ms: u64,
    /// And the latest one.
    pub not_after_unix_ms: u64,
    /// Whether these may be the first entries of all.
    pub creates: bool,
    /// Whether somebody vouches that the table at hand is the one to go on with. A table that
    /// knows that it is a copy of another rejects all commits but these, with
    /// [`StoreError::Copied`]. After one, its incarnation is that of the snapshots before.
    pub adopts: bool,
}

impl Default for Txn {
    /// Without any condition.
    fn default() -> Self {
        Self {
            compare: Vec::new(),
            puts: Vec::new(),
            incarnation: None,
            not_before_unix_ms: 0,
            not_after_unix_ms: u64::MAX,
            creates: false,
            adopts: false,
        }
    }
}

/// An entry to insert or replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// The key.
    pub key: Key,
    /// The value.
    pub value: String,
    /// For blocks: their mark, by which they are found.
    pub rank: Option<u64>,
}

/// The outcome of a [`Txn`].
#[derive(Debug)]
pub enum Commit {
    /// It was applied, and is durable.
    Done,
    /// Rejected, since a condition does not hold; with the result of `instead`.
    Conflict(Snapshot),
    /// It may have been applied.
    Unknown(Box<dyn Error + Send + Sync>),
}

/// A server, as it is set up now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Which server, without credentials.
    pub store: String,
    /// Whether it keeps what it has confirmed.
    pub durability: Durability,
    /// Whether the table detected that it is a copy that nobody [adopted](Txn::adopts).
    pub is_copy: bool,
}

impl Description {
    /// Of a table that is no copy.
    pub fn new(store: impl Into<String>, durability: Durability) -> Self {
        Self {
            store: store.into(),
            durability,
            is_copy: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_blocks_are_in_the_order_of_the_blocks() {
        let indices = [0, 9, 10, 4095, u64::MAX];
        let keys = indices.map(|index| Key::block("orders", Block::new(index)));
        assert!(keys.is_sorted());
        for (key, index) in keys.iter().zip(indices) {
            assert_eq!(key.to_block("orders"), Some(Block::new(index)));
            assert_eq!(key.to_block("order"), None);
            let blocks = Blocks::All {
                namespace: "orders".into(),
            };
            assert!(key.as_str().starts_with(&blocks.prefix()));
        }
        for other in ["orders/block/7", "orders/record", "orders/block/x"] {
            assert_eq!(Key::from(other.to_owned()).to_block("orders"), None);
        }
    }

    #[test]
    fn clocks_are_compared_where_they_were_nearest() {
        let time = StoreTime {
            unix_ms: 7_000,
            earliest_unix_ms: 6_000,
            latest_unix_ms: 7_999,
        };
        for (client, nearest) in [(5_000, 6_000), (6_500, 6_500), (9_000, 7_999)] {
            assert_eq!(time.nearest(client), nearest);
        }
        assert_eq!(StoreTime::exactly(5).nearest(9), 5);
    }
}
