//! A table in a Redis. ARCHITECTURE.md shows how it keeps T1 to T5.
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
mod durability;
mod script;
mod session;
mod verdict;

use self::session::RedisSession;
use super::session::ServerTable;

/// The table of a [`RedisStore`](crate::lease::RedisStore).
pub type RedisTable = ServerTable<RedisSession>;
