//! A build in a thread of its own, for tasks that must not block theirs.
//!
//! ```text
//! new --first poll--> a thread builds --done--> the outcome is kept, the task woken --poll--> ready
//!                          | dropped               | dropped
//!                          v                       v
//!               the thread drops it      another thread drops it
//! ```
//! Dropping a generator joins threads and waits for its leases to be released, which a task
//! must not wait for either.

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use super::builder::CachedGeneratorBuilder;
use super::cached::CachedGenerator;
use super::direct::DirectGenerator;
use super::direct_builder::DirectGeneratorBuilder;
use super::error::BuildError;
use crate::fork::{Marked, PerProcess};
use crate::wakers;

/// Of this process, and not of the one that it was forked from.
static PROCESS: PerProcess<()> = PerProcess::new();

impl CachedGeneratorBuilder {
    /// Does what [`build`](Self::build) does in a thread of its own, so that a task can wait
    /// for the store and the padding fill without blocking: under any runtime.
    ///
    /// Nothing is done before the first poll. Cancel-safe: if the future is dropped, the
    /// thread goes on to the end of the build, and what it has built is dropped there, which
    /// releases the leases.
    ///
    /// A panic of the build, say in a clock, comes out of the poll, as it would come out of
    /// `build`. A subscriber of `tracing` that is the default of the task's thread alone
    /// does not see what the build reports.
    ///
    /// # Errors
    ///
    /// [`BuildError`] as [`build`](Self::build), and [`BuildError::System`] if there is no
    /// thread to be had, and in a forked child, where the one that builds is not.
    ///
    /// # Examples
    ///
    /// ```
    /// # use ringflake::{CachedGenerator, Layout, StaticLease};
    /// # let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 0..32);
    /// # let builder = CachedGenerator::builder(Layout::RANDFLAKE).plain().lease(lease);
    /// # smol::block_on(async {
    /// let ids = builder.build_async().await?;
    /// ids.take()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_async(self) -> BuildAsync<CachedGenerator> {
        BuildAsync::new(|| self.build())
    }
}

impl DirectGeneratorBuilder {
    /// Does what [`build`](Self::build) does in a thread of its own; see
    /// [`CachedGeneratorBuilder::build_async`](crate::CachedGeneratorBuilder::build_async).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn build_async(self) -> BuildAsync<DirectGenerator> {
        BuildAsync::new(|| self.build())
    }
}

/// The future of [`CachedGeneratorBuilder::build_async`] and
/// [`DirectGeneratorBuilder::build_async`].
///
/// Once it was ready, it is pending for ever.
#[must_use = "a future builds nothing before it is polled"]
pub struct BuildAsync<G: Send + 'static> {
    state: State<G>,
}

type Build<G> = Box<dyn FnOnce() -> Result<G, BuildError> + Send>;

enum State<G> {
    New(Build<G>),
    Builds {
        oneshot: Arc<Oneshot<G>>,
        process: &'static Marked<()>,
    },
    Over,
}

/// Between the thread that builds and the task that waits.
struct Oneshot<G>(Mutex<Slot<G>>);

struct Slot<G> {
    /// Of the build, or its panic.
    outcome: Option<thread::Result<Result<G, BuildError>>>,
    waker: Option<Waker>,
    /// The task waits no more.
    is_abandoned: bool,
}

impl<G> Oneshot<G> {
    fn lock(&self) -> MutexGuard<'_, Slot<G>> {
        // Nothing is called under the lock, so nothing is half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves the outcome to the task, if that still waits.
    fn deliver(&self, outcome: thread::Result<Result<G, BuildError>>) {
        let mut slot = self.lock();
        if slot.is_abandoned {
            drop(slot);
            // Here, with the lock free: this may take as long as a store takes, and in the
            // slot the task could be the last to let go of it.
            drop(outcome);
            return;
        }
        slot.outcome = Some(outcome);
        let waker = slot.waker.take();
        drop(slot);
        wakers::wake(waker);
    }
}

impl<G: Send + 'static> BuildAsync<G> {
    fn new(build: impl FnOnce() -> Result<G, BuildError> + Send + 'static) -> Self {
        Self {
            state: State::New(Box::new(build)),
        }
    }

    /// Starts the thread.
    fn start(build: Build<G>, waker: Waker) -> io::Result<State<G>> {
        let process = PROCESS.get(|_| Ok(()))?;
        let oneshot = Arc::new(Oneshot(Mutex::new(Slot {
            outcome: None,
            waker: Some(waker),
            is_abandoned: false,
        })));
        let this = Arc::clone(&oneshot);
        in_a_thread(move || {
            let outcome = catch_unwind(AssertUnwindSafe(build));
            // A clock may have forked: the task is the parent's.
            if !process.is_inherited() {
                this.deliver(outcome);
            }
        })?;
        Ok(State::Builds { oneshot, process })
    }
}

fn in_a_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name("ringflake-build".to_owned());
    // Detached: it reports by what it does.
    thread.spawn(work).map(drop)
}

impl<G: Send + 'static> Future for BuildAsync<G> {
    type Output = Result<G, BuildError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let fresh = cx.waker().clone();
        match std::mem::replace(&mut self.state, State::Over) {
            State::New(build) => match Self::start(build, fresh) {
                Ok(state) => {
                    self.state = state;
                    Poll::Pending
                }
                Err(error) => Poll::Ready(Err(BuildError::System(error))),
            },
            State::Builds { oneshot, process } if process.is_inherited() => {
                // The thread may hold the lock, and is not here.
                std::mem::forget(oneshot);
                let error = io::Error::other("the thread that builds is that of the parent");
                Poll::Ready(Err(BuildError::System(error)))
            }
            State::Builds { oneshot, process } => {
                let mut slot = oneshot.lock();
                let outcome = slot.outcome.take();
                let replaced = match outcome {
                    None => slot.waker.replace(fresh),
                    Some(_) => Some(fresh),
                };
                drop(slot);
                wakers::discard(replaced);
                match outcome {
                    None => {
                        self.state = State::Builds { oneshot, process };
                        Poll::Pending
                    }
                    Some(Ok(built)) => Poll::Ready(built),
                    Some(Err(panic)) => resume_unwind(panic),
                }
            }
            State::Over => Poll::Pending,
        }
    }
}

impl<G: Send + 'static> Drop for BuildAsync<G> {
    fn drop(&mut self) {
        let State::Builds { oneshot, process } = std::mem::replace(&mut self.state, State::Over)
        else {
            return;
        };
        if process.is_inherited() {
            std::mem::forget(oneshot);
            return;
        }
        let mut slot = oneshot.lock();
        slot.is_abandoned = true;
        let (outcome, waker) = (slot.outcome.take(), slot.waker.take());
        drop(slot);
        wakers::discard(waker);
        if let Some(Ok(Ok(generator))) = outcome {
            // Without a thread it is dropped here.
            let _ = in_a_thread(move || drop(generator));
        }
    }
}

impl<G: Send + 'static> fmt::Debug for BuildAsync<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildAsync").finish_non_exhaustive()
    }
}
