//! How requests to a store went, counted.

use super::exchange::{Answer, Request};
use crate::lease::{Fence, StoreError};

/// How often requests to the store went how, since the generator was built.
///
/// Counts only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseCounts {
    /// Renewals by outcome. Those that were not sent, because the store had just failed
    /// another generator of the process, count as that failure.
    pub renewals: RenewalCounts,
    /// Grants that the store refused to renew for good, by the comparison that failed.
    /// Together as many as `renewals.fenced`.
    pub fenced: FenceCounts,
    /// Answers that the store has forgotten what it had confirmed:
    /// [`StoreError::HistoryLost`].
    pub history_lost: u64,
}

/// Renewals by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RenewalCounts {
    /// The store gave an end.
    pub renewed: u64,
    /// [`StoreError::Fenced`]: the grant is used up to its end, and replaced.
    pub fenced: u64,
    /// [`StoreError::Unavailable`]: tried again.
    pub unavailable: u64,
    /// [`StoreError::Denied`]: tried again.
    pub denied: u64,
    /// [`StoreError::Ambiguous`]: the grant is used up to its end, and replaced.
    pub ambiguous: u64,
    /// Any other error of the store.
    pub other: u64,
}

impl RenewalCounts {
    fn count(&mut self, answer: &Result<u64, StoreError>) {
        *match answer {
            Ok(_) => &mut self.renewed,
            Err(StoreError::Fenced { .. }) => &mut self.fenced,
            Err(StoreError::Unavailable { .. }) => &mut self.unavailable,
            Err(StoreError::Denied { .. }) => &mut self.denied,
            Err(StoreError::Ambiguous { .. }) => &mut self.ambiguous,
            Err(_) => &mut self.other,
        } += 1;
    }
}

/// Fenced grants by [`Fence`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FenceCounts {
    /// [`Fence::NeverGranted`].
    pub never_granted: u64,
    /// [`Fence::Epoch`].
    pub epoch: u64,
    /// [`Fence::End`].
    pub end: u64,
    /// [`Fence::Floor`].
    pub floor: u64,
    /// [`Fence::Incarnation`].
    pub incarnation: u64,
    /// [`Fence::Upstream`].
    pub upstream: u64,
    /// [`Fence::Quarantined`].
    pub quarantined: u64,
}

impl FenceCounts {
    fn count(&mut self, fence: &Fence) {
        *match fence {
            Fence::NeverGranted => &mut self.never_granted,
            Fence::Epoch { .. } => &mut self.epoch,
            Fence::End { .. } => &mut self.end,
            Fence::Floor { .. } => &mut self.floor,
            Fence::Incarnation => &mut self.incarnation,
            Fence::Upstream => &mut self.upstream,
            Fence::Quarantined { .. } => &mut self.quarantined,
        } += 1;
    }
}

impl LeaseCounts {
    /// Counts an answer.
    pub(super) fn note(&mut self, request: &Request, answer: &Answer) {
        match (request, answer) {
            (Request::Renew(_), Answer::Renewed(result)) => {
                self.renewals.count(result);
                if let Err(StoreError::Fenced { fence, .. }) = result {
                    self.fenced.count(fence);
                }
            }
            // An answer of another kind counts as lost.
            (Request::Renew(_), _) => self.renewals.ambiguous += 1,
            _ => {}
        }
        if let Some(StoreError::HistoryLost { .. }) = answer.error() {
            self.history_lost += 1;
        }
    }
}
