//! The status of a timeline: how far it is ahead of the clock, which leases it holds, and why it
//! refuses a claim.

use std::time::Duration;

use super::Timeline;
use super::lane::{Lane, View};
use super::policy::Now;
use super::refused::Refused;
use crate::lease::Lease;
use crate::sync::atomic::Ordering::Relaxed;

impl Timeline {
    /// The refusal that a claim would meet at this moment, if it would be refused.
    pub(crate) fn refused_now(&self) -> Option<Refused> {
        if self.is_forked() {
            return Some(Refused::Forked);
        }
        let now = self.now();
        let next = self.earliest(0, now);
        next.is_none_or(|(_, tick)| tick >= now.limit)
            .then(|| self.refusal(now))
    }

    /// How far the last raw that was claimed from the lane in use lies ahead of
    /// the clock.
    pub(crate) fn borrowed(&self) -> Duration {
        // Relaxed: a hint, as in a claim.
        let Some((view, next)) = self.look(self.active.load(Relaxed)) else {
            return Duration::ZERO;
        };
        let Some(last) = next.checked_sub(1) else {
            return Duration::ZERO;
        };
        let ticks = view.line.tick_of(last).saturating_sub(self.now().tick);
        self.ticks_to_duration(ticks)
    }

    /// How far claims have run ahead of the clock.
    ///
    /// While another raw can be claimed, that is no more than the borrow limit. While
    /// none can, it is the whole distance, of the lane with the shortest: only the
    /// clock can bring the next raw, and it may have been set back by any amount.
    ///
    /// `None` if no lane has given a raw of a tick after the clock's. A grant that has
    /// not begun yet says nothing about the clock.
    pub(crate) fn ahead(&self) -> Option<Duration> {
        let now = self.now();
        let open = || (0..self.lanes.len()).filter_map(|at| self.look(at));
        let next_tick = |(view, next): (View<'_>, u64)| view.next_tick(next, now, self.policy);
        if open().filter_map(next_tick).any(|tick| tick < now.limit) {
            return Some(self.borrowed().min(self.borrow_limit()));
        }
        // Of all lanes: also of one that is used up.
        let last_tick =
            |(view, next): (View<'_>, u64)| Some(view.line.tick_of(next.checked_sub(1)?));
        let ahead = open().filter_map(last_tick).filter(|&tick| tick > now.tick);
        Some(self.ticks_to_duration(ahead.min()? - now.tick))
    }

    /// The most that may be borrowed.
    pub(crate) fn borrow_limit(&self) -> Duration {
        self.ticks_to_duration(self.policy.borrow_limit)
    }

    /// The leases that lanes are open for. Those that are opened or closed at
    /// this moment may be missing.
    pub(crate) fn leases(&self) -> Vec<Lease> {
        (0..self.lanes.len())
            .filter_map(|at| self.look(at))
            .filter_map(|(view, _)| {
                Lease::new(self.layout, view.line.nodes(), view.line.ticks()).ok()
            })
            .collect()
    }

    /// When the last of the leases ends, in Unix milliseconds; 0 if there is none.
    pub(crate) fn end_unix_ms(&self) -> u64 {
        let open = (0..self.lanes.len()).filter_map(|at| self.look(at));
        let ends = open.map(|(view, _)| view.line.ticks().end);
        ends.max()
            .map_or(0, |end| self.layout.tick_start_unix_ms(end))
    }

    /// Why no raw can be claimed at `now`.
    #[cold]
    pub(super) fn refusal(&self, now: Now) -> Refused {
        if self.is_forked() {
            return Refused::Forked;
        }
        match (self.earliest(0, now), &self.health) {
            (Some((_, tick)), _) => self.behind(tick, now),
            (None, Some(health)) => {
                // First: it acquires the end that was noted before it.
                let failure = health.failure();
                Refused::NoLease {
                    end_unix_ms: health.end_unix_ms(),
                    now_unix_ms: now.unix_ms,
                    failure,
                }
            }
            (None, None) if self.lanes.iter().any(Lane::is_open) => Refused::LeaseEnded {
                end_unix_ms: self.end_unix_ms(),
                now_unix_ms: now.unix_ms,
            },
            (None, None) => Refused::Invalidated,
        }
    }

    /// The refusal of a clock that is too far behind `tick`.
    fn behind(&self, tick: u64, now: Now) -> Refused {
        // The first tick of the clock at which `tick` comes within the limit.
        let open_at = i128::from(tick) - i128::from(self.policy.borrow_limit);
        let open_unix_ms = i128::from(self.layout().epoch_unix_ms())
            + open_at * i128::from(self.layout().tick_ms());
        let missing_ms = (open_unix_ms - i128::from(now.unix_ms)).max(1);
        Refused::BorrowLimit {
            retry_after: Duration::from_millis(u64::try_from(missing_ms).unwrap_or(u64::MAX)),
            limit: self.borrow_limit(),
        }
    }

    fn ticks_to_duration(&self, ticks: u64) -> Duration {
        Duration::from_millis(ticks.saturating_mul(self.layout().tick_ms()))
    }
}
