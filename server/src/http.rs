//! The HTTP front: axum on a runtime of its own.
//!
//! ```text
//! listen ----> connection ----> call --------> routes -----> take, inspect, health, ...
//! a place      handshake,       a deadline,    axum          a body whose parts are made
//! in Seats     Activity         the head's                   when the client has read those
//!                               size                         before (stream)
//! ```
//!
//! # Bounds
//!
//! | of | by | then |
//! |---|---|---|
//! | open connections, all and of one client | `Clients`, which keeps the last sixteenth for others | 503, and the connection is closed |
//! | a handshake, a request's head | `Limits::request_time`, `Activity` | the connection is closed |
//! | a request's body, in time | `Limits::request_time` | 408 |
//! | its head and its body, in bytes | `HEAD_BYTES`, `Limits::request_bytes` | 431 or 414, and 413 |
//! | an answer, in time | `Limits::request_time`, and a second more for each MiB | the connection is closed |
//! | an answer that nobody reads | `Limits::request_time` | the connection is closed |
//! | silence between requests | `Limits::idle_time` | the connection is closed, with GOAWAY in HTTP/2 |
//! | requests at once on a connection of HTTP/2 | `STREAMS` | they are refused by HTTP/2 |
//! | answers that are made and not read, of a connection | `Rooms`, small ones apart | they wait, then 503 |
//! | IDs of a request | `Limits::count`, and `BINARY_FACTOR` times that in binary | 422 |
//! | calls of a store for leases at once | the server's `Subleases` | 503 |
//! | parts of long answers that are made at once, all and of one client | `Bulk`, whose queues are fair | they wait, the first of an answer for `Limits::request_time`, then 503 |
//! | a connection without a request when the server drains | half a second | it is closed |
//!
//! A client that trickles bytes is closed as well as one that sends none: a deadline is that
//! of the whole head, body or answer, and no byte moves it. The one task of a connection
//! looks at its deadlines, and needs one timer for all of them.
//!
//! # Fairness
//!
//! An answer of more than `AT_ONCE` IDs is long: it is made in parts of `PART_BYTES`, and
//! each part is a turn of its own in the runtime's queue, for which there are a few places:
//! a short request waits for as many parts at most, whatever number of long answers there is.
//! A client never has more than half of the places, whatever number of connections it opens,
//! and nobody has one while a part waits to be read.
//!
//! # No ID twice
//!
//! A take moves an ID out of its generator, and from there it goes into one body, of one
//! answer. If the client is gone by then, or the answer ends early, the ID is lost. Nothing is
//! given back and nothing is kept for a retry. Caches are kept from repeating an answer by
//! `Cache-Control: no-store`, and because only POST takes.
//!
//! # The end
//!
//! When the server drains, listeners are closed first. Then each connection is asked to end:
//! HTTP/1 by `Connection: close` in its last answer, HTTP/2 by GOAWAY. Requests that were
//! begun are answered; a connection of which too little has been read to know its version is
//! closed unanswered, and no ID is lost by that. One that has no request half a second later,
//! or after its last answer, is closed as well, whether its client has seen the end or is
//! gone: all was answered. [`Front::join`] waits for the answers until
//! its deadline, closes what is left, and returns when no task has a generator any more.

mod activity;
mod app;
mod auth;
mod body;
mod bulk;
mod call;
mod connection;
mod figures;
mod format;
mod health;
mod inspect;
mod leases;
mod listen;
mod metrics;
mod negotiate;
mod openapi;
mod order;
mod page;
mod problem;
mod room;
mod routes;
mod seats;
mod setup;
mod sites;
mod stream;
mod take;
#[cfg(all(test, unix))]
mod tests;
mod watched;

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};

use self::app::App;
use self::bulk::Bulk;
use self::listen::Listening;
pub(crate) use self::setup::Setup;
#[cfg(all(test, unix))]
use crate::front::FrontCounters;

/// The front, running.
pub(crate) struct Front {
    runtime: Runtime,
    /// Each task has a sender; when all are gone, this ends.
    tasks: mpsc::Receiver<Infallible>,
    #[cfg(all(test, unix))]
    counters: Arc<FrontCounters>,
}

impl Front {
    /// Begins to accept.
    ///
    /// # Errors
    ///
    /// When no thread can be had, or a listener can't be used without blocking.
    pub(crate) fn start(setup: Setup) -> io::Result<Self> {
        let workers = match setup.workers {
            0 => std::thread::available_parallelism()?.get(),
            workers => workers,
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_name_fn(thread_name)
            // Sockets are looked at after each turn: beside long answers, which are always
            // ready to go on, a short one would wait for several of their parts otherwise.
            .event_interval(1)
            .enable_io()
            .enable_time()
            .build()?;
        let (ends, draining) = watch::channel(false);
        setup.drain.on_begin(move || {
            ends.send_replace(true);
        });
        let (task, tasks) = mpsc::channel(1);
        let app = Arc::new(App::new(&setup, workers)?);
        #[cfg(all(test, unix))]
        let counters = Arc::clone(&app.counters);
        let listening = Listening::new(&setup, app, draining, Bulk::of_one(workers), task);
        {
            let _in_runtime = runtime.enter();
            for listener in setup.listeners {
                let accepting = listening.clone().accept_from(listener)?;
                runtime.spawn(accepting);
            }
        }
        Ok(Self {
            runtime,
            tasks,
            #[cfg(all(test, unix))]
            counters,
        })
    }

    /// Its counters.
    #[cfg(all(test, unix))]
    pub(crate) fn counters(&self) -> &FrontCounters {
        &self.counters
    }

    /// Waits until all connections have ended after the drain has begun, but no longer than
    /// this; then ends those that have not. Answers whether all ended by themselves.
    pub(crate) fn join(self, deadline: Instant) -> bool {
        let Self {
            runtime, mut tasks, ..
        } = self;
        let ended = runtime.block_on(async {
            let all = tasks.recv();
            tokio::time::timeout_at(deadline.into(), all).await.is_ok()
        });
        // A namespace that is being opened can't be interrupted.
        runtime.shutdown_timeout(LAST_PATIENCE);
        ended
    }
}

/// How long the end waits for threads that are blocked by a store.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

fn thread_name() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Only a number for a name.
    format!("ringflake-http-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").finish_non_exhaustive()
    }
}
