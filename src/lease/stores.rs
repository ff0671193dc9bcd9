//! The stores of leases, and how they are opened by a URL.

#[cfg(feature = "etcd")]
pub(super) mod etcd;
pub(super) mod memory;
#[cfg(feature = "mysql")]
pub(super) mod mysql;
pub(super) mod open;
#[cfg(feature = "postgres")]
pub(super) mod postgres;
#[cfg(feature = "redis")]
pub(super) mod redis;
#[cfg(feature = "sqlite")]
pub(super) mod sqlite;
pub(super) mod tier;
