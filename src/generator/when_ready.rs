//! The wait of a task until a generator is ready.

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::cached::CachedGenerator;
use super::direct::DirectGenerator;
use super::lease_hold::LeaseHold;
use crate::describe::opaque_debug;
use crate::fill::FilledWait;
use crate::timeline::Timeline;
use crate::wakers::Ticket;

impl CachedGenerator {
    /// Waits, without blocking a thread, until the generator can serve: a lease is in force
    /// ([`is_ready`](Self::is_ready)), and there is at least one ID in the ring, for which it
    /// asks a producer. For a service that starts, after
    /// [`build_detached`](crate::CachedGeneratorBuilder::build_detached), and for one that
    /// has lost its leases.
    ///
    /// The answer is false in a forked child, and where no more IDs can be made: at the end of a
    /// given lease, or once that is [invalidated](Self::invalidate). If a store grants nothing,
    /// this waits for as long as it takes: put a timeout of your runtime around it. Without a
    /// producer or a threshold the lease is enough, since takes then make their own IDs.
    ///
    /// Cancel-safe, like [`take_async`](Self::take_async). Each poll reads the clock, under
    /// a lock as [`is_ready`](Self::is_ready) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use ringflake::lease::{Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace};
    /// use ringflake::{CachedGenerator, Clock, Layout, SystemClock};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let mut store = MemoryStore::new(Arc::new(SystemClock));
    /// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
    /// store.init(&orders, &Init::new(History::New, SystemClock.unix_ms()))?;
    /// let ids = CachedGenerator::builder(Layout::RANDFLAKE)
    ///     .plain()
    ///     .lease_store(store)
    ///     .namespace("orders")
    ///     .build_detached()?;
    /// assert!(tokio::time::timeout(Duration::from_secs(60), ids.ready()).await?);
    /// ids.take()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ready(&self) -> WhenReady<'_> {
        // Without a threshold a poll has nothing to ask a producer for.
        let filled = self.shared.producers.are_any() && self.filler.threshold() > 0;
        WhenReady {
            timeline: self.filler.source().timeline(),
            leases: &self.shared.leases,
            ticket: Ticket::default(),
            ring: filled.then(|| FilledWait::new(&self.filler)),
        }
    }
}

impl DirectGenerator {
    /// Waits, without blocking a thread, until a lease is in force, and answers whether one
    /// is: see [`CachedGenerator::ready`](crate::CachedGenerator::ready).
    pub fn ready(&self) -> WhenReady<'_> {
        let (leases, timeline) = self.hold();
        WhenReady {
            timeline,
            leases,
            ticket: Ticket::default(),
            ring: None,
        }
    }
}

/// The future of [`CachedGenerator::ready`] and [`DirectGenerator::ready`].
#[must_use = "a future waits for nothing before it is polled"]
pub struct WhenReady<'a> {
    timeline: &'a Timeline,
    leases: &'a LeaseHold,
    /// The place among those who wait for a lease.
    ticket: Ticket,
    /// The wait for the ring, if producers fill it.
    ring: Option<FilledWait<'a>>,
}

impl Future for WhenReady<'_> {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let polled = self.poll_once(cx);
        // After the last look at the clock, which may have forked.
        if self.timeline.is_forked() {
            return Poll::Ready(false);
        }
        polled
    }
}

impl WhenReady<'_> {
    fn poll_once(&mut self, cx: &Context<'_>) -> Poll<bool> {
        if self.timeline.is_forked() {
            return Poll::Ready(false);
        }
        let is_leased = self.leases.poll_ready(&mut self.ticket, cx.waker());
        match &mut self.ring {
            Some(ring) => ring.poll(is_leased, cx.waker()),
            None => is_leased.map_or(Poll::Pending, Poll::Ready),
        }
    }
}

impl Drop for WhenReady<'_> {
    fn drop(&mut self) {
        // A child has a copy of the renewal state's lock, but nobody to unlock it.
        if self.ticket.is_drawn() && !self.timeline.is_forked() {
            self.leases.leave(&mut self.ticket);
        }
    }
}

opaque_debug!(WhenReady<'_>);
