//! The generator with rings, one to a core.

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::counters::DryCounters;
use super::empty::{EmptyHook, OnEmpty, TakeError};
use super::lease_hold::{LeaseHold, Shutdown};
#[cfg(feature = "metrics")]
use crate::cipher::Backend;
use crate::describe::opaque_debug;
use crate::events::Throttle;
use crate::fill::{Filler, Producers, RecallMark, Stripe};
use crate::id::Id;
use crate::lease::Lease;
use crate::per_core::PerCore;
use crate::per_core::stocks::Stocks;
use crate::source::Source;

/// Hands out unique 64-bit IDs from rings that producer threads keep full.
///
/// There is a ring for each core, a *stripe*. A take goes to the stripe of the core that it
/// runs on, and to the others only where that one is empty. So takes on different cores
/// write no cache line that they share, and IDs come in no particular order: see
/// [`stripes`](crate::CachedGeneratorBuilder::stripes).
///
/// Clones are cheap and share everything: clone one generator into every
/// thread rather than build several. When the last clone and the last
/// [`Handle`](crate::Handle) are dropped, the producers are stopped and joined.
///
/// Taking never blocks, unless [`OnEmpty::Wait`] asks for it, and neither
/// allocates nor locks. Most takes pop an ID from a stock of their core without a locked
/// instruction, or where [`CoreStocks`](crate::CoreStocks) are off, from the stripe by one
/// compare-exchange. The others:
///
/// | a take that | does besides |
/// |---|---|
/// | finds the stock of its core empty, one in 128 | takes 128 IDs from the stripe: about 0.1 us |
/// | crosses its stripe's fill threshold | wakes a producer: one system call if that sleeps |
/// | leaves very few IDs | makes some for its stripe, in about a microsecond: [`AssistFill`](crate::AssistFill) |
/// | finds its stripe empty and another not | moves up to 255 IDs to its own |
/// | finds all stripes empty | what [`OnEmpty`] says: by default makes a run, in about a microsecond |
/// | would then fail or wait | takes what the stock of another core has: three system calls, about 50 us |
/// | puts IDs into a stripe while others wait for some, with [`OnEmpty::Wait`] | wakes one thread and one task |
///
/// Those that make IDs read the clock, and may report it to `tracing`, once a second.
///
/// In a child of `fork(2)` every take fails with
/// [`Refused::Forked`](crate::Refused::Forked): the IDs are the parent's. Build a new
/// generator there. On Linux since 4.14 this holds for whatever call copies the process;
/// elsewhere for `fork` alone, not for `_Fork` or a raw `clone`. A take that is in progress when
/// a signal handler forks may return its ID in both processes. A child of `vfork` must not take
/// before `exec`. A snapshot that is resumed twice can't be recognised.
///
/// # Examples
///
/// ```
/// use ringflake::{CachedGenerator, Layout, Secret, StaticLease};
///
/// let secret = Secret::from_hex("000102030405060708090a0b0c0d0e0f")?;
/// let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 0..32);
/// let ids = CachedGenerator::builder(Layout::RANDFLAKE)
///     .secret(&secret)
///     .lease(lease)
///     .build()?;
///
/// let id = ids.take()?;
/// assert!(ids.inspect(id)?.node < 32);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CachedGenerator {
    pub(super) filler: Arc<Filler>,
    /// The filler's.
    stocks: Option<Stocks>,
    /// The filler's.
    stripes: PerCore<Stripe>,
    pub(super) shared: Arc<Shared>,
}

/// The state that the clones share besides the stripes.
pub(super) struct Shared {
    pub(super) on_empty: OnEmpty,
    pub(super) hook: Option<EmptyHook>,
    pub(super) dry: DryCounters,
    /// IDs that handles gave back to the ring or dropped.
    pub(super) returned: AtomicU64,
    /// The dropped ones among `returned`.
    pub(super) dropped: AtomicU64,
    pub(super) ran_dry: Throttle,
    pub(super) refused: Throttle,
    /// Stops and joins the threads when the last clone is dropped.
    pub(super) producers: Producers,
    /// Lets go of the leases, after that.
    pub(super) leases: LeaseHold,
}

impl Shared {
    pub(super) fn new(
        stripes: usize,
        on_empty: OnEmpty,
        hook: Option<EmptyHook>,
        producers: Producers,
        leases: LeaseHold,
    ) -> Self {
        Self {
            on_empty,
            hook,
            dry: DryCounters::new(stripes),
            returned: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            ran_dry: Throttle::new(),
            refused: Throttle::new(),
            producers,
            leases,
        }
    }
}

impl CachedGenerator {
    pub(super) fn new(filler: Arc<Filler>, shared: Arc<Shared>) -> Self {
        Self {
            stocks: filler.stocks().cloned(),
            stripes: filler.stripes().clone(),
            filler,
            shared,
        }
    }

