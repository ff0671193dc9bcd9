//! The side of a store: its records and rules, once, and the backends that keep them.

pub(in crate::lease) mod backends;
pub(in crate::lease) mod batch;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg_attr(
    not(all(
        feature = "etcd",
        feature = "mysql",
        feature = "postgres",
        feature = "redis",
        feature = "sqlite"
    )),
    allow(dead_code, reason = "each store uses a part of it")
)]
pub(in crate::lease) mod connect;
pub(in crate::lease) mod format;
pub(in crate::lease) mod key;
pub(in crate::lease) mod lease_store;
pub(in crate::lease) mod leases;
pub(in crate::lease) mod limits;
pub(in crate::lease) mod obstacle;
#[cfg_attr(
    not(any(
        feature = "etcd",
        feature = "mysql",
        feature = "postgres",
        feature = "redis"
    )),
    allow(dead_code, reason = "only servers have passwords")
)]
pub(in crate::lease) mod options;
pub(in crate::lease) mod quarantine;
pub(in crate::lease) mod random;
pub(in crate::lease) mod record;
pub(in crate::lease) mod report;
pub(in crate::lease) mod request;
pub mod table;
pub(in crate::lease) mod voucher;
