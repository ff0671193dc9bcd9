//! Grants of the past while time goes on, and after a history was lost.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use ringflake::lease::{
    Acquire, Epoch, Fence, Fingerprint, Floor, Grant, History, Incarnation, Init, LeaseStore,
    MemoryStore, Namespace, Renew, StoreError, StoreLimits,
};
use ringflake::{Clock, Layout, ManualClock};

const LAYOUT: Layout = Layout::RANDFLAKE;
const START: u64 = 1_000_000;
const HORIZON: u64 = 60;
const FAILOVER: u64 = 20;

/// A server, and its clock.
struct Rig {
    clock: ManualClock,
    store: MemoryStore,
    space: Namespace,
}

impl Rig {
    /// A namespace of one block.
    fn new(history: History) -> Self {
        let clock = ManualClock::new(LAYOUT.tick_start_unix_ms(START));
        let mut store = MemoryStore::new(Arc::new(clock.clone()));
        let space = Namespace::new("test", &LAYOUT, Fingerprint::PLAIN)
            .and_then(|space| space.with_block_bits(17))
            .unwrap();
        let limits = StoreLimits::default()
            .with_horizon(Duration::from_secs(HORIZON))
            .with_failover(Duration::from_secs(FAILOVER));
        let init = Init::new(history, clock.unix_ms()).with_limits(limits);
        store.init(&space, &init).unwrap();
        Self {
            clock,
            store,
            space,
        }
    }

    fn set(&self, tick: u64) {
        self.clock.set(LAYOUT.tick_start_unix_ms(tick));
    }

    fn acquire(&mut self, acquire: &Acquire) -> Result<Grant, StoreError> {
        let grants = self.store.acquire(&self.space, acquire)?;
        assert_eq!(grants.len(), 1);
        Ok(grants[0].clone())
    }

    fn present(&mut self, length: u64) -> Result<Grant, StoreError> {
        self.acquire(&Acquire::new(1, length, self.clock.unix_ms()))
    }

    fn past(&mut self, ticks: Range<u64>) -> Result<Grant, StoreError> {
        self.acquire(&Acquire::past(1, ticks, self.clock.unix_ms()))
    }

    /// As by hand, after a loss.
    fn raise_floor(&mut self) -> u64 {
        let now = self.clock.unix_ms();
        let raised = self
            .store
            .raise_floor(&self.space, Floor::OverLostGrants, now);
        raised.unwrap()
    }
}

#[track_caller]
fn below_the_floor(answer: Result<Grant, StoreError>, expected: u64) {
    match answer {
        Err(StoreError::BeforeFloor { floor, .. }) => assert_eq!(floor, expected),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_incarnation_closes_the_past_for_ever() {
    let mut rig = Rig::new(History::Unused);
    let before = rig.store.snapshot();
    let lost = rig.past(0..100).unwrap();
    assert_eq!(lost.ticks, 0..100);
    rig.store.restore(&before);
    rig.store.set_incarnation(Incarnation::new("promoted"));
    let floor = START + HORIZON + FAILOVER + 1;
    // A request for the past that is refused keeps the floor as well.
    below_the_floor(rig.past(0..100), floor);
    rig.set(START + 500);
    below_the_floor(rig.past(START..START + 10), floor);
    assert_eq!(rig.past(floor..floor + 10).unwrap().ticks.start, floor);
}

/// The limit that the runbook speaks of, and what it says to do.
#[test]
fn a_loss_that_nobody_notices_needs_a_floor_raised_by_hand() {
    let mut rig = Rig::new(History::Unused);
    let before = rig.store.snapshot();
    let lost = rig.past(0..100).unwrap();
    rig.store.restore(&before);
    // However late.
    rig.set(START + 1_000_000);
    let unnoticed = rig.store.snapshot();
    assert_eq!(rig.past(0..100).unwrap(), lost);

    rig.store.restore(&unnoticed);
    let floor = rig.raise_floor();
    below_the_floor(rig.past(0..100), floor);
}

/// The same where nothing but a grant of the present was lost, before the first import ever.
#[test]
fn an_import_meets_a_forgotten_present_unless_the_floor_was_raised() {
    let mut rig = Rig::new(History::New);
    let before = rig.store.snapshot();
    let lost = rig.present(50).unwrap();
    rig.store.restore(&before);
    rig.set(START + 1_000_000);
    let unnoticed = rig.store.snapshot();
    let met = rig.past(START..START + 100).unwrap();
    assert_eq!((met.block, met.epoch), (lost.block, lost.epoch));
    assert!(met.ticks.contains(&lost.ticks.start));

    rig.store.restore(&unnoticed);
    let floor = rig.raise_floor();
    below_the_floor(rig.past(START..START + 100), floor);
}

#[test]
fn a_namespace_that_began_as_new_has_a_past_from_then_on() {
    let mut rig = Rig::new(History::New);
    rig.set(START + 100);
    below_the_floor(rig.past(START - 1..START + 50), START);
    assert_eq!(rig.past(START..START + 50).unwrap().epoch, Epoch::FIRST);
}

#[test]
fn the_past_after_a_grant_that_has_ended_is_another_ones() {
    let mut rig = Rig::new(History::New);
    let stopped = rig.present(10).unwrap();
    rig.set(START + 100);
    let error = rig.past(START + 9..START + 50).unwrap_err();
    assert!(matches!(error, StoreError::PastExhausted { .. }), "{error}");
    let past = rig.past(START + 10..START + 50).unwrap();
    assert_eq!(past.block, stopped.block);
    // Its holder awakes, and would go on where it ended.
    let renew = Renew::new(&stopped, START + 150, rig.clock.unix_ms());
    let fenced = rig.store.renew(&rig.space, &renew);
    let fence = Fence::Epoch {
        held: stopped.epoch,
        recorded: past.epoch,
    };
    assert!(
        matches!(&fenced, Err(StoreError::Fenced { fence: found, .. }) if *found == fence),
        "{fenced:?}"
    );
    let next = rig.present(10).unwrap();
    assert_eq!(next.ticks, START + 100..START + 110);
}
