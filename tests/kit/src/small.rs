//! Small layouts, and what goes with them: leases, clocks, stores, and builders over these.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use ringflake::lease::{
    Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace, StoreLimits,
};
use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Clock, ClockPolicy, DirectGenerator,
    DirectGeneratorBuilder, Layout, Lease, ManualClock, Secret,
};

/// A layout with ticks of a second, whose IDs no other test of the process has;
/// see [`epoch_of_its_own`].
pub fn layout(time: u32, node: u32, sequence: u32) -> Layout {
    Layout::builder()
        .bits(time, node, sequence)
        .tick(Duration::from_secs(1))
        .epoch_unix_ms(epoch_of_its_own())
        .build()
        .unwrap()
}

/// The same at each call. For generators with a [`secret_of_its_own`].
pub fn shared_layout(time: u32, node: u32, sequence: u32) -> Layout {
    Layout::builder()
        .bits(time, node, sequence)
        .tick(Duration::from_secs(1))
        .build()
        .unwrap()
}

/// Randflake's epoch, and a second later at each call. A process makes each ID
/// once, so tests that use the same nodes need layouts or secrets that differ.
pub fn epoch_of_its_own() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let seconds = CALLS.fetch_add(1, Relaxed);
    Layout::RANDFLAKE.epoch_unix_ms() + seconds * 1_000
}

pub fn lease(layout: Layout, nodes: Range<u64>, ticks: Range<u64>) -> Lease {
    Lease::new(layout, nodes, ticks).unwrap()
}

/// One of each kind, the parts and times small.
pub const POLICIES: [ClockPolicy; 4] = [
    ClockPolicy::Refuse,
    ClockPolicy::Wait {
        at_most: Duration::from_millis(2),
    },
    ClockPolicy::SwitchNode,
    ClockPolicy::Logical {
        at_most_ahead: Duration::from_secs(1),
    },
];

macro_rules! over {
    ($generator:ident, $layout:ident, $nodes:ident, $ticks:ident) => {{
        let clock = clock_at($layout, $ticks.start);
        let builder = $generator::builder($layout).clock(clock);
        let builder = builder.lease(lease($layout, $nodes, $ticks));
        match $layout.total_bits() {
            // Such a layout is for doubles, and not to be encrypted.
            0..=53 => builder.plain(),
            _ => builder.secret(secret_of_its_own()),
        }
    }};
}

pub fn plain(layout: Layout, nodes: Range<u64>, ticks: Range<u64>) -> CachedGeneratorBuilder {
    let clock = clock_at(layout, ticks.start);
    let builder = CachedGenerator::builder(layout).plain().clock(clock);
    builder.lease(lease(layout, nodes, ticks))
}

/// Over these nodes and ticks, by a clock that stands at the first of the ticks.
pub fn cached(layout: Layout, nodes: Range<u64>, ticks: Range<u64>) -> CachedGeneratorBuilder {
    over!(CachedGenerator, layout, nodes, ticks)
}

/// The same without a ring.
pub fn direct(layout: Layout, nodes: Range<u64>, ticks: Range<u64>) -> DirectGeneratorBuilder {
    over!(DirectGenerator, layout, nodes, ticks)
}

pub fn clock_at(layout: Layout, tick: u64) -> ManualClock {
    ManualClock::new(layout.tick_start_unix_ms(tick))
}

pub fn namespace(
    name: &str,
    layout: &Layout,
    fingerprint: Fingerprint,
    block_bits: u32,
) -> Namespace {
    Namespace::new(name, layout, fingerprint)
        .and_then(|space| space.with_block_bits(block_bits))
        .unwrap()
}

/// A store in memory by this clock, with a namespace that is new by it.
pub fn store_with(space: &Namespace, clock: &ManualClock, limits: StoreLimits) -> MemoryStore {
    let mut store = MemoryStore::new(Arc::new(clock.clone()));
    let init = Init::new(History::New, clock.unix_ms()).with_limits(limits);
    store.init(space, &init).unwrap();
    store
}

/// A clock by which something happens at each look, in the thread that looks.
pub struct Watched<C, F>(pub C, pub F);

impl<C: Clock, F> fmt::Debug for Watched<C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<C: Clock, F: Fn() + Send + Sync> Clock for Watched<C, F> {
    fn unix_ms(&self) -> u64 {
        (self.1)();
        self.0.unix_ms()
    }
}

pub fn secret() -> Secret {
    Secret::from_bytes(*b"secrets for test")
}

/// Another one at each call, whose IDs no other test of the process has.
pub fn secret_of_its_own() -> Secret {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Relaxed).to_be_bytes();
    let mut bytes = *b"secrets for ....";
    bytes[8..].copy_from_slice(&call);
    Secret::from_bytes(bytes)
}
