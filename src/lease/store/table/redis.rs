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
mod durability;
mod script;
mod session;
mod verdict;

use self::session::RedisSession;
use super::session::ServerTable;

/// The table of a [`RedisStore`](crate::lease::RedisStore).
pub type RedisTable = ServerTable<RedisSession>;
