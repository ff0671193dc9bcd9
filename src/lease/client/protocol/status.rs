//! How the leases of a process stand.

use std::sync::Arc;
use std::time::Duration;

use super::counts::LeaseCounts;
use crate::lease::{Grant, StoreError};

/// How the leases of a process stand.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LeaseStatus {
    /// The grants, in the order in which they came.
    pub grants: Vec<GrantStatus>,
    /// How many blocks are wanted at present. Fewer that are
    /// [`Held`](GrantState::Held) mean that more are asked for.
    pub target: u32,
    /// The plan's: how far ahead of the clock each renewal asks for.
    pub lease_duration: Duration,
    /// How far ahead of the clock the last positive reply carried, at most the
    /// plan's lease duration. Persistently less means that the store's horizon is shorter
    /// than the lease duration, or that the clocks are apart.
    pub reach: Duration,
    /// Since when the clock has passed the end of every grant, in milliseconds
    /// since 1970; none while a grant is in force.
    pub expired_since_unix_ms: Option<u64>,
    /// How often requests went how.
    pub counts: LeaseCounts,
    /// How it goes with the store.
    pub health: LeaseHealth,
}

/// One grant of [`LeaseStatus`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrantStatus {
    /// The grant, with its end as confirmed.
    pub grant: Grant,
    /// Its state.
    pub state: GrantState,
}

/// The state of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GrantState {
    /// It is renewed.
    Held,
    /// It is no longer needed. It is used up to its end, then released.
    Lapsing,
    /// The store refused to renew it, or may have renewed it without a reply:
    /// the confirmed ticks are used, and the block is given up.
    Draining,
}

/// How it goes with the store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LeaseHealth {
    /// Since when requests fail, by the wall clock, in milliseconds since 1970;
    /// none while they succeed. Blocks that are refused because all are held
    /// are no failure as long as one is in force here.
    pub failing_since_unix_ms: Option<u64>,
    /// The answer to the last request that failed.
    pub last_error: Option<Arc<StoreError>>,
}
