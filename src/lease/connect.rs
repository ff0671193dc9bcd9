//! How servers are reached: URLs, TLS, passwords, deadlines.

pub(super) mod certificates;
pub(super) mod deadline;
#[cfg(any(
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "sqlite"
))]
pub(super) mod durability;
#[cfg(feature = "sqlite")]
pub(super) mod file_url;
pub(super) mod password;
pub(super) mod peer;
pub(super) mod private_file;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
pub(super) mod url;