    /// Takes one ID.
    ///
    /// Lock-free; one to three nanoseconds while the stock and the stripe of this core hold any,
    /// on all cores at once, and a few more without [`CoreStocks`](crate::CoreStocks). About a microsecond for a take that makes IDs for those after it, because very
    /// few are left or none.
    ///
    /// # Errors
    ///
    /// [`TakeError`] if all stripes and stocks are empty and [`OnEmpty`] does not help: with
    /// `Generate` only at the borrow limit, at the end of the lease and in a
    /// forked child.
    #[doc(alias = "generate")]
    #[doc(alias = "next_id")]
    #[doc(alias = "try_take")]
    #[inline]
    pub fn take(&self) -> Result<Id, TakeError> {
        match self
            .filler
            .take_at_once(self.stocks.as_ref(), &self.stripes)
        {
            Some(id) => Ok(id),
            None => self.take_slowly(),
        }
    }

    /// Fills `out` from the front and returns how many IDs that were: all of
    /// `out`, or fewer if all stripes ran dry and [`OnEmpty`] did not help, but at
    /// least one unless `out` is empty. `Wait` does not wait for the rest.
    ///
    /// Lock-free; under a nanosecond an ID from a batch of 64 on. One step for each stripe used,
    /// this core's first.
    ///
    /// # Examples
    ///
    /// ```
    /// # use ringflake::{CachedGenerator, Id, Layout, StaticLease};
    /// # let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 0..32);
    /// # let ids = CachedGenerator::builder(Layout::RANDFLAKE).plain().lease(lease).build()?;
    /// let mut batch = [Id::default(); 100];
    /// assert_eq!(ids.take_batch(&mut batch)?, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`TakeError`] as in [`take`](Self::take), if there was not even one.
    #[inline]
    pub fn take_batch(&self, out: &mut [Id]) -> Result<usize, TakeError> {
        // Before the take, for IDs that may have to go back.
        let mark = self.filler.recall_mark();
        let count = self.filler.take_batch(out);
        if count == out.len() {
            Ok(count)
        } else {
            self.take_batch_dry(out, count, mark)
        }
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn backend(&self) -> Backend {
        self.source().cipher().backend()
    }

    /// Makes the IDs, before they lie in the stripes.
    pub(super) fn source(&self) -> &Source {
        self.filler.source()
    }

    /// The leases that new IDs come from at this moment: the one that was given,
    /// or those that a store granted. Allocates.
    pub fn leases(&self) -> Vec<Lease> {
        self.source().timeline().leases()
    }

    /// Whether a lease from a store is in force at this moment: there is one, and the clock
    /// has not passed its end. One that begins ahead of the clock counts, though takes
    /// may be refused until the borrow limit reaches it. Always true where a lease was
    /// given, and never in a forked child, which has none.
    ///
    /// For a health check, not for each take: reads the clock under a lock that the thread
    /// which keeps leases holds for microseconds, and never while it waits for the store.
    pub fn is_ready(&self) -> bool {
        self.wait_ready(Duration::ZERO)
    }

    /// Waits until the generator [is ready](Self::is_ready), for no longer than `patience`,
    /// and answers whether it is: for one that was
    /// [built detached](crate::CachedGeneratorBuilder::build_detached), or whose leases
    /// have ended. Answers at once where a lease was given, and in a forked child.
    ///
    /// Any number of threads may wait; each blocks its thread; a task awaits
    /// [`ready`](Self::ready) instead. A clock must not call this.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use ringflake::lease::{Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace};
    /// use ringflake::{CachedGenerator, Clock, Layout, SystemClock};
    ///
    /// let mut store = MemoryStore::new(Arc::new(SystemClock));
    /// let ids = CachedGenerator::builder(Layout::RANDFLAKE)
    ///     .plain()
    ///     .lease_store(store.clone())
    ///     .namespace("orders")
    ///     .build_detached()?;
    /// assert!(!ids.is_ready());
    ///
    /// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
    /// store.init(&orders, &Init::new(History::New, SystemClock.unix_ms()))?;
    /// assert!(ids.wait_ready(Duration::from_secs(60)));
    /// ids.take()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_ready(&self, patience: Duration) -> bool {
        // Again after the last look at the clock, which may have forked.
        !self.is_forked() && self.shared.leases.wait_ready(patience) && !self.is_forked()
    }

