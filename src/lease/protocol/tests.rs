//! Each transition by itself, and what holds in any order of them.

mod edges;
mod history;

use std::sync::Arc;

use proptest::prelude::*;

use super::super::{
    Acquire, Fence, Fingerprint, Floor, Grant, History, Holder, Incarnation, Init, LeaseStore,
    MAX_ACQUIRE, MemoryStore, Renew, StoreLimits,
};
use super::*;
use crate::clock::{Clock, ManualClock};

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
    StoreError::Unavailable {
        source: "down".into(),
    }
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
        let most = (1_000 + 25 * time.as_secs()).min(20_000);
        for turn in 0.. {
            assert!(turn < most, "it hardly ever waits");
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
    let mut rig = Rig::new(LeasePlan::new(3).held_by(holder.clone()));
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
fn a_manager_says_what_it_was_made_with() {
    let plan = LeasePlan::new(3).with_lease_duration(secs(77));
    let rig = Rig::new(plan.clone());
    assert_eq!(rig.manager.plan(), &plan);
    assert_eq!(rig.manager.namespace(), &rig.space);
}

#[test]
fn a_plan_that_is_none_is_refused() {
    let error = Manager::new(space(5), LeasePlan::new(0), 0).unwrap_err();
    assert!(matches!(error, PlanError::Blocks { value: 0, .. }));
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
    assert_eq!(rig.manager.status().health.next_attempt, None);
    rig.answer(answer);
    // Long after it was asked, its answer counts all the same, from now on.
    assert_eq!(rig.opened().len(), 2);
    assert!(matches!(rig.next(), Step::Wait(_)));
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
        let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
        assert!(*least >= secs(60) && *most <= secs(90));
        assert!(*most - *least > secs(10), "no jitter: {gaps:?}");
    }
    for status in rig.manager.status().grants {
        assert!(status.grant.ticks.end >= rig.tick() + LEASE_DURATION - 90);
    }
    assert_eq!(rig.opened().len(), 3);
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
    assert!(
        !rig.changes
            .iter()
            .any(|c| matches!(c, Change::Expired { .. }))
    );
}

