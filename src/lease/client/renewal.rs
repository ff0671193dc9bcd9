//! Acquires and renews leases: threads that drive [`Manager`]s against stores.
//!
//! The manager decides. A worker, a thread with a store of its own, sends the manager's
//! requests to the store, hands the answers to the manager, and reports the changes of
//! grants to the sink. A [`RenewalThread`] is a generator's handle on all that.
//!
//! Generators of one process whose stores have equal [keys](crate::lease::StoreKey) share one
//! worker, and with it one connection. A hundred of them cost the server no more than
//! one.
//!
//! # Locks
//! The lock of the state is never held while the store is asked. So
//! [`invalidate`](RenewalThread::invalidate) finds the lanes of every grant that ever was,
//! whatever the store is doing. Nor is it held while an event is emitted, so a subscriber
//! may ask how the leases stand. The lock of the workers' registry is held while a thread
//! is started, and never together with that of a state.
//!
//! # Timing
//! A worker looks at each generator's clock and demand four times a second, but not while
//! it waits for the store. It takes no part in issuing IDs: should it stand still, leases
//! are used up to their confirmed ends and no further.
//!
//! # Other people's code
//! It may panic. The outcome of a request to a store that panics is unknown, a clock that
//! panics counts as unchanged, and a subscriber's panic is dropped. No panic comes
//! between the manager and the sink: the sink receives every change of the manager's.
//!
//! # Forks
//! A child has neither the threads nor the leases. The `RenewalThread`s that it has copied
//! do nothing, and those that it starts get workers of its own.
//!
//! Code called on the renewal thread must not fork: a clock, a waker, a hook, a subscriber or
//! a store. The worker does not check for that. In such a child it would go on with the
//! parent's leases, on the parent's connection.

mod assign;
mod client;
mod events;
mod first_lease;
mod handle;
mod shutdown;
mod state;
mod worker;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use self::assign::assign;
use self::client::Client;
pub(crate) use self::first_lease::{FirstLease, WaitHook, may_succeed_later};
use self::handle::WorkerHandle;
use self::shutdown::Completion;
pub(crate) use self::state::GrantSink;
use self::state::{Shared, State};

use crate::describe::opaque_debug;
use crate::lease::client::failure::StoreHealth;
use crate::lease::client::protocol::{LeaseStatus, Manager};
use crate::lease::error::StoreError;
use crate::lease::store::lease_store::LeaseStore;
use crate::wakers::Ticket;

/// Acquires and renews the leases of one sink. Dropping it releases them, see
/// [`shutdown`].
pub(crate) struct RenewalThread {
    shared: Arc<Shared>,
    /// Taken when it ends.
    worker: Option<WorkerHandle>,
}

/// Why no leases are renewed.
pub(crate) enum RenewalStartError {
    /// The store gave no lease.
    Store(StoreError),
    /// The operating system refused memory or a thread.
    System(std::io::Error),
}

impl RenewalThread {
    /// Has a worker serve the sink, and waits until it has acquired the first leases
    /// if they are `awaited`. The store is dropped where another one has its key.
    ///
    /// # Errors
    /// The system's refusal, or the store's last one where leases are awaited. Nothing is
    /// kept then.
    pub(crate) fn start(
        store: Box<dyn LeaseStore>,
        manager: Manager,
        sink: Box<dyn GrantSink>,
        health: Arc<StoreHealth>,
        first: FirstLease,
        awaited: bool,
    ) -> Result<Self, RenewalStartError> {
        let shared = Shared::new(State::new(manager, sink, health));
        let shared = Arc::new(shared.map_err(RenewalStartError::System)?);
        let (outcome, answer) = mpsc::channel();
        let outcome = awaited.then_some(outcome);
        let client = Client::new(Arc::clone(&shared), first, outcome);
        let worker = assign(store, client).map_err(RenewalStartError::System)?;
        // From here on an error makes the worker let go of its part, too.
        let renewal = Self {
            shared,
            worker: Some(worker),
        };
        if !awaited {
            return Ok(renewal);
        }
        match answer.recv() {
            Ok(first) => first.map(|()| renewal).map_err(RenewalStartError::Store),
            Err(gone) => Err(RenewalStartError::System(std::io::Error::other(gone))),
        }
    }

    /// How the leases stand.
    pub(crate) fn status(&self) -> LeaseStatus {
        self.shared.state().status()
    }

    /// Gives up every lease at once, with all IDs made from them, and lets the
    /// worker acquire others.
    pub(crate) fn invalidate(&self) {
        let (events, namespace) = {
            let mut state = self.shared.state();
            (state.invalidate(), state.namespace().name().to_owned())
        };
        if let Some(worker) = &self.worker {
            worker.wake();
        }
        events.emit(&namespace);
    }

    /// Waits until a lease is in force, for no longer than `patience`, and returns whether
    /// one is. Not for a forked child, where nobody unlocks the state.
    pub(crate) fn wait_ready(&self, patience: Duration) -> bool {
        let found = self.shared.wait(patience, State::readiness);
        found.unwrap_or(false)
    }

    /// Whether a lease is in force. None if none is yet: `waker` is woken when that may have
    /// changed. Not for a forked child, as above.
    pub(crate) fn poll_ready(&self, ticket: &mut Ticket, waker: &Waker) -> Option<bool> {
        self.shared.poll(ticket, waker, State::readiness)
    }

    /// Forgets the waker of somebody who waits no more. Not for a forked child either.
    pub(crate) fn forget_waker(&self, ticket: &mut Ticket) {
        self.shared.forget_waker(ticket);
    }

    /// Releases every lease, and waits for that as long as `patience`. Returns whether
    /// all were released by then.
    pub(crate) fn shut_down(mut self, patience: Duration) -> bool {
        self.leave(|completion| completion.wait(patience))
    }

    /// Lets the worker release everything, and `wait` for that.
    fn leave(&mut self, wait: impl FnOnce(&Completion) -> Option<bool>) -> bool {
        let Some(worker) = self.worker.take() else {
            return false;
        };
        if self.shared.is_forked() {
            // The parent's; there is nothing to release. Nor to drop: another thread of the
            // parent may have been about to change the state.
            std::mem::forget((worker, Arc::clone(&self.shared)));
            return false;
        }
        // Relaxed: the worker looks again after each round.
        self.shared.stop.store(true, Relaxed);
        worker.wake();
        // A hook may own the last generator, and a store may call it.
        if worker.thread() == thread::current().id() {
            return false;
        }
        // Where it takes longer, it goes on by itself.
        wait(&self.shared.completion).unwrap_or(false)
    }
}

impl Drop for RenewalThread {
    fn drop(&mut self) {
        self.leave(Completion::wait_in_a_drop);
    }
}

opaque_debug!(RenewalThread);
