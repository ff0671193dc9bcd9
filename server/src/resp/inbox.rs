//! What a worker is sent, and how it wakes up for it.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mio::Waker;

use super::desk::OpenFailure;
use super::stream::Stream;
use crate::clients::Client;

/// A connection that has no worker yet.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) stream: Stream,
    pub(super) client: Client,
    pub(super) peer: String,
    pub(super) number: u64,
}

/// What a worker is sent.
pub(super) enum Message {
    Accepted(Box<Accepted>),
    /// There are no more of those.
    AllAccepted,
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

    fn lock(&self) -> MutexGuard<'_, Vec<Message>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inbox").field(&self.lock().len()).finish()
    }
}