#[test]
fn a_grant_is_closed_when_the_clock_passes_its_end_and_not_before() {
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
fn serving_after_the_end_a_grant_is_closed_once_there_is_another() {
    // The other may be in force, or one that the clock has passed, too.
    for late in [Duration::ZERO, secs(2 * LEASE_DURATION)] {
        let mut rig = Rig::new(LeasePlan::new(1).with_expiry(Expiry::Serve));
        rig.settle();
        let lost = Change::Closed(rig.opened()[0].clone());
        let block = renewal(&rig.intercept()).block;
        rig.answer(Answer::Renewed(Err(fenced(block))));
        rig.clock.advance(secs(LEASE_DURATION + 2));
        let request = rig.intercept();
        assert!(matches!(rig.changes.last(), Some(Change::Expired { .. })));
        assert_eq!(rig.states(), [GrantState::Draining]);

        let answer = request.send(&mut rig.store, &rig.space);
        rig.clock.advance(late);
        rig.answer(answer);
        assert_eq!(rig.states(), [GrantState::Held]);
        assert!(rig.changes.contains(&lost));
    }
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

#[test]
fn an_ambiguous_renewal_gives_up_the_block_and_risks_no_other() {
    let mut rig = Rig::holding(4);
    let lost = renewal(&rig.intercept()).block;
    rig.answer(Answer::Renewed(Err(ambiguous())));

    // As long as nothing comes back, it asks for nothing that could be lost.
    let asked = rig.run_with(secs(300), |rig, _| {
        rig.answer(Answer::Checked(Err(ambiguous())));
    });
    assert!((10..30).contains(&asked.len()), "{}", asked.len());
    assert!(
        asked
            .iter()
            .all(|(_, request)| matches!(request, Request::Check { .. }))
    );
    assert_eq!(rig.states().len(), 4);

    let asked = rig.run(secs(60));
    assert!(matches!(asked[0].1, Request::Check { .. }));
    assert_eq!(acquisitions(&asked).len(), 1);
    let renewed: Vec<_> = asked
        .iter()
        .filter_map(|(_, request)| match request {
            Request::Renew(renew) => Some(renew.block),
            _ => None,
        })
        .collect();
    assert_eq!(renewed.len(), 3);
    assert!(!renewed.contains(&lost));
}

#[test]
fn an_ambiguous_acquisition_grants_nothing_and_is_not_repeated() {
    let mut rig = Rig::new(LeasePlan::new(2));
    let first = rig.asked();
    // It was carried out, and nobody learned of it.
    let _ = first.send(&mut rig.store, &rig.space);
    rig.answer(Answer::Acquired(Err(ambiguous())));
    assert!(rig.changes.is_empty());
    let asked = rig.run(secs(10));
    assert!(matches!(asked[0].1, Request::Check { .. }));
    assert_eq!(acquisition(&asked[1].1).blocks, 2);
    let blocks: Vec<_> = rig.opened().iter().map(|g| g.block.index()).collect();
    assert_eq!(blocks, [2, 3]);
}

#[test]
fn a_store_that_is_overrun_is_asked_less_and_less() {
    let mut rig = Rig::new(LeasePlan::new(1));
    let asked = rig.run_with(secs(1200), |rig, request| match request {
        Request::Check { .. } => rig.send(request),
        _ => {
            rig.advance(secs(5));
            rig.answer(Answer::Acquired(Err(ambiguous())));
        }
    });
    let wanted = acquisitions(&asked);
    assert!((15..60).contains(&wanted.len()), "{}", wanted.len());
    let gaps = wanted.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let longest = gaps.max().unwrap();
    assert!(longest > secs(40) && longest < secs(66), "{longest:?}");
}

#[test]
fn an_answer_of_another_kind_counts_as_lost() {
    let mut rig = Rig::holding(1);
    rig.intercept();
    rig.answer(Answer::Checked(Ok(())));
    assert_eq!(rig.states(), [GrantState::Draining]);
    assert!(matches!(rig.intercept(), Request::Check { .. }));
}

#[test]
fn an_answer_to_no_request_is_dropped() {
    let mut rig = Rig::holding(1);
    let mut grant = rig.opened()[0].clone();
    grant.block = Block::new(99);
    rig.answer(Answer::Acquired(Ok(vec![grant])));
    assert_eq!(rig.states().len(), 1);
    rig.answer(Answer::Renewed(Ok(START + 10_000)));
    assert_eq!(
        rig.manager.status().grants[0].grant.ticks.end,
        START + LEASE_DURATION + 1
    );
}

#[test]
fn an_outage_costs_nothing_while_the_leases_last() {
    let mut rig = Rig::holding(3);
    let down = rig.clock.unix_ms();
    let asked = rig.run_with(secs(400), |rig, request| {
        rig.answer(match request {
            Request::Renew(_) => Answer::Renewed(Err(unavailable())),
            other => panic!("{other:?}"),
        });
    });
    // One backoff for all three; the first retries come fast.
    assert!((20..80).contains(&asked.len()), "{}", asked.len());
    let gaps: Vec<_> = asked.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(gaps[..5].iter().sum::<Duration>() < secs(4), "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= secs(30)), "{gaps:?}");
    let health = rig.manager.status().health;
    let since = health.failing_since_unix_ms.unwrap() - down;
    assert!((60_000..=90_000).contains(&since), "{since}");
    assert!(matches!(
        *health.last_error.unwrap(),
        StoreError::Unavailable { .. }
    ));
    assert_eq!(rig.states(), [GrantState::Held; 3]);

    let asked = rig.run(secs(15));
    assert_eq!(asked.len(), 3);
    assert!(rig.last_error().is_none());
    assert!(
        !rig.changes
            .iter()
            .any(|c| matches!(c, Change::Expired { .. }))
    );
}

#[test]
fn expires_when_the_clock_passes_the_last_end_and_revives_with_a_renewal() {
    let mut rig = Rig::holding(2);
    let end = LAYOUT.tick_start_unix_ms(START + LEASE_DURATION + 1);
    let asked = rig.run_with(secs(2 * LEASE_DURATION), |rig, request| {
        rig.answer(match request {
            Request::Renew(_) => Answer::Renewed(Err(unavailable())),
            other => panic!("{other:?}"),
        });
    });
    // The less is left, the more often it asks.
    let late = asked.windows(2).rev().take(200);
    assert!(late.clone().all(|pair| pair[1].0 - pair[0].0 <= secs(5)));
    assert_eq!(late.count(), 200);
    let expired = Change::Expired { since_unix_ms: end };
    assert_eq!(rig.changes.last(), Some(&expired));
    assert_eq!(rig.manager.status().expired_since_unix_ms, Some(end));
    let told = |rig: &Rig, change: &Change| rig.changes.iter().filter(|c| *c == change).count();
    assert_eq!(told(&rig, &expired), 1);

    rig.run(secs(10));
    assert_eq!(told(&rig, &Change::Revived), 1);
    assert_eq!(rig.manager.status().expired_since_unix_ms, None);
    assert_eq!(rig.opened().len(), 2, "both could still be renewed");
}

#[test]
fn expiry_is_told_to_the_millisecond() {
    let mut rig = Rig::holding(1);
    rig.intercept();
    let end = LAYOUT.tick_start_unix_ms(START + LEASE_DURATION + 1);
    rig.clock.set(end - 1);
    assert_eq!(rig.waits(), Duration::from_millis(1));
    assert_eq!(rig.changes.len(), 1);
    rig.clock.set(end);
    rig.waits();
    let expired = Change::Expired { since_unix_ms: end };
    assert_eq!(rig.changes.last(), Some(&expired));

    // Noticed late, it is told as of then.
    let mut rig = Rig::holding(1);
    rig.intercept();
    rig.clock.set(end + 100_000);
    rig.waits();
    assert_eq!(rig.changes.last(), Some(&expired));
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
fn refusals_keep_what_is_held_and_are_retried_at_the_slowest_pace() {
    for pick in 0..refusals().len() {
        let refusal = || refusals().swap_remove(pick);
        let kind = refusal().to_string();
        let mut rig = Rig::new(LeasePlan::new(1));
        let asked = rig.run_with(secs(100), |rig, _| {
            rig.answer(Answer::Acquired(Err(refusal())));
        });
        assert!((20..=41).contains(&asked.len()), "{kind}: {}", asked.len());
        assert_eq!(rig.last_error().unwrap().to_string(), kind);
        rig.run(secs(10));
        assert_eq!(rig.states(), [GrantState::Held], "{kind}");
        assert!(rig.last_error().is_none());

        rig.advance(secs(100));
        let asked = rig.run_with(secs(100), |rig, _| {
            rig.answer(Answer::Renewed(Err(refusal())));
        });
        assert!((20..=41).contains(&asked.len()), "{kind}: {}", asked.len());
        assert_eq!(rig.last_error().unwrap().to_string(), kind);
        assert_eq!(rig.states(), [GrantState::Held], "{kind}");
        rig.run(secs(10));
        assert!(rig.last_error().is_none());
        let left = rig.manager.status().grants[0].grant.ticks.end - rig.tick();
        assert!(left > LEASE_DURATION - 20, "{kind}");
    }
}

#[test]
fn one_corrupt_block_does_not_hold_up_the_others() {
    let mut rig = Rig::holding(3);
    let corrupt = rig.opened()[1].block;
    rig.run_with(secs(500), |rig, request| {
        if renewal(request).block == corrupt {
            rig.answer(Answer::Renewed(Err(refusals().swap_remove(4))));
        } else {
            rig.send(request);
        }
    });
    for status in rig.manager.status().grants {
        let topped_up = status.grant.ticks.end >= rig.tick() + LEASE_DURATION - 90;
        assert_eq!(topped_up, status.grant.block != corrupt, "{}", status.grant);
    }
}

#[test]
fn exhausted_is_a_failure_only_while_nothing_is_in_force() {
    // Four blocks, of which another holds two.
    let mut rig = Rig::with(LeasePlan::new(3), 15, StoreLimits::default());
    let now = rig.clock.unix_ms();
    rig.store
        .acquire(&rig.space, &Acquire::new(2, 60, now))
        .unwrap();
    let request = rig.asked();
    rig.send(&request);
    // Two were had at once, the third is asked for without hurry.
    assert_eq!(rig.states().len(), 2);
    assert!(rig.waits() >= Duration::from_millis(2500));
    let asked = rig.run(secs(30));
    let wanted = acquisitions(&asked);
    assert!(wanted.iter().all(|(_, blocks)| *blocks == 1));
    assert!((1..=2).contains(&wanted.len()), "{wanted:?}");
    assert!(rig.last_error().is_none());
    assert_eq!(rig.manager.status().target, 3);
    rig.run(secs(200));
    assert_eq!(rig.states().len(), 3);

    let mut rig = Rig::with(LeasePlan::new(1), 17, StoreLimits::default());
    let now = rig.clock.unix_ms();
    rig.store
        .acquire(&rig.space, &Acquire::new(1, 40, now))
        .unwrap();
    let asked = rig.run(secs(30));
    assert_eq!(asked.len(), 1);
    assert!(matches!(
        *rig.last_error().unwrap(),
        StoreError::Exhausted { .. }
    ));
    rig.run(secs(31));
    assert_eq!(rig.states().len(), 1);
    assert!(rig.last_error().is_none());
}

#[test]
fn advice_on_when_to_come_back_is_followed_for_a_top_up_period_at_most() {
    for (retry_after, least, most) in [(0, 0, 5), (30, 30, 45), (1000, 60, 90)] {
        let exhausted = || StoreError::Exhausted {
            wanted: 1,
            blocks: 1,
            retry_after: secs(retry_after),
        };
        let floor_ahead = || StoreError::FloorAhead {
            floor: 2,
            horizon_end: 1,
            retry_after: secs(retry_after),
        };
        let mut waits = Vec::new();
        for seed in 0..200 {
            let mut rig = Rig::new(LeasePlan::new(1));
            rig.manager = Manager::new(rig.space.clone(), LeasePlan::new(1), seed).unwrap();
            rig.asked();
            let refusal = if seed % 2 == 0 {
                exhausted()
            } else {
                floor_ahead()
            };
            rig.answer(Answer::Acquired(Err(refusal)));
            waits.push(rig.waits());
        }
        waits.sort();
        // Those that were told the same do not come back together.
        let (first, last) = (waits[0], waits[199]);
        assert!(first >= secs(least).max(RenewTiming::FIRST), "{first:?}");
        assert!(
            last <= secs(most) && last >= secs(most) * 9 / 10,
            "{last:?}"
        );
    }
}

#[test]
fn a_lost_history_is_replaced_by_few_requests_while_the_leases_last() {
    let limits = StoreLimits::default().with_failover(secs(60));
    let mut rig = Rig::with(LeasePlan::new(24), 5, limits);
    rig.settle();
    rig.run(secs(300));
    rig.store.set_incarnation(Incarnation::new("promoted"));
    let asked = rig.run(secs(400));
    let wanted = acquisitions(&asked);
    assert!(wanted.len() <= 4, "{wanted:?}");
    assert_eq!(rig.opened().len(), 48);
    let status = rig.manager.status();
    let held = |grant: &&GrantStatus| grant.state == GrantState::Held;
    assert_eq!(status.grants.iter().filter(held).count(), 24);
    assert!(
        !rig.changes
            .iter()
            .any(|c| matches!(c, Change::Expired { .. }))
    );
    // The new ones start above the floor, and grow as the clock comes near.
    rig.run(secs(1800));
    let status = rig.manager.status();
    assert!(
        status
            .grants
            .iter()
            .all(|g| g.grant.ticks.end >= rig.tick() + LEASE_DURATION - 90)
    );
    assert!(rig.last_error().is_none());
}

#[test]
fn a_horizon_under_the_duration_never_lets_a_lease_lapse() {
    for horizon in [2, 20, 100] {
        let limits = StoreLimits::default().with_horizon(secs(horizon));
        let mut rig = Rig::with(LeasePlan::new(2), 5, limits);
        rig.run(secs(600));
        assert_eq!(rig.opened().len(), 2);
        assert!(
            !rig.changes
                .iter()
                .any(|c| matches!(c, Change::Expired { .. })),
            "{horizon}"
        );
        let reach = rig.manager.status().reach;
        assert!(reach <= secs(horizon) && reach >= secs(horizon - 1));
    }
}

#[test]
fn a_clock_set_back_asks_for_nothing_invalid() {
    let mut rig = Rig::holding(1);
    let end = rig.opened()[0].ticks.end;
    for back in [100, 86_400, 10 * 365 * 86_400] {
        rig.intercept();
        let mut at = rig.at();
        rig.manager.flight = None;
        at.unix_ms = at.unix_ms.saturating_sub(back * 1000);
        let (changes, step) = rig.manager.next(at, IDLE);
        assert!(changes.is_empty());
        match step {
            Step::Ask(request) => {
                let renew = renewal(&request);
                assert_eq!(renew.known_end, end);
                assert!(renew.new_end >= end);
                renew.validate().unwrap();
            }
            other => panic!("{other:?}"),
        }
        rig.answer(Answer::Renewed(Ok(end)));
    }
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

#[test]
fn what_a_clock_set_back_puts_out_of_reach_is_replaced_once_there_is_another() {
    let mut rig = rig_with_one_lapsing();
    let before = rig.opened();
    rig.changes.clear();
    // The jitter, and not more.
    rig.demand.borrowed = too_far();
    rig.changes.clear();
    let asked = acquisitions(&rig.run(secs(10)));
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].1, 2);
    assert_eq!(rig.states(), [GrantState::Held; 2]);
    let closed = |change: &&Change| matches!(change, Change::Closed(_));
    assert_eq!(rig.changes.iter().filter(closed).count(), before.len());
    // What is left is not asked for again, until IDs of it are out of reach as well.
    assert!(acquisitions(&rig.run(secs(10))).is_empty());
    rig.demand.borrowed = Duration::ZERO;
    assert!(acquisitions(&rig.run(secs(10))).is_empty());
    rig.demand.borrowed = too_far();
    assert_eq!(acquisitions(&rig.run(secs(10))).len(), 1, "again");
}

#[test]
fn what_can_be_waited_for_is_within_reach() {
    let mut rig = Rig::new(LeasePlan::new(2).with_widen_to(2));
    rig.settle();
    rig.demand.borrowed = too_far() - secs(1);
    assert!(acquisitions(&rig.run(secs(30))).is_empty());
    assert_eq!(rig.states(), [GrantState::Held; 2]);
}

#[test]
fn a_clock_that_was_wrong_for_a_moment_costs_no_block() {
    let mut rig = rig_with_one_lapsing();
    let before = rig.manager.status().grants;
    rig.demand.borrowed = too_far();
    rig.run_with(secs(30), |rig, request| match request {
        Request::Acquire(_) => rig.answer(Answer::Acquired(Err(StoreError::ClockSkew {
            store_unix_ms: 1,
            client_unix_ms: 2,
            limit: secs(5),
        }))),
        request => rig.send(request),
    });
    assert_eq!(rig.manager.status().grants.len(), before.len());
    rig.demand.borrowed = Duration::ZERO;
    assert!(acquisitions(&rig.run(secs(60))).is_empty());
    let known = |grants: Vec<GrantStatus>| -> Vec<_> {
        let block = |status: &GrantStatus| (status.grant.block, status.grant.epoch, status.state);
        grants.iter().map(block).collect()
    };
    assert_eq!(known(rig.manager.status().grants), known(before));
}

/// As after a lost history.
#[test]
fn what_is_out_of_reach_itself_takes_no_place() {
    let mut rig = Rig::new(LeasePlan::new(1).with_widen_to(1));
    rig.settle();
    let floor = Floor::Tick(rig.tick() + IDLE.borrow_limit.as_secs() + 10);
    let now = rig.clock.unix_ms();
    rig.store.raise_floor(&rig.space, floor, now).unwrap();
    rig.demand.borrowed = too_far();
    let mut acquired = 0;
    let mut count = |rig: &mut Rig, request: &Request| {
        acquired += usize::from(matches!(request, Request::Acquire(_)));
        rig.send(request);
    };
    rig.run_with(secs(8), &mut count);
    assert_eq!(rig.states().len(), 2, "the one before is as near");
    rig.run_with(secs(52), count);
    assert_eq!(acquired, 1);
    assert_eq!(rig.states(), [GrantState::Held], "the clock has come to it");
    let left = rig.manager.status().grants;
    assert_eq!(left[0].grant, *rig.opened().last().unwrap());
}

#[test]
fn what_has_passed_takes_no_place() {
    let mut rig = Rig::new(LeasePlan::new(1).with_widen_to(1));
    rig.settle();
    rig.demand.borrowed = too_far();
    let request = rig.intercept_acquisition();
    let answer = request.send(&mut rig.store, &rig.space);
    rig.clock.advance(secs(LEASE_DURATION + 10));
    rig.answer(answer);
    assert_eq!(rig.states().len(), 2);
}

#[test]
fn a_clock_set_forward_renews_at_once_and_without_haste() {
    let mut rig = Rig::holding(2);
    // An hour for the client alone.
    rig.clock.advance(secs(3600));
    let behind = Arc::new(ManualClock::new(rig.clock.unix_ms() - 3_600_000));
    let mut store = MemoryStore::new(behind);
    store.restore(&rig.store.snapshot());
    let mut asked = 0;
    rig.run_with(secs(100), |rig, request| {
        asked += 1;
        renewal(request);
        let answer = request.send(&mut store, &rig.space);
        rig.answer(answer);
    });
    assert!((2 * 20..=2 * 41).contains(&asked), "{asked}");
    assert!(matches!(
        rig.changes.iter().find(|c| !matches!(c, Change::Opened(_))),
        Some(Change::Expired { .. })
    ));
    assert_eq!(rig.manager.status().reach, Duration::ZERO);

    // Back again.
    rig.clock.step_back(secs(3600));
    rig.run(secs(10));
    assert!(rig.changes.contains(&Change::Revived));
}

#[test]
fn a_monotonic_clock_that_stood_still_delays_no_renewal() {
    let mut rig = Rig::holding(1);
    // A suspended machine: the wall clock went on, the other did not.
    rig.clock.advance(secs(LEASE_DURATION / 2));
    renewal(&rig.asked());
}

#[test]
fn a_monotonic_clock_that_went_back_delays_no_request() {
    let mut rig = Rig::holding(1);
    rig.elapsed = Duration::ZERO;
    renewal(&rig.asked());
    rig.answer(Answer::Renewed(Err(unavailable())));
    rig.elapsed = secs(5000);
    rig.asked();
    rig.answer(Answer::Renewed(Err(unavailable())));
    rig.elapsed = secs(5);
    renewal(&rig.asked());
}

#[test]
fn widens_by_half_every_few_seconds_up_to_the_limit() {
    let mut rig = Rig::holding(2);
    rig.demand = BUSY;
    let mut targets = vec![rig.manager.status().target];
    for _ in 0..100 {
        rig.run(secs(1));
        let target = rig.manager.status().target;
        if target != targets[targets.len() - 1] {
            targets.push(target);
        }
    }
    assert_eq!(targets, [2, 3, 4, 6, 9, 13, 16]);
    assert_eq!(rig.opened().len(), 16);
    // The first at once, then one every five seconds.
    assert!(acquisitions(&rig.run(secs(10))).is_empty());
}

#[test]
fn widens_past_half_of_what_may_be_borrowed() {
    for (borrowed, borrow_limit, widens) in [
        (30_000, 60, false),
        (30_001, 60, true),
        // Half a minute, where the limit is long.
        (30_000, 3600, false),
        (30_001, 3600, true),
    ] {
        let mut rig = Rig::holding(1);
        rig.demand = Demand {
            borrowed: Duration::from_millis(borrowed),
            borrow_limit: secs(borrow_limit),
            ..IDLE
        };
        rig.settle();
        assert_eq!(rig.opened().len() == 2, widens, "{borrowed}");
    }
}

#[test]
fn widens_no_further_while_what_it_asked_for_has_not_come() {
    // Two blocks, one of them another's.
    let mut rig = Rig::with(LeasePlan::new(1), 16, StoreLimits::default());
    rig.settle();
    let now = rig.clock.unix_ms();
    rig.store
        .acquire(&rig.space, &Acquire::new(1, 1000, now))
        .unwrap();
    rig.demand = BUSY;
    rig.run(secs(300));
    assert_eq!(rig.manager.status().target, 2);
    assert!(rig.last_error().is_none());
}

#[test]
fn failures_of_blocks_no_longer_wanted_are_forgotten() {
    let mut rig = Rig::holding(1);
    rig.demand = BUSY;
    acquisition(&rig.asked());
    rig.answer(Answer::Acquired(Err(refusals().swap_remove(8))));
    assert!(rig.last_error().is_some());
    rig.demand = IDLE;
    rig.run_with(secs(LEASE_DURATION + 10), |rig, request| match request {
        Request::Acquire(_) => {
            rig.answer(Answer::Acquired(Err(refusals().swap_remove(8))));
        }
        other => rig.send(other),
    });
    assert_eq!(rig.manager.status().target, 1);
    assert!(rig.last_error().is_none());
}

#[test]
fn asks_for_no_more_than_there_is_room_for() {
    let mut rig = Rig::new(LeasePlan::new(5));
    rig.demand.room = 0;
    rig.waits();
    rig.demand.room = 3;
    assert_eq!(acquisition(&rig.asked()).blocks, 3);

    let mut rig = Rig::new(LeasePlan::new(256));
    let request = rig.asked();
    assert_eq!(acquisition(&request).blocks, MAX_ACQUIRE);
    acquisition(&request).validate().unwrap();
    rig.send(&request);
    rig.settle();
    assert_eq!(rig.opened().len(), 256);

    let mut rig = Rig::holding(1);
    rig.demand = Demand { room: 0, ..BUSY };
    rig.settle();
    assert_eq!(rig.manager.status().target, 1);
}

#[test]
fn lets_the_extra_blocks_lapse_one_by_one_and_releases_them_after_their_end() {
    let mut rig = Rig::holding(1);
    rig.demand = BUSY;
    rig.run(secs(30));
    assert_eq!(rig.states(), [GrantState::Held; 8]);

    rig.demand = IDLE;
    rig.run(secs(LEASE_DURATION - 10));
    assert_eq!(rig.states(), [GrantState::Held; 8]);
    let mut held = Vec::new();
    for _ in 0..9 {
        rig.run(secs(60));
        let states = rig.states();
        held.push(states.iter().filter(|s| **s == GrantState::Held).count());
    }
    assert_eq!(held, [7, 6, 5, 4, 3, 2, 1, 1, 1]);

    let asked = rig.run(secs(LEASE_DURATION + 100));
    let released = |(_, request): &&(Duration, Request)| matches!(request, Request::Release { .. });
    let before = rig.changes.iter();
    let closed: Vec<_> = before
        .filter_map(|change| match change {
            Change::Closed(grant) => Some(grant.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(closed.len(), 7);
    assert!(asked.iter().filter(released).count() <= 7);
    assert_eq!(rig.states(), [GrantState::Held]);
    let listing = rig.store.list(&rig.space).unwrap();
    assert_eq!(listing.blocks.iter().filter(|b| b.released).count(), 7);
    for grant in closed {
        let state = &listing.blocks[usize::try_from(grant.block.index()).unwrap()];
        assert!(state.released && state.hwm_end == grant.ticks.end);
    }
}

#[test]
fn takes_back_what_is_lapsing_before_it_asks_for_more() {
    let mut rig = Rig::new(LeasePlan::new(1).with_widen_to(2));
    rig.settle();
    rig.demand = BUSY;
    rig.settle();
    rig.demand = IDLE;
    rig.run(secs(LEASE_DURATION + 1));
    assert!(rig.states().contains(&GrantState::Lapsing));
    rig.demand = BUSY;
    let asked = rig.settle();
    assert_eq!(asked.len(), 1);
    renewal(&asked[0]);
    assert_eq!(rig.states(), [GrantState::Held; 2]);
}

#[test]
fn takes_back_no_more_than_are_wanted() {
    let mut rig = Rig::holding(4);
    let held = |rig: &mut Rig, target| {
        rig.manager.width.target = target;
        let step = rig.next();
        let states = rig.states();
        // What is taken back is renewed at once.
        if let Step::Ask(request) = step {
            rig.send(&request);
            rig.settle();
        }
        states.iter().filter(|s| **s == GrantState::Held).count()
    };
    for target in [2, 3, 1, 4] {
        assert_eq!(held(&mut rig, target), target as usize);
    }
}

#[test]
fn while_a_reply_is_awaited_the_next_end_is() {
    let mut rig = Rig::holding(2);
    rig.manager.width.target = 1;
    rig.run(secs(100));
    let request = rig.intercept();
    let status = rig.manager.status().grants;
    let left = |state| {
        let mut ends = status.iter().filter(|grant| grant.state == state);
        let end = ends.next().unwrap().grant.ticks.end;
        Duration::from_millis(LAYOUT.tick_start_unix_ms(end) - rig.clock.unix_ms())
    };
    let (held, lapsing) = (left(GrantState::Held), left(GrantState::Lapsing));
    assert!(lapsing < held);
    assert_eq!(rig.waits(), lapsing);
    rig.advance(lapsing);
    rig.waits();
    assert_eq!(rig.states(), [GrantState::Held], "the other is closed");
    rig.send(&request);
}

#[test]
fn invalidate_gives_up_everything_at_once() {
    let mut rig = Rig::holding(2);
    let known = rig.opened();
    let request = rig.intercept();
    let revoked = rig.manager.invalidate();
    let expected: Vec<_> = known.iter().cloned().map(Change::Revoked).collect();
    assert_eq!(revoked, expected);
    assert!(rig.states().is_empty());

    // What was under way is answered to nobody.
    rig.changes.clear();
    rig.send(&request);
    assert!(rig.changes.is_empty());
    let asked = rig.settle();
    assert_eq!(acquisition(&asked[0]).blocks, 2);
    assert_eq!(asked.len(), 1);
    for grant in rig.opened() {
        assert!(!known.iter().any(|k| k.block == grant.block));
    }
}

#[test]
fn invalidate_drops_an_acquisition_that_is_under_way() {
    let mut rig = Rig::new(LeasePlan::new(1));
    let request = rig.asked();
    assert!(rig.manager.invalidate().is_empty());
    rig.send(&request);
    assert!(rig.changes.is_empty());
    rig.settle();
    assert_eq!(rig.opened()[0].block, Block::new(1));
}

#[test]
fn release_closes_first_and_tells_the_store_then() {
    let mut rig = Rig::holding(3);
    let grants = rig.opened();
    rig.manager.release();
    rig.changes.clear();
    let first = rig.asked();
    let expected: Vec<_> = grants.iter().cloned().map(Change::Closed).collect();
    assert_eq!(rig.changes, expected);
    rig.send(&first);
    rig.settle();
    assert_eq!(rig.next(), Step::Done);
    let listing = rig.store.list(&rig.space).unwrap();
    assert!(listing.blocks.iter().all(|block| block.released));
    assert_eq!(listing.blocks.len(), 3);
    assert_eq!(rig.next(), Step::Done);
    assert!(rig.changes.len() == 3, "{:?}", rig.changes);
}

#[test]
fn release_spares_blocks_that_may_be_anothers() {
    let mut rig = Rig::holding(3);
    let fenced_one = renewal(&rig.intercept()).block;
    rig.answer(Answer::Renewed(Err(fenced(fenced_one))));
    let mut unsure_one = None;
    rig.run_with(secs(100), |rig, request| match request {
        Request::Renew(renew) if unsure_one.is_none() => {
            unsure_one = Some(renew.block);
            rig.answer(Answer::Renewed(Err(ambiguous())));
        }
        other => rig.send(other),
    });
    rig.manager.release();
    let released: Vec<_> = rig
        .settle()
        .into_iter()
        .map(|request| match request {
            Request::Release { block, .. } => block,
            other => panic!("{other:?}"),
        })
        .collect();
    // Two of the three, one of them in doubt only as to its end; and two that
    // replaced those lost.
    assert_eq!(released.len(), 4);
    assert!(released.contains(&unsure_one.unwrap()));
    assert!(!released.contains(&fenced_one));
}

#[test]
fn release_gives_up_where_the_store_fails() {
    for failure in [unavailable, ambiguous] {
        let mut rig = Rig::holding(3);
        rig.manager.release();
        rig.asked();
        rig.answer(Answer::Released(Err(failure())));
        assert_eq!(rig.next(), Step::Done);
    }
}

#[test]
fn release_includes_what_was_under_way() {
    let mut rig = Rig::new(LeasePlan::new(2));
    let request = rig.asked();
    rig.manager.release();
    rig.send(&request);
    assert!(rig.changes.is_empty(), "{:?}", rig.changes);
    assert_eq!(rig.settle().len(), 2);
    assert_eq!(rig.next(), Step::Done);
}

#[test]
fn grants_that_no_store_gives_are_not_opened() {
    let mut rig = Rig::holding(1);
    rig.demand = BUSY;
    let held = rig.opened()[0].clone();
    let ask = |rig: &mut Rig, grants: Vec<Grant>| {
        rig.intercept_acquisition();
        rig.answer(Answer::Acquired(Ok(grants)));
    };
    let outside = Grant::new(Block::new(rig.space.blocks()), Epoch::FIRST, 1..2);
    let backwards = Grant::new(Block::new(8), Epoch::FIRST, 7..7);
    let mut overlapping = held.clone();
    overlapping.ticks = held.ticks.end - 1..held.ticks.end + 5;
    for unsound in [outside, backwards, overlapping] {
        ask(&mut rig, vec![unsound]);
        assert_eq!(rig.opened().len(), 1);
        assert!(matches!(
            *rig.last_error().unwrap(),
            StoreError::Corrupt { .. }
        ));
    }
    // Its successor on the same block, even of the same epoch, is sound; and
    // what was not asked for is left alone.
    let mut successor = held.clone();
    successor.ticks = held.ticks.end..held.ticks.end + 5;
    let unasked = Grant::new(Block::new(9), Epoch::FIRST, 7..8);
    ask(&mut rig, vec![successor.clone(), unasked]);
    assert_eq!(rig.opened(), [held.clone(), successor.clone()]);
    // And what ends where one begins.
    let after = held.ticks.end + 10;
    let later = Grant::new(Block::new(9), Epoch::FIRST, after..after + 5);
    let earlier = Grant::new(Block::new(9), Epoch::FIRST, after - 5..after);
    ask(&mut rig, vec![later.clone()]);
    ask(&mut rig, vec![earlier.clone()]);
    assert_eq!(rig.opened(), [held, successor, later, earlier]);
}

#[test]
fn an_end_that_no_store_gives_is_not_believed() {
    for off in [-1, LEASE_DURATION as i64 * 10] {
        let mut rig = Rig::holding(1);
        let known = rig.opened()[0].ticks.end;
        rig.intercept();
        let end = known.saturating_add_signed(off);
        rig.answer(Answer::Renewed(Ok(end)));
        assert_eq!(rig.states(), [GrantState::Draining]);
        assert_eq!(rig.manager.status().grants[0].grant.ticks.end, known);
        assert!(matches!(
            *rig.last_error().unwrap(),
            StoreError::Corrupt { .. }
        ));
    }
}

#[test]
fn a_floor_ahead_leaves_grants_that_wait_for_the_clock() {
    let limits = StoreLimits::default().with_horizon(secs(1200));
    let mut rig = Rig::with(LeasePlan::new(1), 5, limits);
    let now = rig.clock.unix_ms();
    let floor = Floor::Tick(START + 1000);
    rig.store.raise_floor(&rig.space, floor, now).unwrap();
    rig.settle();
    assert_eq!(rig.opened()[0].ticks, START + 1000..START + 1200);
    // It lies ahead of the clock plus the lease duration: there is nothing to add yet.
    rig.run(secs(300));
    assert_eq!(rig.manager.status().grants[0].grant.ticks.end, START + 1200);
    rig.run(secs(700));
    assert!(rig.manager.status().grants[0].grant.ticks.end > START + 1500);
}

#[test]
fn both_copies_renew_and_one_is_fenced() {
    let mut rig = Rig::holding(1);
    let known = rig.opened()[0].clone();
    let mut copy = rig.manager.clone();
    let request = rig.intercept();
    rig.send(&request);
    let (_, step) = copy.next(rig.at(), IDLE);
    let Step::Ask(request) = step else {
        panic!("{step:?}")
    };
    assert_eq!(renewal(&request).known_end, known.ticks.end);
    let answer = request.send(&mut rig.store, &rig.space);
    assert!(copy.answer(rig.at(), answer).is_empty());
    assert_eq!(copy.status().grants[0].state, GrantState::Draining);
    assert_eq!(copy.status().grants[0].grant, known);
    assert_eq!(rig.states(), [GrantState::Held]);
}

/// What a random driver does next.
#[derive(Clone, Debug)]
enum Move {
    Advance(u64),
    /// The wall clock alone.
    Step(i64),
    /// The monotonic clock alone, to any time.
    Elapsed(u64),
    Next,
    Carry,
    Fail(usize),
    Forge(u64, u64),
    Demand(u64, usize),
    Invalidate,
    Release,
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        8 => (0..100_000_u64).prop_map(Move::Advance),
        1 => prop_oneof![-10_000_000..10_000_000_i64, Just(i64::MIN), Just(i64::MAX)]
            .prop_map(Move::Step),
        1 => any::<u64>().prop_map(Move::Elapsed),
        16 => Just(Move::Next),
        12 => Just(Move::Carry),
        6 => (0..20_usize).prop_map(Move::Fail),
        1 => (0..9_u64, any::<u64>()).prop_map(|(block, end)| Move::Forge(block, end)),
        2 => (0..1_000_u64, 0..9_usize).prop_map(|(s, room)| Move::Demand(s, room)),
        1 => Just(Move::Invalidate),
        1 => Just(Move::Release),
    ]
}

/// The lanes that a generator would have after these changes.
fn apply(lanes: &mut Vec<Grant>, changes: Vec<Change>) {
    let position = |lanes: &[Grant], grant: &Grant| {
        let same =
            |lane: &Grant| (lane.block, lane.ticks.start) == (grant.block, grant.ticks.start);
        let mut found = (0..lanes.len()).filter(|index| same(&lanes[*index]));
        let first = found.next().expect("a change of a grant that is open");
        assert_eq!(found.next(), None, "the same grant twice");
        first
    };
    for change in changes {
        match change {
            Change::Opened(grant) => {
                assert!(!grant.ticks.is_empty());
                lanes.push(grant);
            }
            Change::Extended(grant) => {
                let at = position(lanes, &grant);
                assert!(grant.ticks.end > lanes[at].ticks.end, "an end moved back");
                lanes[at] = grant;
            }
            Change::Closed(grant) | Change::Revoked(grant) => {
                let at = position(lanes, &grant);
                assert_eq!(lanes.remove(at), grant);
            }
            Change::Expired { .. } | Change::Revived => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever the driver, the store and the clocks do: requests are valid and
    /// come one at a time, changes add up to what the status says, and nothing
    /// panics.
    #[test]
    fn any_order_of_anything(
        seed in any::<u64>(),
        moves in prop::collection::vec(moves(), 1..300),
    ) {
        let mut rig = Rig::with(LeasePlan::new(2), 14, StoreLimits::default());
        rig.manager = Manager::new(rig.space.clone(), LeasePlan::new(2), seed).unwrap();
        let mut lanes = Vec::new();
        let mut flight: Option<Request> = None;
        for step in moves {
            match step {
                Move::Advance(ms) => rig.advance(Duration::from_millis(ms)),
                Move::Step(ms) => {
                    let now = rig.clock.unix_ms();
                    rig.clock.set(now.saturating_add_signed(ms));
                }
                Move::Elapsed(ms) => rig.elapsed = Duration::from_millis(ms),
                Move::Next => {
                    let (changes, step) = rig.manager.next(rig.at(), rig.demand);
                    apply(&mut lanes, changes);
                    match step {
                        Step::Ask(request) => {
                            prop_assert!(flight.is_none());
                            match &request {
                                Request::Acquire(acquire) => {
                                    acquire.validate().unwrap();
                                    prop_assert!(acquire.blocks as usize <= rig.demand.room);
                                }
                                Request::Renew(renew) => {
                                    renew.validate().unwrap();
                                    let known = |lane: &Grant| {
                                        lane.block == renew.block && lane.ticks.end == renew.known_end
                                    };
                                    prop_assert!(lanes.iter().any(known));
                                }
                                _ => {}
                            }
                            flight = Some(request);
                        }
                        Step::Wait(wait) => prop_assert!(wait >= Duration::from_millis(1)),
                        Step::Done => {
                            prop_assert!(lanes.is_empty());
                        }
                    }
                }
                Move::Carry => {
                    if let Some(request) = flight.take() {
                        let answer = request.send(&mut rig.store, &rig.space);
                        apply(&mut lanes, rig.manager.answer(rig.at(), answer));
                    }
                }
                Move::Fail(pick) => {
                    let mut errors = refusals();
                    errors.extend([unavailable(), ambiguous(), fenced(Block::new(0))]);
                    let error = errors.swap_remove(pick % errors.len());
                    let answer = match flight.take() {
                        Some(Request::Acquire(_)) => Answer::Acquired(Err(error)),
                        Some(Request::Renew(_)) => Answer::Renewed(Err(error)),
                        Some(Request::Release { .. }) => Answer::Released(Err(error)),
                        Some(Request::Check { .. }) | None => Answer::Checked(Err(error)),
                    };
                    apply(&mut lanes, rig.manager.answer(rig.at(), answer));
                }
                Move::Forge(block, end) => {
                    let answer = match flight.take() {
                        Some(Request::Acquire(_)) => {
                            let grant = Grant::new(Block::new(block), Epoch::FIRST, end / 2..end);
                            Answer::Acquired(Ok(vec![grant; 3]))
                        }
                        _ => Answer::Renewed(Ok(end)),
                    };
                    apply(&mut lanes, rig.manager.answer(rig.at(), answer));
                }
                Move::Demand(borrowed, room) => {
                    rig.demand = Demand { borrowed: secs(borrowed), room, ..IDLE };
                }
                Move::Invalidate => {
                    apply(&mut lanes, rig.manager.invalidate());
                    prop_assert!(lanes.is_empty());
                }
                Move::Release => rig.manager.release(),
            }
            let status = rig.manager.status();
            let known: Vec<_> = status.grants.into_iter().map(|g| g.grant).collect();
            prop_assert_eq!(&known, &lanes);
        }
    }

    /// Whatever happened before: with a store that answers and clocks that go,
    /// the blocks of the plan are held and reach ahead of the clock.
    #[test]
    fn it_always_recovers(
        seed in any::<u64>(),
        failures in prop::collection::vec((0..20_usize, 0..100_000_u64), 1..60),
    ) {
        let mut rig = Rig::new(LeasePlan::new(3));
        rig.manager = Manager::new(rig.space.clone(), LeasePlan::new(3), seed).unwrap();
        let mut failures = failures.into_iter();
        rig.run_with(secs(7200), |rig, request| {
            let Some((pick, ms)) = failures.next() else {
                rig.send(request);
                return;
            };
            rig.advance(Duration::from_millis(ms));
            let mut errors = refusals();
            errors.extend([unavailable(), ambiguous(), fenced(Block::new(0))]);
            if pick >= errors.len() {
                rig.send(request);
                return;
            }
            let error = errors.swap_remove(pick);
            rig.answer(match request {
                Request::Acquire(_) => Answer::Acquired(Err(error)),
                Request::Renew(_) => Answer::Renewed(Err(error)),
                Request::Release { .. } => Answer::Released(Err(error)),
                Request::Check { .. } => Answer::Checked(Err(error)),
            });
        });
        prop_assert!(failures.next().is_none());
        let status = rig.manager.status();
        prop_assert_eq!(rig.states(), [GrantState::Held; 3]);
        prop_assert!(status.grants.iter().all(|g| g.grant.ticks.end >= rig.tick() + LEASE_DURATION - 90));
        prop_assert!(status.health.last_error.is_none());
        prop_assert_eq!(status.expired_since_unix_ms, None);
    }
}
