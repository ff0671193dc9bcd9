//! How servers are reached: URLs, TLS, passwords, deadlines.

pub(in crate::lease) mod deadline;
#[cfg(any(
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "sqlite"
))]
pub(in crate::lease) mod durability;
#[cfg(feature = "sqlite")]
pub(in crate::lease) mod file_url;
pub(in crate::lease) mod password;
pub(in crate::lease) mod private_file;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
pub(in crate::lease) mod tls;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis"
))]
pub(in crate::lease) mod url;
