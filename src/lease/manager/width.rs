//! How many blocks to hold.

use std::time::Duration;

use super::super::Namespace;
use super::pace::Pace;
use super::{Demand, LeasePlan};

/// Follows the demand, between the plan's two numbers.
#[derive(Clone, Debug)]
pub(super) struct Width {
    pub(super) target: u32,
    least: u32,
    most: u32,
    /// Not to be raised before.
    raise_from: Duration,
    /// Since when next to nothing was borrowed, moved on with each block let go.
    quiet_since: Option<Duration>,
}

impl Width {
    pub(super) fn new(plan: &LeasePlan, namespace: &Namespace) -> Self {
        let there_are = u32::try_from(namespace.blocks()).unwrap_or(u32::MAX);
        Self {
            target: plan.blocks,
            least: plan.blocks,
            most: plan.widen_to.min(there_are),
            raise_from: Duration::ZERO,
            quiet_since: None,
        }
    }

    /// Raises the target by half when more than half of what may be borrowed is,
    /// and what was wanted before is held; lowers it by one at a time once next
    /// to nothing was borrowed for a whole cover.
    pub(super) fn follow(&mut self, now: Duration, held: usize, demand: Demand, pace: &Pace) {
        let (borrowed, high) = (borrowed(demand), high(demand, pace));
        if borrowed > high {
            self.raise_from = self.raise_from.min(now.saturating_add(pace.slow));
            if now >= self.raise_from && held >= self.target as usize {
                let room = u32::try_from(demand.room).unwrap_or(u32::MAX);
                let raise = (self.target / 2).max(1).min(room);
                self.target = self.target.saturating_add(raise).min(self.most);
                self.raise_from = now.saturating_add(pace.slow);
            }
        }
        if borrowed > high / 8 {
            self.quiet_since = None;
            return;
        }
        let since = self.quiet_since.map_or(now, |since| since.min(now));
        self.quiet_since = Some(since);
        if self.target > self.least && now - since >= pace.cover {
            self.target -= 1;
            self.quiet_since = Some(now - pace.cover + pace.period);
        }
    }

    /// When the target changes next if the demand stays as it is.
    pub(super) fn changes_at(&self, held: usize, demand: Demand, pace: &Pace) -> Option<Duration> {
        if borrowed(demand) > high(demand, pace) {
            let can_rise = self.target < self.most && demand.room > 0;
            (can_rise && held >= self.target as usize).then_some(self.raise_from)
        } else {
            let quiet_since = self.quiet_since.filter(|_| self.target > self.least)?;
            Some(quiet_since.saturating_add(pace.cover))
        }
    }
}

/// Past the limit it comes by a clock that was set back alone, and in a generator
/// that never borrows in no other way.
fn borrowed(demand: Demand) -> Duration {
    demand.borrowed.min(demand.borrow_limit)
}

/// What is too much to borrow for long.
fn high(demand: Demand, pace: &Pace) -> Duration {
    demand.borrow_limit.min(pace.cover) / 2
}
