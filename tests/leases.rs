//! Generators whose leases a store grants: what holds while it answers, while it
//! does not, and when they go.
//!
//! The store is the one in memory, behind a wrapper that fails as it is told.
//! Its server and the generators read one manual clock. The thread that keeps
//! the leases looks at it a few times a second, so what it does is polled for.

#[path = "leases/build.rs"]
mod build;
#[path = "common/child.rs"]
#[cfg(unix)]
mod child;
#[path = "common/eventually.rs"]
mod eventually;
#[path = "leases/expiry.rs"]
mod expiry;
#[path = "leases/fork.rs"]
#[cfg(unix)]
mod fork;
#[path = "leases/given.rs"]
mod given;
#[path = "leases/goodbye.rs"]
mod goodbye;
#[path = "leases/invalidate.rs"]
mod invalidate;
#[path = "common/oracle.rs"]
mod oracle;
#[path = "leases/outage.rs"]
mod outage;
#[path = "leases/reuse.rs"]
mod reuse;
#[path = "leases/rig.rs"]
mod rig;
#[path = "leases/serving.rs"]
mod serving;
#[path = "leases/sharing.rs"]
mod sharing;
#[path = "common/small.rs"]
mod small;
#[path = "leases/status.rs"]
mod status;
#[path = "leases/store.rs"]
mod store;
#[path = "leases/width.rs"]
mod width;
