//! The events of stores and of their grants, and what is logged once. The event of a store that is
//! not durable is in `connect::durability`, those of a generator's own leases are in
//! `renewal::events`, and the table of all events is in [`crate::events`].

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::{Mutex, PoisonError};

use crate::events::Throttle;
use crate::fork::PerProcess;
use crate::lease::error::StoreError;

/// Keys of events that this process has logged. A forked child has a list of its own: a thread
/// of the parent may hold the lock of the parent's.
pub(super) struct LoggedOnce<K: 'static>(PerProcess<Mutex<BTreeSet<K>>>);

impl<K: Ord> LoggedOnce<K> {
    /// Keys that are remembered. At the next one all are forgotten.
    const MAX: usize = 10_000;

    pub(super) const fn new() -> Self {
        Self(PerProcess::new())
    }

    /// Whether to log an event with this key: true once.
    pub(super) fn is_new(&'static self, key: K) -> bool {
        let Ok(logged) = self.0.get(|_| Ok(Mutex::default())) else {
            return true;
        };
        let mut logged = logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() == Self::MAX && !logged.contains(&key) {
            logged.clear();
        }
        logged.insert(key)
    }
}

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
    static LOGGED: LoggedOnce<(String, Option<u64>)> = LoggedOnce::new();
    // First: without a subscriber it stays unreported.
    if tracing::enabled!(target: "ringflake", tracing::Level::WARN)
        && LOGGED.is_new((namespace.to_owned(), block))
    {
        tracing::warn!(
            target: "ringflake",
            namespace,
            block,
            reason,
            "block quarantined: it is not granted until it is repaired"
        );
    }
}

// `fork` of glibc leaves the allocator usable.
#[cfg(all(
    test,
    unix,
    target_env = "gnu",
    not(miri),
    not(all(loom, feature = "loom"))
))]
mod tests {
    use super::*;

    #[test]
    fn a_child_logs_although_its_parent_held_the_lock_at_the_fork() {
        static LOGGED: LoggedOnce<u64> = LoggedOnce::new();
        assert!(LOGGED.is_new(1) && !LOGGED.is_new(1));
        let list = LOGGED.0.get(|_| Ok(Mutex::default())).unwrap();
        let held = list.lock().unwrap();
        let child = ringflake_kit::child::in_a_fork(|| u8::from(LOGGED.is_new(1)));
        drop(held);
        assert_eq!(child, Ok(1));
    }
}
