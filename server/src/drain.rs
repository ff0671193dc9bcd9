//! The end of a server, as its fronts learn of it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Called once, when the server begins to drain.
type Callback = Box<dyn FnOnce() + Send>;

/// Whether the server drains: it takes no new connections, answers the requests that have come
/// as a whole, and closes. It goes one way.
#[derive(Clone, Default)]
pub(crate) struct Drain(Arc<Inner>);

#[derive(Default)]
struct Inner {
    begun: AtomicBool,
    callbacks: Mutex<Vec<Callback>>,
}

impl Drain {
    pub(crate) fn has_begun(&self) -> bool {
        self.0.begun.load(Ordering::Acquire)
    }

    /// Begins, and calls everybody who waits for that. A second call does nothing.
    pub(crate) fn begin(&self) {
        let callbacks = {
            let mut callbacks = self.lock();
            // Under the lock: whoever registers later sees it.
            self.0.begun.store(true, Ordering::Release);
            std::mem::take(&mut *callbacks)
        };
        for callback in callbacks {
            callback();
        }
    }

    /// Calls `callback` when it begins; at once if it has.
    pub(crate) fn on_begin(&self, callback: impl FnOnce() + Send + 'static) {
        let mut callbacks = self.lock();
        if self.has_begun() {
            drop(callbacks);
            callback();
        } else {
            callbacks.push(Box::new(callback));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Callback>> {
        self.0
            .callbacks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Drain").field(&self.has_begun()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn everybody_is_called_once() {
        let (drain, calls) = (Drain::default(), Arc::new(AtomicU32::new(0)));
        let call = || {
            let calls = Arc::clone(&calls);
            move || {
                calls.fetch_add(1, Ordering::Relaxed);
            }
        };
        drain.on_begin(call());
        assert!(!drain.has_begun());
        drain.begin();
        drain.begin();
        assert!(drain.has_begun());
        // Too late to wait for it.
        drain.on_begin(call());
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn nobody_is_called_under_the_lock() {
        let (drain, calls) = (Drain::default(), Arc::new(AtomicU32::new(0)));
        // What is called may register something itself.
        let call = || {
            let (drain, calls) = (drain.clone(), Arc::clone(&calls));
            move || {
                let is_free = drain.0.callbacks.try_lock().is_ok();
                calls.fetch_add(is_free.into(), Ordering::Relaxed);
            }
        };
        drain.on_begin(call());
        drain.begin();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        drain.on_begin(call());
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }
}
