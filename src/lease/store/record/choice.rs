//! The choice of an acquisition: the blocks, their intervals, or the reason why there are
//! none.
//!
//! # Grants of the past
//! A request can name an interval that is over, `[from, to)`. Its grant is one as any other:
//! it begins at or after the block's mark, and moves the mark to its end (S1). So
//!
//! * a block whose mark lies at or before `from` was never granted any tick from there on,
//!   and what is granted of it later begins at `to` or after; what lies between the old mark
//!   and `from` is given up;
//! * a history that was lost can have granted only what lies below the floor, so `from` must
//!   not (S8);
//! * the horizon needs no look, as `to` is not after now (S7).
//!
//! Nothing on record tells such a grant from others, and nothing need.

use std::ops::Range;
use std::time::Duration;

use super::StoreRecord;
use crate::lease::block::BlockState;
use crate::lease::error::StoreError;
use crate::lease::grant::Grant;
use crate::lease::store::request::Acquire;

/// The marks of the blocks that a request can have, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MarkWindow {
    /// A block can be granted if its mark lies at or before this tick, whichever process had it.
    pub idle_until: u64,
    /// A released block can also be granted if its mark lies before this tick.
    pub released_below: u64,
}

/// The lowest marks of the blocks of a namespace that were granted, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowestMarks {
    /// Of those that were not released, whether their end has passed or not.
    pub held: Option<u64>,
    /// Of those that were released.
    pub released: Option<u64>,
}

impl LowestMarks {
    /// Those of these blocks.
    pub fn of<'a>(blocks: impl IntoIterator<Item = &'a BlockState>) -> Self {
        let mut lowest = Self::default();
        for block in blocks {
            let known = if block.released {
                &mut lowest.released
            } else {
                &mut lowest.held
            };
            *known = Some(known.map_or(block.hwm_end, |known| known.min(block.hwm_end)));
        }
        lowest
    }

    fn lowest(self) -> Option<u64> {
        self.held.into_iter().chain(self.released).min()
    }
}

impl StoreRecord {
    /// The marks of the blocks that this request can have; none if it can have none
    /// whatever their marks are.
    pub fn mark_window(&self, now: u64, acquire: &Acquire) -> Option<MarkWindow> {
        let (idle_until, released_below) = match &acquire.past {
            Some(past) => {
                let is_granted = past.start >= self.floor && past.end <= self.latest_past(now);
                // One tick more, for which no block need be released.
                is_granted.then_some((past.start, past.start.saturating_add(1)))?
            }
            None => (self.earliest_start(now), self.horizon_end(now)),
        };
        (idle_until < released_below).then_some(MarkWindow {
            idle_until,
            released_below,
        })
    }

    /// The grant of a block in this state, and the state that it leaves the block in; none
    /// if the request can't have it. `store_unix_ms` is the store's time in milliseconds
    /// since 1970, from which `now` was computed.
    pub fn granted(
        &self,
        now: u64,
        store_unix_ms: u64,
        before: &BlockState,
        acquire: &Acquire,
    ) -> Option<(Grant, BlockState)> {
        let ticks = match &acquire.past {
            Some(past) => {
                let window = self.mark_window(now, acquire)?;
                let is_idle = before.hwm_end <= window.idle_until;
                (is_idle && !past.is_empty()).then(|| past.clone())?
            }
            None => self.grant(now, before.hwm_end, acquire.length)?,
        };
        let mut after = BlockState::new(before.block, before.epoch.next(), ticks.end);
        after.start = Some(ticks.start);
        after.granted_unix_ms = Some(store_unix_ms);
        after.holder.clone_from(&acquire.holder);
        Some((Grant::new(after.block, after.epoch, ticks), after))
    }

    /// The first tick at which one of the blocks with these marks can be granted again; none
    /// if there is no block.
    fn first_free(&self, lowest: LowestMarks) -> Option<u64> {
        let released = lowest.released.map(|mark| self.reached_from(mark));
        lowest.held.into_iter().chain(released).min()
    }

    /// The first tick at which the horizon reaches past this one, so that a grant can
    /// begin there.
    pub(in crate::lease) fn reached_from(&self, tick: u64) -> u64 {
        tick.saturating_add(1).saturating_sub(self.horizon_ticks())
    }

    /// The time from `unix_ms` until this tick begins; zero once it has.
    pub(in crate::lease) fn until(&self, tick: u64, unix_ms: u64) -> Duration {
        let start_unix_ms = self.layout().tick_start_unix_ms(tick);
        Duration::from_millis(start_unix_ms.saturating_sub(unix_ms))
    }

    /// The latest end of a grant of the past.
    fn latest_past(&self, now: u64) -> u64 {
        now.min(self.layout().ticks())
    }

