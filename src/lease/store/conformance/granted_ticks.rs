//! The oracle for S1.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::lease::{Block, Grant};

/// All intervals that a store ever gave, by block: an oracle for S1.
#[derive(Clone, Debug, Default)]
pub struct GrantedTicks(BTreeMap<Block, Vec<Range<u64>>>);

impl GrantedTicks {
    /// Records a grant.
    ///
    /// # Panics
    /// When the grant overlaps with one before.
    #[track_caller]
    pub fn add(&mut self, grant: &Grant) {
        self.add_ticks(grant.block, grant.ticks.clone());
    }

    /// Records the end to which a renewal moved a grant.
    ///
    /// # Panics
    /// When the ticks that a renewal adds overlap with a grant before.
    #[track_caller]
    pub fn extend(&mut self, grant: &Grant, end: u64) {
        assert!(end >= grant.ticks.end, "{grant} was cut to {end}");
        if end > grant.ticks.end {
            self.add_ticks(grant.block, grant.ticks.end..end);
        }
    }

    #[track_caller]
    fn add_ticks(&mut self, block: Block, ticks: Range<u64>) {
        assert!(!ticks.is_empty(), "block {block} was granted {ticks:?}");
        let before = self.0.entry(block).or_default();
        for other in before.iter() {
            let apart = ticks.end <= other.start || other.end <= ticks.start;
            assert!(apart, "block {block}: {ticks:?} overlaps with {other:?}");
        }
        before.push(ticks);
    }

    /// How many intervals there are.
    pub fn intervals(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// The end of the last interval of a block.
    pub fn mark(&self, block: Block) -> u64 {
        let ends = self.0.get(&block).into_iter().flatten().map(|t| t.end);
        ends.max().unwrap_or(0)
    }
}
