//! Takes that wait without blocking a thread.
//!
//! A take is done within one poll: it gets its IDs and returns them, and between polls it
//! holds none. So dropping it loses none, whenever that is. `fill::waiters` proves that it
//! leaves no waiter behind, and that no wake-up ends with it.

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::cached::CachedGenerator;
use super::dry::Dry;
use super::empty::TakeError;
use crate::fill::{Filler, Waiting};
use crate::id::Id;

impl CachedGenerator {
    /// Takes one ID, and where [`OnEmpty::Wait`](crate::OnEmpty::Wait) has to wait, does so
    /// without blocking the thread: for tasks of a runtime, whichever that is.
    ///
    /// With another [`OnEmpty`](crate::OnEmpty), or while there are IDs, the first poll does
    /// what [`take`](Self::take) does, in the same few nanoseconds. Without `Wait` a task can
    /// as well call that.
    ///
    /// The wait has no end of its own, whatever duration `Wait` has: a timer is a
    /// runtime's. Put its timeout around this: [the guide](crate::guide::async_code) shows how.
    ///
    /// Cancel-safe: a take that is dropped has taken nothing, and a wake-up that was on its
    /// way to it goes on to another. A take that waits has to be polled or dropped once
    /// it is woken. It allocates for its place among those who wait, and passes a lock that
    /// is held for some nanoseconds. Ready, it can be polled again, and takes the next.
    ///
    /// # Errors
    ///
    /// [`TakeError`] as in [`take`](Self::take), but for `TimedOut`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use ringflake::{CachedGenerator, Layout, OnEmpty, StaticLease};
    /// # let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 0..32);
    /// # let builder = CachedGenerator::builder(Layout::RANDFLAKE).plain().lease(lease);
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let ids = builder.on_empty(OnEmpty::Wait(Duration::MAX)).build()?;
    /// let id = ids.take_async().await?;
    /// assert!(ids.inspect(id)?.node < 32);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take_async(&self) -> TakeAsync<'_> {
        TakeAsync {
            take: Take::new(self),
        }
    }

    /// Fills `out` from the front as [`take_batch`](Self::take_batch) does, and waits as
    /// [`take_async`](Self::take_async) does until there is at least one ID.
    ///
    /// Cancel-safe: until it is ready, it has put nothing into `out`.
    ///
    /// # Errors
    ///
    /// [`TakeError`] as in [`take_async`](Self::take_async), if there was not even one.
    pub fn take_batch_async<'a>(&'a self, out: &'a mut [Id]) -> TakeBatchAsync<'a> {
        TakeBatchAsync {
            take: Take::new(self),
            out,
        }
    }
}

/// The future of [`CachedGenerator::take_async`].
#[derive(Debug)]
#[must_use = "a future takes nothing before it is polled"]
pub struct TakeAsync<'a> {
    take: Take<'a>,
}

/// The future of [`CachedGenerator::take_batch_async`].
#[derive(Debug)]
#[must_use = "a future takes nothing before it is polled"]
pub struct TakeBatchAsync<'a> {
    take: Take<'a>,
    out: &'a mut [Id],
}

/// A take, over several polls.
#[derive(Debug)]
struct Take<'a> {
    ids: &'a CachedGenerator,
    /// Only with `OnEmpty::Wait`, from when all stripes were found empty.
    waiting: Waiting<'a, Filler>,
}

impl<'a> Take<'a> {
    fn new(ids: &'a CachedGenerator) -> Self {
        Self {
            ids,
            waiting: ids.filler.waiting(),
        }
    }

    /// `at_once` takes what there is, where the ring was not found empty yet.
    fn poll(
        &mut self,
        cx: &Context<'_>,
        out: &mut [Id],
        at_once: impl FnOnce(&mut [Id]) -> usize,
    ) -> Poll<Result<usize, TakeError>> {
        let ids = self.ids;
        if !self.waiting.is_waiting() {
            // Before the take, for IDs that may have to go back.
            let mark = ids.filler.recall_mark();
            let count = at_once(out);
            if count == out.len() {
                return Poll::Ready(Ok(count));
            }
            if let Dry::Done(outcome) = ids.find_dry(out, count, mark) {
                return Poll::Ready(outcome);
            }
        }
        let polled = self.waiting.poll(cx.waker(), || ids.attempt(out));
        polled.map(|outcome| ids.conclude(outcome))
    }
}

impl Future for TakeAsync<'_> {
    type Output = Result<Id, TakeError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let filler = &self.take.ids.filler;
        let mut id = [Id::default()];
        let polled = self.take.poll(cx, &mut id, |out| {
            let taken = filler.take_at_once(filler.stocks(), filler.stripes());
            let taken = taken.or_else(|| filler.take_slowly());
            taken.map(|id| out[0] = id).map_or(0, |()| 1)
        });
        polled.map_ok(|_| id[0])
    }
}

impl Future for TakeBatchAsync<'_> {
    type Output = Result<usize, TakeError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { take, out } = &mut *self;
        let filler = &take.ids.filler;
        take.poll(cx, out, |out| filler.take_batch(out))
    }
}