    /// Gives up everything that a copy of this process may have too: the leases,
    /// the IDs in the ring and in every [`Handle`](crate::Handle). For a process that was
    /// resumed from a snapshot, which may be resumed a second time; call it
    /// before the first take.
    ///
    /// When it returns, no ID that was made before will be taken any more, except by takes in
    /// progress. With a store, fresh leases are acquired in the background, and takes fail with
    /// [`Refused::NoLease`](crate::Refused::NoLease) until they come. With a given lease every take
    /// fails from now on, with [`Refused::Invalidated`](crate::Refused::Invalidated).
    ///
    /// Blocks while producers or consumers put IDs that they have made into the ring:
    /// some microseconds if they are running. It waits for no producer that is in the
    /// middle of making IDs, which are dropped when it comes back. A clock must not
    /// call this: with a store it may be asked by the thread that is to answer. Does
    /// nothing in a forked child, which has no leases anyway.
    pub fn invalidate(&self) {
        if self.is_forked() {
            return;
        }
        self.shared.leases.invalidate(&self.filler);
        // Those who wait for IDs of a given lease wait in vain.
        self.filler.wake_waiters();
    }

    /// Stops the producers and releases the leases from a store, waiting for that no
    /// longer than `patience`: for a service that ends, so that others can have its nodes
    /// at once.
    ///
    /// Every other clone and every [`Handle`](crate::Handle) has to be gone; while one is
    /// there, this lets go of this clone alone. Dropping the last one does the same, but
    /// waits for a second at most, for all generators of the process that are dropped at
    /// about that time together. A store that does not answer delays neither.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use ringflake::{CachedGenerator, Layout, Shutdown, StaticLease};
    ///
    /// let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 900..901);
    /// let ids = CachedGenerator::builder(Layout::RANDFLAKE).plain().lease(lease).build()?;
    /// let clone = ids.clone();
    /// assert_eq!(clone.shutdown(Duration::from_secs(5)), Shutdown::InUse);
    /// assert_eq!(ids.shutdown(Duration::from_secs(5)), Shutdown::Released);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "close")]
    pub fn shutdown(self, patience: Duration) -> Shutdown {
        let Self { filler, shared, .. } = self;
        let Some(shared) = Arc::into_inner(shared) else {
            return Shutdown::InUse;
        };
        let Shared {
            producers, leases, ..
        } = shared;
        drop((producers, filler));
        leases.shut_down(patience)
    }

    /// Slots in all stripes together: the most IDs that are ready at once, but for up to 127 in
    /// the stock of each core. At least what the builder was given.
    pub fn capacity(&self) -> usize {
        self.filler.capacity()
    }

    /// Puts back the IDs that a handle has left, and counts those that find no
    /// room.
    pub(super) fn give_back(&self, ids: &[Id], mark: RecallMark) {
        let pushed = self.filler.put_back(ids, mark);
        self.shared.returned.fetch_add(pushed as u64, Relaxed);
        self.count_dropped(ids.len() - pushed);
    }

    /// Counts IDs that were taken from the ring and will not be used.
    pub(super) fn count_dropped(&self, count: usize) {
        if count > 0 {
            self.shared.returned.fetch_add(count as u64, Relaxed);
            self.shared.dropped.fetch_add(count as u64, Relaxed);
        }
    }

    /// A reference that does not keep the generator alive.
    ///
    /// # Examples
    ///
    /// ```
    /// # use ringflake::{CachedGenerator, Layout, StaticLease};
    /// # let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 96..128);
    /// # let ids = CachedGenerator::builder(Layout::RANDFLAKE).plain().lease(lease).build()?;
    /// let weak = ids.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(ids);
    /// assert!(weak.upgrade().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn downgrade(&self) -> WeakGenerator {
        WeakGenerator {
            filler: Arc::downgrade(&self.filler),
            shared: Arc::downgrade(&self.shared),
        }
    }
}

// Everything inside is atomic, and a panic of a clock or a hook is where nothing
// is half done.
impl UnwindSafe for CachedGenerator {}
impl RefUnwindSafe for CachedGenerator {}

impl fmt::Debug for CachedGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedGenerator")
            .field("filler", &self.filler)
            .field("on_empty", &self.shared.on_empty)
            .finish_non_exhaustive()
    }
}

/// A [`CachedGenerator`] that this reference does not keep alive: for a monitor or a cache
/// that outlives the service.
///
/// Made by [`CachedGenerator::downgrade`].
#[derive(Clone)]
pub struct WeakGenerator {
    filler: Weak<Filler>,
    shared: Weak<Shared>,
}

impl WeakGenerator {
    /// The generator, if a clone of it or one of its handles is still there.
    ///
    /// The returned generator counts as a clone: a [`shutdown`](CachedGenerator::shutdown)
    /// meanwhile finds the generator in use, and dropping it last ends the generator.
    pub fn upgrade(&self) -> Option<CachedGenerator> {
        // The filler outlives what is shared, whose end joins threads. So where this finds
        // nothing there is nothing to join here.
        let filler = self.filler.upgrade()?;
        let shared = self.shared.upgrade()?;
        Some(CachedGenerator::new(filler, shared))
    }
}

opaque_debug!(WeakGenerator);
