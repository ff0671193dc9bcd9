//! The store's confirmations, block by block.

use std::collections::BTreeMap;

use crate::lease::{Block, Confirmed, Grant};

/// The last confirmation for each block.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence(BTreeMap<Block, Confirmed>);

impl Evidence {
    /// Four times the maximum of a plan. Beyond it, the confirmations that end first
    /// are dropped: they are the first to lie in the past, where nothing is granted any
    /// more.
    const MAX: usize = 1024;

    pub(super) fn note(&mut self, grant: &Grant) {
        let confirmed = grant.confirmed();
        let known = self.0.entry(grant.block).or_insert(confirmed);
        if known.end <= confirmed.end {
            *known = confirmed;
        }
        if self.0.len() > Self::MAX
            && let Some(first) = self.0.values().min_by_key(|known| known.end).copied()
        {
            self.0.remove(&first.block);
        }
    }

    pub(super) fn all(&self) -> Vec<Confirmed> {
        self.0.values().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Epoch;

    fn grant(block: u64, epoch: u64, end: u64) -> Grant {
        Grant::new(Block::new(block), Epoch::new(epoch), 0..end)
    }

    #[test]
    fn the_latest_end_of_a_block_counts() {
        let mut evidence = Evidence::default();
        for (epoch, end) in [(1, 100), (1, 150), (2, 150), (2, 120)] {
            evidence.note(&grant(7, epoch, end));
        }
        let latest = Confirmed::new(Block::new(7), Epoch::new(2), 150);
        assert_eq!(evidence.all(), [latest]);
    }

    #[test]
    fn the_confirmation_that_ends_first_makes_room() {
        let mut evidence = Evidence::default();
        for block in 0..=Evidence::MAX as u64 {
            evidence.note(&grant(block, 1, 5000 - block));
        }
        let all = evidence.all();
        assert_eq!(all.len(), Evidence::MAX);
        assert_eq!(
            all.last().unwrap().block,
            Block::new(Evidence::MAX as u64 - 1)
        );
    }
}
