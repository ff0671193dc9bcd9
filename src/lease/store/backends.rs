//! The stores of leases, and how they are opened by a URL.

#[cfg(feature = "etcd")]
pub(in crate::lease) mod etcd;
pub(in crate::lease) mod memory;
#[cfg(feature = "mysql")]
pub(in crate::lease) mod mysql;
pub(in crate::lease) mod open;
#[cfg(feature = "postgres")]
pub(in crate::lease) mod postgres;
#[cfg(feature = "redis")]
pub(in crate::lease) mod redis;
#[cfg(feature = "sqlite")]
pub(in crate::lease) mod sqlite;
pub(in crate::lease) mod tier;

#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
use crate::lease::store::leases::Leases;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
use crate::lease::store::options::{OpenError, OpenOptions};
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
use crate::lease::store::table::{ServerTable, Session};

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
