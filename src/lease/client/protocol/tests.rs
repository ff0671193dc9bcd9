//! Each transition by itself, and what holds in any order of them.

mod answers;
mod clocks;
mod counts;
mod edges;
mod failures;
mod history;
mod random;
mod release;
mod width;

use std::sync::Arc;

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::lease::{
    Acquire, Fence, Fingerprint, Floor, Grant, History, Holder, Incarnation, Init, LeaseStore,
    MAX_ACQUIRE, MemoryStore, Renew, StoreLimits,
};

const LAYOUT: Layout = Layout::RANDFLAKE;
const START: u64 = 1_000_000;
const LEASE_DURATION: u64 = 600;
const IDLE: Demand = Demand {
    borrowed: Duration::ZERO,
    borrow_limit: Duration::from_secs(60),
    room: 1000,
};
const BUSY: Demand = Demand {
    borrowed: Duration::from_secs(40),
    ..IDLE
};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn unavailable() -> StoreError {
    StoreError::unavailable("down")
}

fn ambiguous() -> StoreError {
    StoreError::Ambiguous {
        operation: "it",
        source: "cut".into(),
    }
}

fn fenced(block: Block) -> StoreError {
    StoreError::Fenced {
        block,
        fence: Fence::Epoch {
            held: Epoch::FIRST,
            recorded: Epoch::new(1_000_000),
        },
    }
}

fn space(block_bits: u32) -> Namespace {
    Namespace::new("test", &LAYOUT, Fingerprint::PLAIN)
        .and_then(|space| space.with_block_bits(block_bits))
        .unwrap()
}

/// A manager, a store with the same clock, and all the changes so far.
struct Rig {
    space: Namespace,
    clock: Arc<ManualClock>,
    store: MemoryStore,
    elapsed: Duration,
    manager: Manager,
    demand: Demand,
    changes: Vec<Change>,
}

impl Rig {
    fn new(plan: LeasePlan) -> Self {
        Self::with(plan, 5, StoreLimits::default())
    }

    fn with(plan: LeasePlan, block_bits: u32, limits: StoreLimits) -> Self {
        let space = space(block_bits);
        let now = LAYOUT.tick_start_unix_ms(START) + 500;
        let clock = Arc::new(ManualClock::new(now));
        let mut store = MemoryStore::new(clock.clone());
        let init = Init::new(History::New, now).with_limits(limits);
        store.init(&space, &init).unwrap();
        Self {
            manager: Manager::new(space.clone(), plan, 7).unwrap(),
            space,
            clock,
            store,
            elapsed: secs(1000),
            demand: IDLE,
            changes: Vec::new(),
        }
    }

    /// With the blocks of the plan held.
    fn holding(blocks: u32) -> Self {
        let mut rig = Self::new(LeasePlan::new(blocks));
        rig.settle();
        assert_eq!(rig.opened().len(), blocks as usize);
        rig
    }

    fn at(&self) -> Moment {
        Moment {
            unix_ms: self.clock.unix_ms(),
            elapsed: self.elapsed,
        }
    }

    fn tick(&self) -> u64 {
        LAYOUT.tick_at(self.clock.unix_ms()).unwrap()
    }

    fn advance(&mut self, by: Duration) {
        self.elapsed += by;
        self.clock.advance(by);
    }

    fn next(&mut self) -> Step {
        let (changes, step) = self.manager.next(self.at(), self.demand);
        self.changes.extend(changes);
        step
    }

