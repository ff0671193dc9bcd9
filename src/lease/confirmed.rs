//! A store's confirmations to a process, as evidence of what the store must
//! know.

use std::fmt;

use crate::lease::block::{Block, BlockState, Epoch};

/// A positive reply about a block: the store granted it with this epoch, up to
/// this end.
///
/// A store that keeps its promises (S1, S6) knows at least as much for ever: epochs
/// and marks never fall. One that knows less has lost part of its history, and would
/// grant the same ticks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Confirmed {
    /// The block.
    pub block: Block,
    /// The epoch of the grant.
    pub epoch: Epoch,
    /// Its end as the last reply had it, in ticks since the layout's epoch.
    pub end: u64,
}

impl Confirmed {
    /// Of a grant of `block` that reaches up to `end`.
    pub const fn new(block: Block, epoch: Epoch, end: u64) -> Self {
        Self { block, epoch, end }
    }

    /// Whether a store that knows this much of the block has forgotten something.
    pub(super) fn is_forgotten(&self, known: Option<&BlockState>) -> bool {
        known.is_none_or(|known| known.epoch < self.epoch || known.hwm_end < self.end)
    }
}

impl fmt::Display for Confirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, epoch, end } = self;
        write!(f, "block {block} epoch {epoch} up to tick {end}")
    }
}
