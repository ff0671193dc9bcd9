//! The thread that asks a store, for all clients assigned to it.
//!
//! ```text
//! inbox emptied --> each client names its next action --> renewals are sent together,
//!    ^                                                    the others one by one
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

use std::io;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::super::protocol::{Answer, Request};
use super::super::{LeaseStore, Namespace, Renew, StoreError};
use super::client::{Action, Client, Forked, failed, panicked};
use super::handle::Inbox;
use crate::events::Throttle;
use crate::fork::WipeOnFork;
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
    process: Process,
}

/// The process of a worker, whether it has clients or not.
struct Process {
    /// Reads false in a forked child.
    not_forked: WipeOnFork<bool>,
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
    /// # Errors
    /// The operating system's, for the page of memory of the mark.
    pub(super) fn new(inbox: Arc<Inbox>, store: Box<dyn LeaseStore>) -> io::Result<Self> {
        Ok(Self {
            inbox,
            store,
            clients: Vec::new(),
            failures: Throttle::new(),
            failure: None,
            process: Process {
                not_forked: WipeOnFork::new(true)?,
            },
        })
    }

    /// The thread, until no client is left.
    pub(super) fn run(mut self) {
        let inbox = Arc::clone(&self.inbox);
        // Whatever happens, no client is assigned to a worker that is gone.
        let close = inbox.close_on_drop();
        match self.serve() {
            Ok(last) => {
                // Before the last clients learn that all is over.
                let Self { store, process, .. } = self;
                catching(|| drop(store));
                if let Err(Forked) = process.dismiss(last) {
                    mem::forget((process, close));
                }
            }
            // All of it is the parent's: a connection that is closed here is closed there.
            Err(Forked) => mem::forget((self, close)),
        }
    }

    /// The main loop. Returns the last clients, which are gone.
    fn serve(&mut self) -> Result<Vec<Client>, Forked> {
        loop {
            self.clients.extend(self.inbox.drain());
            let rest = self.round()?;
            let gone: Vec<Client> = self
                .clients
                .extract_if(.., |client| client.is_gone())
                .collect();
            if self.clients.is_empty() && self.inbox.close() {
                return Ok(gone);
            }
            self.process.dismiss(gone)?;
            if let Some(rest) = rest
                && !self.clients.is_empty()
            {
                catching(|| self.store.rest(rest));
                self.process.check()?;
                thread::park_timeout(rest.min(LONGEST_SLEEP));
            }
        }
    }

    /// Serves each client once. Returns for how long there is nothing to do, if no client
    /// asked for anything.
    fn round(&mut self) -> Result<Option<Duration>, Forked> {
        let mut rest = Some(Duration::MAX);
        let (mut renewals, mut others) = (Vec::new(), Vec::new());
        for (at, client) in self.clients.iter_mut().enumerate() {
            match client.next_action()? {
                Action::Rest(wait) => rest = rest.map(|rest| rest.min(wait)),
                Action::Leave => {}
                Action::Ask(Request::Renew(renew)) => renewals.push((at, renew)),
                Action::Ask(request) => others.push((at, request)),
            }
        }
        if !renewals.is_empty() || !others.is_empty() {
            rest = None;
        }
        // First, since they keep the leases that are held.
        if !renewals.is_empty() {
            self.renew(renewals)?;
        }
        for (at, request) in others {
            self.ask(at, request)?;
        }
        Ok(rest)
    }

    /// Sends the renewals of these clients together.
    fn renew(&mut self, renewals: Vec<(usize, Renew)>) -> Result<(), Forked> {
        let (put_off, sent): (Vec<_>, Vec<_>) = renewals
            .into_iter()
            .partition(|(at, _)| self.put_off(*at).is_some());
        for (at, renew) in put_off {
            self.ask(at, Request::Renew(renew))?;
        }
        if sent.is_empty() {
            return Ok(());
        }
        let clients = &self.clients;
        let pairs: Vec<(&Namespace, &Renew)> = sent
            .iter()
            .map(|(at, renew)| (clients[*at].namespace(), renew))
            .collect();
        let started = Instant::now();
        let answers = catching(|| self.store.renew_all(&pairs));
        let took = started.elapsed();
        self.process.check()?;
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
            self.clients[at].answer(Request::Renew(renew), answer, asked)?;
        }
        Ok(())
    }

    /// Sends the request of one client.
    fn ask(&mut self, at: usize, request: Request) -> Result<(), Forked> {
        if let Some(error) = self.put_off(at) {
            let answer = failed(&request, error);
            return self.clients[at].answer(request, answer, None);
        }
        let started = Instant::now();
        let answer = self.clients[at].ask(&mut *self.store, &request)?;
        let took = started.elapsed();
        self.note(at, &answer);
        let asked = Some((&self.failures, took));
        self.clients[at].answer(request, answer, asked)
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

impl Process {
    /// As that of each client, and of use without one.
    fn check(&self) -> Result<(), Forked> {
        self.not_forked.then_some(()).ok_or(Forked)
    }

    /// Drops clients that are gone. In a child of what runs meanwhile, or before, the rest
    /// stays where it is.
    fn dismiss(&self, gone: Vec<Client>) -> Result<(), Forked> {
        let mut gone = gone.into_iter();
        let mut checked = self.check();
        while checked.is_ok()
            && let Some(client) = gone.next()
        {
            checked = client.leave().and_then(|()| self.check());
        }
        if checked.is_err() {
            mem::forget(gone);
        }
        checked
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
