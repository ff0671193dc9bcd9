//! Signals of a server to its listeners and connections: it drains, or its tokens have changed.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::watch;

/// Whether the server drains: it takes no new connections, answers the requests that have
/// begun, and closes. It goes one way.
#[derive(Clone, Default)]
pub(crate) struct Drain(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// For the path of a request, as reading `sender` takes a lock.
    begun: AtomicBool,
    /// How often the rights of tokens have changed.
    rights_version: AtomicU64,
    sender: watch::Sender<bool>,
}

impl Drain {
    pub(crate) fn has_begun(&self) -> bool {
        self.0.begun.load(Ordering::Acquire)
    }

    /// Begins. A second call does nothing.
    pub(crate) fn begin(&self) {
        // First, so that a receiver that wakes up sees it.
        self.0.begun.store(true, Ordering::Release);
        self.0.sender.send_replace(true);
    }

    pub(crate) fn rights_version(&self) -> u64 {
        self.0.rights_version.load(Ordering::Acquire)
    }

    /// Wakes all connections, which look whether their tokens are still known.
    pub(crate) fn rights_changed(&self) {
        self.0.rights_version.fetch_add(1, Ordering::Release);
        self.0.sender.send_modify(|_| {});
    }

    /// Is true from the beginning of the drain on. A change of rights wakes receivers as well.
    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.0.sender.subscribe()
    }
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Drain").field(&self.has_begun()).finish()
    }
}