    /// Why none of so many blocks could be granted, at the store's time in milliseconds since
    /// 1970, where these are the lowest marks of the sound ones.
    pub fn refusal(
        &self,
        store_unix_ms: u64,
        now: u64,
        acquire: &Acquire,
        blocks: u64,
        lowest: LowestMarks,
    ) -> StoreError {
        let layout = self.layout();
        if let Some(past) = &acquire.past {
            return self.refusal_of_past(now, past, acquire.blocks, blocks, lowest);
        }
        let start = self.earliest_start(now);
        let retry_after = |tick| self.until(tick, store_unix_ms);
        if start >= layout.ticks() {
            StoreError::LayoutEnded {
                start,
                layout_ticks: layout.ticks(),
            }
        } else if start >= self.horizon_end(now) {
            StoreError::FloorAhead {
                floor: self.floor,
                floor_unix_ms: layout.tick_start_unix_ms(self.floor),
                now_unix_ms: store_unix_ms,
                retry_after: retry_after(self.reached_from(self.floor)),
            }
        } else {
            StoreError::Exhausted {
                wanted: acquire.blocks,
                blocks,
                retry_after: retry_after(self.first_free(lowest).unwrap_or(now)),
            }
        }
    }

    fn refusal_of_past(
        &self,
        now: u64,
        past: &Range<u64>,
        wanted: u32,
        blocks: u64,
        lowest: LowestMarks,
    ) -> StoreError {
        let Range { start, end } = *past;
        let at = |tick| self.layout().tick_start_unix_ms(tick);
        let latest = self.latest_past(now);
        if start < self.floor {
            StoreError::BeforeFloor {
                start,
                start_unix_ms: at(start),
                floor: self.floor,
                floor_unix_ms: at(self.floor),
            }
        } else if end > latest {
            StoreError::NotPast {
                end,
                end_unix_ms: at(end),
                latest,
                latest_unix_ms: at(latest),
            }
        } else {
            StoreError::PastExhausted {
                wanted,
                blocks,
                start,
                start_unix_ms: at(start),
                lowest_mark_unix_ms: lowest.lowest().map(at),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::super::tests::{BLOCK, NOW, STORE_MS, record, state};
    use super::*;
    use crate::layout::Layout;
    use crate::lease::block::Epoch;
    use crate::lease::holder::Holder;

    #[test]
    fn a_grant_begins_at_the_mark_and_leaves_the_next_one() {
        let asked = Acquire::new(1, 100, STORE_MS).held_by(Holder::new("after", "2"));
        for (mark, length, expected) in [
            (0, 100, Some(1_000..1_100)),
            (1_000, 100, Some(1_000..1_100)),
            (1_001, 100, Some(1_001..1_101)),
            (1_550, 100, Some(1_550..1_600)),
            (1_000, u64::MAX, Some(1_000..1_600)),
            (1_599, 1, Some(1_599..1_600)),
            (1_600, 1, None),
        ] {
            let acquire = Acquire {
                length,
                ..asked.clone()
            };
            let granted = record().granted(NOW, STORE_MS, &state(7, mark), &acquire);
            let expected = expected.map(|ticks: Range<u64>| {
                let mut after = BlockState::new(BLOCK, Epoch::new(8), ticks.end);
                after.start = Some(ticks.start);
                after.granted_unix_ms = Some(STORE_MS);
                after.holder = Some(Holder::new("after", "2"));
                (Grant::new(BLOCK, Epoch::new(8), ticks), after)
            });
            assert_eq!(granted, expected, "{mark} {length}");
        }
        let fresh = record().granted(NOW, STORE_MS, &BlockState::never_granted(BLOCK), &asked);
        assert_eq!(fresh.unwrap().0.epoch, Epoch::FIRST);
    }

    #[test]
    fn the_past_is_granted_from_the_floor_and_the_mark_on() {
        let granted = |now, mark, past: Range<u64>| {
            let acquire = Acquire::past(1, past, STORE_MS);
            let granted = record().granted(now, STORE_MS, &state(7, mark), &acquire);
            granted.map(|(grant, after)| {
                assert_eq!(after.hwm_end, grant.ticks.end);
                assert_eq!((after.epoch, after.released), (Epoch::new(8), false));
                grant.ticks
            })
        };
        for mark in [0, 899, 900, 950] {
            assert_eq!(granted(NOW, mark, 950..1_000), Some(950..1_000));
        }
        assert_eq!(granted(NOW, 0, 900..901), Some(900..901));
        // The mark, the floor, the clock, and nothing at all.
        assert_eq!(granted(NOW, 951, 950..1_000), None);
        assert_eq!(granted(NOW, 0, 899..1_000), None);
        assert_eq!(granted(NOW, 0, 950..1_001), None);
        assert_eq!(granted(NOW, 0, 950..950), None);
        let ticks = Layout::RANDFLAKE.ticks();
        assert_eq!(granted(ticks + 5, 0, 950..ticks), Some(950..ticks));
        assert_eq!(granted(ticks + 5, 0, 950..ticks + 1), None);
    }

    #[test]
    fn no_mark_will_do_where_the_floor_has_reached_the_horizon() {
        let window = |floor| {
            let mut record = record();
            record.floor = floor;
            record.mark_window(NOW, &Acquire::new(1, 10, STORE_MS))
        };
        let last = MarkWindow {
            idle_until: 1_599,
            released_below: 1_600,
        };
        assert_eq!(window(1_599), Some(last));
        assert_eq!(window(1_600), None);
    }

    #[test]
    fn what_is_released_is_free_as_soon_as_the_horizon_has_room() {
        let free = |held, released| record().first_free(LowestMarks { held, released });
        assert_eq!(free(None, None), None);
        assert_eq!(free(Some(1_500), None), Some(1_500));
        assert_eq!(free(Some(1_500), Some(1_590)), Some(991));
        assert_eq!(free(Some(900), Some(1_590)), Some(900));
    }
}
