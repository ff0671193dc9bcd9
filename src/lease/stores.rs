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

#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
use crate::lease::{
    leases::Leases,
    options::{OpenError, OpenOptions},
    table::{ServerTable, Session},
};

#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
#[allow(private_bounds, reason = "as of the table")]
impl<S: Session> Leases<ServerTable<S>> {
    /// The store at `url`, whose form is that of the store. Connects to nothing yet.
    ///
    /// # Errors
    /// [`OpenError::Invalid`] for another scheme, a parameter that does not exist or has no
    /// such value, and a file that can't be read. It holds no part of the URL but the name of
    /// a parameter.
    pub fn from_url(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let table = ServerTable::from_url(url, options)?;
        Ok(Self::over(table).with_patience(options.operation_timeout()))
    }
}
