//! The thread that publishes from time to time.
//!
//! ```text
//! publish --> sleep for the interval --> publish --> ...
//!    |             |
//!    |             `--stopped--> publish once more, end
//!    `--the generator is gone, or this is a forked child--> end
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io, mem};

use super::publisher::Publisher;
use crate::fork::WipeOnFork;
use crate::unwind::catching;

/// The shortest interval.
const SHORTEST: Duration = Duration::from_millis(10);

/// A thread that publishes a generator's figures. Dropping it publishes them once more and
/// ends it: before a [`shutdown`](crate::CachedGenerator::shutdown), which would find the
/// generator in use for the moment in which the thread reads its figures. Dropping it waits
/// for the recorder, and so does not return while that hangs.
#[must_use = "dropping it ends the thread; `detach` lets it go on"]
pub struct PublisherThread {
    shared: Arc<Shared>,
    /// Taken when it is let go.
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    stop: AtomicBool,
    /// Reads false in a forked child.
    not_forked: WipeOnFork<bool>,
}

impl Publisher {
    /// Publishes now and after each `interval`, at least 10 milliseconds, by a thread of its
    /// own named `ringflake-metrics`, to the global recorder. Ten seconds are a good interval,
    /// or whatever the recorder is read at.
    ///
    /// The thread ends when what is returned is dropped, and by itself when it finds the
    /// generator gone, after an interval at most. A recorder that is installed later gets the
    /// figures from then on, without their descriptions.
    ///
    /// # Errors
    /// The operating system's, if it gives no thread or memory.
    pub fn publish_every(self, interval: Duration) -> io::Result<PublisherThread> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            not_forked: WipeOnFork::new(true)?,
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("ringflake-metrics".to_owned())
            .spawn(move || of_thread.run(|| self.publish(), interval.max(SHORTEST)))?;
        Ok(PublisherThread {
            shared,
            thread: Some(thread),
        })
    }
}

impl Shared {
    fn run(&self, publish: impl Fn() -> bool, interval: Duration) {
        loop {
            // Before the figures are read, so that the last ones are read after it.
            let is_last = self.is_stopped();
            let goes_on = catching(&publish).unwrap_or(true);
            if !goes_on || is_last || self.is_forked() {
                return;
            }
            let published = Instant::now();
            let left = || interval.saturating_sub(published.elapsed());
            while !self.is_stopped() && !left().is_zero() {
                thread::park_timeout(left());
            }
        }
    }

    fn is_stopped(&self) -> bool {
        // Relaxed: who sets it wakes the thread afterwards.
        self.stop.load(Relaxed)
    }

    fn is_forked(&self) -> bool {
        !*self.not_forked
    }
}

impl PublisherThread {
    /// Lets the thread go on until the generator is gone. A
    /// [`shutdown`](crate::CachedGenerator::shutdown) may then find the generator
    /// [in use](crate::Shutdown::InUse), and the thread ends it a moment later.
    pub fn detach(mut self) {
        self.thread = None;
    }
}

impl Drop for PublisherThread {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        if self.shared.is_forked() {
            // The parent's; here there is nothing to join.
            mem::forget(thread);
            return;
        }
        self.shared.stop.store(true, Relaxed);
        thread.thread().unpark();
        // A recorder may own it; its thread ends by itself.
        if thread.thread().id() != thread::current().id() {
            // Panics are caught in there; there is nothing to report.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for PublisherThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublisherThread").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use ringflake_kit::eventually;

    use super::*;
    use crate::generator::CachedGenerator;
    use crate::layout::Layout;
    use crate::lease::StaticLease;

    fn ids(node: u64) -> CachedGenerator {
        let lease = StaticLease::assume_unique(Layout::RANDFLAKE, node..node + 1);
        let builder = CachedGenerator::builder(Layout::RANDFLAKE).plain();
        builder.lease(lease).build().unwrap()
    }

    /// The figures may have changed since they were read.
    #[test]
    fn a_thread_that_is_stopped_while_it_publishes_publishes_once_more() {
        let shared = Shared {
            stop: AtomicBool::new(false),
            not_forked: WipeOnFork::new(true).unwrap(),
        };
        let published = AtomicUsize::new(0);
        let publish = || {
            shared.stop.store(true, Relaxed);
            published.fetch_add(1, Relaxed);
            true
        };
        shared.run(publish, SHORTEST);
        assert_eq!(published.load(Relaxed), 2);
    }

    #[test]
    fn the_thread_ends_with_the_generator() {
        let ids = ids(7_340);
        let publishing = Publisher::new(&ids).publish_every(SHORTEST).unwrap();
        let thread = publishing.thread.as_ref().unwrap();
        assert_eq!(thread.thread().name(), Some("ringflake-metrics"));
        assert!(!thread.is_finished());
        drop(ids);
        eventually("it ends", || thread.is_finished());
    }

    #[test]
    fn a_thread_that_is_let_go_goes_on_until_the_generator_ends() {
        let ids = ids(7_341);
        let publishing = Publisher::new(&ids).publish_every(SHORTEST).unwrap();
        let shared = Arc::downgrade(&publishing.shared);
        publishing.detach();
        assert!(!shared.upgrade().unwrap().is_stopped());
        drop(ids);
        eventually("it ends", || shared.upgrade().is_none());
    }
}
