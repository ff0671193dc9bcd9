//! One machine, its processes, and an upstream store that can be taken away.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use ringflake_kit::events::warnings;

use super::grant_log::{Standing, UpstreamGrant};
use super::*;
use crate::clock::{Clock, ManualClock};
use crate::layout::Layout;
use crate::lease::confirmed::Confirmed;
use crate::lease::error::Fence;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::store::backends::memory::MemoryStore;
use crate::lease::store::conformance::{GrantedTicks, Suite};
use crate::lease::store::limits::StoreLimits;
use crate::lease::store::record::Incarnation;
use crate::lease::store::request::History;

const START_MS: u64 = 1_760_000_000_000;
const SECOND: Duration = Duration::from_secs(1);
/// The upstream store's horizon, and so how far the machine reaches.
const REACH: u64 = 3600;
/// How far sub-grants reach.
const SUB: u64 = 120;

/// How the way to the upstream store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    #[default]
    Open,
    Closed,
    /// Requests arrive, and replies don't.
    Mute,
    /// As closed, and that takes longer to find out than clocks may be apart.
    Slow,
}

/// The upstream store behind a way.
#[derive(Clone, Debug)]
struct Upstream {
    server: MemoryStore,
    way: Arc<Mutex<Way>>,
    clock: ManualClock,
    /// The calls so far.
    asked: Arc<Mutex<Vec<&'static str>>>,
}

