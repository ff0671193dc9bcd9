//! Which ticks and nodes of a layout have been granted on this machine.
//!
//! # State
//!
//! Ticks are granted in *slabs*, one after another, of which only the last is
//! remembered. Within it, nodes are granted from left to right.
//!
//! ```text
//!  node ^
//!       |           |         |
//!       |   gone    |  free   |   free: the next slab
//!       |           |---------|     begins here or later
//!       |           | granted |
//!       +-----------+---------+-----------------------> tick
//!                 start      end
//! ```
//!
//! A grant takes free nodes of the slab, over all of its ticks, if what the
//! clock has left of them is enough. Otherwise it begins a new slab, at the
//! clock but never before the end of the last one. Either way it is as wide as
//! is useful, so that it reaches no further ahead than it must.
//!
//! # Why no two grants overlap
//!
//! Every raw granted so far has a tick under `end`, and if that is not under
//! `start`, a node under `next_node`. A grant in the slab begins at `next_node`
//! and raises it; a new slab begins at `end` or later. Neither reaches what was
//! granted before, and the statement holds again after it. The clock only
//! chooses between the two, so a wrong one can't cause an overlap.
//!
//! Handing out nodes rather than whole ticks keeps many short runs in a row
//! from walking ahead of the clock by a tick each.

use std::fmt;
use std::ops::Range;

use ringflake::Layout;
use serde::{Deserialize, Serialize};

use crate::timestamp::in_words;

/// How much time a slab covers at the least: a grant should outlive the setup
/// of the run that it is for. A run that takes longer gets another grant.
const SPAN_MS: u64 = 1000;

/// How far ahead of the clock the last tick that a run needs may begin.
const MAX_AHEAD_MS: u64 = 3_600_000;

/// The last slab, and how much of it has been granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slab {
    /// Its first tick.
    start: u64,
    /// One past its last tick.
    end: u64,
    /// Every granted node of it lies before this one.
    next_node: u64,
}

/// What a run asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// The nodes that may be granted; not empty and inside the layout.
    pub(crate) nodes: Range<u64>,
    /// How many IDs they should be enough for.
    pub(crate) ids: u64,
}

/// Nodes and ticks that belong to one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) nodes: Range<u64>,
    pub(super) ticks: Range<u64>,
}

impl Slab {
    /// Before anything was granted: no raw has a tick under 0.
    pub(super) const NOTHING: Self = Self {
        start: 0,
        end: 0,
        next_node: 0,
    };

    /// Grants what `wish` asks for, at `now_unix_ms`; on an error nothing.
    pub(super) fn grant(
        &mut self,
        layout: &Layout,
        wish: &Wish,
        now_unix_ms: u64,
    ) -> Result<Grant, Refusal> {
        // Before the epoch the first tick is the nearest.
        let now = layout.tick_at(now_unix_ms).unwrap_or(0);
        // A row is one node in one tick.
        let rows = wish.ids.div_ceil(layout.sequences()).max(1);
        let grant = self
            .beside(wish, rows, now)
            .unwrap_or_else(|| self.after(layout, wish, rows, now));
        check(layout, wish, &grant, rows, now_unix_ms)?;
        *self = Self {
            start: grant.ticks.start,
            end: grant.ticks.end,
            next_node: grant.nodes.end,
        };
        Ok(grant)
    }

    /// Free nodes of this slab, if they have enough rows from now on.
    fn beside(&self, wish: &Wish, rows: u64, now: u64) -> Option<Grant> {
        let first = self.next_node.max(wish.nodes.start);
        let free = wish.nodes.end.checked_sub(first).filter(|&free| free > 0)?;
        let ticks_left = self.end.saturating_sub(self.start.max(now));
        (rows.div_ceil(free) <= ticks_left).then(|| Grant {
            nodes: first..first + rows.min(free),
            ticks: self.start..self.end,
        })
    }

    /// Nodes of a new slab. No ticks, or too few, where the layout ends.
    fn after(&self, layout: &Layout, wish: &Wish, rows: u64, now: u64) -> Grant {
        let width = wish.nodes.end - wish.nodes.start;
        let span = SPAN_MS.div_ceil(layout.tick_ms());
        let ticks = rows.div_ceil(width).max(span);
        let start = self.end.max(now);
        Grant {
            nodes: wish.nodes.start..wish.nodes.start + rows.min(width),
            ticks: start..start.saturating_add(ticks).min(layout.ticks()),
        }
    }
}

