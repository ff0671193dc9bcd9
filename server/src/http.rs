//! The HTTP/1.1 server: axum on a runtime of its own.
//!
//! ```text
//! listen -------> connection --> call ----------> routes ---> take, inspect, health, ...
//! limits per      Deadlines      the head's       axum        an answer is built whole,
//! client, TLS                    size                         with a permit for its memory
//! ```
//!
//! # Limits
//!
//! | of | by | then |
//! |---|---|---|
//! | open connections, of all clients and of one | `Clients`, which keeps the last sixteenth for others | 503, and the connection is closed |
//! | a TLS handshake, in time | `Limits::request_time` | the connection is closed |
//! | TLS connections before the first authorized request, in bytes | `STRANGER_BYTES`, a sixteenth of it for one client | they wait |
//! | heads, answers, silence and TLS strangers, in time | `Deadlines` | the connection is closed |
//! | a request's head, in bytes | `HEAD_BYTES` | 431 |
//! | connections with a request, in bytes | `ACTIVE_BYTES`, half of it for one client | they wait |
//! | the same with a health check | `PROBE_BYTES`, a sixteenth of it for one client | they count as any other |
//! | memory of answers | `ANSWER_BYTES`, half of it for one client | they wait, then 503 |
//! | memory of the metrics, the status and the readiness | `FIGURES_BYTES`, half of it for one client | they wait, then 503 |
//! | IDs of a request | `Limits::count` | 422 |
//! | guesses of a token, on one connection | `auth::DELAY` | 401, after that |
//! | new requests while the server drains | half a second | the connection is closed |
//!
//! # No ID twice
//!
//! A take moves an ID out of its generator into the body of one answer. If the client is gone
//! by then, the ID is lost. Nothing is given back, and nothing is kept for a retry. Caches
//! can't repeat an answer: it has `Cache-Control: no-store`, and only POST takes.
//!
//! # Shutdown
//!
//! When the server drains, it goes on accepting connections and requests for half a second.
//! Answers have `Connection: close` from then on. Then the listeners are closed, and so is every
//! connection once it has had no request for half a second; a connection with part of a head is
//! answered first. [`HttpServer::join`] waits for requests that were begun until its deadline,
//! closes the rest, and returns when no task uses a generator any more.

mod app;
mod auth;
mod buffer_permit;
mod call;
mod connection;
mod cross_origin;
mod deadlines;
mod format;
mod health;
mod inspect;
mod listen;
mod metrics;
mod namespace_metrics;
mod openapi;
mod page;
mod problem;
mod routes;
mod take;
mod take_request;

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use self::app::App;
pub(crate) use self::app::DRAIN_TIME;
use self::connection::Shared;
use crate::counters::NamedCounters;
use crate::handshake::Tasks;
use crate::setup::Setup;

pub(crate) struct HttpServer {
    runtime: Runtime,
    tasks: Tasks,
}

impl HttpServer {
    /// Begins to accept. While it drains, it answers new requests for `drain_time`.
    ///
    /// # Errors
    ///
    /// When no thread can be started, or a listener can't be made non-blocking.
    pub(crate) fn start(
        mut setup: Setup,
        drain_time: Duration,
        protocols: Vec<NamedCounters>,
    ) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(setup.config.workers)
            .thread_name_fn(thread_name)
            // Polls sockets after each task: a short request does not wait behind several
            // slices of large answers.
            .event_interval(1)
            .enable_io()
            .enable_time()
            .build()?;
        let listeners = std::mem::take(&mut setup.listeners);
        let (shared, tasks) = Shared::new(App::new(setup, drain_time, protocols)?);
        {
            let _in_runtime = runtime.enter();
            for listener in listeners {
                let accepting = shared.clone().accept_from(listener)?;
                runtime.spawn(accepting);
            }
        }
        Ok(Self { runtime, tasks })
    }

    /// Waits until all connections have ended after the drain has begun, at most until
    /// `deadline`; then ends the rest. Returns whether all ended by themselves.
    pub(crate) fn join(self, deadline: Instant) -> bool {
        let ended = self.tasks.join(deadline);
        // Opening a namespace can't be interrupted.
        self.runtime.shutdown_timeout(LAST_PATIENCE);
        ended
    }
}

/// How long the shutdown waits for threads that a store blocks.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

fn thread_name() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Only a number for a name.
    format!("ringflake-http-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
