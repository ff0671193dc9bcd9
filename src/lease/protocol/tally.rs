//! Counts the answers.

use super::super::StoreError;
use super::counts::{ClockOffset, LeaseCounts, RenewalOutcome, ahead_ms};
use super::exchange::{Answer, Moment, Request};

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

    /// Another incarnation has fenced a grant. `known` is how many changes were known when
    /// that was acquired.
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
