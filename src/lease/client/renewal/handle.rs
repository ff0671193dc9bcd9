//! Handles to a worker: its inbox, and its thread to wake.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Thread, ThreadId};

use crossbeam_queue::SegQueue;

use super::client::Client;
use crate::lease::StoreKey;

/// A handle to a worker.
#[derive(Clone)]
pub(super) struct WorkerHandle {
    pub(super) inbox: Arc<Inbox>,
    pub(super) thread: Thread,
}

/// The workers of a process that can be assigned more clients, by the keys of their stores.
pub(super) type Workers = Mutex<Vec<(StoreKey, WorkerHandle)>>;

/// Where a worker finds its new clients.
pub(super) struct Inbox {
    clients: SegQueue<Client>,
    /// The registry that the worker is in, if it is in one.
    workers: Option<&'static Workers>,
}

impl WorkerHandle {
    /// Wakes the worker, which then looks at its clients.
    pub(super) fn wake(&self) {
        self.thread.unpark();
    }

    pub(super) fn thread(&self) -> ThreadId {
        self.thread.id()
    }
}

impl Inbox {
    pub(super) fn new(workers: Option<&'static Workers>) -> Self {
        Self {
            clients: SegQueue::new(),
            workers,
        }
    }

    pub(super) fn push(&self, client: Client) {
        self.clients.push(client);
    }

    /// The clients that have come since the last call.
    pub(super) fn drain(&self) -> impl Iterator<Item = Client> {
        std::iter::from_fn(|| self.clients.pop())
    }

    /// Deregisters the worker if its inbox is empty, and answers whether it did.
    pub(super) fn close(&self) -> bool {
        self.deregister(SegQueue::is_empty)
    }

    /// Deregisters the worker when the returned guard is dropped, whatever its inbox
    /// holds.
    pub(super) fn close_on_drop(&self) -> impl Drop {
        CloseOnDrop(self)
    }

    fn deregister(&self, may: impl FnOnce(&SegQueue<Client>) -> bool) -> bool {
        let Some(workers) = self.workers else {
            return may(&self.clients);
        };
        let mut registered = workers.lock().unwrap_or_else(PoisonError::into_inner);
        let may = may(&self.clients);
        if may {
            registered.retain(|(_, worker)| !std::ptr::eq(&*worker.inbox, self));
        }
        may
    }
}

struct CloseOnDrop<'a>(&'a Inbox);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.deregister(|_| true);
        self.0.drain().for_each(drop);
    }
}
