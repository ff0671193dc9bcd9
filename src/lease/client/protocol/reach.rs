//! Grants that a clock set back has put out of reach.
//!
//! The file above defines the condition and its consequences. Two things are kept
//! for it: whether the condition holds at present, and for each holding whether it
//! was there when the condition began. Later holdings replace those.

use super::{Change, Demand, Holding, Manager, Moment};

impl Manager {
    /// Detects a clock that was set back by more than a wait can cover, and one that has
    /// caught up again.
    pub(super) fn judge_reach(&mut self, at: Moment, demand: Demand) {
        self.reach_ahead.borrow_limit = demand.borrow_limit;
        let bearable = demand.borrow_limit.saturating_add(self.plan.lease_duration);
        if demand.borrowed > bearable && !self.reach_ahead.is_lost {
            self.set_out_of_reach(true);
            // A whole fleet may have the same clock, and it may be right soon.
            let wait = self.jitter.between(self.timing.slow / 2, self.timing.slow);
            self.acquire_at = at.elapsed.saturating_add(wait);
        } else if demand.borrowed <= demand.borrow_limit && self.reach_ahead.is_lost {
            self.set_out_of_reach(false);
        }
    }

    fn set_out_of_reach(&mut self, is_lost: bool) {
        self.reach_ahead.is_lost = is_lost;
        for held in &mut self.holdings {
            held.out_of_reach = is_lost;
        }
    }

    /// Closes the grants that are out of reach once there is another in their
    /// place. They are not released: another process's grant of such a block would
    /// begin at the end of this one, and be no nearer.
    pub(super) fn leave_what_is_replaced(&mut self, at: Moment, changes: &mut Vec<Change>) {
        let replaces = |held: &Holding| !held.out_of_reach && self.is_within_reach(at, held);
        if !self.reach_ahead.is_lost || !self.holdings.iter().any(replaces) {
            return;
        }
        for held in self.holdings.extract_if(.., |held| held.out_of_reach) {
            changes.push(Change::Closed(held.grant));
        }
        let ends = self.holdings.iter().map(|held| held.grant.ticks.end);
        self.last_end = ends.max();
    }

    /// Whether IDs can be issued from a grant at present.
    fn is_within_reach(&self, at: Moment, held: &Holding) -> bool {
        let layout = self.layout();
        let start_ms = layout.tick_start_unix_ms(held.grant.ticks.start);
        let waits_ms = u128::from(start_ms.saturating_sub(at.unix_ms));
        let limit_ms = self.reach_ahead.borrow_limit.as_millis();
        held.left_ms(layout, at.unix_ms) > 0 && waits_ms <= limit_ms
    }

    /// Whether IDs can be issued, as far as is known.
    pub(super) fn serves(&self, at: Moment) -> bool {
        !self.reach_ahead.is_lost && self.is_in_force(at)
    }
}
