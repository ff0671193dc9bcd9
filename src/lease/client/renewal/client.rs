//! A client: one renewal thread's state, as its worker serves it.
//!
//! ```text
//!              refused, and may succeed later
//!    awaited --------------------------> held back
//!      | ^ \----------------------------------'
//!      | |                  its moment has come
//!      | `--refused for good--> gone: nothing was granted, and the builder gets the error
//!      | a lease, and nothing more to ask at once
//!      v
//!    kept --stop--> leaving --all is released, or a request fails--> gone
//! ```
//! A client that no builder awaits begins as kept.
//!
//! # Why it is right
//! *One request at a time.* A worker asks a client for its next [`Step`]. If that is a
//! request, it hands in the answer before it asks again. So the manager gets one answer to
//! each request, in order. A request that is held back has not been answered yet; it is
//! sent again as the same request, with a newer time.
//!
//! *A shared failure.* What the worker learned from another client's request is handed in
//! as [`StoreError::Unavailable`] or [`StoreError::Denied`]: nothing was sent for this
//! client, so nothing can have been done for it.
//!
//! *The end is reported once.* That is when the client is dropped, wherever that happens. In
//! a forked child nothing is reported.

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::events;
use super::first_lease::FirstLease;
use super::state::Shared;
use crate::events::Throttle;
use crate::lease::client::protocol::{Answer, Request, Step};
use crate::lease::{Acquire, LeaseStore, Namespace, StoreError};
use crate::unwind::catching;

/// One generator's leases, as its worker sees them.
pub(super) struct Client {
    shared: Arc<Shared>,
    namespace: Namespace,
    first: FirstLease,
    awaited: Option<Awaited>,
    /// Everything is being released.
    stops: bool,
    /// Nothing is left to do, and whether everything was released.
    gone: Option<bool>,
}

/// The builder waits for the first leases.
struct Awaited {
    outcome: mpsc::Sender<Result<(), StoreError>>,
    /// A request that was refused, and when to send it again.
    held_back: Option<(Acquire, Instant)>,
}

impl Client {
    pub(super) fn new(
        shared: Arc<Shared>,
        first: FirstLease,
        outcome: Option<mpsc::Sender<Result<(), StoreError>>>,
    ) -> Self {
        let namespace = shared.state().namespace().clone();
        let awaited = outcome.map(|outcome| Awaited {
            outcome,
            held_back: None,
        });
        Self {
            shared,
            namespace,
            first,
            awaited,
            stops: false,
            gone: None,
        }
    }

    /// Identifies the client.
    pub(super) fn id(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    pub(super) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Whether nothing is left to do.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.is_some()
    }

    /// Whether this is a child of the process that made it.
    pub(super) fn is_forked(&self) -> bool {
        self.shared.is_forked()
    }

    /// The next step for the worker. After [`Step::Done`] the client is to be dropped.
    pub(super) fn next_step(&mut self) -> Step {
        if let Some(step) = self.held_back() {
            return step;
        }
        // Relaxed: the thread that sets it wakes the worker afterwards.
        self.stops = self.shared.stop.load(Relaxed);
        let step = self.step();
        if let Step::Ask(_) = step {
            return step;
        }
        self.conclude();
        match step {
            Step::Wait(_) if !self.stops && !self.is_gone() => return step,
            Step::Done => self.gone = Some(true),
            _ => self.gone = self.gone.or(Some(false)),
        }
        Step::Done
    }

    /// The request that waits for its moment.
    fn held_back(&mut self) -> Option<Step> {
        let held_back = &mut self.awaited.as_mut()?.held_back;
        let (_, at) = held_back.as_ref()?;
        let left = at.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            return Some(Step::Wait(left));
        }
        let (mut acquire, _) = held_back.take()?;
        acquire.now_unix_ms = self.shared.state().unix_ms();
        Some(Step::Ask(Request::Acquire(acquire)))
    }

    fn step(&self) -> Step {
        let (step, events) = self.shared.state().step(self.stops);
        // A step follows each answer and each rest, so waiters learn of a change by then. A
        // client that stops changes no more for them until its end, which no waker holds up.
        if !self.stops {
            self.shared.changed();
        }
        catching(|| events.emit(self.namespace.name()));
        step
    }

    /// Reports the first leases, if there are any, to the builder that waits for them:
    /// nothing more is to be asked at once.
    fn conclude(&mut self) {
        let Some(awaited) = self.awaited.take() else {
            return;
        };
        let first = if self.shared.state().had_a_lease() {
            Ok(())
        } else {
            self.gone = Some(false);
            Err(StoreError::corrupt("it granted no block that can be used"))
        };
        // The builder waits for it, unless its thread has panicked.
        let _ = awaited.outcome.send(first);
    }

    /// Sends a request to the store. If the store panics, the outcome is
    /// unknown.
    pub(super) fn ask(&mut self, store: &mut dyn LeaseStore, request: &Request) -> Answer {
        let Self {
            shared,
            namespace,
            first,
            ..
        } = self;
        let answer = catching(|| match request {
            Request::Acquire(acquire) => {
                let unix_ms = || shared.state().unix_ms();
                Answer::Acquired(first.acquire(store, namespace, acquire, unix_ms))
            }
            other => other.send(store, namespace),
        });
        answer.unwrap_or_else(|| request.failed(panicked()))
    }

    /// Takes the answer to its request. `asked` is for the events about a request that was
    /// sent, and says how long that took.
    pub(super) fn answer(
        &mut self,
        request: Request,
        answer: Answer,
        asked: Option<(&Throttle, Duration)>,
    ) {
        match (request, answer) {
            (Request::Acquire(acquire), Answer::Acquired(Err(error)))
                if self.awaited.is_some() && !self.shared.state().had_a_lease() =>
            {
                self.refused(acquire, error);
            }
            (request, answer) => {
                if let Some((failures, took)) = asked {
                    emit(failures, self.namespace.name(), &request, &answer, took);
                }
                let failed = answer.error().is_some();
                let events = self.shared.state().answered(answer);
                catching(|| events.emit(self.namespace.name()));
                if self.stops && failed {
                    // Releasing is optional; the blocks come free by themselves.
                    self.gone = Some(false);
                }
            }
        }
    }

    /// The first lease was refused.
    fn refused(&mut self, acquire: Acquire, error: StoreError) {
        let wait = self.first.again_after(&error);
        let Some(awaited) = &mut self.awaited else {
            return;
        };
        match wait {
            Some(wait) => {
                self.first.waits(&error);
                awaited.held_back = Some((acquire, Instant::now() + wait));
            }
            None => {
                self.gone = Some(false);
                let _ = awaited.outcome.send(Err(error));
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.end(self.gone.unwrap_or(false));
    }
}

/// The error of a store that panicked: whether it did anything is unknown.
pub(super) fn panicked() -> StoreError {
    StoreError::Ambiguous {
        operation: "an operation of the store",
        source: "the store panicked".into(),
    }
}

/// Emits the events about an answer.
fn emit(failures: &Throttle, namespace: &str, request: &Request, answer: &Answer, took: Duration) {
    catching(|| {
        events::store_asked(namespace, request, took);
        let error = answer.error();
        if let Some(error) = error {
            events::store_failed(failures, namespace, request, error);
        }
        if let Some(StoreError::HistoryLost { .. }) = error {
            crate::lease::events::history_lost(Some(namespace));
        }
    });
}
