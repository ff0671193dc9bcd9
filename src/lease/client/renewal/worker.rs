//! The thread that asks a store, for all clients assigned to it.
//!
//! ```text
//! inbox emptied --> each client names its next step --> renewals are sent together,
//!    ^                                                  the others one by one
//!    |                                                          |
//!    |     rest until something is due <--nothing asked--  answers handed in
//!    `---------------`--------------------something asked-----' |
//!                                                               | no client is left
//!                             store closed, worker deregistered <'
//! ```
//! A round serves each client once, so one that asks for much doesn't keep the others
//! waiting.
//!
//! # A failure is shared
//! A store that hangs costs each request its whole time-out. A hundred clients that each
//! waited for it in turn would be served once in some minutes, and would miss the moment at
//! which it comes back. So for [`SHARED_FOR`] after a request was not carried out, or its
//! outcome became unknown, the requests of other clients are answered with that failure and
//! not sent. The client whose request failed may try at once: its manager decides how long
//! it waits. The first request that is answered ends it.

use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::client::{Client, panicked};
use super::handle::Inbox;
use crate::events::Throttle;
use crate::lease::client::protocol::{Answer, Request, Step};
use crate::lease::{LeaseStore, Namespace, Renew, StoreError};
use crate::unwind::catching;

/// The longest that the thread sleeps: how late it notices that a clock has
/// passed the end of the leases, or that borrowing has grown.
const LONGEST_SLEEP: Duration = Duration::from_millis(250);

/// For how long other clients are answered with a failure.
const SHARED_FOR: Duration = Duration::from_secs(1);

/// The state that only the thread has.
pub(super) struct Worker {
    inbox: Arc<Inbox>,
    store: Box<dyn LeaseStore>,
    clients: Vec<Client>,
    failures: Throttle,
    failure: Option<Failure>,
}

/// A request that was not carried out, or may not have been.
struct Failure {
    at: Instant,
    /// The client whose request failed.
    client: usize,
    is_denied: bool,
    text: String,
}

impl Worker {
    pub(super) fn new(inbox: Arc<Inbox>, store: Box<dyn LeaseStore>) -> Self {
        Self {
            inbox,
            store,
            clients: Vec::new(),
            failures: Throttle::new(),
            failure: None,
        }
    }

    /// The thread, until no client is left.
    pub(super) fn run(mut self) {
        let inbox = Arc::clone(&self.inbox);
        // Whatever happens, no client is assigned to a worker that is gone.
        let close = inbox.close_on_drop();
        let Some(last) = self.serve() else {
            // The parent's: closing the store here could close it there, and the lock of the
            // workers may be held for ever.
            mem::forget((self, close));
            return;
        };
        // The store is closed before the end of the last clients is reported.
        let store = self.store;
        catching(|| drop(store));
        drop(last);
    }

    /// The main loop. Returns the last clients, which are gone; `None` in a child that a signal
    /// handler has forked on this thread, once the request under way is over.
    fn serve(&mut self) -> Option<Vec<Client>> {
        loop {
            self.clients.extend(self.inbox.drain());
            let rest = self.round()?;
            let gone: Vec<Client> = self
                .clients
                .extract_if(.., |client| client.is_gone())
                .collect();
            if self.clients.is_empty() && self.inbox.close() {
                return Some(gone);
            }
            drop(gone);
            if let Some(rest) = rest
                && !self.clients.is_empty()
            {
                catching(|| self.store.rest(rest));
                thread::park_timeout(rest.min(LONGEST_SLEEP));
            }
        }
    }

