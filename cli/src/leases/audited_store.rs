//! A store whose confirmations are noted down.

use std::sync::Arc;
use std::time::Duration;

use ringflake::lease::{
    Acquire, Block, BlockState, Epoch, Floor, Grant, Init, LeaseStore, Listing, Namespace, Renew,
    StoreError, StoreRecord, StoreReport,
};

use super::audit_log::AuditLog;

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

    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        self.store.release(namespace, block, epoch)
    }

    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        self.store.init(namespace, init)
    }

    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        self.store.init_if_new(namespace, init)
    }

    fn write_test(&mut self, namespace: &Namespace, now_unix_ms: u64) -> Result<(), StoreError> {
        self.store.write_test(namespace, now_unix_ms)
    }

    fn rest(&mut self, at_least: Duration) {
        self.store.rest(at_least);
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        self.store.list(namespace)
    }

    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        self.store.raise_floor(namespace, floor, now_unix_ms)
    }

    fn repair(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        self.store.repair(namespace, block, now_unix_ms)
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        self.store.check(namespace, now_unix_ms)
    }
}

#[cfg(test)]
mod tests {
    use ringflake::lease::{Fingerprint, History, MemoryStore};
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
    }
}
