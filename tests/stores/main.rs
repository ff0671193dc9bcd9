//! Each store through the suite that all must pass, and through what is its own,
//! on real servers and files.

#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
#[path = "../common/clock.rs"]
#[allow(dead_code, reason = "each set of features uses a part of it")]
mod clock;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "etcd")]
#[path = "../common/etcd.rs"]
#[allow(dead_code, reason = "the rest is for other tests")]
mod etcd_server;
#[path = "../common/eventually.rs"]
mod eventually;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
mod idle;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
#[allow(dead_code, reason = "each set of features uses a part of it")]
mod kit;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[path = "../common/proxy.rs"]
#[allow(dead_code, reason = "each set of features uses a part of it")]
mod proxy;
mod proxying;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis")]
#[path = "../common/redis.rs"]
#[allow(dead_code, reason = "the rest is for other tests")]
mod redis_server;
#[path = "../common/server.rs"]
#[allow(
    dead_code,
    clippy::multiple_unsafe_ops_per_block,
    reason = "each set of features uses a part of it"
)]
mod server;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
mod sharing;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod sql;
#[cfg(all(feature = "sqlite", unix))]
mod sqlite;
#[cfg(feature = "sqlite")]
mod sqlite_blocks;
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
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    all(feature = "sqlite", unix)
))]
mod upgrade;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod ways;
