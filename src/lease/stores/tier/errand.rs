//! Who asks the upstream store on behalf of the machine, and when.
//!
//! Whichever process renews a sub-grant while something is due upstream takes the
//! errand, and notes in the grant log that it has. The others leave it alone for as long
//! as an errand may take; if the process dies, the next takes it over. Nothing depends
//! on there being one at a time but the number of requests: each renewal upstream is a
//! comparison, and its answer is taken in only if the grant log is still as it was.

use std::fmt;

use crate::lease::error::StoreError;
use crate::lease::request::{Acquire, Renew};

/// What is to be asked of the upstream store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Errand {
    /// The upstream store failed the last time: look first, since a renewal whose
    /// answer is lost costs its block.
    pub(super) is_probe: bool,
    pub(super) renewals: Vec<Renew>,
    pub(super) spares: Option<Acquire>,
}

/// How the machine and its upstream store get on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Errands {
    /// When the errand under way began, in milliseconds since 1970.
    pub(crate) began_unix_ms: Option<u64>,
    /// When the upstream store failed first and last, in milliseconds since 1970, and
    /// how often in between.
    pub(crate) failing: Option<Failing>,
}

/// That the upstream store fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failing {
    pub(crate) since_unix_ms: u64,
    pub(crate) last_unix_ms: u64,
    pub(crate) failures: u32,
    /// What it said last.
    pub(crate) message: String,
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the machine's blocks end here, and the upstream store has failed since {} ms \
             since 1970: {}",
            self.since_unix_ms, self.message
        )
    }
}

impl Errands {
    /// An errand of which nothing was heard for so long is taken over.
    const LONGEST_MS: u64 = 60_000;

    /// The longest time between two attempts.
    const SLOWEST_MS: u64 = 15_000;

    /// Notes that one begins, unless another is under way or it is too soon.
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

    /// What a process is told that must not ask the upstream store now.
    pub(super) fn left_alone(&self) -> StoreError {
        let failing = self.failing.as_ref().map(ToString::to_string);
        let source = failing.unwrap_or_else(|| "another process of this machine asks".to_owned());
        StoreError::Unavailable {
            source: source.into(),
        }
    }

    pub(super) fn is_failing(&self) -> bool {
        self.failing.is_some()
    }

    /// Notes that the errand is done, and how it ended.
    pub(super) fn end(&mut self, unix_ms: u64, failing: Option<String>) {
        self.began_unix_ms = None;
        self.note(unix_ms, failing);
    }

    /// Notes whether the upstream store could be had, and what it said if not.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_errand_is_under_way_until_it_ends_or_is_overdue() {
        let mut errands = Errands::default();
        assert!(errands.begin(100));
        assert!(!errands.begin(100) && !errands.begin(100 + Errands::LONGEST_MS - 1));
        assert!(errands.clone().begin(100 + Errands::LONGEST_MS));
        assert!(errands.clone().begin(99), "the clock was set back");
        errands.end(200, None);
        assert!(errands.begin(200));
    }

    #[test]
    fn an_upstream_store_that_fails_is_asked_less_and_less_often() {
        let mut errands = Errands::default();
        let mut now = 1000;
        for pause in [500, 1000, 2000, 4000, 8000, 15_000, 15_000] {
            assert!(errands.begin(now));
            errands.end(now, Some("away".to_owned()));
            assert!(errands.is_put_off(now) && errands.is_put_off(now + pause - 1));
            assert!(!errands.is_put_off(now - 1), "the clock was set back");
            now += pause;
            assert!(!errands.is_put_off(now), "{pause}");
        }
        let failing = errands.failing.clone().unwrap();
        assert_eq!((failing.since_unix_ms, failing.failures), (1000, 6));
        errands.end(now, None);
        assert!(!errands.is_put_off(now) && !errands.is_failing());
    }
}
