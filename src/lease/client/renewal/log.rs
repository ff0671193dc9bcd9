//! The last renewals, with how long they took.
//!
//! A bounded list: what reads it later than [`KEPT`] renewals misses some, and sees by the
//! numbers how many. A hundred blocks with leases of ten minutes are renewed less than
//! twice a second together, so that a reader that comes each minute misses none. The counts
//! of [`LeaseCounts`](crate::lease::LeaseCounts) miss none in any case.

use std::collections::VecDeque;
use std::time::Duration;

use crate::lease::client::protocol::RenewalOutcome;

/// How many are kept: 12 KiB.
const KEPT: usize = 512;

/// A renewal that was sent to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renewal {
    /// Which of the generator's it is, counted from 1.
    pub number: u64,
    /// Its outcome.
    pub outcome: RenewalOutcome,
    /// How long the store took. Renewals that were sent together took equally long.
    pub took: Duration,
}

#[derive(Debug, Default)]
pub(super) struct RenewalLog {
    kept: VecDeque<Renewal>,
    sent: u64,
}

impl RenewalLog {
    pub(super) fn push(&mut self, outcome: RenewalOutcome, took: Duration) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.sent += 1;
        self.kept.push_back(Renewal {
            number: self.sent,
            outcome,
            took,
        });
    }

    /// Those with a higher number.
    pub(super) fn after(&self, number: u64) -> Vec<Renewal> {
        let new = self.sent.saturating_sub(number).min(KEPT as u64) as usize;
        let old = self.kept.len().saturating_sub(new);
        self.kept.range(old..).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_keeps_the_last_in_order_and_shows_what_it_lost() {
        let mut log = RenewalLog::default();
        assert_eq!(log.after(0), []);
        for millis in 1..=KEPT as u64 + 3 {
            log.push(RenewalOutcome::Renewed, Duration::from_millis(millis));
        }
        let numbers = |after| -> Vec<u64> {
            let renewals = log.after(after).into_iter();
            let as_made = |renewal: &Renewal| renewal.took.as_millis() == renewal.number.into();
            renewals
                .inspect(|r| assert!(as_made(r)))
                .map(|r| r.number)
                .collect()
        };
        let last = KEPT as u64 + 3;
        assert_eq!(numbers(0), (4..=last).collect::<Vec<_>>());
        assert_eq!(numbers(3), (4..=last).collect::<Vec<_>>());
        assert_eq!(numbers(4), (5..=last).collect::<Vec<_>>());
        assert_eq!(numbers(last - 1), [last]);
        assert_eq!(log.after(last), []);
        assert_eq!(log.after(u64::MAX), []);
    }
}
