//! Generators whose leases a store grants: what holds while it answers, while it
//! does not, and when they go.
//!
//! The store is the one in memory, behind a wrapper that fails on request.
//! Its server and the generators read one manual clock. The thread that keeps
//! the leases looks at it a few times a second, so what it does is polled for.

mod backfill;
mod build;
mod expiry;
#[cfg(unix)]
mod fork;
mod guide;
#[cfg(all(unix, feature = "sqlite"))]
mod id_width;
mod invalidate;
#[cfg(feature = "conformance")]
mod lease_store;
#[cfg(all(unix, feature = "sqlite"))]
mod local;
#[cfg(feature = "metrics")]
mod metrics;
mod outage;
mod release;
mod reuse;
mod rig;
mod serving;
mod sharing;
mod status;
#[cfg(feature = "conformance")]
mod table_suite;
mod width;
