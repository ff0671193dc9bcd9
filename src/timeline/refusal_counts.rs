//! Refusals, counted by reason.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::refused::Refused;

/// Refusals by reason; those of a forked child are not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RefusalCounts {
    /// [`Refused::BorrowLimit`].
    pub borrow_limit: u64,
    /// [`Refused::LeaseEnded`].
    pub lease_ended: u64,
    /// [`Refused::NoLease`].
    pub no_lease: u64,
    /// [`Refused::Invalidated`].
    pub invalidated: u64,
}

/// Counts them. Not for the way of a take that finds an ID.
#[derive(Debug, Default)]
pub(crate) struct RefusalCounters {
    borrow_limit: AtomicU64,
    lease_ended: AtomicU64,
    no_lease: AtomicU64,
    invalidated: AtomicU64,
}

impl RefusalCounters {
    pub(crate) fn count(&self, refused: Refused) {
        let counter = match refused {
            Refused::BorrowLimit { .. } => &self.borrow_limit,
            Refused::LeaseEnded { .. } => &self.lease_ended,
            Refused::NoLease { .. } => &self.no_lease,
            Refused::Invalidated => &self.invalidated,
            // The figures are the parent's.
            Refused::Forked => return,
        };
        // Relaxed, here and below: figures for people.
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn add_to(&self, sum: &mut RefusalCounts) {
        sum.borrow_limit += self.borrow_limit.load(Relaxed);
        sum.lease_ended += self.lease_ended.load(Relaxed);
        sum.no_lease += self.no_lease.load(Relaxed);
        sum.invalidated += self.invalidated.load(Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_refusal_is_counted_under_its_reason_and_no_fork_is() {
        let (end_unix_ms, now_unix_ms) = (1, 2);
        let refusals = [
            Refused::BorrowLimit {
                retry_after: Duration::ZERO,
                limit: Duration::ZERO,
            },
            Refused::LeaseEnded {
                end_unix_ms,
                now_unix_ms,
            },
            Refused::NoLease {
                end_unix_ms,
                now_unix_ms,
                failure: None,
            },
            Refused::Invalidated,
            Refused::Forked,
        ];
        let counters = RefusalCounters::default();
        for (at, &refused) in refusals.iter().enumerate() {
            (0..=at).for_each(|_| counters.count(refused));
        }
        let mut sum = RefusalCounts {
            invalidated: 10,
            ..RefusalCounts::default()
        };
        counters.add_to(&mut sum);
        let expected = RefusalCounts {
            borrow_limit: 1,
            lease_ended: 2,
            no_lease: 3,
            invalidated: 14,
        };
        assert_eq!(sum, expected);
    }
}
