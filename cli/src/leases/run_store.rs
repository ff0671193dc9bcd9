//! A store as one run uses it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ringflake::lease::{
    Acquire, Block, BlockState, Epoch, Floor, Grant, Init, LeaseStore, Listing, Namespace, Renew,
    StoreError, StoreRecord, StoreReport,
};
use ringflake::{Clock, SystemClock};

use super::audit_log::AuditLog;
use super::lease_request::LeaseRequest;
use super::patience::Patience;

/// Asks the store behind it for what the run has use for, waits for others at the
/// start, and enters in the audit_log what is confirmed.
#[derive(Debug)]
pub(super) struct RunStore<S> {
    pub(super) store: S,
    pub(super) request: LeaseRequest,
    pub(super) audit_log: Arc<AuditLog>,
    /// How long to wait for the first grant; none afterwards, when the keeper
    /// has other things to do than to wait.
    pub(super) wait: Option<Duration>,
}

impl<S: LeaseStore> LeaseStore for RunStore<S> {
    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        let mut acquire = acquire.clone();
        acquire.length = self.request.length();
        let mut patience = Patience::new(self.wait.take().unwrap_or(Duration::ZERO));
        loop {
            match self.store.acquire(namespace, &acquire) {
                Ok(grants) => {
                    self.audit_log.granted(&grants);
                    return Ok(grants);
                }
                Err(error) if wait_out(&error, &mut patience) => {
                    acquire.now_unix_ms = SystemClock.unix_ms();
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        let mut renew = renew.clone();
        if let Some(start) = self.audit_log.start_of(renew.block, renew.known_end) {
            let useful = self.request.useful_end(namespace, start);
            renew.new_end = renew.new_end.min(useful).max(renew.known_end);
        }
        let end = self.store.renew(namespace, &renew)?;
        self.audit_log.renewed(renew.block, renew.known_end, end);
        Ok(end)
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

/// Waits for a moment if it may help; false if it can't.
fn wait_out(error: &StoreError, patience: &mut Patience) -> bool {
    /// How often to ask for what others may release at any time.
    const PERIOD: Duration = Duration::from_millis(200);
    match error {
        StoreError::Exhausted { .. } => {
            patience.wait(PERIOD, "all nodes that may be used are held by other runs")
        }
        // Not sooner than it says, so not at all if it says too much.
        StoreError::FloorAhead { retry_after, .. } if *retry_after <= patience.left() => {
            let pause = (*retry_after).max(Duration::from_millis(1));
            patience.wait(pause.min(PERIOD), FloorAhead(*retry_after))
        }
        _ => false,
    }
}

struct FloorAhead(Duration);

impl fmt::Display for FloorAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "leases begin in {:.0?}, above all that may have been issued before",
            self.0
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use clap::Parser;
    use ringflake::Layout;
    use ringflake::lease::{Fingerprint, History, MemoryStore};

    use super::*;
    use crate::args::LeaseArgs;
    use crate::leases::lease_request::DemandEstimate;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        leases: LeaseArgs,
    }

    /// A store of one block, as a run uses it that needs ten ticks of it.
    fn run_store(wait: Duration) -> (RunStore<MemoryStore>, Namespace) {
        let layout = Layout::RANDFLAKE;
        let space = Namespace::new("a", &layout, Fingerprint::PLAIN).unwrap();
        let space = space.with_block_bits(layout.node_bits()).unwrap();
        let mut store = MemoryStore::new(Arc::new(SystemClock));
        let init = Init::new(History::New, SystemClock.unix_ms());
        store.init(&space, &init).unwrap();
        let demand = DemandEstimate {
            ids: 10 * layout.sequences() * layout.nodes(),
            span: Duration::MAX,
        };
        let run_store = RunStore {
            store,
            request: LeaseRequest::shared(&space, &Line::parse_from(["x"]).leases, demand),
            audit_log: Arc::new(AuditLog::new(space.clone())),
            wait: Some(wait),
        };
        (run_store, space)
    }

    fn ask() -> Acquire {
        Acquire::new(1, 600, SystemClock.unix_ms())
    }

    #[test]
    fn no_more_is_asked_than_is_useful_and_the_ledger_has_what_is_confirmed() {
        let (mut store, space) = run_store(Duration::ZERO);
        let mut grant = store.acquire(&space, &ask()).unwrap().remove(0);
        assert_eq!(grant.ticks.end - grant.ticks.start, 10 + 2 + 1);
        let start = grant.ticks.start;
        let is_ours =
            |store: &RunStore<MemoryStore>, tick| store.audit_log.extent(0, tick).is_some();
        assert!(is_ours(&store, grant.ticks.end - 1) && !is_ours(&store, grant.ticks.end));

        for _ in 0..2 {
            let renew = Renew::new(&grant, start + 600, SystemClock.unix_ms());
            let end = store.renew(&space, &renew).unwrap();
            // A slow machine may see some ticks go by.
            assert!((71..90).contains(&(end - start)), "{}", end - start);
            assert!(is_ours(&store, end - 1) && !is_ours(&store, end));
            grant.ticks.end = end;
        }
    }

    #[test]
    fn the_first_grant_is_waited_for_and_no_other() {
        let wait = Duration::from_millis(300);
        let (mut store, space) = run_store(wait);
        let mut other = store.store.clone();
        let other = other.acquire(&space, &ask()).unwrap().remove(0);
        for waits in [true, false] {
            let started = Instant::now();
            match store.acquire(&space, &ask()) {
                Err(StoreError::Exhausted { .. }) => {}
                answer => panic!("{answer:?}"),
            }
            assert_eq!(started.elapsed() >= wait, waits);
        }
        store.release(&space, other.block, other.epoch).unwrap();
        store.acquire(&space, &ask()).unwrap();
    }
}
