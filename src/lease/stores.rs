//! The stores of leases, and what they have in common: how they are opened by a URL,
//! who is trusted, what a row says.

#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
#[allow(dead_code, reason = "each of them uses a part of it")]
pub(super) mod certificates;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
#[allow(dead_code, reason = "each of them uses a part of it")]
pub(super) mod deadline;
#[cfg(any(
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "sqlite"
))]
#[allow(dead_code, reason = "as of deadline")]
pub(super) mod durability;
#[cfg(feature = "etcd")]
pub(super) mod etcd;
#[cfg(feature = "sqlite")]
mod file_url;
pub(super) mod memory;
#[cfg(feature = "mysql")]
pub(super) mod mysql;
pub(super) mod open;
#[allow(dead_code, reason = "each store that is a feature uses a part of it")]
pub(super) mod password;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
#[allow(dead_code, reason = "as of certificates")]
pub(super) mod peer;
#[cfg(feature = "postgres")]
pub(super) mod postgres;
#[allow(dead_code, reason = "as of password")]
pub(super) mod private_file;
#[cfg(feature = "redis")]
pub(super) mod redis;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(super) mod row;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) mod sql;
#[cfg(feature = "sqlite")]
pub(super) mod sqlite;
pub(super) mod tier;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
#[allow(dead_code, reason = "as of deadline")]
pub(super) mod url;
