//! How requests to a store went, counted.

use super::exchange::{Answer, Moment, Request, ahead_ms};
use crate::lease::{Fence, StoreError};

/// How often requests to the store went how, since the generator was built.
///
/// Counts only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
    /// How often the store was found to be another one than before: replaced by its
    /// replica, or restored. One change that fences many grants counts once. A second one
    /// counts if it fences a grant that was acquired after the first was found.
    pub incarnation_changes: u64,
}

/// The outcome of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum RenewalOutcome {
    /// The store gave an end.
    Renewed,
    /// [`StoreError::Fenced`]: the grant is used up to its end, and replaced.
    Fenced,
    /// [`StoreError::Unavailable`]: tried again.
    Unavailable,
    /// [`StoreError::Denied`]: tried again.
    Denied,
    /// [`StoreError::Ambiguous`]: the grant is used up to its end, and replaced.
    Ambiguous,
    /// Any other error of the store.
    Other,
}

impl RenewalOutcome {
    /// The outcome that this answer is.
    pub fn of(answer: &Result<u64, StoreError>) -> Self {
        match answer {
            Ok(_) => Self::Renewed,
            Err(StoreError::Fenced { .. }) => Self::Fenced,
            Err(StoreError::Unavailable { .. }) => Self::Unavailable,
            Err(StoreError::Denied { .. }) => Self::Denied,
            Err(StoreError::Ambiguous { .. }) => Self::Ambiguous,
            Err(_) => Self::Other,
        }
    }
}

/// Renewals by [`RenewalOutcome`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RenewalCounts {
    /// [`RenewalOutcome::Renewed`].
    pub renewed: u64,
    /// [`RenewalOutcome::Fenced`].
    pub fenced: u64,
    /// [`RenewalOutcome::Unavailable`].
    pub unavailable: u64,
    /// [`RenewalOutcome::Denied`].
    pub denied: u64,
    /// [`RenewalOutcome::Ambiguous`].
    pub ambiguous: u64,
    /// [`RenewalOutcome::Other`].
    pub other: u64,
}

impl RenewalCounts {
    pub(super) fn count(&mut self, outcome: RenewalOutcome) {
        *match outcome {
            RenewalOutcome::Renewed => &mut self.renewed,
            RenewalOutcome::Fenced => &mut self.fenced,
            RenewalOutcome::Unavailable => &mut self.unavailable,
            RenewalOutcome::Denied => &mut self.denied,
            RenewalOutcome::Ambiguous => &mut self.ambiguous,
            RenewalOutcome::Other => &mut self.other,
        } += 1;
    }
}

/// Fenced grants by [`Fence`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
    pub(super) fn count(&mut self, fence: &Fence) {
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

/// How far the store's clock and this machine's are apart.
///
/// A store says its time when it refuses clocks that are too far apart, and when it is asked
/// for its state, after a reply was lost. Ordinary replies don't have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ClockOffset {
    /// How far the store's clock is ahead, in milliseconds, to within the time that the
    /// request took; below zero if it is behind.
    pub store_ahead_ms: i64,
    /// When that was found, by this machine's clock, in milliseconds since 1970.
    pub measured_unix_ms: u64,
}

/// What a manager counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) counts: LeaseCounts,
    pub(super) clock: Option<ClockOffset>,
}

impl Tally {
    /// Counts an answer. Whether it shows a change of the incarnation depends on the grant:
    /// [`note_incarnation`](Self::note_incarnation).
    pub(super) fn note(&mut self, at: Moment, request: &Request, answer: &Answer) {
        match (request, answer) {
            (Request::Renew(_), Answer::Renewed(result)) => {
                self.counts.renewals.count(RenewalOutcome::of(result));
                if let Err(StoreError::Fenced { fence, .. }) = result {
                    self.counts.fenced.count(fence);
                }
            }
            // An answer of another kind counts as lost.
            (Request::Renew(_), _) => self.counts.renewals.count(RenewalOutcome::Ambiguous),
            (_, Answer::Checked(Ok(Some(ahead_ms)))) => self.measured(at, *ahead_ms),
            _ => {}
        }
        match answer.error() {
            Some(StoreError::HistoryLost { .. }) => self.counts.history_lost += 1,
            Some(StoreError::ClockSkew {
                store_unix_ms,
                client_unix_ms,
                ..
            }) => self.measured(at, ahead_ms(*store_unix_ms, *client_unix_ms)),
            _ => {}
        }
    }

    /// Another incarnation has fenced a grant. `known` is how many changes were known when the
    /// grant was acquired.
    pub(super) fn note_incarnation(&mut self, known: u64) {
        let changes = &mut self.counts.incarnation_changes;
        *changes = (*changes).max(known.saturating_add(1));
    }

    fn measured(&mut self, at: Moment, store_ahead_ms: i64) {
        self.clock = Some(ClockOffset {
            store_ahead_ms,
            measured_unix_ms: at.unix_ms,
        });
    }
}
