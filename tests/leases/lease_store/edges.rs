//! The reference store at the edges of its limits.

use std::sync::Arc;
use std::time::Duration;

use ringflake::lease::{
    Acquire, Fingerprint, Grant, History, Init, LeaseStore, MemoryStore, Namespace, Renew,
    StoreError, StoreLimits,
};
use ringflake::{Clock, Layout, ManualClock};
use ringflake_kit::assert_matches;
use ringflake_kit::small::namespace;

const LAYOUT: Layout = Layout::RANDFLAKE;
/// Half a second into this tick every test begins.
const START: u64 = 1_000_000;
const HORIZON: u64 = 100;
const FAILOVER: u64 = 14;
const SKEW_MS: u64 = 2_000;

fn limits() -> StoreLimits {
    StoreLimits::default()
        .with_horizon(Duration::from_secs(HORIZON))
        .with_failover(Duration::from_secs(FAILOVER))
        .with_skew(Duration::from_millis(SKEW_MS))
}

fn within(tick: u64) -> u64 {
    LAYOUT.tick_start_unix_ms(tick) + 500
}

/// A server, its clock, and a client whose clock shows the same time.
struct Rig {
    clock: ManualClock,
    store: MemoryStore,
    space: Namespace,
}

impl Rig {
    /// A namespace of 2^17 / 2^`block_bits` blocks.
    fn new(block_bits: u32) -> Self {
        Self::with_history(block_bits, History::New)
    }

    fn with_history(block_bits: u32, history: History) -> Self {
        let mut rig = Self::empty(&LAYOUT, block_bits, within(START));
        let init = Init::new(history, within(START)).with_limits(limits());
        rig.store.init(&rig.space, &init).unwrap();
        rig
    }

    fn empty(layout: &Layout, block_bits: u32, now_unix_ms: u64) -> Self {
        let clock = ManualClock::new(now_unix_ms);
        Self {
            store: MemoryStore::new(Arc::new(clock.clone())),
            clock,
            space: namespace("test", layout, Fingerprint::PLAIN, block_bits),
        }
    }

    fn acquire(&mut self, length: u64) -> Result<Grant, StoreError> {
        let ask = Acquire::new(1, length, self.clock.unix_ms());
        let mut grants = self.store.acquire(&self.space, &ask)?;
        assert_eq!(grants.len(), 1);
        Ok(grants.remove(0))
    }
}

#[test]
fn grants_and_renewals_end_with_the_layout() {
    let end = LAYOUT.ticks();
    let mut rig = Rig::new(5);
    rig.clock.set(within(end - 10));
    let mut grant = rig.acquire(20).unwrap();
    assert_eq!(grant.ticks, end - 10..end);
    let renew = Renew::new(&grant, u64::MAX, rig.clock.unix_ms());
    assert_eq!(rig.store.renew(&rig.space, &renew).unwrap(), end);
    grant.to_lease(&rig.space).unwrap();

    rig.clock.set(within(end - 1));
    grant = rig.acquire(20).unwrap();
    assert_eq!(grant.ticks, end - 1..end);
    rig.clock.set(within(end));
    assert_matches!(rig.acquire(20), Err(StoreError::LayoutEnded { start, layout_ticks })
        if (*start, *layout_ticks) == (end, end));
}

#[test]
fn clocks_may_be_apart_by_the_limit_and_no_more() {
    let mut rig = Rig::new(5);
    let now = rig.clock.unix_ms();
    for (client, granted) in [
        (now - SKEW_MS, true),
        (now + SKEW_MS, true),
        (now - SKEW_MS - 1, false),
        (now + SKEW_MS + 1, false),
        (0, false),
        (u64::MAX, false),
    ] {
        let ask = Acquire::new(1, 10, client);
        match rig.store.acquire(&rig.space, &ask) {
            Ok(grants) => assert!(granted, "{client} was granted {}", grants[0]),
            Err(StoreError::ClockSkew {
                store_unix_ms,
                client_unix_ms,
                limit,
            }) => {
                assert!(!granted, "{client} was refused");
                assert_eq!((store_unix_ms, client_unix_ms), (now, client));
                assert_eq!(limit, Duration::from_millis(SKEW_MS));
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn limits_count_in_whole_ticks_on_the_safe_side() {
    let mut rig = Rig::empty(&LAYOUT, 5, within(START));
    let limits = limits()
        .with_horizon(Duration::from_millis(99_999))
        .with_failover(Duration::from_millis(13_001));
    let init = |now_unix_ms| Init::new(History::Unknown, now_unix_ms).with_limits(limits);
    let record = rig.store.init(&rig.space, &init(within(START))).unwrap();
    assert_eq!(record.floor, START + 99 + 14 + 1);

    let now_unix_ms = Layout::TWITTER.epoch_unix_ms() + 7;
    let mut rig = Rig::empty(&Layout::TWITTER, 5, now_unix_ms);
    let record = rig.store.init(&rig.space, &init(now_unix_ms)).unwrap();
    assert_eq!(record.floor, 7 + 99_999 + 13_001 + 1);
}

/// Advances by what the refusal says, and to one millisecond before.
fn retry_when_told(rig: &mut Rig, is_ahead: bool) -> Grant {
    let asked = |rig: &mut Rig| match rig.acquire(5).unwrap_err() {
        StoreError::Exhausted { retry_after, .. } if !is_ahead => retry_after,
        StoreError::FloorAhead { retry_after, .. } if is_ahead => retry_after,
        other => panic!("{other}"),
    };
    let last = Duration::from_millis(1);
    let wait = asked(rig);
    assert!(wait > last);
    rig.clock.advance(wait - last);
    assert_eq!(asked(rig), last);
    rig.clock.advance(last);
    rig.acquire(5).unwrap()
}

#[test]
fn a_refusal_says_when_to_come_back() {
    let mut rig = Rig::new(17);
    rig.acquire(50).unwrap();
    let grant = retry_when_told(&mut rig, false);
    assert_eq!(grant.ticks, START + 50..START + 55);

    // Released, but its mark stands at the horizon.
    let mut rig = Rig::new(17);
    let held = rig.acquire(HORIZON).unwrap();
    let released = rig.store.release(&rig.space, held.block, held.epoch);
    released.unwrap();
    let grant = retry_when_told(&mut rig, false);
    assert_eq!(grant.ticks, START + HORIZON..START + HORIZON + 1);

    let mut rig = Rig::with_history(5, History::Unknown);
    let grant = retry_when_told(&mut rig, true);
    let floor = START + HORIZON + FAILOVER + 1;
    assert_eq!(grant.ticks, floor..floor + 1);
}
