//! The reasons why a store would grant no lease at present.

use std::time::Duration;

use crate::describe::describe;
use crate::layout::{Utc, span};
use crate::lease::error::FAR_AHEAD;
use crate::lease::store::report::StoreReport;

/// Something that keeps a store from granting a lease at present. Printed, it says what to
/// do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// The store is a copy that nobody adopted. It grants nothing, since the original may still
    /// do so.
    Copied,
    /// The store was restarted, replaced or restored since its last lease, and raises the
    /// floor at the next request.
    HistoryLost {
        /// How much later leases are given then.
        failover: Duration,
    },
    /// The clocks of store and client are too far apart.
    Skew {
        /// By how much, in milliseconds.
        skew_ms: u64,
        /// How much is allowed, in milliseconds.
        limit_ms: u128,
    },
    /// The layout has no ticks left.
    LayoutEnded,
    /// The floor lies beyond the horizon.
    FloorAhead {
        /// When the floor begins, in milliseconds since 1970.
        floor_unix_ms: u64,
        /// The store's time, in milliseconds since 1970.
        now_unix_ms: u64,
        /// Until leases begin.
        retry_after: Duration,
    },
    /// Every block is held or quarantined.
    Exhausted {
        /// Blocks that are quarantined.
        quarantined: u64,
    },
}

describe! {
    Obstacle;

    Self::Copied =>
        "the store was replaced, restored or copied since its last lease: when no process uses the \
         original any more, and the clock is right, raise the floor over lost grants";
    Self::HistoryLost { failover } => (
        "the store was restarted, replaced or restored since its last lease: the next request \
         raises the floor, and grants start {} later", span(*failover));
    Self::Skew { skew_ms, limit_ms } => (
        "the clocks of store and client are {} apart, and the limit is {}: synchronise both",
        span(Duration::from_millis(*skew_ms)),
        span(Duration::from_millis((*limit_ms).try_into().unwrap_or(u64::MAX))));
    Self::LayoutEnded => "the layout has run out of ticks: move to one with more time bits";
    Self::FloorAhead { floor_unix_ms, now_unix_ms, retry_after } if *retry_after > FAR_AHEAD => (
        "the floor was raised over grants that may have been lost: it is at {}, the store's clock \
         shows {}, and grants start in {}: if that clock is behind, set it right",
        Utc(*floor_unix_ms), Utc(*now_unix_ms), span(*retry_after));
    Self::FloorAhead { retry_after, .. } => (
        "the floor was raised over grants that may have been lost: grants start in {}",
        span(*retry_after));
    Self::Exhausted { quarantined: 0 } =>
        "every block is held: hold fewer in each process, or release those whose holder is gone";
    Self::Exhausted { quarantined } =>
        "every block is held or quarantined: once the clock is right, repair those that are \
         quarantined, {quarantined} in all";
}

impl StoreReport {
    /// The obstacles that keep the store from granting a lease at present; none if it
    /// would grant one.
    ///
    /// # Examples
    /// ```
    /// use std::{sync::Arc, time::Duration};
    /// use ringflake::{Layout, ManualClock};
    /// use ringflake::lease::{
    ///     Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace, Obstacle,
    /// };
    ///
    /// let now = 1_760_000_000_000;
    /// let mut store = MemoryStore::new(Arc::new(ManualClock::new(now)));
    /// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
    /// store.init(&orders, &Init::new(History::Unknown, now))?;
    ///
    /// // Above all that may have been granted before.
    /// let obstacles = store.check(&orders, now)?.obstacles();
    /// assert!(matches!(obstacles[..], [Obstacle::FloorAhead { .. }]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn obstacles(&self) -> Vec<Obstacle> {
        let record = &self.record;
        let layout = record.namespace.layout();
        let mut obstacles = Vec::new();
        // A tier gives up its blocks then, and takes others.
        if !self.store.starts_with("tier:") {
            if self.is_copy {
                obstacles.push(Obstacle::Copied);
            } else if self.history_lost() {
                let failover = record.limits.failover();
                obstacles.push(Obstacle::HistoryLost { failover });
            }
        }
        let limit_ms = record.limits.skew().as_millis();
        if let Some(skew_ms) = self.skew_ms()
            && u128::from(skew_ms) > limit_ms
        {
            obstacles.push(Obstacle::Skew { skew_ms, limit_ms });
        }
        let now = layout.tick_at(self.now_unix_ms()).unwrap_or(0);
        let start = now.max(record.floor);
        if start >= layout.ticks() {
            obstacles.push(Obstacle::LayoutEnded);
        } else if start >= record.horizon_end(now) {
            obstacles.push(Obstacle::FloorAhead {
                floor_unix_ms: layout.tick_start_unix_ms(record.floor),
                now_unix_ms: self.now_unix_ms(),
                retry_after: self.nothing_granted_for(),
            });
        }
        let of_blocks = self.quarantined.iter().filter(|it| it.block.is_some());
        let quarantined = of_blocks.count() as u64;
        if self.held_blocks.saturating_add(quarantined) >= record.namespace.blocks() {
            obstacles.push(Obstacle::Exhausted { quarantined });
        }
        obstacles
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::lease::block::Block;
    use crate::lease::fingerprint::Fingerprint;
    use crate::lease::namespace::Namespace;
    use crate::lease::store::limits::StoreLimits;
    use crate::lease::store::quarantine::Quarantined;
    use crate::lease::store::record::{Incarnation, StoreRecord};
    use crate::lease::store::report::Durability;

    const LAYOUT: Layout = Layout::RANDFLAKE;
    const NOW_MS: u64 = 1_760_000_000_000;

    fn report(floor: u64) -> StoreReport {
        let space = Namespace::new("a", &LAYOUT, Fingerprint::PLAIN).unwrap();
        let one = || Incarnation::new("one");
        let record = StoreRecord::new(space, StoreLimits::default(), floor, one());
        StoreReport::new("a store", record, one(), Durability::Durable, NOW_MS)
    }

    #[test]
    fn each_thing_in_the_way_is_an_obstacle() {
        let now = LAYOUT.tick_at(NOW_MS).unwrap();
        assert_eq!(report(now).obstacles(), []);
        // The default horizon is 660 ticks.
        assert_eq!(report(now + 659).obstacles(), []);

        let ahead = report(now + 667);
        let mut skewed = report(now);
        skewed.store_unix_ms = Some(NOW_MS - 5001);
        let mut full = report(now);
        full.held_blocks = 4096;
        let mut damaged = report(now);
        damaged.held_blocks = 4095;
        damaged.quarantined = vec![Quarantined::new(Block::new(7), "its mark is -1")];
        let mut lost = report(now);
        lost.incarnation = Incarnation::new("two");
        let mut copied = lost.clone();
        copied.is_copy = true;
        let mut tier = copied.clone();
        tier.store = "tier:/a".to_owned();
        assert_eq!(tier.obstacles(), []);
        for (report, said) in [
            (ahead, "in 8s"),
            (
                report(now + 660 + 3601),
                "2025-10-09T10:04:21Z, the store's clock shows 2025-10-09T08:53:20Z",
            ),
            (skewed, "5s 1ms"),
            (full, "every block"),
            (damaged, "quarantined, 1 in all"),
            (lost, "raises the floor"),
            (copied, "raise the floor"),
            (report(LAYOUT.ticks()), "run out"),
        ] {
            let obstacles = report.obstacles();
            assert_eq!(obstacles.len(), 1, "{obstacles:?}");
            assert!(obstacles[0].to_string().contains(said), "{obstacles:?}");
        }
    }
}
