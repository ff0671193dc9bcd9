//! A store until it has given its first lease.
//!
//! ```text
//! asked --not initialised, and a history was given--> initialised by one of all --> asked
//!   |----leases begin within a moment--> waited ---------------------------------> asked
//!   |----granted--> done: from now on only the store is asked
//!   `----anything else--> refused
//! ```
//! A namespace is initialised at most once, and never after its first lease: one
//! that disappears while it is in use was lost.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::lease::{
    Acquire, Block, Epoch, Floor, Grant, History, Init, LeaseStore, Listing, Namespace, Renew,
    StoreError, StoreRecord, StoreReport,
};

/// For how long leases that are about to begin are waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A store whose first lease may ask for more than one call.
#[derive(Debug)]
pub(super) struct FirstLease {
    store: Box<dyn LeaseStore>,
    /// What a namespace that is not there is initialised with.
    history: Option<History>,
    clock: Arc<dyn Clock>,
    granted: bool,
}

impl FirstLease {
    pub(super) fn new(
        store: Box<dyn LeaseStore>,
        history: Option<History>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            store,
            history,
            clock,
            granted: false,
        }
    }

    fn init(&mut self, namespace: &Namespace, history: History) -> Result<(), StoreError> {
        let init = Init::new(history, self.clock.unix_ms());
        match self.store.init_if_new(namespace, &init) {
            // Another process was faster.
            Ok(_) | Err(StoreError::AlreadyInitialised { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn first(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        let mut acquire = acquire.clone();
        let started = Instant::now();
        loop {
            match self.store.acquire(namespace, &acquire) {
                Err(StoreError::NotInitialised { namespace: name }) => {
                    let missing = StoreError::NotInitialised { namespace: name };
                    let history = self.history.take().ok_or(missing)?;
                    self.init(namespace, history)?;
                }
                Err(StoreError::FloorAhead { retry_after, .. })
                    if started.elapsed() + retry_after <= PATIENCE =>
                {
                    thread::sleep(retry_after.max(Duration::from_millis(1)));
                }
                answer => return answer,
            }
            acquire.now_unix_ms = self.clock.unix_ms();
        }
    }
}

impl LeaseStore for FirstLease {
    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        if self.granted {
            return self.store.acquire(namespace, acquire);
        }
        let grants = self.first(namespace, acquire)?;
        self.granted = true;
        Ok(grants)
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

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        self.store.renew(namespace, renew)
    }

    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        self.store.release(namespace, block, epoch)
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        self.store.list(namespace)
    }

    fn bump_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        self.store.bump_floor(namespace, floor, now_unix_ms)
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        self.store.check(namespace, now_unix_ms)
    }
}
