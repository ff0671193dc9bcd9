//! What the takes of this benchmark draw on: leases that stay or change.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::{
    Acquire, Block, Epoch, Fence, Fingerprint, Floor, Grant, History, Init, LeaseStore, Listing,
    MemoryStore, Namespace, Renew, StoreError, StoreLimits, StoreRecord, StoreReport,
};
use ringflake::{CachedGenerator, CachedGeneratorBuilder, Clock, Layout, StaticLease, SystemClock};

use crate::common::flags;
use crate::common::stock::{layout_of_its_own, secret};

/// Nodes in a block, as a power of two.
const BLOCK_BITS: u32 = 7;

/// Blocks that are held: five times what batches use up.
const BLOCKS: u32 = 256;

/// One renewal in so many is refused where leases are swapped.
const FENCED: u64 = 8;

/// What becomes of the leases while takes go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leases {
    /// One that was given, on as many nodes.
    Fixed,
    /// Those of a store, which are not due for renewal.
    Steady,
    /// Each is renewed four times a second.
    ToppedUp,
    /// More and more of them are taken up.
    Widened,
    /// One in eight renewals is refused, so that a block is given up, used to its
    /// end, and replaced.
    Swapped,
}

impl Leases {
    pub(crate) const ALL: [Self; 5] = [
        Self::Fixed,
        Self::Steady,
        Self::ToppedUp,
        Self::Widened,
        Self::Swapped,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Steady => "steady",
            Self::ToppedUp => "topped up",
            Self::Widened => "widened",
            Self::Swapped => "swapped",
        }
    }

    /// A generator on them. `meter` counts their changes from now on.
    ///
    /// # Panics
    /// When the configuration is wrong.
    pub(crate) fn build(self, meter: &Arc<Meter>) -> CachedGenerator {
        let layout = match self {
            // Each is made once in a process, and no store keeps them apart.
            Self::Fixed => layout_from(layout_of_its_own().epoch_unix_ms()),
            _ => layout(),
        };
        let builder = CachedGenerator::builder(layout).secret(secret());
        let ids = match self {
            Self::Fixed => {
                let nodes = 0..u64::from(BLOCKS) << BLOCK_BITS;
                let lease = StaticLease::assume_unique(layout, nodes);
                builder.lease(lease).build()
            }
            Self::Steady => kept(builder, meter, None).build(),
            // Two seconds are renewed every 200 to 300 ms.
            Self::ToppedUp => kept(builder, meter, None)
                .lease_duration(lease_duration(2))
                .build(),
            Self::Swapped => kept(builder, meter, Some(FENCED))
                .lease_duration(lease_duration(2))
                .build(),
            // The keeper widens by half every half second while more than five seconds are
            // borrowed. Its clock is late, so that it always sees more than that.
            Self::Widened => kept(builder, meter, None)
                .blocks(BLOCKS / 3)
                .lease_duration(lease_duration(10))
                .clock(LateForTheKeeper)
                .build(),
        };
        let ids = ids.expect("the configuration is valid");
        meter.start();
        ids
    }
}

/// So many seconds; a minute in a short run, in which no take may be refused, on however slow
/// a machine.
fn lease_duration(seconds: u64) -> Duration {
    Duration::from_secs(if flags::is_bench() { seconds } else { 60 })
}

/// Ticks of a tenth of a second, so that a lease duration can be short.
fn layout() -> Layout {
    layout_from(Layout::RANDFLAKE.epoch_unix_ms())
}

fn layout_from(epoch_unix_ms: u64) -> Layout {
    Layout::builder()
        .bits(33, 17, 14)
        .tick(Duration::from_millis(100))
        .epoch_unix_ms(epoch_unix_ms)
        .build()
        .expect("a layout of 64 bits")
}

fn kept(
    builder: CachedGeneratorBuilder,
    meter: &Arc<Meter>,
    fenced: Option<u64>,
) -> CachedGeneratorBuilder {
    let mut server = MemoryStore::new(Arc::new(SystemClock));
    let name = "benchmark";
    let space = Namespace::new(name, &layout(), Fingerprint::of(&secret()))
        .and_then(|space| space.with_block_bits(BLOCK_BITS))
        .expect("a good name and size");
    // For the clock that is late.
    let limits = StoreLimits::default().with_skew(Duration::from_secs(10));
    let init = Init::new(History::New, SystemClock.unix_ms()).with_limits(limits);
    server.init(&space, &init).expect("a new store");
    builder
        .lease_store(Changing {
            server,
            fenced,
            renewals: 0,
            meter: Arc::clone(meter),
        })
        .namespace(name)
        .block_bits(BLOCK_BITS)
        .blocks(BLOCKS)
        .widen_to(BLOCKS)
}

/// Six seconds late for the thread that keeps leases, to whom takes therefore
/// seem to borrow.
#[derive(Debug)]
struct LateForTheKeeper;

impl Clock for LateForTheKeeper {
    fn unix_ms(&self) -> u64 {
        let is_keeper = thread::current().name() == Some("ringflake-lease");
        SystemClock.unix_ms() - if is_keeper { 6_000 } else { 0 }
    }
}

/// Counts changes of leases.
#[derive(Debug)]
pub(crate) struct Meter {
    changes: AtomicU64,
    started: Mutex<(Instant, u64)>,
}

impl Meter {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            changes: AtomicU64::new(0),
            started: Mutex::new((Instant::now(), 0)),
        })
    }

    fn start(&self) {
        // Relaxed, here and below: figures for people.
        let start = (Instant::now(), self.changes.load(Relaxed));
        *self.started.lock().unwrap_or_else(PoisonError::into_inner) = start;
    }

    fn add(&self, changes: usize) {
        self.changes.fetch_add(changes as u64, Relaxed);
    }

    /// Changes a second since the last generator was built.
    pub(crate) fn per_second(&self) -> f64 {
        let (since, before) = *self.started.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = self.changes.load(Relaxed) - before;
        changes as f64 / since.elapsed().as_secs_f64()
    }
}

/// A store that refuses some renewals. Every grant, renewal and refusal changes
/// the leases once.
#[derive(Debug)]
struct Changing {
    server: MemoryStore,
    fenced: Option<u64>,
    renewals: u64,
    meter: Arc<Meter>,
}

impl LeaseStore for Changing {
    fn init(&mut self, space: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        self.server.init(space, init)
    }

    fn acquire(&mut self, space: &Namespace, acquire: &Acquire) -> Result<Vec<Grant>, StoreError> {
        let grants = self.server.acquire(space, acquire)?;
        self.meter.add(grants.len());
        Ok(grants)
    }

    fn renew(&mut self, space: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        self.renewals += 1;
        self.meter.add(1);
        if self
            .fenced
            .is_some_and(|every| self.renewals.is_multiple_of(every))
        {
            return Err(StoreError::Fenced {
                block: renew.block,
                fence: Fence::NeverGranted,
            });
        }
        self.server.renew(space, renew)
    }

    fn release(&mut self, space: &Namespace, block: Block, epoch: Epoch) -> Result<(), StoreError> {
        self.server.release(space, block, epoch)
    }

    fn list(&mut self, space: &Namespace) -> Result<Listing, StoreError> {
        self.server.list(space)
    }

    fn raise_floor(
        &mut self,
        space: &Namespace,
        floor: Floor,
        now: u64,
    ) -> Result<u64, StoreError> {
        self.server.raise_floor(space, floor, now)
    }

    fn check(&mut self, space: &Namespace, now: u64) -> Result<StoreReport, StoreError> {
        self.server.check(space, now)
    }
}
