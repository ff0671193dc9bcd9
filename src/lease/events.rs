//! The events of stores and of their grants. Those of a generator's own leases are in
//! `renewal::events`, and the table of all events is in [`crate::events`].

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::{Mutex, PoisonError};

use crate::events::Throttle;
use crate::fork::PerProcess;
use crate::lease::error::StoreError;

pub(super) fn history_lost(namespace: Option<&str>) {
    tracing::error!(target: "ringflake", namespace, "lease history lost");
}

pub(super) fn upstream_failed(throttle: &Throttle, error: &StoreError) {
    if let Some(suppressed) = throttle.admit() {
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        tracing::warn!(
            target: "ringflake",
            %error, cause, suppressed, "upstream lease store failed"
        );
    }
}

pub(super) fn upstream_history_lost(throttle: &Throttle) {
    if let Some(suppressed) = throttle.admit() {
        tracing::warn!(
            target: "ringflake",
            suppressed,
            "upstream lease history lost: the machine's blocks last to their ends"
        );
    }
}

pub(super) fn upstream_recovered(since_unix_ms: u64) {
    tracing::info!(target: "ringflake", since_unix_ms, "upstream lease store recovered");
}

#[cfg(feature = "sqlite")]
pub(super) fn tier_given_up(store: &str, recorded: &str, found: &str) {
    tracing::warn!(
        target: "ringflake",
        store, recorded, found, "machine's blocks given up"
    );
}

/// A record of this block can't be true; of none, if there is none.
pub(super) fn block_quarantined(namespace: &str, block: Option<u64>, reason: &str) {
    type Reported = Mutex<BTreeSet<(String, Option<u64>)>>;
    /// Blocks that are remembered; no more are reported.
    const MAX: usize = 10_000;
    static REPORTED: PerProcess<Reported> = PerProcess::new();
    // First: without a subscriber it stays unreported.
    if !tracing::enabled!(target: "ringflake", tracing::Level::WARN) {
        return;
    }
    let is_new = REPORTED
        .get(|_| Ok(Mutex::default()))
        .map_or(true, |reported| {
            let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
            reported.len() < MAX && reported.insert((namespace.to_owned(), block))
        });
    if is_new {
        tracing::warn!(
            target: "ringflake",
            namespace,
            block,
            reason,
            "block quarantined: it is not granted until it is repaired"
        );
    }
}

#[cfg(any(
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "sqlite"
))]
pub(super) fn best_effort_store(store: &str, reason: &str) {
    tracing::warn!(
        target: "ringflake",
        store,
        reason,
        "store not durable: what it confirms can be lost, and IDs issued twice"
    );
}
