//! The events that the library reports to `tracing`.
//!
//! The functions here take numbers and what can be displayed, so that every module may
//! call them. Those about leases are in `lease::events` and `lease::renewal::events`;
//! the table has them all.
//!
//! The target is always `ringflake`, and a message begins with the event's name.
//! Normal operation is reported at debug or below. An event with the field `suppressed`
//! is reported at most once a second for each generator, and the field counts how many
//! were held back since the last one; `refused` is throttled apart for fills and for
//! takes. An unusable backend and an unknown
//! `RINGFLAKE_RSEQ` are reported once a process.
//!
//! A take that finds an ID in the ring reports nothing, but for an assist, and neither does
//! a direct generator. No event carries a secret or an ID.
//!
//! | event | level | fields | reported |
//! |---|---|---|---|
//! | generator started | debug | capacity, stripes, threshold, core_stocks, producers, leases | at the end of `build` |
//! | ring filled | trace | cause, count, micros | at the end of a fill, also of one cut short |
//! | ring assisted | trace | count, suppressed | by a take that finds very few IDs and makes some |
//! | ring ran dry | debug | suppressed | by a take that finds too few IDs |
//! | borrowing near its limit | warn | borrowed, limit, suppressed | by a fill, from nine tenths on |
//! | refused | warn | reason, suppressed | by a fill, or a take that generates |
//! | stale IDs retired | debug | count, max_age | by a scheduled fill that dropped any |
//! | producer panicked | error | suppressed | when a clock or a hook did |
//! | lease acquired, lease closed | debug | namespace, grant | by the thread that renews leases |
//! | lease extended | trace | namespace, grant | by that thread |
//! | lease given up | warn | namespace, grant | by `invalidate` |
//! | leases ended | error | namespace, since_unix_ms | by that thread, once the clock has passed the last |
//! | leases in force again | info | namespace | by that thread, after that |
//! | lease store asked | trace | namespace, request, micros | by that thread, after each operation |
//! | lease store failed | warn | namespace, request, error, cause, suppressed | by that thread |
//! | lease store recovered | info | namespace, since_unix_ms | by that thread, at the first good answer |
//! | lease history lost | error | namespace | by that thread, or, without the namespace, by a tier for the machine: a store knew less than it had confirmed |
//! | upstream lease store failed | warn | error, cause, suppressed | by a tier, for the machine; its processes go on |
//! | upstream lease history lost: the machine's blocks last to their ends | warn | suppressed | by a tier; new blocks begin above all that may have been lost |
//! | upstream lease store recovered | info | since_unix_ms | by a tier, at the first requests to its upstream store that succeed |
//! | machine's blocks given up | warn | store, recorded, found | by a tier whose file is a copy or was put back |
//! | block quarantined | warn | namespace, block, reason | when its record is met and can't be true, once for each block and process |
//! | store not durable | warn | store, reason | once for each store that was accepted nevertheless, and each reason |
//! | generator stopped | debug | | when the last clone is dropped, but in a forked child |
//! | unusable backend | warn | value, chosen, available | at a key's set-up |
//! | unknown RINGFLAKE_RSEQ | warn | value | at the first `build` or `check` that reads it |

use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

pub(crate) fn started(
    capacity: usize,
    stripes: usize,
    threshold: usize,
    core_stocks: impl Display,
    producers: usize,
    leases: &[impl Display],
) {
    let leases = Leases(leases);
    tracing::debug!(
        target: "ringflake",
        capacity, stripes, threshold, %core_stocks, producers, %leases, "generator started"
    );
}

/// Prints one after the other.
struct Leases<'a, L>(&'a [L]);

impl<L: Display> Display for Leases<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, lease) in self.0.iter().enumerate() {
            let separator = if index > 0 { "; " } else { "" };
            write!(f, "{separator}{lease}")?;
        }
        Ok(())
    }
}

pub(crate) fn filled(cause: impl Display, count: u64, took: Duration) {
    let micros = took.as_micros() as u64;
    tracing::trace!(target: "ringflake", %cause, count, micros, "ring filled");
}