fn check(
    layout: &Layout,
    wish: &Wish,
    grant: &Grant,
    rows: u64,
    now_unix_ms: u64,
) -> Result<(), Refusal> {
    if grant.ticks.is_empty() {
        return Err(Refusal::UsedUp {
            end_unix_ms: layout.end_unix_ms(),
        });
    }
    let latest_unix_ms = now_unix_ms.saturating_add(MAX_AHEAD_MS);
    let first_unix_ms = layout.tick_start_unix_ms(grant.ticks.start);
    if first_unix_ms > latest_unix_ms {
        return Err(Refusal::Ahead {
            first_unix_ms,
            now_unix_ms,
        });
    }
    let width = grant.nodes.end - grant.nodes.start;
    let first_tick = grant
        .ticks
        .start
        .max(layout.tick_at(now_unix_ms).unwrap_or(0));
    let last_needed = first_tick.saturating_add(rows.div_ceil(width) - 1);
    let last_unix_ms = layout.tick_start_unix_ms(last_needed);
    if last_unix_ms > latest_unix_ms {
        return Err(Refusal::TooMany {
            wish: wish.clone(),
            last_unix_ms,
            now_unix_ms,
        });
    }
    Ok(())
}

/// Why nothing was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The next free tick lies too far ahead of the clock.
    Ahead {
        first_unix_ms: u64,
        now_unix_ms: u64,
    },
    /// The last tick that is needed does.
    TooMany {
        wish: Wish,
        last_unix_ms: u64,
        now_unix_ms: u64,
    },
    /// Every tick of the layout was granted.
    UsedUp { end_unix_ms: u64 },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ahead {
                first_unix_ms,
                now_unix_ms,
            } => write!(
                f,
                "the next IDs that were not handed out yet are those of {}, more than an hour \
                 ahead of the clock, which says {}: if the clock was set back, correct it; \
                 otherwise wait, or use other nodes with a data directory of their own",
                in_words(*first_unix_ms),
                in_words(*now_unix_ms)
            ),
            Self::TooMany {
                wish,
                last_unix_ms,
                now_unix_ms,
            } => write!(
                f,
                "{} IDs from the nodes {}..{} would use up the time to {}, more than an hour \
                 ahead of the clock, which says {}: use more nodes or ask for fewer IDs",
                wish.ids,
                wish.nodes.start,
                wish.nodes.end,
                in_words(*last_unix_ms),
                in_words(*now_unix_ms)
            ),
            Self::UsedUp { end_unix_ms } => write!(
                f,
                "every tick up to the end of the layout, {}, was handed out: \
                 move to a layout with more time bits",
                in_words(*end_unix_ms)
            ),
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_750_000_000_500;

    fn wish(nodes: Range<u64>, ids: u64) -> Wish {
        Wish { nodes, ids }
    }

    fn overlap(a: &Grant, b: &Grant) -> bool {
        let meet = |a: &Range<u64>, b: &Range<u64>| a.start < b.end && b.start < a.end;
        meet(&a.nodes, &b.nodes) && meet(&a.ticks, &b.ticks)
    }

    #[test]
    fn short_runs_share_a_tick_and_do_not_walk_ahead_of_the_clock() {
        let layout = Layout::RANDFLAKE;
        let now = layout.tick_at(NOW).unwrap();
        let mut slab = Slab::NOTHING;
        for run in 0..100_000 {
            let grant = slab
                .grant(&layout, &wish(0..layout.nodes(), 74), NOW)
                .unwrap();
            assert_eq!(grant.nodes, run..run + 1);
            assert_eq!(grant.ticks, now..now + 1);
        }
    }

    #[test]
    fn a_grant_in_a_layout_of_short_ticks_covers_a_second() {
        let layout = Layout::TWITTER;
        let mut slab = Slab::NOTHING;
        let grant = slab.grant(&layout, &wish(0..1024, 10), NOW).unwrap();
        assert_eq!(grant.ticks.end - grant.ticks.start, 1000);
        assert_eq!(grant.nodes, 0..1);
    }

    #[test]
    fn a_large_run_takes_all_nodes_and_as_many_ticks_as_it_needs() {
        let layout = Layout::JS_SAFE;
        let now = layout.tick_at(NOW).unwrap();
        let mut slab = Slab::NOTHING;
        let grant = slab
            .grant(&layout, &wish(0..1024, 3 * 4096 * 1024), NOW)
            .unwrap();
        assert_eq!((grant.nodes, grant.ticks), (0..1024, now..now + 3));
        let next = slab.grant(&layout, &wish(0..1024, 1), NOW).unwrap();
        assert_eq!((next.nodes, next.ticks), (0..1, now + 3..now + 4));
    }

    #[test]
    fn a_clock_that_was_set_back_by_more_than_an_hour_is_refused() {
        let layout = Layout::RANDFLAKE;
        let mut slab = Slab::NOTHING;
        let all = wish(0..1, 1);
        slab.grant(&layout, &all, NOW).unwrap();
        let before = slab;
        let refusal = slab.grant(&layout, &all, NOW - 3_602_000).unwrap_err();
        assert!(matches!(refusal, Refusal::Ahead { .. }), "{refusal:?}");
        assert_eq!(slab, before);
        assert!(slab.grant(&layout, &all, NOW - 3_598_000).is_ok());
    }

    #[test]
    fn more_ids_than_an_hour_of_the_nodes_holds_are_refused() {
        let layout = Layout::BAIDU_31_23_9;
        let mut slab = Slab::NOTHING;
        let refusal = slab
            .grant(&layout, &wish(7..8, 512 * 3602), NOW)
            .unwrap_err();
        assert!(matches!(refusal, Refusal::TooMany { .. }), "{refusal:?}");
        assert_eq!(slab, Slab::NOTHING);
        assert!(slab.grant(&layout, &wish(7..8, 512 * 3600), NOW).is_ok());
        assert!(slab.grant(&layout, &wish(8..10, 512 * 3600), NOW).is_ok());
    }

    #[test]
    fn the_last_tick_of_a_layout_is_granted_and_none_after_it() {
        let layout = Layout::builder()
            .bits(2, 1, 1)
            .epoch_unix_ms(NOW)
            .build()
            .unwrap();
        let mut slab = Slab::NOTHING;
        let ticks: Vec<_> = (0..4)
            .map(|_| slab.grant(&layout, &wish(0..2, 3), NOW).unwrap().ticks)
            .collect();
        assert_eq!(ticks, [0..1, 1..2, 2..3, 3..4]);
        let refusal = slab.grant(&layout, &wish(0..2, 3), NOW).unwrap_err();
        assert!(matches!(refusal, Refusal::UsedUp { .. }), "{refusal:?}");
    }

    #[test]
    fn a_layout_that_begins_in_a_day_is_refused() {
        let epoch = NOW + 86_400_000;
        let layout = Layout::builder()
            .bits(30, 17, 17)
            .epoch_unix_ms(epoch)
            .build()
            .unwrap();
        let mut slab = Slab::NOTHING;
        let refusal = slab.grant(&layout, &wish(0..1, 1), NOW).unwrap_err();
        assert!(matches!(refusal, Refusal::Ahead { .. }), "{refusal:?}");
    }

    fn layouts() -> impl Strategy<Value = Layout> {
        prop_oneof![
            Just(Layout::RANDFLAKE),
            Just(Layout::TWITTER),
            Just(Layout::JS_SAFE),
            Just("40/4/4@2024-01-01T00:00:00Z/300ms".parse().unwrap()),
            Just("20/2/1@2025-06-01T00:00:00Z/7s".parse().unwrap()),
        ]
    }

    proptest! {
        #[test]
        fn grants_never_overlap_and_are_large_enough(
            layout in layouts(),
            runs in prop::collection::vec((any::<[u64; 2]>(), 0_u64..200_000, -20_000_i64..20_000), 1..80),
        ) {
            let mut slab = Slab::NOTHING;
            let mut grants: Vec<Grant> = Vec::new();
            let mut now = NOW;
            for ([a, b], ids, step_ms) in runs {
                now = now.saturating_add_signed(step_ms);
                let (a, b) = (a % layout.nodes(), b % layout.nodes());
                let wish = wish(a.min(b)..a.max(b) + 1, ids);
                let Ok(grant) = slab.grant(&layout, &wish, now) else {
                    continue;
                };
                prop_assert!(wish.nodes.start <= grant.nodes.start);
                prop_assert!(grant.nodes.start < grant.nodes.end);
                prop_assert!(grant.nodes.end <= wish.nodes.end);
                prop_assert!(grant.ticks.end > layout.tick_at(now).unwrap_or(0));
                prop_assert!(grant.ticks.end <= layout.ticks());
                // Also if the generator begins at the clock.
                let first_tick = grant.ticks.start.max(layout.tick_at(now).unwrap_or(0));
                let rows = u128::from(grant.nodes.end - grant.nodes.start)
                    * u128::from(grant.ticks.end - first_tick);
                prop_assert!(rows * u128::from(layout.sequences()) >= u128::from(ids));
                for earlier in &grants {
                    prop_assert!(!overlap(earlier, &grant), "{earlier:?} and {grant:?}");
                }
                grants.push(grant);
            }
        }
    }
}
