//! Leases out of a store: where a run has its nodes and ticks from.
//!
//! ```text
//! command line -> StoreTarget: a namespace of a store, and its key
//!              -> LeaseRequest: how much of it the run has use for
//!              -> LeasedGenerator: both together, which a generator is built on
//!
//! generator's renewals -> AuditedStore: enters what is confirmed in an AuditLog
//!                      -> LocalStore: the library's, in the data directory,
//!                         or any other store
//! ```

mod advice;
mod audit_log;
mod generator;
mod lease_request;
mod store_target;

pub(crate) use self::audit_log::{AuditLog, Extent};
pub(crate) use self::generator::LeasedGenerator;
pub(crate) use self::lease_request::DemandEstimate;
pub(crate) use self::store_target::{Purpose, StoreTarget};
