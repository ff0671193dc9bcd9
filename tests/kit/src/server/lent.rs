//! Servers that the tests of a process have one after the other.

use std::any::Any;
use std::ops::{Deref, DerefMut};
use std::process;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;

use crate::server::TestServer;

type Servers = Vec<Box<dyn Any + Send>>;

static IDLE: Mutex<Servers> = Mutex::new(Vec::new());

fn idle() -> MutexGuard<'static, Servers> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server that a test has to itself, and that the next test has when it ends: as many
/// are started as tests run at once. A test that changes settings or users, or copies or
/// replaces the server, starts its own instead.
///
/// The server of a test that panics is ended with the test. The others are ended with
/// the process.
#[derive(Debug)]
pub struct Lent<S: TestServer + Send + 'static>(Option<Box<S>>);

impl<S: TestServer + Send + 'static> Lent<S> {
    /// An idle server, or a new one; none where it is not installed, after saying that the
    /// test is skipped for it.
    pub fn start() -> Option<Self> {
        static AT_EXIT: Once = Once::new();
        AT_EXIT.call_once(|| {
            OWNER.store(process::id(), Relaxed);
            // SAFETY: the function touches nothing but statics that have no destructor.
            let registered = unsafe { libc::atexit(end_all) };
            assert_eq!(registered, 0, "no room for another exit handler");
        });
        let is_such = |server: &Box<dyn Any + Send>| server.is::<S>();
        let mut all = idle();
        let at = all.iter().position(is_such);
        let found = at.map(|at| all.swap_remove(at).downcast::<S>().expect("it is such"));
        drop(all);
        if let Some(server) = &found {
            server.clear();
        }
        let server = found.or_else(|| S::start_by(None).map(Box::new))?;
        Some(Self(Some(server)))
    }
}

impl<S: TestServer + Send + 'static> Deref for Lent<S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl<S: TestServer + Send + 'static> DerefMut for Lent<S> {
    fn deref_mut(&mut self) -> &mut S {
        self.0.as_mut().expect("it is there until it is dropped")
    }
}

impl<S: TestServer + Send + 'static> Drop for Lent<S> {
    fn drop(&mut self) {
        if let Some(server) = self.0.take()
            && !thread::panicking()
        {
            idle().push(server);
        }
    }
}

/// The process whose servers they are, for one that was forked off has the same statics.
static OWNER: AtomicU32 = AtomicU32::new(0);

extern "C" fn end_all() {
    // Relaxed: only the process that wrote it, or a copy of it, reads it.
    if OWNER.load(Relaxed) != process::id() {
        return;
    }
    if let Ok(mut idle) = IDLE.try_lock() {
        idle.clear();
    }
}
