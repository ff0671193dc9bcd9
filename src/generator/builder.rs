//! The builder of a cached generator.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::backing::Share;
use super::cached::{CachedGenerator, Shared};
use super::check::BuildCheck;
use super::empty::{EmptyHook, OnEmpty, RingEmpty};
use super::error::BuildError;
use super::grant_lanes::LeaseUser;
use super::lease_hold::LeaseHold;
use super::lease_options::STORE_BORROW_LIMIT;
use super::options::shared_options;
use super::setup::{Setup, in_whole_ticks, to_ticks};
use crate::events;
use crate::fill::{
    AssistFill, FillCause, Filler, FillerParts, FullHook, PaddingFill, Producers, RingFull,
    ScheduledFill, Stripe, ThresholdFill,
};
use crate::layout::Layout;
use crate::per_core::stocks::{CoreStocks, Stocks};
use crate::per_core::{self, MAX_ITEMS};
use crate::ring::RingBuffer;
use crate::source::Source;
use crate::sync;
use crate::timeline::ClaimPolicy;

/// How often a recall is tried again while producers are about to finish, before it
/// leaves the rest to the next call: some 10 ms.
const RECALLS: u32 = 20;

impl LeaseUser for Arc<Filler> {
    fn sources(&self) -> &[Source] {
        std::slice::from_ref(self.source())
    }

    fn has_more(&self) {
        self.ask_for_what_is_missing();
        self.nudge();
    }

    fn stop_serving(&self) -> bool {
        (0..RECALLS).all(|tried| {
            let more = self.recall();
            if more {
                sync::back_off(tried);
            }
            more
        })
    }
}

/// The maximum of producer threads.
const MAX_PRODUCERS: usize = 64;

/// Configures a [`CachedGenerator`].
///
/// A lease, or a store of leases, and the choice between a secret and plain IDs
/// are asked for; the rest has defaults: 65,536 slots (512 KiB) in a stripe for each core, a
/// padding fill before the first take, a threshold fill at one half, assists below a tenth,
/// no scheduled fill, one producer, a borrow limit of 60 s (with a store, 250 s),
/// [`OnEmpty::Generate`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use ringflake::{CachedGenerator, Layout, OnEmpty, Secret, StaticLease};
/// use ringflake::{ScheduledFill, ThresholdFill};
///
/// let secret = Secret::from_hex("000102030405060708090a0b0c0d0e0f")?;
/// let ids = CachedGenerator::builder(Layout::RANDFLAKE)
///     .secret(&secret)
///     .lease(StaticLease::assume_unique(Layout::RANDFLAKE, 64..96))
///     .capacity(1 << 14)
///     .threshold_fill(ThresholdFill::percent(75))
///     .scheduled_fill(
///         ScheduledFill::every(Duration::from_secs(5)).max_age(Duration::from_secs(30)),
///     )
///     .on_empty(OnEmpty::Wait(Duration::from_millis(5)))
///     .build()?;
/// # assert_eq!(ids.stats().level, 1 << 14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is built before `build`"]
pub struct CachedGeneratorBuilder {
    setup: Setup,
    capacity: usize,
    padding: PaddingFill,
    threshold: Option<ThresholdFill>,
    assist: Option<AssistFill>,
    schedule: Option<ScheduledFill>,
    stripes: Option<usize>,
    producers: usize,
    borrow_limit: Option<Duration>,
    on_empty: OnEmpty,
    empty_hook: Option<EmptyHook>,
    full_hook: Option<FullHook>,
}

impl CachedGenerator {
    /// Starts building a generator for IDs of `layout`.
    #[doc(alias = "new")]
    pub fn builder(layout: Layout) -> CachedGeneratorBuilder {
        CachedGeneratorBuilder::new(layout)
    }
}

impl CachedGeneratorBuilder {
    /// The [`borrow_limit`](Self::borrow_limit) with leases from a store unless another is
    /// given: enough to go on through a lost history, where lease duration and
    /// [limits](crate::lease::StoreLimits) are the default.
    pub const STORE_BORROW_LIMIT: Duration = STORE_BORROW_LIMIT;

    /// The maximum of [`stripes`](Self::stripes).
    pub const MAX_STRIPES: usize = MAX_ITEMS;

    fn new(layout: Layout) -> Self {
        Self {
            setup: Setup::new(layout),
            capacity: 1 << 16,
            padding: PaddingFill::default(),
            threshold: Some(ThresholdFill::default()),
            assist: Some(AssistFill::default()),
            schedule: None,
            stripes: None,
            producers: 1,
            borrow_limit: None,
            on_empty: OnEmpty::default(),
            empty_hook: None,
            full_hook: None,
        }
    }

    shared_options!();

