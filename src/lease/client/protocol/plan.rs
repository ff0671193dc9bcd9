//! The plan for the leases of a process.

use std::time::Duration;

use crate::describe::describe;
use crate::layout::span;
use crate::lease::{Holder, Namespace, StoreLimits};

/// The plan for the leases of a process.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ringflake::lease::LeasePlan;
///
/// // 24 blocks of 32 nodes are 100 million IDs a second with `Layout::RANDFLAKE`.
/// let plan = LeasePlan::new(24).with_lease_duration(Duration::from_secs(300));
/// assert_eq!(plan.widen_to, 192);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeasePlan {
    /// How many blocks to hold at all times, from 1 to
    /// [`MAX_BLOCKS`](Self::MAX_BLOCKS) and to the blocks of the namespace.
    pub blocks: u32,
    /// How many blocks to hold at most while much is borrowed, from `blocks` to
    /// [`MAX_BLOCKS`](Self::MAX_BLOCKS). What exceeds the namespace counts as
    /// all of it.
    pub widen_to: u32,
    /// How far the leases reach ahead of the clock, and so how long the store
    /// may be away, less a top-up period: each block is renewed after a tenth to
    /// three twentieths of the lease duration. From the longer of one second and ten
    /// ticks, to [`StoreLimits::MAX`]; where the store's horizon is shorter, that
    /// counts.
    pub lease_duration: Duration,
    /// The process, for the store's listing.
    pub holder: Option<Holder>,
}

impl LeasePlan {
    /// The maximum of blocks in a plan.
    pub const MAX_BLOCKS: u32 = 256;

    /// So many blocks at all times; eight times as many, and no more than
    /// [`MAX_BLOCKS`](Self::MAX_BLOCKS), while much is borrowed. A lease duration of ten
    /// minutes, and no holder.
    pub fn new(blocks: u32) -> Self {
        Self {
            blocks,
            widen_to: blocks.saturating_mul(8).min(Self::MAX_BLOCKS).max(blocks),
            lease_duration: Duration::from_secs(600),
            holder: None,
        }
    }

    /// With another [`widen_to`](Self::widen_to). The same number as
    /// [`blocks`](Self::blocks) means: never widen.
    #[must_use]
    pub fn with_widen_to(mut self, blocks: u32) -> Self {
        self.widen_to = blocks;
        self
    }

    /// With another [`lease_duration`](Self::lease_duration).
    #[must_use]
    pub fn with_lease_duration(mut self, lease_duration: Duration) -> Self {
        self.lease_duration = lease_duration;
        self
    }

    /// Checks the numbers against each other and against the namespace.
    ///
    /// # Errors
    /// [`PlanError`] with the number and its range.
    pub fn validate(&self, namespace: &Namespace) -> Result<(), PlanError> {
        let there_are = u32::try_from(namespace.blocks()).unwrap_or(u32::MAX);
        let max = there_are.min(Self::MAX_BLOCKS);
        if !(1..=max).contains(&self.blocks) {
            return Err(PlanError::Blocks {
                value: self.blocks,
                max,
            });
        }
        if !(self.blocks..=Self::MAX_BLOCKS).contains(&self.widen_to) {
            return Err(PlanError::WidenTo {
                value: self.widen_to,
                min: self.blocks,
                max: Self::MAX_BLOCKS,
            });
        }
        let ten_ticks = Duration::from_millis(namespace.layout().tick_ms().saturating_mul(10));
        let min = ten_ticks.max(Duration::from_secs(1));
        if !(min..=StoreLimits::MAX).contains(&self.lease_duration) {
            return Err(PlanError::LeaseDuration {
                value: self.lease_duration,
                min,
                max: StoreLimits::MAX,
            });
        }
        Ok(())
    }
}

impl Default for LeasePlan {
    /// One block, up to eight while much is borrowed.
    fn default() -> Self {
        Self::new(1)
    }
}

/// Why a [`LeasePlan`] can't be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// Too few blocks, or too many.
    Blocks {
        /// The number asked for.
        value: u32,
        /// The maximum.
        max: u32,
    },
    /// Widening would end below the blocks held at all times, or too high.
    WidenTo {
        /// The number asked for.
        value: u32,
        /// The minimum.
        min: u32,
        /// The maximum.
        max: u32,
    },
    /// The lease duration is too short or too long.
    LeaseDuration {
        /// The lease duration asked for.
        value: Duration,
        /// The minimum.
        min: Duration,
        /// The maximum.
        max: Duration,
    },
}

describe! {
    PlanError;

    Self::Blocks { value, max } => "blocks must be 1 to {max}, got {value}";
    Self::WidenTo { value, min, max } =>
        "the maximum number of blocks must be {min} to {max}, got {value}";
    Self::LeaseDuration { value, min, max } => (
        "the lease duration must be {} to {}, got {value:?}", span(*min), span(*max));
}

impl std::error::Error for PlanError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::lease::Fingerprint;

    fn space(block_bits: u32) -> Namespace {
        Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN)
            .and_then(|space| space.with_block_bits(block_bits))
            .unwrap()
    }

    #[test]
    fn blocks_are_bounded_by_the_plan_and_by_the_namespace() {
        for (block_bits, max) in [(5, 256), (15, 4)] {
            let space = space(block_bits);
            for (blocks, good) in [(0, false), (1, true), (max, true), (max + 1, false)] {
                let plan = LeasePlan::new(blocks);
                let expected = PlanError::Blocks { value: blocks, max };
                assert_eq!(plan.validate(&space), good.then_some(()).ok_or(expected));
            }
        }
    }

    #[test]
    fn a_plan_widens_to_no_fewer_blocks_than_it_holds() {
        let space = space(5);
        for (value, good) in [(3, false), (4, true), (256, true), (257, false)] {
            let plan = LeasePlan::new(4).with_widen_to(value);
            let (min, max) = (4, 256);
            let expected = PlanError::WidenTo { value, min, max };
            assert_eq!(plan.validate(&space), good.then_some(()).ok_or(expected));
        }
    }

    #[test]
    fn the_lease_duration_spans_ten_ticks_and_a_second() {
        let ms = Duration::from_millis;
        let twitter = Namespace::new("a", &Layout::TWITTER, Fingerprint::PLAIN).unwrap();
        for (space, min) in [(space(5), ms(10_000)), (twitter, ms(1000))] {
            let max = StoreLimits::MAX;
            for (lease_duration, good) in [
                (min - ms(1), false),
                (min, true),
                (max, true),
                (max + ms(1), false),
            ] {
                let plan = LeasePlan::default().with_lease_duration(lease_duration);
                let expected = PlanError::LeaseDuration {
                    value: lease_duration,
                    min,
                    max,
                };
                assert_eq!(plan.validate(&space), good.then_some(()).ok_or(expected));
            }
        }
    }
}
