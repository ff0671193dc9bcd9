//! Grants: a store's positive replies.

use std::fmt;
use std::ops::Range;

use crate::lease::block::{Block, Epoch};
use crate::lease::claim::Claim;
use crate::lease::confirmed::Confirmed;
use crate::lease::namespace::Namespace;
use crate::lease::rectangle::{Lease, LeaseError};

/// A block for an interval of ticks: a store's positive reply.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Grant {
    /// The block.
    pub block: Block,
    /// Which of the block's grants this is. A renewal must name it.
    pub epoch: Epoch,
    /// The ticks since the layout's epoch, half-open. A renewal must name the
    /// end, and moves it.
    pub ticks: Range<u64>,
    claim: Claim,
}

impl Grant {
    /// The grant of `block` for `ticks`.
    pub fn new(block: Block, epoch: Epoch, ticks: Range<u64>) -> Self {
        Self {
            block,
            epoch,
            ticks,
            claim: Claim::default(),
        }
    }

    /// The rectangle that the holder owns by it. All leases of one grant and of
    /// its clones count as one, which serves one generator at a time.
    ///
    /// # Errors
    /// When the block or the ticks are not of this namespace. A grant that a
    /// store gave for the namespace never fails.
    pub fn to_lease(&self, namespace: &Namespace) -> Result<Lease, LeaseError> {
        Lease::new(
            *namespace.layout(),
            namespace.nodes_of(self.block),
            self.ticks.clone(),
        )
        .map(|lease| lease.with_claim(self.claim.clone()))
    }

    /// The confirmation that it carries.
    pub(super) fn confirmed(&self) -> Confirmed {
        Confirmed::new(self.block, self.epoch, self.ticks.end)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "block {} epoch {} ticks {:?}",
            self.block, self.epoch, self.ticks
        )
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Grant({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::lease::Fingerprint;

    #[test]
    fn a_grant_is_a_rectangle() {
        let space = Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        let lease = Grant::new(Block::new(3), Epoch::FIRST, 10..20)
            .to_lease(&space)
            .unwrap();
        assert_eq!((lease.nodes(), lease.ticks()), (96..128, 10..20));

        // The second is where the first node's number wraps around to 0.
        for beyond in [space.blocks(), 1 << 59, u64::MAX] {
            let grant = Grant::new(Block::new(beyond), Epoch::FIRST, 10..20);
            assert!(grant.to_lease(&space).is_err(), "{beyond}");
        }
    }
}