    /// The number of slots of all [stripes](Self::stripes) together: a power of two up to
    /// [`RingBuffer::MAX_CAPACITY`], 8 bytes each.
    ///
    /// A core finds its stripe's share of them at the full speed, and the rest by moving
    /// IDs to its stripe, up to 255 at a time. So nothing is out of reach of a burst on one
    /// core.
    ///
    /// Takes are fastest where the capacity is at least 1,024 slots for each core that the
    /// process may run on: then each has a stock, see [`CoreStocks`].
    pub fn capacity(mut self, slots: usize) -> Self {
        self.capacity = slots;
        self
    }

    /// The number of stripes that the slots are divided into: a power of two up to
    /// [`MAX_STRIPES`](Self::MAX_STRIPES), and no more than slots.
    ///
    /// Each stripe is a [`RingBuffer`] with its own fills. A take goes to the stripe of the core
    /// that it runs on, so that takes on different cores write no cache line that they share. If
    /// that stripe is empty, the take uses another one, and moves up to half of the IDs there to
    /// its own stripe. It reports empty only if it has found every stripe empty, each at its own
    /// moment.
    ///
    /// Without this call there are as many stripes as the process may use cores at a time,
    /// by affinity and quota, rounded up to a power of two, and no more than one for each
    /// 1,024 slots. [`check`](Self::check) and [`Stats::stripes`](crate::Stats::stripes)
    /// show the number.
    ///
    /// # Order
    ///
    /// Each stripe gives its IDs in the order in which they were put in, and the stripes are
    /// filled one after the other; a stock gives those of a batch in their order. So with several
    /// stripes, or with stocks, IDs that are taken later may have been made earlier, by up to the
    /// time that IDs lie there. `stripes(1)` turns stocks off. That shows in
    /// [`plain`](Self::plain) IDs, which sort by time. For IDs in the order in which they
    /// were made, also by one thread: `stripes(1)`, one producer,
    /// [`assist_fill(None)`](Self::assist_fill), and an [`OnEmpty`] other than `Generate`.
    ///
    /// # Memory of several nodes (NUMA)
    ///
    /// The system places a page of memory near the core that first writes it: the one of
    /// `build` with [`PaddingFill::BeforeFirstTake`], else that of a producer, whichever
    /// stripe it fills. So with one producer all stripes may lie on one node, and cores of
    /// another node read each line of eight IDs from there. The counters that takes write
    /// are moved to the caches of their core all the same. Where that matters, build one
    /// generator for each node, in a thread that is kept there.
    ///
    /// # Examples
    ///
    /// ```
    /// # use ringflake::{CachedGenerator, Layout, StaticLease};
    /// # let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 0..32);
    /// # let builder = CachedGenerator::builder(Layout::RANDFLAKE).plain().lease(lease);
    /// let ids = builder.capacity(1 << 14).stripes(8).build()?;
    /// assert_eq!(ids.stats().stripes, 8);
    /// # Ok::<(), ringflake::BuildError>(())
    /// ```
    pub fn stripes(mut self, count: usize) -> Self {
        self.stripes = Some(count);
        self
    }

    /// Whether and how the ring is filled at the start.
    pub fn padding_fill(mut self, fill: PaddingFill) -> Self {
        self.padding = fill;
        self
    }

    /// When takes ask for a fill; `None` for never. Each stripe has its share of the threshold,
    /// rounded up to whole slots: [`check`](Self::check) shows that of all together.
    pub fn threshold_fill(mut self, fill: impl Into<Option<ThresholdFill>>) -> Self {
        self.threshold = fill.into();
        self
    }

    /// Whether takes that leave very few IDs make some themselves, which reads the clock;
    /// `None` for never. By default below a tenth of a stripe. Needs a
    /// [`threshold_fill`](Self::threshold_fill), and does nothing without one.
    pub fn assist_fill(mut self, fill: impl Into<Option<AssistFill>>) -> Self {
        self.assist = fill.into();
        self
    }

    /// A periodic fill; `None` (the default) for none.
    pub fn scheduled_fill(mut self, fill: impl Into<Option<ScheduledFill>>) -> Self {
        self.schedule = fill.into();
        self
    }

    /// The number of producer threads, 1 to 64. They are only started if a
    /// policy needs them.
    pub fn producers(mut self, count: usize) -> Self {
        self.producers = count;
        self
    }

    /// How far ahead of the clock IDs may lie; whole ticks, rounded down, and 0 for never.
    /// 60 s by default with a lease that was given, [250 s](Self::STORE_BORROW_LIMIT) with
    /// leases from a store, and as far as leases reach where they are `local`. At most a day
    /// with a [`StaticLease`](crate::StaticLease), or a tick where that is longer.
    ///
    /// A full ring has borrowed `capacity / (nodes x 2^sequence_bits)` ticks. With given
    /// nodes, a restart of the process must wait for the time that was borrowed, or start
    /// after it. With a store it never has to; there the limit bridges a lost history:
    /// see [`StoreLimits::gap`](crate::lease::StoreLimits::gap).
    pub fn borrow_limit(mut self, limit: Duration) -> Self {
        self.borrow_limit = Some(limit);
        self
    }

