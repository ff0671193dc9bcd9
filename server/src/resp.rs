//! The front that speaks the Redis protocol, on TCP and on Unix sockets.
//!
//! ```text
//!            worker 0                                   worker 1, 2, ...
//! listeners --accept--> in turn ----------------------> inbox
//!                |                                        |
//!                v                                        v
//!   event loop: sockets, connections, counts      event loop: the same
//!                |                                        |
//!                +---- a namespace nobody has opened ---->+--> openers (threads that block)
//!                <---------- it is open, or why not ------+
//! ```
//!
//! Each worker is a thread with an event loop. A connection belongs to one worker, from its
//! first byte to its last, and so to one thread: nothing of it is shared or locked.
//!
//! # A connection
//!
//! ```text
//!             read, answer, write
//!               +-------+
//!               v       |
//! accepted --> Serving -+--> Parked --> Serving      the request in front needs a namespace
//!               |                                    that is not open
//!               +--> Ending --> Lingering --> closed QUIT, bytes that are no request, a drain
//!               |
//!               +--> closed    the client's end of file, an error, a deadline
//! ```
//!
//! A turn writes what the socket did not take before; if it still does not take all, the
//! turn ends there. Then it reads once, answers requests up to its budget, and writes once.
//! A connection whose budget is spent goes to the end of the list of those that are ready.
//!
//! # Why this is right
//!
//! *No ID is sent twice.* An ID leaves its generator in one `take_batch` into a worker's
//! room, and from there it is written into one reply, of the connection whose turn it is. A
//! reply's bytes go to its socket once, from the front on: what a socket took is cut off
//! before anything else is written to it. What can't be sent is dropped with its connection,
//! and nobody else gets it.
//!
//! *No ID is taken for a transaction.* There are none. A session remembers a `MULTI`, which it
//! has refused, and refuses all up to its end before a run or a command sees it.
//!
//! *No reply is lost or out of order.* Requests are decoded from the front of one buffer, and
//! each is answered or left in it: a turn says how many bytes are done with, and the next one
//! begins behind those. A run of takes is answered before anything behind it is. A reply in
//! steps, and a namespace that is not open, stop the session until they are done. Bytes that
//! a socket does not take are kept in order, and nothing is written past them.
//!
//! *A connection's memory is bounded.* Its input is at most a request and one read, since
//! nothing is read while a request is there as a whole. Its output is at most one turn's,
//! since nothing is answered before that is written. IDs of replies in steps count towards
//! a limit of their worker until they are written, a step each time. An idle connection has
//! no buffers: both belong to the worker, and a connection has memory of its own only for
//! what a turn leaves over.
//!
//! *No client starves another.* A turn is bounded, in requests, in bytes and in IDs, and
//! between two turns of one connection all others that are ready have theirs. New ones are
//! accepted some at a time, between turns. What blocks is done by the openers. How many
//! connections a client may have is `clients`' part.
//!
//! *A busy worker does not sleep at once.* It looks for requests once more: `looks` has when.
//!
//! *Everything ends.* Each phase but a request's wait for its namespace has a deadline that
//! only progress moves, and that wait has one that is answered. A client that has sent
//! nothing yet is idle, as one that has all of its replies is: both cost a place, which
//! `clients` counts, and no buffer. A handshake of TLS has the time of a request. A long
//! reply has one more for all of its steps, so that nobody keeps what is set aside for it by
//! reading slowly.

mod accept;
mod answer;
mod commands;
mod connection;
mod decode;
mod desk;
mod inbox;
mod looks;
mod opener;
mod reply;
mod session;
mod stream;
mod turn;
mod worker;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use mio::{Poll, Waker};

use self::accept::Acceptor;
pub(crate) use self::accept::Tls;
use self::desk::{Common, Desk};
use self::inbox::Inbox;
use self::worker::{LISTENERS, WAKER, Worker};
use crate::access::Rights;
use crate::clients::Clients;
use crate::drain::Drain;
use crate::front::FrontCounters;
use crate::limits::Limits;
use crate::listener::Listener;
use crate::namespaces::Namespaces;

/// Workers at most, whatever is asked for.
const MOST_WORKERS: usize = 256;

/// A front that serves.
pub(crate) struct Front {
    threads: Vec<JoinHandle<()>>,
    inboxes: Arc<[Inbox]>,
    aborts: Arc<AtomicBool>,
    counters: Vec<Arc<FrontCounters>>,
}