impl Upstream {
    fn pass<T>(
        &mut self,
        operation: &'static str,
        ask: impl FnOnce(&mut MemoryStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.asked.lock().unwrap().push(operation);
        let way = *self.way.lock().unwrap();
        match way {
            Way::Open => ask(&mut self.server),
            Way::Closed | Way::Slow => {
                if way == Way::Slow {
                    self.clock.advance(6 * SECOND);
                }
                Err(StoreError::unavailable("no way"))
            }
            Way::Mute => {
                let _ = ask(&mut self.server);
                Err(StoreError::Ambiguous {
                    operation,
                    source: "no reply".into(),
                })
            }
        }
    }

    fn is_asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl LeaseStore for Upstream {
    crate::forward_store! { self.pass =>
        init acquire renew release list raise_floor check write_test
    }
}

struct Rig {
    clock: ManualClock,
    upstream: Upstream,
    machine: MemoryTier,
    space: Namespace,
    given: GrantedTicks,
}

impl Rig {
    fn new() -> Self {
        Self::reaching(REACH)
    }

    /// With this horizon upstream.
    fn reaching(reach: u64) -> Self {
        let clock = ManualClock::new(START_MS);
        let mut server = MemoryStore::new(Arc::new(clock.clone()));
        let space = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        let limits = StoreLimits::default().with_horizon(Duration::from_secs(reach));
        let init = Init::new(History::New, START_MS).with_limits(limits);
        server.init(&space, &init).unwrap();
        Self {
            machine: MemoryTier::new(Arc::new(clock.clone())),
            clock: clock.clone(),
            upstream: Upstream {
                server,
                way: Arc::default(),
                clock,
                asked: Arc::default(),
            },
            space,
            given: GrantedTicks::default(),
        }
    }

    /// With a process that has a grant.
    fn begun() -> (Self, TierStore, Grant) {
        let mut rig = Self::new();
        let mut process = rig.process();
        let grant = rig.acquire(&mut process).unwrap();
        (rig, process, grant)
    }

    fn process(&self) -> TierStore {
        TierStore::in_memory(&self.machine.process(), Box::new(self.upstream.clone()))
    }

    fn way(&self, way: Way) {
        *self.upstream.way.lock().unwrap() = way;
    }

    fn now(&self) -> u64 {
        self.clock.unix_ms()
    }

    fn tick(&self) -> u64 {
        self.space.layout().tick_at(self.now()).unwrap()
    }

    /// As a generator asks: for ten minutes.
    fn acquire(&mut self, process: &mut TierStore) -> Result<Grant, StoreError> {
        let ask = Acquire::new(1, 600, self.now());
        let grant = process.acquire(&self.space, &ask)?.remove(0);
        self.given.add(&grant);
        Ok(grant)
    }

    fn renew(&mut self, process: &mut TierStore, grant: &mut Grant) -> Result<(), StoreError> {
        let renew = Renew::new(grant, (self.tick() + 600).max(grant.ticks.end), self.now());
        let end = process.renew(&self.space, &renew)?;
        self.given.extend(grant, end);
        grant.ticks.end = end;
        Ok(())
    }

    /// A grant log's upstream grants.
    fn upstream(&self) -> Vec<(u64, Range<u64>, Standing)> {
        let log = |log: &mut GrantLog, _: &Caller| Ok(log.upstream.clone());
        let upstream = self.machine.change(&self.space, log).unwrap();
        let row = |(block, it): (Block, UpstreamGrant)| (block.index(), it.ticks, it.standing);
        upstream.into_iter().map(row).collect()
    }

    fn standing(&self, grant: &Grant) -> Standing {
        let all = self.upstream();
        let found = all.iter().find(|it| it.0 == grant.block.index());
        found.unwrap().2
    }
}

#[track_caller]
fn unavailable<T: Debug>(result: Result<T, StoreError>) {
    let is = matches!(result, Err(StoreError::Unavailable { .. }));
    assert!(is, "{result:?}");
}

#[track_caller]
fn history_lost<T: Debug>(result: Result<T, StoreError>) {
    let is = matches!(result, Err(StoreError::HistoryLost { .. }));
    assert!(is, "{result:?}");
}

fn fence<T: Debug>(result: Result<T, StoreError>) -> Fence {
    match result {
        Err(StoreError::Fenced { fence, .. }) => fence,
        other => panic!("{other:?}"),
    }
}

#[test]
fn s9_a_tier_conforms_whatever_it_is_kept_in() {
    let clock = Arc::new(crate::clock::SystemClock);
    let server = MemoryStore::new(clock.clone());
    let machine = MemoryTier::new(clock.clone());
    let open = || -> Box<dyn LeaseStore> {
        let tier = TierStore::in_memory(&machine, Box::new(server.clone()));
        Box::new(tier.with_sub_grants(Duration::MAX))
    };
    Suite::new(&open, &|| clock.unix_ms()).run();
}

#[test]
fn s9_a_sub_grant_ends_with_its_upstream_grant() {
    let (mut rig, mut process, mut grant) = Rig::begun();
    let start = rig.tick();
    assert_eq!(grant.ticks, start..start + SUB);
    rig.way(Way::Closed);
    let end = start + REACH;
    for _ in 0..REACH / 10 {
        rig.clock.advance(10 * SECOND);
        let _ = rig.renew(&mut process, &mut grant);
        assert!(grant.ticks.end <= end && grant.ticks.end <= rig.tick() + SUB);
    }
    assert_eq!(grant.ticks.end, end);
    let error = rig.renew(&mut process, &mut grant).unwrap_err();
    let StoreError::Unavailable { source } = error else {
        panic!("{error:?}");
    };
    assert!(source.to_string().contains("no way"), "{source}");
    // The rest of the other block is gone, too.
    unavailable(rig.acquire(&mut process));

    rig.way(Way::Open);
    rig.clock.advance(20 * SECOND);
    rig.renew(&mut process, &mut grant).unwrap();
    assert_eq!(grant.ticks.end, rig.tick() + SUB);
}

#[test]
fn the_machine_always_reaches_the_horizon_less_five_minutes() {
    let (mut rig, mut process, mut grant) = Rig::begun();
    rig.upstream.is_asked();
    let mut asked = 0;
    for _ in 0..6 * 3600 / 15 {
        rig.clock.advance(15 * SECOND);
        rig.renew(&mut process, &mut grant).unwrap();
        asked += rig.upstream.is_asked().len() as u64;
        let mut ends = rig.upstream().into_iter().map(|it| it.1.end);
        assert!(ends.all(|end| end + 15 >= rig.tick() + REACH - 300));
    }
    // Two blocks, each every five minutes.
    assert!((130..=150).contains(&asked), "{asked}");
}

#[test]
fn an_upstream_store_that_fails_is_looked_at_before_it_is_asked() {
    let (mut rig, mut process, mut grant) = Rig::begun();
    rig.way(Way::Mute);
    rig.clock.advance(100 * SECOND);
    rig.renew(&mut process, &mut grant).unwrap();
    rig.clock.advance(115 * SECOND);
    rig.renew(&mut process, &mut grant).unwrap();
    rig.clock.advance(115 * SECOND);
    rig.upstream.is_asked();
    rig.clock.advance(100 * SECOND);
    for _ in 0..3 {
        rig.renew(&mut process, &mut grant).unwrap();
    }
    assert_eq!(rig.upstream.is_asked(), ["renew"]);
    let drained = |rig: &Rig| {
        let all = rig.upstream();
        let drained = |it: &&(u64, Range<u64>, Standing)| it.2 == Standing::Draining;
        all.iter().filter(drained).count()
    };
    assert_eq!(drained(&rig), 1);
    for _ in 0..10 {
        rig.clock.advance(15 * SECOND);
        rig.renew(&mut process, &mut grant).unwrap();
        assert_eq!(rig.upstream.is_asked(), ["check"]);
    }
    assert_eq!(drained(&rig), 1, "one lost reply costs one block");
    rig.way(Way::Open);
    rig.clock.advance(15 * SECOND);
    rig.renew(&mut process, &mut grant).unwrap();
    assert_eq!(rig.upstream.is_asked(), ["check", "renew", "acquire"]);
}

/// Where the place can't tell, a process's evidence does (S8).
#[test]
fn s9_a_process_that_knows_more_than_the_ledger_is_believed() {
    let (mut rig, mut process, _) = Rig::begun();
    let half = rig.machine.snapshot();
    let grant = rig.acquire(&mut process).unwrap();
    rig.machine.put_back_unnoticed(&half);
    let told = Confirmed::new(grant.block, grant.epoch, grant.ticks.end);
    let ask = Acquire::new(1, 600, rig.now()).with_evidence(vec![told]);
    history_lost(process.acquire(&rig.space, &ask));
    let error = rig.acquire(&mut rig.process()).unwrap_err();
    assert!(matches!(error, StoreError::FloorAhead { .. }), "{error:?}");
    rig.clock.advance(62 * SECOND);
    rig.acquire(&mut rig.process()).unwrap();
}

/// Nothing of what they had can come again, so that nobody has to wait.
#[test]
fn s9_evidence_from_a_ledger_that_was_given_up_is_ignored() {
    let mut rig = Rig::new();
    let mut process = rig.process();
    let early = rig.machine.snapshot();
    let grant = rig.acquire(&mut process).unwrap();
    let told = Confirmed::new(grant.block, grant.epoch, grant.ticks.end);
    for is_lost in [false, true] {
        rig.clock.advance(SECOND);
        match is_lost {
            true => rig.machine.lose(),
            false => rig.machine.put_back(&early),
        }
        let ask = Acquire::new(1, 600, rig.now()).with_evidence(vec![told]);
        let next = process.acquire(&rig.space, &ask).unwrap().remove(0);
        rig.given.add(&next);
        assert!(next.epoch > grant.epoch);
        // Later confirmations count.
        let mut more = Confirmed::new(next.block, next.epoch, next.ticks.end + 1);
        let ask = Acquire::new(1, 600, rig.now()).with_evidence(vec![more]);
        let machine = rig.machine.snapshot();
        history_lost(process.acquire(&rig.space, &ask));
        more.block = Block::new(4000);
        rig.machine.put_back_unnoticed(&machine);
        let ask = Acquire::new(1, 600, rig.now()).with_evidence(vec![more]);
        history_lost(process.acquire(&rig.space, &ask));
    }
}

/// A fresh block would begin there, too.
#[test]
fn a_floor_that_lies_ahead_is_no_reason_to_ask_for_more() {
    let (mut rig, mut process, _) = Rig::begun();
    let floor = Floor::Tick(rig.tick() + SUB - 10);
    let now = rig.now();
    process.raise_floor(&rig.space, floor, now).unwrap();
    rig.upstream.is_asked();
    let grant = rig.acquire(&mut process).unwrap();
    assert_eq!(grant.ticks, rig.tick() + SUB - 10..rig.tick() + SUB);
    assert_eq!(rig.upstream.is_asked(), [""; 0]);
}

#[test]
fn s9_after_the_floor_was_raised_nothing_of_before_is_passed_on() {
    let mut rig = Rig::new();
    let grant = rig.acquire(&mut rig.process()).unwrap();
    let mut process = rig.process();
    let now = rig.now();
    let floor = process.raise_floor(&rig.space, Floor::OverLostGrants, now);
    let over = StoreLimits::default().failover().as_secs();
    assert_eq!(floor.unwrap(), rig.tick() + SUB + over + 1);
    assert!(rig.upstream().iter().all(|it| it.2 == Standing::Closed));
    rig.clock.advance(90 * SECOND);
    let next = rig.acquire(&mut process).unwrap();
    assert_ne!(next.block, grant.block);
}

#[test]
fn an_upstream_store_that_lost_its_history_takes_nothing_back() {
    let (mut rig, mut process, mut grant) = Rig::begun();
    rig.upstream
        .server
        .set_incarnation(Incarnation::new("another"));
    for _ in 0..100 {
        rig.clock.advance(15 * SECOND);
        rig.renew(&mut process, &mut grant).unwrap();
    }
    assert_eq!(rig.standing(&grant), Standing::Draining);
    assert_eq!(grant.ticks.end, rig.tick() + SUB);
}

#[test]
fn s9_a_late_reply_changes_nothing() {
    let mut rig = Rig::new();
    let grant = rig.acquire(&mut rig.process()).unwrap();
    let (_, ticks, _) = rig.upstream()[0].clone();
    let renew = Renew::new(
        &Grant::new(grant.block, Epoch::FIRST, ticks.clone()),
        ticks.end + 50,
        START_MS,
    );
    let hand_in = |rig: &Rig, renew: &Renew, answer: Result<u64, StoreError>| {
        let hand_in = |log: &mut GrantLog, _: &Caller| {
            log.renewed(renew, &answer);
            Ok(())
        };
        rig.machine.change(&rig.space, hand_in).unwrap();
        rig.upstream()[0].clone()
    };
    let renewed = hand_in(&rig, &renew, Ok(ticks.end + 20));
    assert_eq!(renewed, (0, ticks.start..ticks.end + 20, Standing::Held));
    let mut another_epoch = Renew {
        known_end: ticks.end + 20,
        ..renew.clone()
    };
    another_epoch.epoch = Epoch::new(2);
    for late in [&renew, &another_epoch] {
        for answer in [
            Ok(ticks.end + 30),
            Err(StoreError::Fenced {
                block: late.block,
                fence: Fence::NeverGranted,
            }),
        ] {
            assert_eq!(hand_in(&rig, late, answer), renewed);
        }
    }
    // No reply reaches further than it was asked for.
    let mut again = renew.clone();
    again.known_end = ticks.end + 20;
    let (_, kept, standing) = hand_in(&rig, &again, Ok(ticks.end + 51));
    assert_eq!((kept, standing), (renewed.1, Standing::Draining));
}

#[test]
fn s9_an_upstream_grant_that_meets_a_sub_grant_is_left_alone() {
    let mut rig = Rig::new();
    let grant = rig.acquire(&mut rig.process()).unwrap();
    let (_, ticks, _) = rig.upstream()[0].clone();
    for (start, is_sound) in [
        (grant.ticks.end, false),
        (ticks.end - 1, false),
        (ticks.end, true),
    ] {
        let again = Grant::new(grant.block, Epoch::new(2), start..start + REACH);
        let adopt = |log: &mut GrantLog, _: &Caller| Ok(log.adopt(std::slice::from_ref(&again)));
        let adopted = rig.machine.change(&rig.space, adopt).unwrap();
        assert_eq!(adopted.is_ok(), is_sound, "{start}");
        let (_, now, _) = rig.upstream()[0].clone();
        assert_eq!(now.start, if is_sound { start } else { ticks.start });
    }
    // The sub-grant ends before the new one begins, and may not grow into it.
    let renew = Renew::new(&grant, grant.ticks.end + 1, rig.now());
    let mut process = rig.process();
    assert_eq!(fence(process.renew(&rig.space, &renew)), Fence::Upstream);
}

#[test]
fn what_nobody_needs_any_more_lapses() {
    let mut rig = Rig::new();
    let mut many: Vec<_> = (0..8).map(|_| rig.process()).collect();
    let mut grants: Vec<_> = many.iter_mut().map(|it| rig.acquire(it).unwrap()).collect();
    for (process, grant) in many.iter_mut().zip(&grants).skip(1) {
        process
            .release(&rig.space, grant.block, grant.epoch)
            .unwrap();
    }
    for _ in 0..REACH / 15 + 2 {
        rig.clock.advance(15 * SECOND);
        rig.renew(&mut many[0], &mut grants[0]).unwrap();
    }
    let in_force = |it: &(u64, Range<u64>, Standing)| it.1.end > rig.tick();
    let in_force = rig.upstream().into_iter().filter(in_force).count();
    assert_eq!(in_force, 2, "the one in use, and a spare one");
}

#[test]
fn s9_restored_upstream_rows_take_nothing_from_the_machine() {
    let (mut rig, mut process, mut grant) = Rig::begun();
    let backup = rig.upstream.server.snapshot();
    for _ in 0..REACH / 15 {
        rig.clock.advance(15 * SECOND);
        rig.renew(&mut process, &mut grant).unwrap();
    }
    rig.upstream.server.restore(&backup);
    let end = rig.upstream()[0].1.end;
    while grant.ticks.end < end {
        rig.clock.advance(15 * SECOND);
        let before = grant.ticks.end;
        rig.renew(&mut process, &mut grant).unwrap();
        assert!(grant.ticks.end > before, "{grant}");
    }
    assert_eq!(
        (rig.standing(&grant), grant.ticks.end),
        (Standing::Draining, end)
    );
    // And it has told the store what that had forgotten.
    let floor = rig.upstream.server.list(&rig.space).unwrap().record.floor;
    assert!(floor >= end, "{floor} lies below {end}");
}

#[test]
fn a_slow_upstream_store_is_no_clock_that_is_off() {
    let (mut rig, _process, _) = Rig::begun();
    rig.way(Way::Slow);
    // The tier grants what the machine has, and then reports the shortage.
    for _ in 0..5 {
        match rig.acquire(&mut rig.process()) {
            Ok(_) | Err(StoreError::Exhausted { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    rig.clock.advance(REACH as u32 * SECOND);
    for _ in 0..3 {
        unavailable(rig.acquire(&mut rig.process()));
    }
}

#[test]
fn lost_replies_cost_a_machine_without_blocks_one_request() {
    let mut rig = Rig::new();
    rig.acquire(&mut rig.process()).unwrap();
    rig.way(Way::Mute);
    rig.clock.advance(REACH as u32 * SECOND);
    rig.upstream.is_asked();
    for _ in 0..200 {
        unavailable(rig.acquire(&mut rig.process()));
        rig.clock.advance(SECOND);
    }
    let asked = rig.upstream.is_asked();
    let requests = asked.iter().filter(|it| **it == "acquire").count();
    assert_eq!(requests, 1, "{asked:?}");
    assert!((10..=30).contains(&asked.len()), "{}", asked.len());
    rig.way(Way::Open);
    rig.clock.advance(15 * SECOND);
    rig.acquire(&mut rig.process()).unwrap();
    assert_eq!(rig.upstream.is_asked(), ["check", "acquire"]);
    rig.acquire(&mut rig.process()).unwrap();
}

#[test]
fn s9_a_namespace_that_the_machine_knows_is_never_new() {
    let mut rig = Rig::new();
    rig.acquire(&mut rig.process()).unwrap();
    let clock = Arc::new(rig.clock.clone());
    let emptied = MemoryStore::new(clock);
    let init = Init::new(History::New, rig.now());
    let mut here = TierStore::in_memory(&rig.machine.process(), Box::new(emptied.clone()));
    here.init_if_new(&rig.space, &init).unwrap();
    let floor = emptied.clone().list(&rig.space).unwrap().record.floor;
    assert!(floor > rig.tick(), "{floor}");
    // A new machine has no evidence, and a store without a history refuses `New`.
    let (other, emptied) = (
        MemoryTier::new(Arc::new(rig.clock.clone())),
        MemoryStore::new(Arc::new(rig.clock.clone())),
    );
    let mut there = TierStore::in_memory(&other.process(), Box::new(emptied.clone()));
    let refused = there.init_if_new(&rig.space, &init).unwrap_err();
    assert!(
        matches!(refused, StoreError::HistoryUnknown { .. }),
        "{refused}"
    );
}

#[test]
fn s9_of_one_reply_what_is_sound_is_taken_in() {
    let mut rig = Rig::new();
    let grant = rig.acquire(&mut rig.process()).unwrap();
    let (_, ticks, _) = rig.upstream()[0].clone();
    let meets = Grant::new(grant.block, Epoch::new(2), ticks.end - 1..ticks.end + 9);
    let sound = Grant::new(Block::new(77), Epoch::FIRST, ticks.clone());
    let adopt = |log: &mut GrantLog, _: &Caller| Ok(log.adopt(&[meets.clone(), sound.clone()]));
    rig.machine.change(&rig.space, adopt).unwrap().unwrap();
    let all = rig.upstream();
    assert!(all.contains(&(grant.block.index(), ticks.clone(), Standing::Held)));
    assert!(all.contains(&(77, ticks, Standing::Held)));
}

/// Three machines with two processes each; a machine asks for what it needs once, and waits for it.
#[test]
fn a_lost_history_upstream_costs_a_few_blocks_and_the_gap_of_the_guide() {
    const STEP: u64 = 10;
    // The horizon, and how much of it a machine's blocks may have passed, as in the guide.
    for (reach, passed) in [(660, 66), (REACH, 300)] {
        let mut rig = Rig::reaching(reach);
        let mut holders = Vec::new();
        for _ in 0..3 {
            rig.machine = MemoryTier::new(Arc::new(rig.clock.clone()));
            for _ in 0..2 {
                let mut process = rig.process();
                let grant = rig.acquire(&mut process).unwrap();
                holders.push((process, grant, 0));
            }
        }
        // Half a renewal later, so that their ends differ from what a request would get.
        rig.clock.advance(Duration::from_secs(passed / 2));
        for (process, grant, _) in &mut holders {
            rig.renew(process, grant).unwrap();
        }
        let blocks = |rig: &mut Rig| rig.upstream.server.list(&rig.space).unwrap().blocks.len();
        let before = blocks(&mut rig);
        rig.upstream
            .server
            .set_incarnation(Incarnation::new("another"));

        let mut longest = 0;
        let mut step = |rig: &mut Rig, (process, grant, gap): &mut (TierStore, Grant, u64)| {
            let is_over = rig.renew(process, grant).is_err() && grant.ticks.end <= rig.tick();
            if is_over && let Ok(next) = rig.acquire(process) {
                *grant = next;
            }
            // A generator can borrow as far as a sub-grant reaches.
            let now = rig.tick();
            let serves = grant.ticks.end > now && grant.ticks.start < now + SUB;
            *gap = if serves { 0 } else { *gap + STEP };
            longest = longest.max(*gap);
        };
        let said = warnings(|| {
            for _ in 0..2 * reach / STEP {
                rig.clock.advance(Duration::from_secs(STEP));
                holders.iter_mut().for_each(|it| step(&mut rig, it));
            }
        });
        assert!(
            longest <= passed + 60 + 2 - SUB + 2 * STEP,
            "{longest} s without IDs"
        );
        let taken = blocks(&mut rig) - before;
        assert!(taken <= 3 * 8, "{taken} blocks");
        let named = |it: &String| it.contains("upstream lease history lost");
        assert!(said.iter().any(named), "{said:?}");
    }
}
