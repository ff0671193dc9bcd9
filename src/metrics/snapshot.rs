//! What a publisher reads of a generator, all at one time.

use std::time::Duration;

use crate::generator::{CachedGenerator, Stats};
use crate::lease::LeaseStatus;

#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) stats: Stats,
    pub(super) lease: Option<LeaseStatus>,
    pub(super) layout: String,
    pub(super) layout_left: Duration,
    pub(super) backend: String,
}

impl Snapshot {
    /// None in a forked child, also where the generator's clock has just forked it.
    pub(super) fn of(ids: &CachedGenerator) -> Option<Self> {
        let stats = ids.stats();
        let snapshot = Self {
            lease: ids.lease_status(),
            layout: ids.layout().to_string(),
            layout_left: ids.layout().remaining_lifetime(stats.now_unix_ms),
            backend: ids.backend().to_string(),
            stats,
        };
        // After the one call that runs the user's code, that of the clock.
        (!ids.is_forked()).then_some(snapshot)
    }
}
