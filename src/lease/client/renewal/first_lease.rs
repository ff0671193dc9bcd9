//! The rules that apply until a store has given its first lease.
//!
//! ```text
//! asked --not initialised, and a history was given--> initialised by one of all --> asked
//!   |----not now, and there is patience left--> held back ----------------------> asked
//!   |----granted--> done: from now on only the store is asked
//!   `----anything else--> refused; a builder that does not wait asks anew
//! ```
//! A namespace is not initialised after its first lease, nor once the store has shown its
//! record: a record that disappears was lost. So the given history is dropped with the first
//! answer that may come from a record.
//!
//! After an initialisation whose outcome is unknown, a missing record may never have been made,
//! or others may have had leases from it before it was lost. It is then initialised with
//! [`History::Unknown`], which is right for both.
//!
//! Nothing here sleeps: other clients wait for the same worker.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::describe::opaque_debug;
use crate::lease::{Acquire, Fingerprint, Grant, History, Init, LeaseStore, Namespace, StoreError};
use crate::unwind::catching;

/// The pause before the store is asked again if it gives no advice: doubled from
/// the first value up to the second.
const PAUSE: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(2)];

/// Called with each refusal after which the first lease is asked for again.
#[derive(Clone)]
pub(crate) struct WaitHook(Arc<dyn Fn(&StoreError) + Send + Sync>);

impl WaitHook {
    pub(crate) fn new(hook: impl Fn(&StoreError) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }

    pub(crate) fn call(&self, error: &StoreError) {
        catching(|| self.0(error));
    }
}

opaque_debug!(WaitHook);

/// How the first lease is asked for, which may take more than one call.
#[derive(Debug)]
pub(crate) struct FirstLease {
    /// The history with which a missing namespace is initialised.
    history: Option<History>,
    /// [`Init::same_secret`] of that.
    pub(crate) same_secret: Vec<Fingerprint>,
    /// How long to wait for it, and since when.
    patience: Duration,
    started: Instant,
    pause: Duration,
    granted: bool,
    /// How far it reaches ahead of the clock, where that is less than the leases after it.
    pub(crate) duration: Option<Duration>,
    /// Called before each wait.
    pub(crate) hook: Option<WaitHook>,
}

/// Whether a first lease may be granted later after this refusal. Not if it may have
/// been granted already: each further attempt could cost one more block.
pub(crate) fn may_succeed_later(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Unavailable { .. }
            | StoreError::Exhausted { .. }
            | StoreError::FloorAhead { .. }
            | StoreError::HistoryLost { .. }
    )
}

/// Whether the store can have given this error without reading the record.
fn says_nothing_of_the_record(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Unavailable { .. } | StoreError::Denied { .. } | StoreError::NotDurable { .. }
    )
}

/// The pause before the store is asked again after this refusal, never longer than
/// `left`; none if asking again can't help in that time.
fn again_after(error: &StoreError, pause: Duration, left: Duration) -> Option<Duration> {
    match error {
        // Known to the tick.
        StoreError::FloorAhead { retry_after, .. } => {
            let wait = (*retry_after).max(Duration::from_millis(1));
            (wait <= left).then_some(wait)
        }
        // Also if all blocks are held: other processes may release theirs
        // early.
        error if may_succeed_later(error) => (!left.is_zero()).then_some(pause.min(left)),
        _ => None,
    }
}

impl FirstLease {
    /// The default time to wait for it.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

    /// Waits from now on, for no longer than `patience`.
    pub(crate) fn new(history: Option<History>, patience: Duration) -> Self {
        Self {
            history,
            same_secret: Vec::new(),
            patience,
            started: Instant::now(),
            pause: PAUSE[0],
            granted: false,
            duration: None,
            hook: None,
        }
    }

    /// The request, for ticks that reach as far as the first lease shall. The present
    /// tick is partly over, and does not count.
    fn shortened(&self, namespace: &Namespace, acquire: &Acquire) -> Acquire {
        let mut acquire = acquire.clone();
        if let Some(duration) = self.duration {
            let tick_ms = u128::from(namespace.layout().tick_ms());
            let ticks = duration.as_millis().div_ceil(tick_ms).saturating_add(1);
            let ticks = u64::try_from(ticks).unwrap_or(u64::MAX);
            acquire.length = acquire.length.min(ticks);
        }
        acquire
    }

    /// Asks once, and once more if the namespace is made in between. Later leases are
    /// asked for unchanged. `unix_ms` is the sink's clock.
    pub(super) fn acquire(
        &mut self,
        store: &mut dyn LeaseStore,
        namespace: &Namespace,
        acquire: &Acquire,
        unix_ms: impl Fn() -> u64,
    ) -> Result<Vec<Grant>, StoreError> {
        if self.granted {
            return store.acquire(namespace, acquire);
        }
        let mut acquire = self.shortened(namespace, acquire);
        let answer = match (store.acquire(namespace, &acquire), self.history) {
            (Err(StoreError::NotInitialised { .. }), Some(history)) => {
                self.init(store, namespace, history, unix_ms())?;
                acquire.now_unix_ms = unix_ms();
                store.acquire(namespace, &acquire)
            }
            (answer, _) => {
                if !matches!(&answer, Err(error) if says_nothing_of_the_record(error)) {
                    self.history = None;
                }
                answer
            }
        };
        self.granted = answer.is_ok();
        answer
    }

    fn init(
        &mut self,
        store: &mut dyn LeaseStore,
        namespace: &Namespace,
        history: History,
        now_unix_ms: u64,
    ) -> Result<(), StoreError> {
        let mut init = Init::new(history, now_unix_ms);
        init.same_secret.clone_from(&self.same_secret);
        // Also if the store panics.
        self.history = Some(History::Unknown);
        match store.init_if_new(namespace, &init) {
            // Another process was faster.
            Ok(_) | Err(StoreError::AlreadyInitialised { .. }) => {
                self.history = None;
                Ok(())
            }
            Err(error @ StoreError::Ambiguous { .. }) => Err(error),
            Err(error) => {
                self.history = Some(history);
                Err(error)
            }
        }
    }

    /// Reports a wait after this refusal.
    pub(super) fn waits(&self, error: &StoreError) {
        if let Some(hook) = &self.hook {
            hook.call(error);
        }
    }

    /// How long to hold back the request after this refusal; none if it is not to be sent
    /// again.
    pub(super) fn again_after(&mut self, error: &StoreError) -> Option<Duration> {
        let left = self.patience.saturating_sub(self.started.elapsed());
        let wait = again_after(error, self.pause, left)?;
        self.pause = PAUSE[1].min(self.pause * 2);
        Some(wait)
    }
}
