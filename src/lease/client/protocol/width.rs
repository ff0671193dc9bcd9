//! The number of blocks to hold.

use std::time::Duration;

use super::timing::RenewTiming;
use super::{Demand, LeasePlan};
use crate::lease::Namespace;

/// Follows the demand, between the plan's two numbers.
#[derive(Clone, Debug)]
pub(super) struct Width {
    pub(super) target: u32,
    min: u32,
    max: u32,
    /// The target is not raised before this time.
    raise_from: Duration,
    /// Since when next to nothing was borrowed; moved forward with each block
    /// let go.
    quiet_since: Option<Duration>,
}

impl Width {
    pub(super) fn new(plan: &LeasePlan, namespace: &Namespace) -> Self {
        let there_are = u32::try_from(namespace.blocks()).unwrap_or(u32::MAX);
        Self {
            target: plan.blocks,
            min: plan.blocks,
            max: plan.widen_to.min(there_are),
            raise_from: Duration::ZERO,
            quiet_since: None,
        }
    }

    /// Raises the target by half when more is borrowed than [`high`], and the
    /// target so far is held. Lowers it by one at a time once next to nothing
    /// was borrowed for a whole lease duration.
    pub(super) fn follow(
        &mut self,
        now: Duration,
        held: usize,
        demand: Demand,
        timing: &RenewTiming,
    ) {
        let (borrowed, high) = (borrowed(demand), high(demand, timing));
        if borrowed > high {
            self.raise_from = self.raise_from.min(now.saturating_add(timing.slow));
            if now >= self.raise_from && held >= self.target as usize {
                let room = u32::try_from(demand.room).unwrap_or(u32::MAX);
                let raise = (self.target / 2).max(1).min(room);
                self.target = self.target.saturating_add(raise).min(self.max);
                self.raise_from = now.saturating_add(timing.slow);
            }
        }
        if borrowed > high / 8 {
            self.quiet_since = None;
            return;
        }
        let since = self.quiet_since.map_or(now, |since| since.min(now));
        self.quiet_since = Some(since);
        if self.target > self.min && now - since >= timing.lease_duration {
            self.target -= 1;
            self.quiet_since = Some(now - timing.lease_duration + timing.period);
        }
    }

    /// When the target changes next if the demand stays as it is.
    pub(super) fn changes_at(
        &self,
        held: usize,
        demand: Demand,
        timing: &RenewTiming,
    ) -> Option<Duration> {
        if borrowed(demand) > high(demand, timing) {
            let can_rise = self.target < self.max && demand.room > 0;
            (can_rise && held >= self.target as usize).then_some(self.raise_from)
        } else {
            let quiet_since = self.quiet_since.filter(|_| self.target > self.min)?;
            Some(quiet_since.saturating_add(timing.lease_duration))
        }
    }
}

/// How much is borrowed, at most the limit. Only a clock that was set back makes
/// it more, and in a generator that never borrows makes it anything at all.
fn borrowed(demand: Demand) -> Duration {
    demand.borrowed.min(demand.borrow_limit)
}

/// The maximum to borrow for long: half of the limit or the lease duration, whichever is
/// shorter, but never more than half a minute, since a limit may be long only for the
/// sake of a lost history.
fn high(demand: Demand, timing: &RenewTiming) -> Duration {
    const HALF_A_MINUTE: Duration = Duration::from_secs(30);
    (demand.borrow_limit.min(timing.lease_duration) / 2).min(HALF_A_MINUTE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::lease::Fingerprint;

    const LIMIT: Duration = Duration::from_secs(60);
    /// Half of the limit.
    const HIGH: Duration = Duration::from_secs(30);
    /// An eighth of that.
    const QUIET: Duration = Duration::from_millis(3750);
    const MS: Duration = Duration::from_millis(1);

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    /// Raised every 5 s at most, lowered every 60 s after 600 s.
    fn timing() -> RenewTiming {
        RenewTiming::new(secs(600))
    }

    fn width(blocks: u32, widen_to: u32) -> Width {
        let space = Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        Width::new(&LeasePlan::new(blocks).with_widen_to(widen_to), &space)
    }

    fn demand(borrowed: Duration, room: usize) -> Demand {
        Demand {
            borrowed,
            borrow_limit: LIMIT,
            room,
        }
    }

    #[test]
    fn half_as_much_again_is_wanted_above_half_the_limit() {
        let (mut width, timing) = (width(4, 32), timing());
        let (high, busy) = (demand(HIGH, 99), demand(HIGH + MS, 99));
        width.follow(secs(1000), 4, high, &timing);
        assert_eq!(width.target, 4);
        assert_eq!(width.changes_at(4, high, &timing), None);
        width.follow(secs(1000), 3, busy, &timing);
        assert_eq!(width.target, 4, "one has not come yet");
        assert_eq!(width.changes_at(3, busy, &timing), None);
        width.follow(secs(1000), 4, busy, &timing);
        assert_eq!(width.target, 6);
        assert_eq!(width.changes_at(5, busy, &timing), None);
        assert_eq!(width.changes_at(6, busy, &timing), Some(secs(1005)));
        width.follow(secs(1005) - MS, 6, busy, &timing);
        assert_eq!(width.target, 6, "too soon");
        width.follow(secs(1005), 6, busy, &timing);
        assert_eq!(width.target, 9);
        // The monotonic clock went back.
        width.follow(secs(500), 9, busy, &timing);
        assert_eq!(width.changes_at(9, busy, &timing), Some(secs(505)));
    }

    #[test]
    fn the_threshold_is_half_of_the_limit_or_the_lease_and_at_most_half_a_minute() {
        for (borrow_limit, lease, high) in [(60, 600, 30), (600, 600, 30), (60, 20, 10)] {
            let (mut width, timing) = (width(4, 32), RenewTiming::new(secs(lease)));
            let limit = |borrowed| Demand {
                borrow_limit: secs(borrow_limit),
                ..demand(borrowed, 99)
            };
            width.follow(secs(1000), 4, limit(secs(high)), &timing);
            assert_eq!(width.target, 4, "{borrow_limit}, {lease}");
            width.follow(secs(1000), 4, limit(secs(high) + MS), &timing);
            assert_eq!(width.target, 6, "{borrow_limit}, {lease}");
        }
    }

    #[test]
    fn a_loud_moment_begins_the_quiet_time_anew() {
        let (mut width, timing) = (width(2, 8), timing());
        width.follow(secs(1000), 2, demand(LIMIT, 1), &timing);
        let (quiet, loud) = (demand(QUIET, 1), demand(QUIET + MS, 1));
        width.follow(secs(2000), 3, quiet, &timing);
        width.follow(secs(2500), 3, loud, &timing);
        width.follow(secs(2599), 3, quiet, &timing);
        assert_eq!(width.changes_at(3, quiet, &timing), Some(secs(3199)));
        // The monotonic clock went back.
        width.follow(secs(100), 3, quiet, &timing);
        assert_eq!(width.changes_at(3, quiet, &timing), Some(secs(700)));
    }

    /// All that lies ahead there is a clock that was set back.
    #[test]
    fn a_generator_that_does_not_borrow_does_not_widen() {
        let (mut width, timing) = (width(2, 8), timing());
        let demand = Demand {
            borrow_limit: Duration::ZERO,
            ..demand(LIMIT, 99)
        };
        width.follow(secs(1000), 2, demand, &timing);
        assert_eq!(width.target, 2);
    }
}
