//! The only switch between `std` and loom.
//!
//! Everything that another thread can see goes through these names, so that
//! the models in `loom-tests` run the very code that ships.

#[cfg(not(all(loom, feature = "loom")))]
pub(crate) use self::std_impl::*;

#[cfg(all(loom, feature = "loom"))]
pub(crate) use self::loom_impl::*;

#[cfg(not(all(loom, feature = "loom")))]
mod std_impl {
    use std::time::Duration;

    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use std::thread;

    /// Parks the thread until it is unparked, or for `nap` if there is one.
    pub(crate) fn park(nap: Option<Duration>) {
        match nap {
            Some(nap) => thread::park_timeout(nap),
            None => thread::park(),
        }
    }
}

#[cfg(all(loom, feature = "loom"))]
mod loom_impl {
    use std::time::Duration;

    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use loom::thread;

    /// Parks the thread. A nap has no length in a model: it only lets others run.
    pub(crate) fn park(nap: Option<Duration>) {
        match nap {
            Some(_) => thread::yield_now(),
            None => thread::park(),
        }
    }
}
