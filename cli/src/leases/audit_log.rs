//! The store's confirmations of this run.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use ringflake::lease::{Block, Grant, Namespace};

/// Every rectangle that the store has confirmed, entered before the generator
/// hears of it. So an ID outside of all of them is one that nobody granted.
#[derive(Debug)]
pub(crate) struct AuditLog {
    namespace: Namespace,
    /// By block, the intervals in the order in which they were granted; they
    /// are disjoint.
    granted: RwLock<HashMap<Block, Vec<Range<u64>>>>,
}

/// Nodes and ticks that are this run's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    nodes: Range<u64>,
    ticks: Range<u64>,
}

impl Extent {
    pub(crate) fn contains(&self, node: u64, tick: u64) -> bool {
        self.nodes.contains(&node) && self.ticks.contains(&tick)
    }
}

impl AuditLog {
    pub(crate) fn new(namespace: Namespace) -> Self {
        Self {
            namespace,
            granted: RwLock::default(),
        }
    }

    /// Enters grants.
    pub(crate) fn granted(&self, grants: &[Grant]) {
        let mut granted = self.granted.write().unwrap_or_else(PoisonError::into_inner);
        for grant in grants {
            let intervals = granted.entry(grant.block).or_default();
            intervals.push(grant.ticks.clone());
        }
    }

    /// Enters that the grant of `block` which ended at `known_end` ends at `end`.
    pub(crate) fn renewed(&self, block: Block, known_end: u64, end: u64) {
        let mut granted = self.granted.write().unwrap_or_else(PoisonError::into_inner);
        let intervals = granted.entry(block).or_default();
        if let Some(ticks) = intervals.iter_mut().find(|ticks| ticks.end == known_end) {
            ticks.end = end;
        }
    }

    /// The extent that a node and a tick lie in, as it is now; none if they are
    /// not this run's.
    pub(crate) fn extent(&self, node: u64, tick: u64) -> Option<Extent> {
        let granted = self.granted.read().unwrap_or_else(PoisonError::into_inner);
        let block = self.namespace.block_of(node);
        let intervals = granted.get(&block)?;
        let ticks = intervals.iter().find(|ticks| ticks.contains(&tick))?;
        Some(Extent {
            nodes: self.namespace.nodes_of(block),
            ticks: ticks.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use ringflake::Layout;
    use ringflake::lease::{Epoch, Fingerprint};

    use super::*;

    fn audit_log() -> AuditLog {
        AuditLog::new(Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap())
    }

    fn grant(block: u64, ticks: Range<u64>) -> Grant {
        Grant::new(Block::new(block), Epoch::FIRST, ticks)
    }

    #[test]
    fn a_renewal_moves_the_end_of_its_grant_alone() {
        let audit_log = audit_log();
        // The block was lost and granted again.
        audit_log.granted(&[grant(0, 10..20)]);
        audit_log.granted(&[grant(0, 50..60)]);
        audit_log.renewed(Block::new(0), 60, 70);
        for (tick, ours) in [
            (19, true),
            (20, false),
            (49, false),
            (69, true),
            (70, false),
        ] {
            assert_eq!(audit_log.extent(0, tick).is_some(), ours, "{tick}");
        }
    }
}