    #[track_caller]
    fn asked(&mut self) -> Request {
        match self.next() {
            Step::Ask(request) => request,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn waits(&mut self) -> Duration {
        match self.next() {
            Step::Wait(wait) => wait,
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self, answer: Answer) {
        let changes = self.manager.answer(self.at(), answer);
        self.changes.extend(changes);
    }

    fn send(&mut self, request: &Request) {
        let answer = request.send(&mut self.store, &self.space);
        self.answer(answer);
    }

    /// Lets the store answer until there is nothing to ask.
    fn settle(&mut self) -> Vec<Request> {
        let mut asked = Vec::new();
        while let Step::Ask(request) = self.next() {
            self.send(&request);
            asked.push(request);
            assert!(asked.len() < 300, "it never stops to ask");
        }
        asked
    }

    /// Lets time pass, and the store answer; what was asked, and when.
    fn run(&mut self, time: Duration) -> Vec<(Duration, Request)> {
        self.run_with(time, |rig, request| rig.send(request))
    }

    fn run_with(
        &mut self,
        time: Duration,
        mut reply: impl FnMut(&mut Self, &Request),
    ) -> Vec<(Duration, Request)> {
        let (end, mut asked) = (self.elapsed + time, Vec::new());
        let limit = (1_000 + 25 * time.as_secs()).min(20_000);
        for turn in 0.. {
            assert!(turn < limit, "it hardly ever waits");
            match self.next() {
                Step::Ask(request) => {
                    reply(self, &request);
                    asked.push((self.elapsed, request));
                }
                Step::Wait(wait) => {
                    assert!(wait >= Duration::from_millis(1));
                    let wait = wait.min(end.saturating_sub(self.elapsed));
                    if wait.is_zero() {
                        break;
                    }
                    self.advance(wait);
                }
                Step::Done => break,
            }
        }
        asked
    }

    /// Waits for the next request, and keeps it from the store.
    fn intercept(&mut self) -> Request {
        for _ in 0..300 {
            match self.next() {
                Step::Ask(request) => return request,
                Step::Wait(wait) => self.advance(wait),
                Step::Done => panic!("done"),
            }
        }
        panic!("it never asks");
    }

    /// The same for an acquisition; the store has what comes before it.
    fn intercept_acquisition(&mut self) -> Request {
        for _ in 0..300 {
            match self.intercept() {
                request @ Request::Acquire(_) => return request,
                request => self.send(&request),
            }
        }
        panic!("it never asks for a block");
    }

    /// Another holder acquires of the same store.
    fn acquire_beside(&mut self, blocks: u32, length: u64) -> Result<Vec<Grant>, StoreError> {
        let acquire = Acquire::new(blocks, length, self.clock.unix_ms());
        self.store.acquire(&self.space, &acquire)
    }

    fn has_expired(&self) -> bool {
        let expired = |change: &Change| matches!(change, Change::Expired { .. });
        self.changes.iter().any(expired)
    }

    /// Whether each grant lacks no more than what passes between two top-ups.
    fn all_topped_up(&self) -> bool {
        let grants = self.manager.status().grants;
        let least = self.tick() + LEASE_DURATION - 90;
        grants.iter().all(|held| held.grant.ticks.end >= least)
    }

    fn opened(&self) -> Vec<Grant> {
        let opened = |change: &Change| match change {
            Change::Opened(grant) => Some(grant.clone()),
            _ => None,
        };
        self.changes.iter().filter_map(opened).collect()
    }

    fn states(&self) -> Vec<GrantState> {
        let status = self.manager.status();
        status.grants.iter().map(|grant| grant.state).collect()
    }

    fn last_error(&self) -> Option<Arc<StoreError>> {
        self.manager.status().health.last_error
    }
}

/// The last error is of this kind.
macro_rules! assert_error {
    ($rig:expr, $kind:pat) => {
        let error = $rig.last_error().unwrap();
        assert!(matches!(*error, $kind), "{error:?}");
    };
}
use assert_error;

fn renewal(request: &Request) -> &Renew {
    match request {
        Request::Renew(renew) => renew,
        other => panic!("{other:?}"),
    }
}

fn acquisition(request: &Request) -> &Acquire {
    match request {
        Request::Acquire(acquire) => acquire,
        other => panic!("{other:?}"),
    }
}

fn acquisitions(asked: &[(Duration, Request)]) -> Vec<(Duration, u32)> {
    let blocks = |(at, request): &(Duration, Request)| match request {
        Request::Acquire(acquire) => Some((*at, acquire.blocks)),
        _ => None,
    };
    asked.iter().filter_map(blocks).collect()
}

#[test]
fn starts_with_the_blocks_of_the_plan() {
    let holder = Holder::new("host", "1");
    let mut plan = LeasePlan::new(3);
    plan.holder = Some(holder.clone());
    let mut rig = Rig::new(plan);
    let request = rig.asked();
    let expected = Acquire::new(3, LEASE_DURATION + 1, rig.clock.unix_ms()).held_by(holder);
    assert_eq!(request, Request::Acquire(expected));
    rig.send(&request);
    let grants = rig.opened();
    assert_eq!(grants.len(), 3);
    assert!(
        grants
            .iter()
            .all(|g| g.ticks == (START..START + LEASE_DURATION + 1))
    );
    assert_eq!(rig.states(), [GrantState::Held; 3]);
    assert_eq!(rig.manager.status().reach, secs(LEASE_DURATION));
    assert!(matches!(rig.next(), Step::Wait(_)));
}

#[test]
fn one_request_is_under_way_at_a_time() {
    let mut rig = Rig::new(LeasePlan::new(2));
    let request = rig.asked();
    let answer = request.send(&mut rig.store, &rig.space);
    for _ in 0..3 {
        rig.waits();
        rig.advance(secs(100));
    }
    rig.answer(answer);
    // Long after it was asked, its answer counts all the same, from now on.
    assert_eq!(rig.opened().len(), 2);
    assert!(matches!(rig.next(), Step::Wait(_)));
}

#[test]
fn a_renewal_asks_for_the_clock_plus_the_lease_duration() {
    let mut rig = Rig::holding(1);
    let before = rig.opened()[0].clone();
    let request = rig.intercept();
    let renew = renewal(&request).clone();
    let expected = Renew::new(
        &before,
        rig.tick() + LEASE_DURATION + 1,
        rig.clock.unix_ms(),
    );
    assert_eq!(renew, expected);

    // The store gives less.
    let end = renew.new_end - 5;
    rig.answer(Answer::Renewed(Ok(end)));
    let mut after = before;
    after.ticks.end = end;
    assert_eq!(rig.changes.last(), Some(&Change::Extended(after.clone())));
    assert_eq!(renewal(&rig.intercept()).known_end, end);
    // Or nothing: that is no change.
    rig.answer(Answer::Renewed(Ok(end)));
    assert_eq!(rig.changes.last(), Some(&Change::Extended(after)));
}

#[test]
fn a_fenced_grant_drains_and_is_replaced() {
    let mut rig = Rig::holding(1);
    let lost = rig.opened()[0].clone();
    rig.intercept();
    rig.answer(Answer::Renewed(Err(fenced(lost.block))));
    assert_eq!(rig.states(), [GrantState::Draining]);

    let asked = rig.run(secs(1));
    assert_eq!(asked.len(), 1);
    assert_eq!(acquisition(&asked[0].1).blocks, 1);
    assert_eq!(rig.states(), [GrantState::Draining, GrantState::Held]);

    // It is never renewed again, and closed when the clock passes its end.
    let asked = rig.run(secs(LEASE_DURATION + 100));
    assert!(
        asked
            .iter()
            .all(|(_, request)| renewal(request).block != lost.block)
    );
    assert!(rig.changes.contains(&Change::Closed(lost)));
    assert_eq!(rig.states(), [GrantState::Held]);
    assert!(!rig.has_expired());
}

#[test]
fn a_grant_is_closed_once_the_clock_passes_its_end() {
    let mut rig = Rig::holding(1);
    let lost = rig.opened()[0].clone();
    rig.intercept();
    rig.answer(Answer::Renewed(Err(fenced(lost.block))));
    rig.clock.set(LAYOUT.tick_start_unix_ms(lost.ticks.end) - 1);
    let _ = rig.next();
    assert!(!rig.changes.contains(&Change::Closed(lost.clone())));
    rig.clock.advance(Duration::from_millis(1));
    let _ = rig.next();
    assert!(rig.changes.contains(&Change::Closed(lost)));
}

#[test]
fn a_grant_that_is_fenced_after_its_end_is_closed_at_once() {
    let mut rig = Rig::holding(1);
    let lost = rig.opened()[0].clone();
    rig.intercept();
    rig.advance(secs(LEASE_DURATION + 1));
    rig.answer(Answer::Renewed(Err(fenced(lost.block))));
    assert!(rig.changes.contains(&Change::Closed(lost)));
    assert!(rig.states().is_empty());
}

/// Two grants, and a third that is let lapse.
fn rig_with_one_lapsing() -> Rig {
    let mut rig = Rig::new(LeasePlan::new(2).with_widen_to(3));
    rig.demand.borrowed = IDLE.borrow_limit;
    rig.run(secs(10));
    rig.demand.borrowed = Duration::ZERO;
    rig.run(secs(LEASE_DURATION + 30));
    let (held, lapsing) = (GrantState::Held, GrantState::Lapsing);
    let mut states = rig.states();
    states.sort_unstable_by_key(|state| *state == lapsing);
    assert_eq!(states, [held, held, lapsing]);
    rig
}

/// Further than can be waited for.
fn too_far() -> Duration {
    IDLE.borrow_limit + secs(LEASE_DURATION + 1)
}

/// Errors that don't mend by themselves.
fn refusals() -> Vec<StoreError> {
    let name = || "test".to_owned();
    vec![
        StoreError::NotInitialised { namespace: name() },
        StoreError::FingerprintMismatch {
            namespace: name(),
            recorded: Fingerprint::PLAIN,
            offered: Fingerprint::PLAIN,
        },
        StoreError::LayoutMismatch {
            namespace: name(),
            recorded: name(),
            offered: name(),
        },
        StoreError::NotDurable {
            store: name(),
            reason: name(),
        },
        StoreError::Corrupt {
            detail: name(),
            source: None,
        },
        StoreError::Invalid {
            what: "it",
            value: 0,
            min: 1,
            max: 2,
        },
        StoreError::LayoutEnded {
            start: 1,
            layout_ticks: 1,
        },
        StoreError::BeforeEpoch {
            unix_ms: 0,
            epoch_unix_ms: 1,
        },
        StoreError::ClockSkew {
            store_unix_ms: 0,
            client_unix_ms: 1,
            limit: secs(0),
        },
        StoreError::Denied {
            source: "a wrong password".into(),
        },
    ]
}

#[test]
fn tops_up_each_grant_every_60_to_90_seconds() {
    let mut rig = Rig::holding(3);
    let asked = rig.run(secs(3600));
    for grant in rig.opened() {
        let times: Vec<_> = asked
            .iter()
            .filter(|(_, request)| renewal(request).block == grant.block)
            .map(|(at, _)| *at)
            .collect();
        assert!((40..=60).contains(&times.len()), "{}", times.len());
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (min, max) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
        assert!(*min >= secs(60) && *max <= secs(90));
        assert!(*max - *min > secs(10), "no jitter: {gaps:?}");
    }
    assert!(rig.all_topped_up());
    assert_eq!(rig.opened().len(), 3);
}
