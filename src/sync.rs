//! The only switch between `std` and loom.
//!
//! All state that threads share goes through these names, so that
//! the models in `loom-tests` run the code that ships. Only statistics, on which no
//! algorithm depends, are plain `std` atomics.

#[cfg(not(all(loom, feature = "loom")))]
pub(crate) use self::std_impl::*;

#[cfg(all(loom, feature = "loom"))]
pub(crate) use self::loom_impl::*;

#[cfg(not(all(loom, feature = "loom")))]
mod std_impl {
    use std::time::Duration;

    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use std::{thread, thread_local};

    /// Whether this is a model: one process, which runs the same few steps again
    /// and again, each time from the start.
    pub(crate) const IN_A_MODEL: bool = false;

    /// A constant: `size` here, and smaller in a model.
    pub(crate) const fn size(size: usize, _in_a_model: usize) -> usize {
        size
    }

    /// Parks the thread until it is unparked, or for at most `timeout` if there is one.
    pub(crate) fn park(timeout: Option<Duration>) {
        match timeout {
            Some(timeout) => thread::park_timeout(timeout),
            None => thread::park(),
        }
    }

    /// Lets other threads run after `tried` attempts in vain: for longer each time, up to
    /// a millisecond. It sleeps, since a thread of a higher priority that only yields
    /// keeps the thread that it waits for from running.
    pub(crate) fn back_off(tried: u32) {
        if tried < 4 {
            thread::yield_now();
        } else {
            thread::sleep(Duration::from_micros(1 << tried.min(10)));
        }
    }
}

#[cfg(all(loom, feature = "loom"))]
mod loom_impl {
    use std::time::Duration;

    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use loom::{thread, thread_local};

    /// Whether this is a model.
    pub(crate) const IN_A_MODEL: bool = true;

    /// A constant that is small in a model, so that a few steps reach everything.
    pub(crate) const fn size(_size: usize, in_a_model: usize) -> usize {
        in_a_model
    }

    /// Parks the thread. A timeout has no length in a model: it only lets others run.
    pub(crate) fn park(timeout: Option<Duration>) {
        match timeout {
            Some(_) => thread::yield_now(),
            None => thread::park(),
        }
    }

    /// Lets other threads run.
    pub(crate) fn back_off(_tried: u32) {
        thread::yield_now();
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests {
    use std::time::{Duration, Instant};

    #[test]
    fn a_long_back_off_sleeps() {
        // A sleep never ends early. A yield would leave a thread of a lower
        // priority where it is.
        for (tried, minimum) in [(4, 16), (7, 128), (10, 1024), (1000, 1024)] {
            let started = Instant::now();
            super::back_off(tried);
            assert!(
                started.elapsed() >= Duration::from_micros(minimum),
                "{tried}"
            );
        }
    }
}