pub(crate) fn assisted(throttle: &Throttle, count: u64) {
    // Asked first, as below.
    if tracing::enabled!(target: "ringflake", tracing::Level::TRACE)
        && let Some(suppressed) = throttle.admit()
    {
        tracing::trace!(target: "ringflake", count, suppressed, "ring assisted");
    }
}

pub(crate) fn ran_dry(throttle: &Throttle) {
    // Asked first: the throttle reads a clock, and dry takes can be many.
    if tracing::enabled!(target: "ringflake", tracing::Level::DEBUG)
        && let Some(suppressed) = throttle.admit()
    {
        tracing::debug!(target: "ringflake", suppressed, "ring ran dry");
    }
}

pub(crate) fn borrowing_near_limit(throttle: &Throttle, borrowed: Duration, limit: Duration) {
    if let Some(suppressed) = throttle.admit() {
        tracing::warn!(
            target: "ringflake", ?borrowed, ?limit, suppressed, "borrowing near its limit"
        );
    }
}

pub(crate) fn refused(throttle: &Throttle, reason: impl Display) {
    if let Some(suppressed) = throttle.admit() {
        tracing::warn!(target: "ringflake", %reason, suppressed, "refused");
    }
}

pub(crate) fn retired(count: u64, max_age: Duration) {
    tracing::debug!(target: "ringflake", count, ?max_age, "stale IDs retired");
}

pub(crate) fn producer_panicked(throttle: &Throttle) {
    if let Some(suppressed) = throttle.admit() {
        tracing::error!(
            target: "ringflake",
            suppressed,
            "producer panicked in a clock or a hook; the fill will be tried again"
        );
    }
}

pub(crate) fn stopped() {
    tracing::debug!(target: "ringflake", "generator stopped");
}

pub(crate) fn unusable_backend(value: &OsStr, chosen: impl Display, available: impl Display) {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    // First: without a subscriber it stays unreported. Relaxed: the swap decides alone.
    if tracing::enabled!(target: "ringflake", tracing::Level::WARN) && !REPORTED.swap(true, Relaxed)
    {
        tracing::warn!(
            target: "ringflake",
            ?value,
            %chosen,
            %available,
            "unusable backend: RINGFLAKE_BACKEND names none that this processor can run; \
             the fastest is used instead"
        );
    }
}

pub(crate) fn unknown_rseq_setting(value: &OsStr) {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    // As above.
    if tracing::enabled!(target: "ringflake", tracing::Level::WARN) && !REPORTED.swap(true, Relaxed)
    {
        tracing::warn!(
            target: "ringflake",
            ?value,
            "unknown RINGFLAKE_RSEQ: must be `off` or `on`; the default is used instead"
        );
    }
}

/// Lets one event a second through.
#[derive(Debug)]
pub(crate) struct Throttle {
    /// When the last one passed, in milliseconds on [`uptime_ms`], plus one; 0 for never.
    last: AtomicU64,
    suppressed: AtomicU64,
}

impl Throttle {
    const PERIOD_MS: u64 = 1000;

    pub(crate) const fn new() -> Self {
        Self {
            last: AtomicU64::new(0),
            suppressed: AtomicU64::new(0),
        }
    }

    /// How many were held back since the last one that passed, or `None` if
    /// this one is held back too.
    pub(crate) fn admit(&self) -> Option<u64> {
        self.admit_at(uptime_ms())
    }

    fn admit_at(&self, now_ms: u64) -> Option<u64> {
        // Relaxed: the exchange decides alone who passes.
        let last = self.last.load(Relaxed);
        let passes = last == 0 || now_ms + 1 >= last + Self::PERIOD_MS;
        if passes
            && self
                .last
                .compare_exchange(last, now_ms + 1, Relaxed, Relaxed)
                .is_ok()
        {
            Some(self.suppressed.swap(0, Relaxed))
        } else {
            self.suppressed.fetch_add(1, Relaxed);
            None
        }
    }
}

fn uptime_ms() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_a_second_passes_and_the_rest_are_counted() {
        let throttle = Throttle::new();
        let passed = [0, 1, 999, 1000, 1001, 1999, 2000].map(|now| throttle.admit_at(now));
        assert_eq!(passed, [Some(0), None, None, Some(2), None, None, Some(2)]);
    }
}
