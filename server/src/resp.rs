//! The server of the Redis protocol, on TCP and Unix sockets.
//!
//! ```text
//! worker 0                          worker 1, 2, …
//! accept loops ------ in turn ----> connection tasks --> blocking threads that open
//! connection tasks, the same                             namespaces
//! ```
//!
//! Each worker is a thread with a single-threaded tokio runtime. A connection is one task. It
//! stays on its worker, so nothing on the path of a request is shared or locked. A runtime that
//! moves tasks between threads answered up to a third fewer `INCR`.
//!
//! # A connection
//!
//! ```text
//!             flush, read, answer, write
//!               +-------+
//!               v       |
//! accepted --> turn ----+--> open --> turn      the next request needs a namespace that is
//!               |                               not open
//!               +--> end --> linger --> closed  QUIT, a protocol error, a drain
//!               |
//!               +--> closed                     end of file, an I/O error, a timeout
//! ```
//!
//! A turn flushes what the socket did not accept before, reads once, answers requests up to a
//! limit, and writes once. It runs in one poll of the task, without a point where the task
//! could wait, so it borrows the buffers of its worker.
//!
//! # Why this is right
//!
//! *No ID is sent twice.* An ID leaves its generator in one `take_batch`, and is written into
//! one reply of the connection whose turn it is. The bytes of a reply go to the socket once, in
//! order: what the socket accepted is cut off before more is written. Replies that can't be
//! sent are dropped with their connection.
//!
//! *A transaction takes IDs at its `EXEC`, or none.* `MULTI` queues requests in the session,
//! wherever reads and turns cut the input. `EXEC` is refused as a whole, or runs in one turn.
//!
//! *Replies are complete and in order.* Requests are decoded from the front of one buffer, and
//! a turn returns how many bytes it has answered; the next turn starts behind them. A run of
//! takes is answered before any request behind it. A namespace that has to be opened stops the
//! session until it is open. Nothing is answered while replies are unsent.
//!
//! *Memory is bounded.* Input is at most one request and one read, because nothing is read
//! while a complete request is waiting. Output is at most that of one turn: 64 KiB and one
//! reply, and a reply has at most 65,536 IDs (1.8 MB). An idle connection has no buffers. What
//! all connections keep together is limited by `budget`, half of it for one client. Three limits
//! hold before authentication. A request has at most 1 KiB. A client has the request timeout for
//! it. TLS, which needs large buffers, has 45 MiB, a sixteenth of it for one client.
//!
//! *No client starves another.* A turn is bounded in requests and bytes. After a few turns, or
//! one that filled a limit, a task yields to all other tasks that are ready. A reply of 65,536
//! IDs holds its worker for some 3 ms. Blocking calls run on other threads. `clients` limits
//! the connections of each client.
//!
//! *Everything ends.* Waiting for a request to start has the idle timeout; the rest of a
//! request, its TLS handshake, and the opening of its namespace have the request timeout. So
//! do unsent replies, with a second more for each MiB. Only progress restarts a timeout: a
//! request or a write that is complete, not a byte of it.
//!
//! *A drain loses no request that has begun.* Each task sees the drain, lets its runtime poll for
//! events once more, and answers what was read. Part of a request has its timeout for the rest.
//! Then the task ends its output and reads for half a second, so that a client that sends meanwhile
//! sees an end and no reset. If a client never stops sending, reading stops half a second after the
//! first answer; every request read in full is answered.

mod accept;
mod budget;
mod commands;
mod connection;
mod context;
mod decode;
mod exec;
mod reply;
mod session;
mod spin;
mod transaction;
mod turn;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

use self::context::{Shared, Worker};
use crate::config::Protocol;
use crate::handshake::{Handshakes, Tasks};
use crate::setup::Setup;

/// Namespaces that the connections of one worker open at once.
const OPENINGS: usize = 4;

/// How long a worker waits at its end for a store that does not answer.
const GRACE: Duration = Duration::from_millis(500);

pub(crate) struct RespServer {
    workers: Vec<JoinHandle<()>>,
    stop: watch::Sender<bool>,
    tasks: Tasks,
}

impl RespServer {
    /// Starts to serve, until the drain begins.
    ///
    /// # Errors
    /// No thread or event loop can be created, or a listener can't be registered.
    pub(crate) fn start(mut setup: Setup) -> io::Result<Self> {
        let listeners = std::mem::take(&mut setup.listeners);
        let (stop, stopped) = watch::channel(false);
        let shared = Arc::new(Shared::new(setup));
        let (handshakes, tasks) = Handshakes::new(
            Protocol::Resp,
            &shared.setup,
            Duration::ZERO,
            accept::FULL.to_vec(),
        );
        let mut server = Self {
            workers: Vec::new(),
            stop,
            tasks,
        };
        let mut handles = Vec::new();
        for index in 0..shared.setup.config.workers {
            let (handle, thread) = worker(index, stopped.clone())?;
            handles.push(handle);
            server.workers.push(thread);
        }
        let first = handles[0].clone();
        let handles: Arc<[Handle]> = handles.into();
        let _in_runtime = first.enter();
        for listener in listeners {
            let accepting = accept::accept_from(
                listener,
                Arc::clone(&handshakes),
                Arc::clone(&shared),
                Arc::clone(&handles),
            )?;
            first.spawn(accepting);
        }
        Ok(server)
    }

    /// Waits until all connections have ended after the drain has begun. Closes what is left
    /// at `deadline`. Returns whether nothing was left.
    pub(crate) fn join(self, deadline: Instant) -> bool {
        self.tasks.join(deadline)
    }
}

impl Drop for RespServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        for worker in self.workers.drain(..) {
            // The panic of a worker has been reported.
            let _ = worker.join();
        }
    }
}

/// Starts a worker: a thread with a runtime of its own.
fn worker(
    index: usize,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<(Handle, JoinHandle<()>)> {
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(OPENINGS)
        .on_thread_park(spin::before_park)
        .thread_name(format!("ringflake-open-{index}"))
        .build()?;
    let handle = runtime.handle().clone();
    let thread = std::thread::Builder::new()
        .name(format!("ringflake-resp-{index}"))
        .spawn(move || {
            runtime.spawn(spin::spin());
            // It ends also if the sender is gone.
            let _ = runtime
                .block_on(stopped.wait_for(|stopped| *stopped))
                .is_ok();
            runtime.shutdown_timeout(GRACE);
            Worker::clear();
        })?;
    Ok((handle, thread))
}
