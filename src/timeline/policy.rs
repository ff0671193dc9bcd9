//! How claims follow the clock.

use crate::layout::Layout;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClaimPolicy {
    /// How many ticks after the clock's may be claimed from.
    pub(crate) borrow_limit: u64,
    /// Whether claims skip forward to the clock, up to the end of a grant.
    pub(crate) follows_clock: bool,
    /// Whether the rest of a grant is used up after the clock has passed its end.
    pub(crate) serves_the_past: bool,
}

/// A reading of the clock, in ticks.
#[derive(Clone, Copy)]
pub(super) struct Now {
    pub(super) unix_ms: u64,
    /// The clock's tick; 0 before the epoch.
    pub(super) tick: u64,
    /// The first tick that may not be claimed.
    pub(super) limit: u64,
}

impl ClaimPolicy {
    /// The reading `unix_ms` in ticks of `layout`, and the limit that follows from it.
    #[inline]
    pub(super) fn at(self, unix_ms: u64, layout: &Layout) -> Now {
        match layout.tick_at(unix_ms) {
            Some(tick) => Now {
                unix_ms,
                tick,
                limit: tick.saturating_add(self.borrow_limit).saturating_add(1),
            },
            None => self.before_the_epoch(unix_ms, layout),
        }
    }

    /// A clock that is before the epoch borrows from tick 0 on, as far as the
    /// limit still reaches.
    #[cold]
    fn before_the_epoch(self, unix_ms: u64, layout: &Layout) -> Now {
        let missing = (layout.epoch_unix_ms() - unix_ms).div_ceil(layout.tick_ms());
        Now {
            unix_ms,
            tick: 0,
            limit: (self.borrow_limit.saturating_add(1)).saturating_sub(missing),
        }
    }
}