    /// Serves each client once. Returns for how long there is nothing to do, if no client
    /// asked for anything; `None` in a forked child.
    fn round(&mut self) -> Option<Option<Duration>> {
        // Here and below: a signal handler may have forked on this thread.
        if self.is_forked() {
            return None;
        }
        let mut rest = Some(Duration::MAX);
        let (mut renewals, mut others) = (Vec::new(), Vec::new());
        for (at, client) in self.clients.iter_mut().enumerate() {
            match client.next_step() {
                Step::Wait(wait) => rest = rest.map(|rest| rest.min(wait)),
                Step::Done => {}
                Step::Ask(Request::Renew(renew)) => renewals.push((at, renew)),
                Step::Ask(request) => others.push((at, request)),
            }
        }
        if !renewals.is_empty() || !others.is_empty() {
            rest = None;
        }
        if self.is_forked() {
            return None;
        }
        // First, since they keep the leases that are held.
        if !renewals.is_empty() {
            self.renew(renewals);
        }
        for (at, request) in others {
            if self.is_forked() {
                return None;
            }
            self.ask(at, request);
        }
        (!self.is_forked()).then_some(rest)
    }

    fn is_forked(&self) -> bool {
        self.clients.iter().any(Client::is_forked)
    }

    /// Sends the renewals of these clients together.
    fn renew(&mut self, renewals: Vec<(usize, Renew)>) {
        let (put_off, sent): (Vec<_>, Vec<_>) = renewals
            .into_iter()
            .partition(|(at, _)| self.put_off(*at).is_some());
        for (at, renew) in put_off {
            self.ask(at, Request::Renew(renew));
        }
        if sent.is_empty() {
            return;
        }
        let clients = &self.clients;
        let pairs: Vec<(&Namespace, &Renew)> = sent
            .iter()
            .map(|(at, renew)| (clients[*at].namespace(), renew))
            .collect();
        let started = Instant::now();
        let answers = catching(|| self.store.renew_all(&pairs));
        let took = started.elapsed();
        // If there are more or fewer answers than requests, they can't be
        // matched.
        let answers = answers.filter(|answers| answers.len() == sent.len());
        let answers = answers.unwrap_or_else(|| sent.iter().map(|_| Err(panicked())).collect());
        // The first that failed, not those that were left because of it.
        let first_failed = answers.iter().position(Result::is_err).unwrap_or(0);
        for (nth, ((at, renew), answer)) in sent.into_iter().zip(answers).enumerate() {
            let answer = Answer::Renewed(answer);
            if nth == first_failed {
                self.note(at, &answer);
            }
            let asked = Some((&self.failures, took));
            self.clients[at].answer(Request::Renew(renew), answer, asked);
        }
    }

    /// Sends the request of one client.
    fn ask(&mut self, at: usize, request: Request) {
        if let Some(error) = self.put_off(at) {
            let answer = request.failed(error);
            self.clients[at].answer(request, answer, None);
            return;
        }
        let started = Instant::now();
        let answer = self.clients[at].ask(&mut *self.store, &request);
        let took = started.elapsed();
        self.note(at, &answer);
        let asked = Some((&self.failures, took));
        self.clients[at].answer(request, answer, asked);
    }

    /// The answer to a client for which the store is not asked.
    fn put_off(&self, at: usize) -> Option<StoreError> {
        let failure = self.failure.as_ref()?;
        let is_shared =
            failure.at.elapsed() < SHARED_FOR && failure.client != self.clients[at].id();
        is_shared.then(|| failure.for_others())
    }

    /// Remembers a failure that other clients would meet, too, or that it is over.
    fn note(&mut self, at: usize, answer: &Answer) {
        self.failure = answer
            .error()
            .and_then(|error| Failure::of(error, self.clients[at].id()));
    }
}

impl Failure {
    fn of(error: &StoreError, client: usize) -> Option<Self> {
        error.is_away().then(|| Self {
            at: Instant::now(),
            client,
            is_denied: matches!(error, StoreError::Denied { .. }),
            text: error.cause(),
        })
    }

    fn for_others(&self) -> StoreError {
        let source = format!(
            "it was asked for another generator of this process a moment ago: {}",
            self.text
        );
        let source = source.into();
        if self.is_denied {
            StoreError::Denied { source }
        } else {
            StoreError::Unavailable { source }
        }
    }
}
