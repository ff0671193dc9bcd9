//! The state that a renewal thread shares with its worker: a manager and its sink,
//! behind one lock.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::events;
use super::shutdown::Completion;
use crate::fork::WipeOnFork;
use crate::lease::client::protocol::{Answer, Change, Demand, LeaseStatus, Manager, Moment, Step};
use crate::lease::{Namespace, StoreFailure, StoreFailureKind, StoreHealth};
use crate::unwind::catching;
use crate::wakers::{self, Ticket, Wakers};

/// The user of the grants. Called by one thread at a time.
///
/// The first two may call a user's clock, and panic with it. The others call no code of
/// the user.
pub(crate) trait GrantSink: Send + std::fmt::Debug {
    /// The sink's time, in milliseconds since 1970.
    fn unix_ms(&self) -> u64;

    /// Its demand at the moment.
    fn demand(&self) -> Demand;

    /// Applies a change of its grants.
    fn apply(&mut self, change: &Change);

    /// Stops serving the IDs that were made before. Returns whether this must
    /// be called again for IDs that are still being made.
    fn stop_serving(&self) -> bool;
}

/// The state that a renewal thread and its worker share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Leases or the clock may have changed.
    changed: Condvar,
    /// Everything is to be released.
    pub(super) stop: AtomicBool,
    pub(super) completion: Completion,
    /// Reads false in a forked child, which has neither the worker nor the leases.
    not_forked: WipeOnFork<bool>,
}

impl Shared {
    pub(super) fn new(state: State) -> io::Result<Self> {
        Ok(Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            completion: Completion::default(),
            not_forked: WipeOnFork::new(true)?,
        })
    }

    /// Whether this is a child of the process that made it. Others may have held the lock
    /// of the state at the fork.
    pub(super) fn is_forked(&self) -> bool {
        !*self.not_forked
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that runs under the lock can panic and leave the state between two steps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker is done, and whether all leases were released. Nothing changes any more.
    /// Does nothing in a forked child.
    pub(super) fn end(&self, released: bool) {
        if self.is_forked() {
            return;
        }
        self.state().over = true;
        // Before wakers are called, which may wait for a thread that waits for this.
        self.completion.complete(released);
        self.changed();
    }

    /// Wakes those who wait for a change of the state.
    pub(super) fn changed(&self) {
        self.changed.notify_all();
        // The lock is free again when the first of them is woken.
        let wakers = self.state().wakers.take_all();
        wakers::wake(wakers);
    }

    /// The result of `look`; if there is none, the next change wakes `waker`.
    pub(super) fn poll<T>(
        &self,
        ticket: &mut Ticket,
        waker: &Waker,
        look: impl Fn(&mut State) -> Option<T>,
    ) -> Option<T> {
        // A runtime's code, as the drop of a waker is: not under the lock.
        let fresh = waker.clone();
        let mut state = self.state();
        let found = look(&mut state);
        let (one, other) = if found.is_some() {
            (state.wakers.leave(ticket), Some(fresh))
        } else {
            (state.wakers.enter(ticket, fresh), None)
        };
        drop(state);
        wakers::discard(one);
        wakers::discard(other);
        found
    }

    /// Forgets the waker of somebody who waits no more.
    pub(super) fn forget_waker(&self, ticket: &mut Ticket) {
        let waker = self.state().wakers.leave(ticket);
        wakers::discard(waker);
    }

    /// Waits until `look` finds something in the state, for no longer than `patience`.
    pub(super) fn wait<T>(
        &self,
        patience: Duration,
        look: impl Fn(&mut State) -> Option<T>,
    ) -> Option<T> {
        let mut found = None;
        let waited = self
            .changed
            .wait_timeout_while(self.state(), patience, |state| {
                found = look(state);
                found.is_none()
            });
        drop(waited);
        found
    }
}

#[derive(Debug)]
pub(super) struct State {
    manager: Manager,
    sink: Box<dyn GrantSink>,
    /// For the monotonic time.
    started: Instant,
    /// The last reading of the sink's clock, and its demand then.
    unix_ms: u64,
    demand: Demand,
    health: Arc<StoreHealth>,
    /// When the last lease ended or will end, in milliseconds since 1970; 0
    /// before there was one, and after all were given up.
    last_end_unix_ms: u64,
    /// The leases have ended, and IDs made from them may not be served.
    ended: bool,
    /// The worker is gone, and with it all changes to come.
    over: bool,
    /// Of those who wait for a change.
    wakers: Wakers,
}

