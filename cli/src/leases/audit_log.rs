//! The store's confirmations of this run.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use ringflake::lease::{Acquire, Block, Grant, LeaseStore, Namespace, Renew, StoreError};

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

/// Enters in the log what the store behind it confirms, before anybody else sees it. It has no
/// key: another generator's store could not take over its work.
#[derive(Debug)]
pub(super) struct AuditedStore<S> {
    pub(super) store: S,
    pub(super) audit_log: Arc<AuditLog>,
}

impl<S: LeaseStore> LeaseStore for AuditedStore<S> {
    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        let grants = self.store.acquire(namespace, acquire)?;
        self.audit_log.granted(&grants);
        Ok(grants)
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        let end = self.store.renew(namespace, renew)?;
        self.audit_log.renewed(renew.block, renew.known_end, end);
        Ok(end)
    }

    fn renew_all(&mut self, renewals: &[(&Namespace, &Renew)]) -> Vec<Result<u64, StoreError>> {
        let ends = self.store.renew_all(renewals);
        for ((_, renew), end) in renewals.iter().zip(&ends) {
            if let Ok(end) = end {
                self.audit_log.renewed(renew.block, renew.known_end, *end);
            }
        }
        ends
    }

    ringflake::forward_store! { |self| self.store =>
        release rest init list raise_floor check write_test
    }
}

#[cfg(test)]
mod tests {
    use ringflake::lease::{Epoch, Fingerprint, History, Init, MemoryStore};
    use ringflake::{Clock, Layout, SystemClock};

    use super::*;

    #[test]
    fn the_log_has_what_is_confirmed_and_nothing_else() {
        let layout = Layout::RANDFLAKE;
        let space = Namespace::new("a", &layout, Fingerprint::PLAIN).unwrap();
        let space = space.with_block_bits(layout.node_bits()).unwrap();
        let now_ms = || SystemClock.unix_ms();
        let mut store = AuditedStore {
            store: MemoryStore::new(Arc::new(SystemClock)),
            audit_log: Arc::new(AuditLog::new(space.clone())),
        };
        store
            .init(&space, &Init::new(History::New, now_ms()))
            .unwrap();
        let acquire = Acquire::new(1, 10, now_ms());
        let mut grant = store.acquire(&space, &acquire).unwrap().remove(0);
        let is_ours =
            |store: &AuditedStore<MemoryStore>, tick| store.audit_log.extent(0, tick).is_some();
        assert!(is_ours(&store, grant.ticks.start));
        for (more, at_once) in [(0, false), (60, false), (70, true)] {
            let renew = Renew::new(&grant, grant.ticks.end + more, now_ms());
            grant.ticks.end = match at_once {
                true => store.renew_all(&[(&space, &renew)]).remove(0).unwrap(),
                false => store.renew(&space, &renew).unwrap(),
            };
            let end = grant.ticks.end;
            assert!(is_ours(&store, end - 1) && !is_ours(&store, end));
        }
        // The one block is held, and nothing is entered for those who are refused.
        store.acquire(&space, &acquire).unwrap_err();
        assert!(!is_ours(&store, grant.ticks.end));
        // A block that was lost and granted again has two intervals: one is renewed.
        let (end, later) = (grant.ticks.end, grant.ticks.end + 50..grant.ticks.end + 60);
        let again = Grant::new(grant.block, Epoch::new(2), later.clone());
        store.audit_log.granted(&[again]);
        store
            .audit_log
            .renewed(grant.block, later.end, later.end + 10);
        assert!(!is_ours(&store, end) && !is_ours(&store, later.start - 1));
        assert!(is_ours(&store, later.end + 9) && !is_ours(&store, later.end + 10));
    }
}
