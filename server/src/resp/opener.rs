//! The threads that open namespaces, since that blocks for as long as a store does.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::{fmt, io};

use mio::Waker;

use super::desk::OpenFailure;
use super::worker::Accepted;
use crate::drain::Drain;
use crate::namespaces::Namespaces;

/// What a worker is sent.
pub(super) enum Message {
    Accepted(Box<Accepted>),
    /// A namespace is open, or why it is not.
    Opened {
        slot: usize,
        /// Of the session that waits for it.
        session: u64,
        name: String,
        failure: Option<OpenFailure>,
    },
}

/// Where a worker is sent messages, and how it wakes up for them.
pub(super) struct Inbox {
    messages: Mutex<Vec<Message>>,
    waker: Waker,
}

impl Inbox {
    pub(super) fn new(waker: Waker) -> Self {
        Self {
            messages: Mutex::default(),
            waker,
        }
    }

    pub(super) fn send(&self, message: Message) {
        self.lock().push(message);
        self.wake();
    }

    /// The worker looks at its inbox, and at whether it is to end.
    pub(super) fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            tracing::error!(%error, "a worker could not be woken");
        }
    }

    pub(super) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Message>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inbox").field(&self.lock().len()).finish()
    }
}

/// A namespace that a request needs.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) worker: usize,
    pub(super) slot: usize,
    pub(super) session: u64,
    pub(super) name: String,
}

/// Namespaces that are opened at once: one whose store does not answer stops no other.
const THREADS: usize = 4;

/// Begins the threads, which end when nobody can send them orders any more.
pub(super) fn start(
    namespaces: &Arc<Namespaces>,
    inboxes: &Arc<[Inbox]>,
    drain: &Drain,
) -> io::Result<(Sender<Order>, Vec<JoinHandle<()>>)> {
    let (sender, orders) = channel();
    let orders = Arc::new(Mutex::new(orders));
    let start = |index| {
        let (namespaces, inboxes) = (Arc::clone(namespaces), Arc::clone(inboxes));
        let (drain, orders) = (drain.clone(), Arc::clone(&orders));
        Builder::new()
            .name(format!("ringflake-open-{index}"))
            .spawn(move || open_all(&namespaces, &inboxes, &drain, &orders))
    };
    let threads = (0..THREADS).map(start).collect::<io::Result<_>>()?;
    Ok((sender, threads))
}

fn open_all(
    namespaces: &Namespaces,
    inboxes: &[Inbox],
    drain: &Drain,
    orders: &Mutex<Receiver<Order>>,
) {
    loop {
        // Held while it waits: one of the threads waits there, and the others for that.
        let order = orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(order) = order else { return };
        let Order {
            worker,
            slot,
            session,
            name,
        } = order;
        let failure = if drain.has_begun() {
            Some(OpenFailure::Ends)
        } else {
            namespaces.open(&name).err().as_ref().map(OpenFailure::from)
        };
        inboxes[worker].send(Message::Opened {
            slot,
            session,
            name,
            failure,
        });
    }
}
