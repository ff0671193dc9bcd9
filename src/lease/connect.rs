//! How servers are reached: URLs, TLS, passwords, deadlines.

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
#[cfg(feature = "sqlite")]
pub(super) mod file_url;
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
#[allow(dead_code, reason = "as of password")]
pub(super) mod private_file;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
#[allow(dead_code, reason = "as of deadline")]
pub(super) mod url;
