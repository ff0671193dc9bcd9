//! The assignment of clients to workers.
//!
//! ```text
//!   start --its store's key is registered--> into that worker's inbox --.
//!     |                                                                 v
//!     `--otherwise--> thread started, registered under its key ---> rounds
//!                                                                       | no client is left,
//!                                  deregistered, store closed <---------' its inbox is empty
//! ```
//! # Why it is right
//! *No client is lost.* A client enters a worker's inbox under the registry's lock, while
//! the worker is registered. The worker deregisters under the same lock, and only if its
//! inbox is empty. A client that comes after that finds no worker, and starts another one.
//! A worker whose thread ends in another way, by a panic, deregisters all the same and
//! drops the clients in its inbox: their builders get an error.
//!
//! *Two workers of one key for a moment.* A worker that has deregistered may still be
//! closing its store while the next one opens one. They serve different clients, so no
//! lease is asked for by both.
//!
//! *A fork.* A child has a registry of its own ([`PerProcess`]), and so never waits for a
//! lock of its parent's. If `key` of a store forks, the child refuses the client, which is its
//! parent's.
//!
//! A worker whose store has no key is not registered, and gets no second client. Nor does a
//! worker get one that is started on a worker's own thread, by a clock, a store or a
//! subscriber: the caller waits there, and would not be served.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, mem, thread};

use super::client::Client;
use super::handle::{Inbox, WorkerHandle, Workers};
use super::worker::Worker;
use crate::fork::PerProcess;
use crate::lease::LeaseStore;
use crate::unwind::catching;

static WORKERS: PerProcess<Workers> = PerProcess::new();

thread_local! {
    /// Whether this thread is a worker.
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Assigns a client to the worker that has this store's key, or starts one with the
/// store.
///
/// # Errors
/// The operating system's, if it gives no thread or memory, and one in a forked child of the
/// client's process. The client is dropped then.
pub(super) fn assign(store: Box<dyn LeaseStore>, client: Client) -> io::Result<WorkerHandle> {
    let key = match IS_WORKER.get() {
        true => None,
        false => catching(|| store.key()).flatten(),
    };
    if client.is_forked() {
        // Closing the connection here could close it in the parent, too.
        mem::forget(store);
        return Err(io::Error::other("the process was forked during the build"));
    }
    let Some(key) = key else {
        return start(store, client, None);
    };
    let workers: &'static Workers = WORKERS.get(|_| Ok(Mutex::default()))?;
    let mut registered = workers.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, worker)) = registered.iter().find(|(other, _)| *other == key) {
        let worker = worker.clone();
        worker.inbox.push(client);
        drop(registered);
        worker.wake();
        return Ok(worker);
    }
    let worker = start(store, client, Some(workers))?;
    registered.push((key, worker.clone()));
    Ok(worker)
}

fn start(
    store: Box<dyn LeaseStore>,
    client: Client,
    workers: Option<&'static Workers>,
) -> io::Result<WorkerHandle> {
    let inbox = Arc::new(Inbox::new(workers));
    inbox.push(client);
    let worker = Worker::new(Arc::clone(&inbox), store);
    let thread = thread::Builder::new()
        .name("ringflake-lease".to_owned())
        .spawn(move || {
            IS_WORKER.set(true);
            worker.run();
        })?;
    Ok(WorkerHandle {
        inbox,
        thread: thread.thread().clone(),
    })
}
