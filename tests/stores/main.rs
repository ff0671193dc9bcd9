//! Each store through the suite that all must pass, and through what is its own,
//! on real servers and files.

#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
#[macro_use]
extern crate ringflake_kit;

#[cfg(feature = "etcd")]
mod etcd;
#[allow(dead_code, reason = "each set of features uses a part of it")]
mod kit;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
mod lost;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
mod pages;
#[cfg(feature = "postgres")]
mod postgres;
mod proxying;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
#[allow(dead_code, reason = "each set of features uses a part of it")]
mod served;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod sql;
#[cfg(all(feature = "sqlite", unix))]
mod sqlite;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
#[allow(dead_code, reason = "each set of features uses a part of it")]
mod table;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
#[allow(dead_code, reason = "each set of features uses a part of it")]
mod thief;
#[cfg(all(feature = "sqlite", unix))]
mod tier;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod ways;
