//! A store until it has given its first lease.
//!
//! ```text
//! asked --not initialised, and a history was given--> initialised by one of all --> asked
//!   |----not now, and there is patience left--> waited --------------------------> asked
//!   |----granted--> done: from now on only the store is asked
//!   `----anything else--> refused, and asked anew by who does not wait here
//! ```
//! A namespace is initialised at most once, never after its first lease, and never once
//! the store has shown that it is there: one that disappears was lost. So the history
//! that was given is forgotten with the first answer that may come from a record, and
//! with an initialisation whose outcome is unknown.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::lease::{
    Acquire, Block, BlockState, Epoch, Floor, Grant, History, Init, LeaseStore, Listing, Namespace,
    Renew, StoreError, StoreRecord, StoreReport,
};

/// For how long the first lease is waited for unless it is said.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How long until the store is asked again where it does not say: doubled up to the
/// second.
const PAUSE: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(2)];

/// A store whose first lease may ask for more than one call.
#[derive(Debug)]
pub(super) struct FirstLease {
    store: Box<dyn LeaseStore>,
    /// What a namespace that is not there is initialised with.
    history: Option<History>,
    patience: Duration,
    clock: Arc<dyn Clock>,
    granted: bool,
}

/// Whether a first lease that was refused like this may be had later. Not where it may
/// have been granted: each further attempt could cost a block more.
pub(super) fn may_come(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Unavailable { .. }
            | StoreError::Exhausted { .. }
            | StoreError::FloorAhead { .. }
            | StoreError::HistoryLost { .. }
    )
}

/// Whether the store can have said this without a look at the record.
fn says_nothing_of_the_record(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Unavailable { .. } | StoreError::NotDurable { .. }
    )
}

/// For how long to wait before the store is asked again after this refusal; never where
/// that can't help, nor longer than `left`.
fn again_after(error: &StoreError, pause: Duration, left: Duration) -> Option<Duration> {
    match error {
        // Known to the tick.
        StoreError::FloorAhead { retry_after, .. } => {
            let wait = (*retry_after).max(Duration::from_millis(1));
            (wait <= left).then_some(wait)
        }
        // Also where all is held: others may let go before they must.
        error if may_come(error) => (!left.is_zero()).then_some(pause.min(left)),
        _ => None,
    }
}

impl FirstLease {
    pub(super) fn new(
        store: Box<dyn LeaseStore>,
        history: Option<History>,
        patience: Duration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            store,
            history,
            patience,
            clock,
            granted: false,
        }
    }

    fn init(&mut self, namespace: &Namespace, history: History) -> Result<(), StoreError> {
        let init = Init::new(history, self.clock.unix_ms());
        let outcome = match self.store.init_if_new(namespace, &init) {
            // Another process was faster.
            Ok(_) | Err(StoreError::AlreadyInitialised { .. }) => Ok(()),
            Err(error) => Err(error),
        };
        if matches!(outcome, Ok(()) | Err(StoreError::Ambiguous { .. })) {
            self.history = None;
        }
        outcome
    }

    /// Asks once, and once more where the namespace is made in between.
    fn ask(
        &mut self,
        namespace: &Namespace,
        acquire: &mut Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        let answer = self.store.acquire(namespace, acquire);
        if let (Err(StoreError::NotInitialised { .. }), Some(history)) = (&answer, self.history) {
            self.init(namespace, history)?;
            acquire.now_unix_ms = self.clock.unix_ms();
            return self.store.acquire(namespace, acquire);
        }
        if !matches!(&answer, Err(error) if says_nothing_of_the_record(error)) {
            self.history = None;
        }
        answer
    }

    fn first(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        let mut acquire = acquire.clone();
        let started = Instant::now();
        let [mut pause, longest] = PAUSE;
        loop {
            let error = match self.ask(namespace, &mut acquire) {
                Err(error) => error,
                granted => return granted,
            };
            let left = self.patience.saturating_sub(started.elapsed());
            let Some(wait) = again_after(&error, pause, left) else {
                return Err(error);
            };
            thread::sleep(wait);
            pause = longest.min(pause * 2);
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
