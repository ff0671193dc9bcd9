//! Requests to the upstream store on behalf of the machine.
//!
//! A process that renews a sub-grant while requests are due upstream sends them, and
//! notes in the grant log that it does. The other processes send none for as long as
//! requests may take; if the process dies, the next one sends them. Only the number of
//! requests depends on this: each renewal upstream is a comparison, and its reply is
//! written down only if the grant log is still as it was.

use std::error::Error;
use std::fmt;

use crate::layout::Utc;
use crate::lease::error::StoreError;
use crate::lease::store::request::{Acquire, Renew};

/// The requests that are due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DueRequests {
    /// The upstream store failed the last time: a check comes first, since a lost answer to a
    /// renewal costs the block.
    pub(super) is_probe: bool,
    pub(super) renewals: Vec<Renew>,
    pub(super) spares: Option<Acquire>,
}

/// The state of the requests to the upstream store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UpstreamState {
    /// When the requests under way began, in milliseconds since 1970.
    pub(crate) began_unix_ms: Option<u64>,
    /// When the upstream store failed first and last, in milliseconds since 1970, and
    /// how often in between.
    pub(crate) failing: Option<Failing>,
}

/// A series of failures of the upstream store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failing {
    pub(crate) since_unix_ms: u64,
    pub(crate) last_unix_ms: u64,
    pub(crate) failures: u32,
    /// Its last error.
    pub(crate) message: String,
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no block of this machine has ticks left, and the upstream store has failed since \
             {}: {}",
            Utc(self.since_unix_ms),
            self.message
        )
    }
}

impl UpstreamState {
    /// Requests that have not ended after so long are taken over.
    const LONGEST_MS: u64 = 60_000;

    /// The longest time between two attempts.
    const SLOWEST_MS: u64 = 15_000;

    /// Notes that requests begin, unless others are under way or it is too soon.
    pub(super) fn begin(&mut self, unix_ms: u64) -> bool {
        let is_under_way =
            (self.began_unix_ms).is_some_and(|began| is_within(began, Self::LONGEST_MS, unix_ms));
        if is_under_way || self.is_put_off(unix_ms) {
            return false;
        }
        self.began_unix_ms = Some(unix_ms);
        true
    }

    /// Whether the upstream store failed so recently that it is to be left alone.
    pub(super) fn is_put_off(&self, unix_ms: u64) -> bool {
        self.failing.as_ref().is_some_and(|failing| {
            let doubled = 500_u64 << failing.failures.min(10);
            is_within(failing.last_unix_ms, doubled.min(Self::SLOWEST_MS), unix_ms)
        })
    }

    /// The error for a process that must not ask the upstream store now.
    pub(super) fn left_alone(&self) -> StoreError {
        let failing = self.failing.as_ref().map(ToString::to_string);
        StoreError::unavailable(
            failing.unwrap_or_else(|| "another process of this machine asks".to_owned()),
        )
    }

    /// Notes that the requests have ended, and how.
    pub(super) fn end(&mut self, unix_ms: u64, failing: Option<String>) {
        self.began_unix_ms = None;
        self.note(unix_ms, failing);
    }

    /// Notes whether the upstream store answered, and its error if not.
    pub(super) fn note(&mut self, unix_ms: u64, failing: Option<String>) {
        let before = self.failing.take();
        self.failing = failing.map(|message| Failing {
            since_unix_ms: before
                .as_ref()
                .map_or(unix_ms, |before| before.since_unix_ms),
            last_unix_ms: unix_ms,
            failures: before.map_or(0, |before| before.failures.saturating_add(1)),
            message,
        });
    }
}

/// Whether it is less than `length` since `start`. A clock that was set back ends it.
fn is_within(start: u64, length: u64, unix_ms: u64) -> bool {
    (start..start.saturating_add(length)).contains(&unix_ms)
}

/// The text that is noted of an error, its cause included.
pub(super) fn describe(error: &StoreError) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// The more helpful of two refusals: the machine's own, and the upstream store's.
/// `is_spent`: the machine's blocks are used up for good.
pub(super) fn refusal(ours: StoreError, theirs: StoreError, is_spent: bool) -> StoreError {
    match (ours, theirs) {
        (ours @ StoreError::Exhausted { .. }, _) if !is_spent => ours,
        // The process has certainly got nothing.
        (StoreError::Exhausted { .. }, StoreError::Ambiguous { source, .. }) => {
            StoreError::Unavailable { source }
        }
        (StoreError::Exhausted { .. }, theirs) => theirs,
        (ours, _) => ours,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_under_way_until_they_end_or_are_overdue() {
        let mut state = UpstreamState::default();
        assert!(state.begin(100));
        assert!(!state.begin(100) && !state.begin(100 + UpstreamState::LONGEST_MS - 1));
        assert!(state.clone().begin(100 + UpstreamState::LONGEST_MS));
        assert!(state.clone().begin(99), "the clock was set back");
        state.end(200, None);
        assert!(state.begin(200));
    }

    #[test]
    fn an_upstream_store_that_fails_is_asked_less_and_less_often() {
        let mut state = UpstreamState::default();
        let mut now = 1000;
        for pause in [500, 1000, 2000, 4000, 8000, 15_000, 15_000] {
            assert!(state.begin(now));
            state.end(now, Some("away".to_owned()));
            assert!(state.is_put_off(now) && state.is_put_off(now + pause - 1));
            assert!(!state.is_put_off(now - 1), "the clock was set back");
            now += pause;
            assert!(!state.is_put_off(now), "{pause}");
        }
        let failing = state.failing.clone().unwrap();
        assert_eq!((failing.since_unix_ms, failing.failures), (1000, 6));
        state.end(now, None);
        assert!(!state.is_put_off(now) && state.failing.is_none());
    }
}
