//! One grant that a manager holds.

use std::time::Duration;

use super::timing::{Jitter, RenewTiming};
use super::{GrantState, Moment};
use crate::layout::Layout;
use crate::lease::{Grant, Renew};

/// A grant, from its positive reply until it is closed.
#[derive(Clone, Debug)]
pub(super) struct Holding {
    /// With the end that was confirmed last.
    pub(super) grant: Grant,
    pub(super) state: GrantState,
    /// Whether the block's last grant is this one, as far as is known.
    pub(super) is_last: bool,
    /// Whether it is to be closed for another, once there is one.
    pub(super) out_of_reach: bool,
    renew_at: Duration,
    /// Renewed at once when the wall clock leaves less than this: it was set
    /// forward, or the monotonic clock stood still.
    renew_below_ms: u64,
}

impl Holding {
    pub(super) fn new(grant: Grant) -> Self {
        Self {
            grant,
            state: GrantState::Held,
            is_last: true,
            out_of_reach: false,
            renew_at: Duration::ZERO,
            renew_below_ms: 0,
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.state == GrantState::Held
    }

    /// Whether it counts towards the target.
    pub(super) fn counts(&self) -> bool {
        self.is_held() && !self.out_of_reach
    }

    /// The time until the wall clock passes the end.
    pub(super) fn left_ms(&self, layout: &Layout, unix_ms: u64) -> u64 {
        layout
            .tick_start_unix_ms(self.grant.ticks.end)
            .saturating_sub(unix_ms)
    }

    /// Plans the next renewal after a positive reply; answers how far ahead of
    /// the clock the reply carried, at most the lease duration.
    pub(super) fn confirmed(
        &mut self,
        at: Moment,
        layout: &Layout,
        timing: &RenewTiming,
        jitter: &mut Jitter,
    ) -> Duration {
        let left = Duration::from_millis(self.left_ms(layout, at.unix_ms));
        let reach = left.min(timing.lease_duration);
        let wait = timing.until_top_up(reach, jitter);
        self.renew_at = at.elapsed.saturating_add(wait);
        self.renew_below_ms = u64::try_from(reach.as_millis()).unwrap_or(u64::MAX) / 10 * 7;
        reach
    }

    /// Plans another attempt after a refusal that concerns this grant alone.
    pub(super) fn postpone(&mut self, renew_at: Duration) {
        self.renew_at = renew_at;
        self.renew_below_ms = 0;
    }

    /// When to renew.
    pub(super) fn due(&self, at: Moment, layout: &Layout) -> Duration {
        if self.left_ms(layout, at.unix_ms) < self.renew_below_ms {
            self.renew_at.min(at.elapsed)
        } else {
            self.renew_at
        }
    }

    /// Whether this is the grant that the request was about.
    pub(super) fn is_subject_of(&self, renew: &Renew) -> bool {
        let Grant {
            block,
            epoch,
            ticks,
            ..
        } = &self.grant;
        (*block, *epoch, ticks.end) == (renew.block, renew.epoch, renew.known_end)
    }
}