/// Events to be emitted once the lock is free.
#[must_use]
pub(super) struct PendingEvents {
    changes: Vec<Change>,
    /// The failure that is over.
    recovered: Option<StoreFailure>,
}

impl State {
    pub(super) fn new(
        manager: Manager,
        sink: Box<dyn GrantSink>,
        health: Arc<StoreHealth>,
    ) -> Self {
        Self {
            started: Instant::now(),
            // A clock that panics as early as here is the caller's affair.
            unix_ms: sink.unix_ms(),
            demand: sink.demand(),
            manager,
            sink,
            health,
            last_end_unix_ms: 0,
            ended: false,
            over: false,
            wakers: Wakers::default(),
        }
    }

    pub(super) fn status(&self) -> LeaseStatus {
        self.manager.status()
    }

    pub(super) fn namespace(&self) -> &Namespace {
        self.manager.namespace()
    }

    /// Whether the clock has not passed the end of the last lease.
    fn is_in_force(&mut self) -> bool {
        self.moment().unix_ms < self.last_end_unix_ms
    }

    /// Whether the clock has not passed the end of the last lease; none if it has, and there
    /// may be others.
    pub(super) fn readiness(&mut self) -> Option<bool> {
        match self.is_in_force() {
            true => Some(true),
            false => self.over.then_some(false),
        }
    }

    pub(super) fn had_a_lease(&self) -> bool {
        self.last_end_unix_ms > 0
    }

    /// The sink's time, in milliseconds since 1970.
    pub(super) fn unix_ms(&mut self) -> u64 {
        self.moment().unix_ms
    }

    fn moment(&mut self) -> Moment {
        if let Some(unix_ms) = catching(|| self.sink.unix_ms()) {
            self.unix_ms = unix_ms;
        }
        Moment {
            unix_ms: self.unix_ms,
            elapsed: self.started.elapsed(),
        }
    }

    fn demand(&mut self) -> Demand {
        if let Some(demand) = catching(|| self.sink.demand()) {
            self.demand = demand;
        }
        self.demand
    }

    /// Asks the manager for the next step. With `stop` it releases everything.
    pub(super) fn step(&mut self, stop: bool) -> (Step, PendingEvents) {
        let (moment, demand) = (self.moment(), self.demand());
        if stop {
            self.manager.release();
        }
        let (changes, step) = self.manager.next(moment, demand);
        let events = self.apply(changes);
        if self.ended {
            // Until IDs that were being made at the end have come in, too.
            self.ended = self.sink.stop_serving();
        }
        (step, events)
    }

    pub(super) fn answered(&mut self, answer: Answer) -> PendingEvents {
        let moment = self.moment();
        let changes = self.manager.answer(moment, answer);
        self.apply(changes)
    }

    /// Gives up every lease, with all IDs made from them.
    pub(super) fn invalidate(&mut self) -> PendingEvents {
        let changes = self.manager.invalidate();
        let events = self.apply(changes);
        // Before anything is opened again: IDs made from that stay.
        while self.sink.stop_serving() {}
        events
    }

    fn apply(&mut self, changes: Vec<Change>) -> PendingEvents {
        for change in &changes {
            self.sink.apply(change);
            match change {
                Change::Expired { .. } => self.ended = self.sink.stop_serving(),
                Change::Revived => self.ended = false,
                Change::Revoked(_) => self.last_end_unix_ms = 0,
                _ => {}
            }
        }
        PendingEvents {
            changes,
            recovered: self.note(),
        }
    }

    /// Records the health of the store for takes that are refused. Returns the
    /// failure that is over.
    fn note(&mut self) -> Option<StoreFailure> {
        let status = self.manager.status();
        let layout = self.manager.namespace().layout();
        let ends = status.grants.iter().map(|held| held.grant.ticks.end);
        if let Some(end) = ends.max() {
            self.last_end_unix_ms = layout.tick_start_unix_ms(end);
        }
        let health = status.health;
        let failure = health.last_error.zip(health.failing_since_unix_ms);
        let failure =
            failure.map(|(error, since)| StoreFailure::new(StoreFailureKind::of(&error), since));
        let before = self.health.failure();
        self.health.note(self.last_end_unix_ms, failure);
        before.filter(|_| failure.is_none())
    }
}

impl PendingEvents {
    pub(super) fn emit(&self, namespace: &str) {
        let changes = self.changes.iter();
        changes.for_each(|change| events::changed(namespace, change));
        if let Some(failure) = self.recovered {
            events::store_recovered(namespace, failure);
        }
    }
}