    /// Sets what a take does when it has found every stripe empty.
    pub fn on_empty(mut self, answer: OnEmpty) -> Self {
        self.on_empty = answer;
        self
    }

    /// Calls `hook` each time that a take finds all stripes empty, in the thread of the take,
    /// before [`OnEmpty`] is followed. A panic in it unwinds through the take; IDs that the take
    /// had got go back into the ring.
    ///
    /// The hook must not take from the same generator, which would call the hook again. It must not
    /// own a clone of it either, which would keep the generator alive.
    pub fn on_empty_hook(mut self, hook: impl Fn(RingEmpty) + Send + Sync + 'static) -> Self {
        self.empty_hook = Some(Box::new(hook));
        self
    }

    /// Calls `hook` each time that a scheduled fill finds the ring full, in
    /// the producer's thread. A panic in it is caught and counted. Needs a
    /// [`ScheduledFill`]; must not own a clone of the generator.
    pub fn on_full_hook(mut self, hook: impl Fn(RingFull) + Send + Sync + 'static) -> Self {
        self.full_hook = Some(Box::new(hook));
        self
    }

    /// Checks everything, makes the stripes, fills them and starts the producers.
    ///
    /// A padding fill that the borrow limit cuts short is no error: the ring
    /// then holds what the limit allows, and a producer goes on when it can.
    ///
    /// # Errors
    ///
    /// [`BuildError`] with the value that is wrong and what is allowed;
    /// nothing is left running.
    pub fn build(self) -> Result<CachedGenerator, BuildError> {
        let capacity = self.capacity;
        let threshold = self.validate()?;
        let stripe_count = self.stripe_count();
        let borrow_limit = self.borrow_limit.unwrap_or(self.setup.borrow_limit());
        let core_stocks = self.core_stocks();
        let setup = self.setup.check()?;
        let stripes = Stripe::one_per_core(stripe_count, capacity, threshold, self.assist)
            .map_err(BuildError::Ring)?;
        let (core_stocks, stocks) = match core_stocks {
            CoreStocks::InUse => match Stocks::new().map_err(BuildError::System)? {
                None => (CoreStocks::Unsupported, None),
                stocks => (CoreStocks::InUse, stocks),
            },
            off => (off, None),
        };

        let policy = ClaimPolicy {
            borrow_limit: to_ticks(&setup.layout, borrow_limit),
            follows_clock: true,
            serves_the_past: false,
        };
        let timeline =
            (setup.backing).timeline(Share::WHOLE, &setup.layout, setup.clock, policy)?;
        let source = Source::new(timeline, setup.cipher);
        let filler = Arc::new(Filler::new(FillerParts {
            stripes,
            stocks,
            source,
            schedule: self.schedule,
            on_full: self.full_hook,
            producers: self.producers,
        }));
        let leases = LeaseHold::of(setup.backing, Arc::clone(&filler))?;

        let padded = match self.padding {
            PaddingFill::BeforeFirstTake => filler.fill(FillCause::Padding).is_ok(),
            PaddingFill::InBackground => false,
            PaddingFill::Off => true,
        };
        if !padded {
            // Also a fill that the borrow limit cut short: a producer completes
            // it.
            filler.requests().request(FillCause::Padding);
        }
        let needed = threshold > 0 || self.schedule.is_some() || !padded;
        let count = if needed { self.producers } else { 0 };
        let producers = Producers::spawn(Arc::clone(&filler), count).map_err(BuildError::System)?;
        events::started(
            capacity,
            stripe_count,
            filler.threshold(),
            core_stocks,
            count,
            &filler.source().timeline().leases(),
        );
        let shared = Shared::new(
            stripe_count,
            self.on_empty,
            self.empty_hook,
            producers,
            leases.begin(),
        );
        Ok(CachedGenerator::new(filler, Arc::new(shared)))
    }