/// What there is to serve, and how.
pub(crate) struct Options {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) namespaces: Arc<Namespaces>,
    pub(crate) rights: Arc<dyn Rights>,
    /// For all TCP listeners, which then speak nothing else.
    pub(crate) tls: Option<Tls>,
    pub(crate) limits: Limits,
    /// Threads; 0 for one on each core.
    pub(crate) workers: usize,
    pub(crate) drain: Drain,
}

impl Front {
    /// Begins to serve. It does until the drain begins.
    pub(crate) fn start(options: Options) -> io::Result<Self> {
        let Options {
            listeners,
            namespaces,
            rights,
            tls,
            limits,
            workers,
            drain,
        } = options;
        let workers = match workers {
            0 => std::thread::available_parallelism()?.get(),
            workers => workers,
        };
        let workers = workers.min(MOST_WORKERS);
        let polls = (0..workers)
            .map(|_| Poll::new())
            .collect::<io::Result<Vec<_>>>()?;
        let inboxes = polls
            .iter()
            .map(|poll| Waker::new(poll.registry(), WAKER).map(Inbox::new))
            .collect::<io::Result<Arc<[_]>>>()?;
        let counters: Vec<Arc<FrontCounters>> = polls.iter().map(|_| Arc::default()).collect();
        let clients = Arc::new(Clients::new(&limits));
        let mut acceptor = Some(Acceptor::new(
            listeners,
            tls,
            Arc::clone(&clients),
            polls[0].registry(),
            LISTENERS,
        )?);
        let common = Arc::new(Common {
            rights,
            limits: limits.clone(),
            started: Instant::now(),
            counters: counters.clone(),
        });
        let (orders, openers) = opener::start(&namespaces, &inboxes, &drain)?;
        let mut front = Self {
            threads: openers,
            inboxes: Arc::clone(&inboxes),
            aborts: Arc::default(),
            counters: counters.clone(),
        };
        for (index, (poll, counters)) in polls.into_iter().zip(counters).enumerate() {
            let desk = Desk::new(
                Arc::clone(&common),
                Arc::clone(&counters),
                Arc::clone(&namespaces),
            );
            let worker = Worker {
                index,
                poll,
                acceptor: acceptor.take(),
                inboxes: Arc::clone(&inboxes),
                orders: orders.clone(),
                clients: Arc::clone(&clients),
                drain: drain.clone(),
                aborts: Arc::clone(&front.aborts),
                counters,
                desk,
                limits: limits.clone(),
            };
            let thread = Builder::new()
                .name(format!("ringflake-resp-{index}"))
                .spawn(move || worker.run());
            match thread {
                Ok(thread) => front.threads.push(thread),
                Err(error) => {
                    front.abort();
                    return Err(error);
                }
            }
        }
        drain.on_begin(move || inboxes.iter().for_each(Inbox::wake));
        Ok(front)
    }

    /// Of each worker.
    pub(crate) fn counters(&self) -> &[Arc<FrontCounters>] {
        &self.counters
    }

    /// Waits until all clients have their answers and are gone, after the drain has begun.
    /// At `deadline` those that are left are closed. Says whether there were none, and
    /// nothing of the front is left: a thread whose store does not answer may be.
    pub(crate) fn join(self, deadline: Instant) -> bool {
        let mut aborted = false;
        for thread in self.threads.iter().rev() {
            while !thread.is_finished() {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() && !aborted {
                    aborted = true;
                    self.abort();
                } else if left.is_zero() && Instant::now() > deadline + GRACE {
                    return false;
                }
                std::thread::sleep(LOOK.min(left.max(LOOK / 4)));
            }
        }
        for thread in self.threads {
            // One that panicked is gone as well.
            let _ = thread.join();
        }
        !aborted
    }

    fn abort(&self) {
        // Pairs with the `Acquire` in `Loop::ends`.
        self.aborts.store(true, Ordering::Release);
        self.inboxes.iter().for_each(Inbox::wake);
    }
}

/// How often `join` looks whether a thread is gone, since none can be waited for with a
/// deadline.
const LOOK: Duration = Duration::from_millis(4);

/// How long an abort may take.
const GRACE: Duration = Duration::from_millis(500);

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front")
            .field("threads", &self.threads.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, unix))]
mod tests;
