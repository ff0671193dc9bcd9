//! The thread that asks a store, for all who have come to it.
//!
//! ```text
//! newcomers sit down --> each seat says its wish --> renewals are sent together,
//!    ^                                               the others one by one
//!    |                                                         |
//!    |     rest until something is due <--nobody asked--  answers handed in
//!    `---------------`------------------------somebody asked---' |
//!                                                                | nobody is left
//!                                store closed, line struck off <-'
//! ```
//! A round serves each seat once, so one that asks for much doesn't keep the others
//! waiting.
//!
//! # One failure speaks for all
//! A store that hangs costs each request its whole time-out. A hundred seats that found
//! that out one after another would be served once in some minutes, and would miss the
//! moment at which it comes back. So for [`SPEAKS_FOR`] after a request was not carried
//! out, or its fate became unknown, the requests of other seats are answered with that
//! failure and not sent. Whose own it was may try at once: how long it waits is its
//! manager's to say. The first request that is answered ends it.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::super::protocol::{Answer, Request};
use super::super::{LeaseStore, Namespace, Renew, StoreError};
use super::line::Post;
use super::seat::{Seat, Wish, error_of, failed, panicked};
use crate::events::Throttle;
use crate::unwind::catching;

/// The longest that the thread sleeps: how late it notices that a clock has
/// passed the end of the leases, or that borrowing has grown.
const NAP: Duration = Duration::from_millis(250);

/// For how long a failure speaks for other seats.
const SPEAKS_FOR: Duration = Duration::from_secs(1);

/// What the thread has to itself.
pub(super) struct Courier {
    post: Arc<Post>,
    store: Box<dyn LeaseStore>,
    seats: Vec<Seat>,
    failures: Throttle,
    failure: Option<Failure>,
}

/// A request that was not carried out, or may not have been.
struct Failure {
    at: Instant,
    /// Whose it was.
    seat: usize,
    is_denied: bool,
    text: String,
}

impl Courier {
    pub(super) fn new(post: Arc<Post>, store: Box<dyn LeaseStore>) -> Self {
        Self {
            post,
            store,
            seats: Vec::new(),
            failures: Throttle::new(),
            failure: None,
        }
    }

    /// The life of the thread.
    pub(super) fn run(mut self) {
        let post = Arc::clone(&self.post);
        // Whatever happens, nobody comes to a courier that is gone.
        let _on_duty = post.on_duty();
        loop {
            self.seats.extend(post.newcomers());
            let rest = self.round();
            let gone: Vec<Seat> = self.seats.extract_if(.., |seat| seat.is_gone()).collect();
            if self.seats.is_empty() && post.close() {
                // Before the last ones are told that all is over.
                let store = self.store;
                catching(|| drop(store));
                drop(gone);
                return;
            }
            drop(gone);
            if let Some(rest) = rest
                && !self.seats.is_empty()
            {
                catching(|| self.store.rest(rest));
                thread::park_timeout(rest.min(NAP));
            }
        }
    }

    /// Serves each seat once. Answers for how long there is nothing to do, if nobody asked
    /// for anything.
    fn round(&mut self) -> Option<Duration> {
        let mut rest = Some(Duration::MAX);
        let (mut renewals, mut others) = (Vec::new(), Vec::new());
        for (at, seat) in self.seats.iter_mut().enumerate() {
            match seat.wish() {
                Wish::Rest(wait) => rest = rest.map(|rest| rest.min(wait)),
                Wish::Leave => {}
                Wish::Ask(Request::Renew(renew)) => renewals.push((at, renew)),
                Wish::Ask(request) => others.push((at, request)),
            }
        }
        if !renewals.is_empty() || !others.is_empty() {
            rest = None;
        }
        // They keep what is there.
        if !renewals.is_empty() {
            self.renew(renewals);
        }
        for (at, request) in others {
            self.ask(at, request);
        }
        rest
    }

    /// Sends the renewals of these seats together.
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
        let seats = &self.seats;
        let pairs: Vec<(&Namespace, &Renew)> = sent
            .iter()
            .map(|(at, renew)| (seats[*at].namespace(), renew))
            .collect();
        let started = Instant::now();
        let answers = catching(|| self.store.renew_all(&pairs));
        let took = started.elapsed();
        // One that says more or less than it was asked has said nothing.
        let answers = answers.filter(|answers| answers.len() == sent.len());
        let answers = answers.unwrap_or_else(|| sent.iter().map(|_| Err(panicked())).collect());
        // The first that failed, not those that were left because of it.
        let speaks = answers.iter().position(Result::is_err).unwrap_or(0);
        for (nth, ((at, renew), answer)) in sent.into_iter().zip(answers).enumerate() {
            let answer = Answer::Renewed(answer);
            if nth == speaks {
                self.note(at, &answer);
            }
            let asked = Some((&self.failures, took));
            self.seats[at].answer(Request::Renew(renew), answer, asked);
        }
    }

    /// Sends the request of one seat.
    fn ask(&mut self, at: usize, request: Request) {
        if let Some(error) = self.put_off(at) {
            let answer = failed(&request, error);
            return self.seats[at].answer(request, answer, None);
        }
        let started = Instant::now();
        let answer = self.seats[at].ask(&mut *self.store, &request);
        let took = started.elapsed();
        self.note(at, &answer);
        let asked = Some((&self.failures, took));
        self.seats[at].answer(request, answer, asked);
    }

    /// What a seat is answered without the store being asked.
    fn put_off(&self, at: usize) -> Option<StoreError> {
        let failure = self.failure.as_ref()?;
        let speaks = failure.at.elapsed() < SPEAKS_FOR && failure.seat != self.seats[at].id();
        speaks.then(|| failure.for_others())
    }

    /// Remembers a failure that others would meet, too, or that it is over.
    fn note(&mut self, at: usize, answer: &Answer) {
        self.failure = error_of(answer).and_then(|error| Failure::of(error, self.seats[at].id()));
    }
}

impl Failure {
    fn of(error: &StoreError, seat: usize) -> Option<Self> {
        error.is_away().then(|| Self {
            at: Instant::now(),
            seat,
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