    /// The same without waiting for the first lease from a store, which is asked for in the
    /// background, as often as it takes: for a program that has to start while its store may
    /// be away. Until a lease comes, takes fail with [`Refused::NoLease`], which says why;
    /// [`is_ready`](CachedGenerator::is_ready) and
    /// [`wait_ready`](CachedGenerator::wait_ready) show whether it has come
    /// ([`ready`](CachedGenerator::ready) in async code), and
    /// [`lease_status`](CachedGenerator::lease_status) has the store's last error. The ring is
    /// filled then. With a lease that was given this is [`build`](Self::build).
    ///
    /// [`Refused::NoLease`]: crate::Refused::NoLease
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build), except the store's errors: a wrong namespace or another
    /// secret is no error here, and no lease comes.
    pub fn build_detached(mut self) -> Result<CachedGenerator, BuildError> {
        self.setup.lease_options.detached = true;
        self.build()
    }

    /// Returns what [`build`](Self::build) would do, and refuses what it refuses, as far
    /// as that shows without a store: for a program that checks its configuration before
    /// it begins. No store is asked, and nothing is written, allocated, started or claimed:
    /// a build on the same given lease at the same time is not refused for it.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::{BuildError, CachedGenerator, Layout, LeaseCheck, StaticLease};
    ///
    /// let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 40..44);
    /// let builder = CachedGenerator::builder(Layout::RANDFLAKE).plain().lease(lease);
    /// let check = builder.check()?;
    /// assert_eq!((check.capacity, check.threshold), (65_536, 32_768));
    /// assert!(check.stripes.is_power_of_two());
    /// assert!(matches!(check.leases, LeaseCheck::Given(lease) if lease.nodes() == (40..44)));
    ///
    /// let refused = builder.producers(65).check().unwrap_err();
    /// assert!(matches!(refused, BuildError::Producers { count: 65 }));
    /// # Ok::<(), BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] as [`build`](Self::build), except errors of a store, the disk or
    /// the system.
    pub fn check(&self) -> Result<BuildCheck, BuildError> {
        let threshold = self.validate()?;
        let stripes = self.stripe_count();
        let leases = self.setup.dry_run(|_| 1)?;
        let borrow_limit = self.borrow_limit.unwrap_or(self.setup.borrow_limit());
        Ok(BuildCheck {
            capacity: self.capacity,
            stripes,
            threshold: threshold.div_ceil(stripes) * stripes,
            core_stocks: Some(self.core_stocks()),
            borrow_limit: in_whole_ticks(&self.setup.layout, borrow_limit),
            id_width: self.setup.id_width(),
            leases,
        })
    }

    /// Checks the options of the ring, and returns the threshold in slots.
    fn validate(&self) -> Result<usize, BuildError> {
        let threshold = match self.threshold {
            Some(fill) => fill.in_slots(self.capacity).map_err(BuildError::Policy)?,
            None => 0,
        };
        if let Some(assist) = self.assist {
            assist.validate().map_err(BuildError::Policy)?;
        }
        if let Some(schedule) = &self.schedule {
            schedule
                .validate(self.setup.layout.tick_ms())
                .map_err(BuildError::Policy)?;
        }
        if !(1..=MAX_PRODUCERS).contains(&self.producers) {
            return Err(BuildError::Producers {
                count: self.producers,
            });
        }
        // First, so that the error names a capacity that is not a power of two.
        RingBuffer::check_capacity(self.capacity).map_err(BuildError::Ring)?;
        let count = self.stripe_count();
        let most = Self::MAX_STRIPES.min(self.capacity);
        if !count.is_power_of_two() || count > most {
            return Err(BuildError::Stripes { count, most });
        }
        if matches!(self.on_empty, OnEmpty::Wait(_)) && self.threshold.is_none() {
            return Err(BuildError::WaitWithoutThreshold);
        }
        let is_filled =
            self.padding != PaddingFill::Off || self.threshold.is_some() || self.schedule.is_some();
        if !is_filled && self.on_empty == OnEmpty::Error {
            return Err(BuildError::NeverFilled);
        }
        if self.full_hook.is_some() && self.schedule.is_none() {
            return Err(BuildError::FullHookWithoutSchedule);
        }
        if let Some(limit) = self.borrow_limit {
            self.setup.check_borrow_limit(limit)?;
        }
        Ok(threshold)
    }

    /// The number of stripes, whether it was given or not.
    fn stripe_count(&self) -> usize {
        self.stripes.unwrap_or_else(|| {
            let room = (self.capacity / Stripe::MIN_SLOTS).max(1);
            let cores = per_core::cores().next_power_of_two();
            cores.min(room).min(Self::MAX_STRIPES)
        })
    }

    /// Whether takes use stocks of their cores.
    fn core_stocks(&self) -> CoreStocks {
        if self.stripes == Some(1) {
            return CoreStocks::OffForOrder;
        }
        if self.schedule.is_some_and(|it| it.age_limit().is_some()) {
            return CoreStocks::OffForMaxAge;
        }
        CoreStocks::for_capacity(self.capacity)
    }
}

impl fmt::Debug for CachedGeneratorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedGeneratorBuilder")
            .field("setup", &self.setup)
            .field("capacity", &self.capacity)
            .field("stripes", &self.stripes)
            .field("padding", &self.padding)
            .field("threshold", &self.threshold)
            .field("assist", &self.assist)
            .field("schedule", &self.schedule)
            .field("producers", &self.producers)
            .field("borrow_limit", &self.borrow_limit)
            .field("on_empty", &self.on_empty)
            .finish_non_exhaustive()
    }
}
