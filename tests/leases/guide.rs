//! The figures of `lease::guide` that no formula gives: managers are driven
//! through simulated hours, and what happens is held against the pages.

use std::time::Duration;

use ringflake::lease::protocol::{Answer, Change, Demand, Manager, Moment, Step};
use ringflake::lease::{
    Fingerprint, Grant, Incarnation, LeasePlan, MemoryStore, Namespace, StoreError, StoreLimits,
};
use ringflake::{CachedGenerator, CachedGeneratorBuilder, Clock, Layout, ManualClock};
use ringflake_kit::small::{namespace, store_with};

const LAYOUT: Layout = Layout::RANDFLAKE;
const START_MS: u64 = 1_760_000_000_000;

const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A store and its clock, which all processes share.
struct World {
    clock: ManualClock,
    store: MemoryStore,
    space: Namespace,
}

impl World {
    fn new(limits: StoreLimits, block_bits: u32) -> Self {
        let clock = ManualClock::new(START_MS);
        let space = namespace("guide", &LAYOUT, Fingerprint::PLAIN, block_bits);
        Self {
            store: store_with(&space, &clock, limits),
            clock,
            space,
        }
    }

    fn now(&self) -> f64 {
        (self.clock.unix_ms() - START_MS) as f64 / 1000.0
    }
}

/// A process that wants little: it borrows nothing.
struct Process {
    manager: Manager,
    borrow_limit: Duration,
    open: Vec<Grant>,
    acquisitions: u64,
    exhausted: u64,
}

impl Process {
    fn new(world: &World, plan: LeasePlan, borrow_limit: Duration, seed: u64) -> Self {
        Self {
            manager: Manager::new(world.space.clone(), plan, seed).unwrap(),
            borrow_limit,
            open: Vec::new(),
            acquisitions: 0,
            exhausted: 0,
        }
    }

    fn run(&mut self, world: &mut World) {
        let unix_ms = world.clock.unix_ms();
        let at = Moment {
            unix_ms,
            elapsed: Duration::from_millis(unix_ms - START_MS),
        };
        let demand = Demand {
            borrowed: Duration::ZERO,
            borrow_limit: self.borrow_limit,
            room: 64,
        };
        loop {
            let (changes, step) = self.manager.next(at, demand);
            self.apply(changes);
            let Step::Ask(request) = step else { break };
            let answer = request.send(&mut world.store, &world.space);
            match &answer {
                Answer::Acquired(Err(StoreError::Exhausted { .. })) => self.exhausted += 1,
                Answer::Acquired(_) => self.acquisitions += 1,
                _ => {}
            }
            let changes = self.manager.answer(at, answer);
            self.apply(changes);
        }
    }

    fn apply(&mut self, changes: Vec<Change>) {
        let same = |grant: &Grant| {
            let (block, start) = (grant.block, grant.ticks.start);
            move |held: &Grant| (held.block, held.ticks.start) == (block, start)
        };
        for change in changes {
            match change {
                Change::Opened(grant) => self.open.push(grant),
                Change::Extended(grant) => {
                    let at = self.open.iter().position(same(&grant)).unwrap();
                    self.open[at] = grant;
                }
                Change::Closed(grant) => self.open.retain(|held| !same(&grant)(held)),
                _ => {}
            }
        }
    }

    /// How long IDs would go on without the store, in seconds.
    fn ride_through(&self, world: &World) -> f64 {
        let end = self.open.iter().map(|grant| grant.ticks.end).max().unwrap();
        (LAYOUT.tick_start_unix_ms(end) - START_MS) as f64 / 1000.0 - world.now()
    }

    fn can_serve(&self, world: &World) -> bool {
        let now = LAYOUT.tick_at(world.clock.unix_ms()).unwrap();
        let limit = now + self.borrow_limit.as_secs();
        let mut open = self.open.iter();
        open.any(|grant| grant.ticks.start <= limit && now < grant.ticks.end)
    }
}

#[test]
fn the_ride_through_is_85_hundredths_of_the_lease_at_least() {
    for lease_duration in [10, 60, 300, 600, 3600] {
        // A horizon a tenth longer.
        let horizon = secs(lease_duration + lease_duration / 10 + 1);
        let mut world = World::new(StoreLimits::default().with_horizon(horizon), 5);
        let plan = LeasePlan::new(1).with_lease_duration(secs(lease_duration));
        let mut process = Process::new(&world, plan, secs(60), lease_duration);
        let step = secs(lease_duration) / 500;
        let (mut least, mut most) = (f64::MAX, 0.0_f64);
        for _ in 0..60 * 500 {
            process.run(&mut world);
            let left = process.ride_through(&world);
            (least, most) = (least.min(left), most.max(left));
            world.clock.advance(step);
        }
        let lease_duration = lease_duration as f64;
        let short = 0.85 * lease_duration - step.as_secs_f64();
        assert!(
            (short..=0.86 * lease_duration).contains(&least),
            "{least} of {lease_duration}"
        );
        assert!(
            (lease_duration..=lease_duration + 1.0).contains(&most),
            "{most} of {lease_duration}"
        );
        assert_eq!(process.acquisitions, 1);
    }
}

/// What a generator does by default, on a namespace with default limits.
#[test]
fn the_defaults_leave_no_gap_after_a_lost_history() {
    let limits = StoreLimits::default();
    let world = World::new(limits, 5);
    let ids = CachedGenerator::builder(LAYOUT)
        .plain()
        .clock(world.clock)
        .lease_store(world.store)
        .namespace("guide")
        .build()
        .unwrap();
    let lease_duration = LeasePlan::default().lease_duration;
    let borrow_limit = ids.stats().borrow_limit;
    assert_eq!(borrow_limit, CachedGeneratorBuilder::STORE_BORROW_LIMIT);
    assert_eq!(limits.gap(lease_duration, borrow_limit), Duration::ZERO);
    // And not for being far too long.
    let less = borrow_limit - secs(10);
    assert!(limits.gap(lease_duration, less) > Duration::ZERO);
}

/// How long a process was without IDs after the store lost its history, in seconds.
fn gap(limits: StoreLimits, lease_duration: u64, borrow_limit: u64, seed: u64) -> u64 {
    let mut world = World::new(limits, 5);
    let plan = LeasePlan::new(1).with_lease_duration(secs(lease_duration));
    let mut process = Process::new(&world, plan, secs(borrow_limit), seed);
    let lost = 2 * lease_duration + seed * lease_duration / 50;
    let mut gap = 0;
    for second in 0..lost + 2 * (lease_duration + limits.horizon().as_secs()) {
        if second == lost {
            world.store.set_incarnation(Incarnation::new("another"));
        }
        process.run(&mut world);
        gap += u64::from(!process.can_serve(&world));
        world.clock.advance(secs(1));
    }
    gap
}

#[test]
fn the_gap_after_a_lost_history_is_bounded_as_the_page_says() {
    for (lease_duration, horizon, failover, borrow_limit, bound) in [
        (600, 660, 60, 250, 0),
        (600, 660, 60, 60, 182),
        (600, 660, 10, 60, 132),
        (600, 1200, 60, 250, 532),
        (60, 66, 10, 60, 0),
        // Who does not borrow, and who starts afterwards.
        (600, 660, 60, 0, 242),
        (0, 660, 60, 250, 472),
        // No lease is longer than the horizon, and no borrowing is of use beyond it.
        (600, 100, 10, 0, 57),
        (60, 66, 10, 1000, 0),
        // Where the floor is no matter, it is when the store is asked.
        (600, 660, 600, 640, 152),
        (2000, 60, 200, 60, 351),
    ] {
        let limits = StoreLimits::default()
            .with_horizon(secs(horizon))
            .with_failover(secs(failover));
        let formula = limits.gap(secs(lease_duration), secs(borrow_limit));
        assert_eq!(formula, secs(bound));
        if lease_duration == 0 {
            continue;
        }
        let gaps = (0..12).map(|seed| gap(limits, lease_duration, borrow_limit, seed));
        let longest = gaps.max().unwrap();
        // And the bound is near.
        let near = bound.saturating_sub(lease_duration / 10)..=bound;
        let case = format!("a lease of {lease_duration} s, {limits:?}");
        assert!(near.contains(&longest), "{longest} s of {bound} s: {case}");
    }
}

#[test]
fn spare_blocks_are_the_kills_within_one_lease_duration() {
    // 32 blocks, and ten processes of one.
    let mut world = World::new(StoreLimits::default(), 12);
    assert_eq!(world.space.blocks(), 32);
    let mut seed = 0;
    let mut start_ten = |world: &mut World| -> Vec<Process> {
        let ten = (0..10).map(|_| {
            seed += 1;
            let mut process = Process::new(world, LeasePlan::new(1), secs(60), seed);
            process.run(world);
            process
        });
        ten.collect()
    };
    let served = |fleet: &[Process]| fleet.iter().filter(|p| !p.open.is_empty()).count();
    // All are killed and started again, twice.
    for _ in 0..3 {
        assert_eq!(served(&start_ten(&mut world)), 10);
    }
    // Once more is one time too many: two blocks are left.
    let fleet = start_ten(&mut world);
    assert_eq!(served(&fleet), 2);
    assert!(fleet.iter().any(|process| process.exhausted > 0));
    // A lease duration later, the marks of the dead have passed.
    world.clock.advance(secs(601));
    assert_eq!(served(&start_ten(&mut world)), 10);
}

/// How many seconds IDs flow on without the store; negative once they don't.
fn ride_through(
    status: &ringflake::lease::LeaseStatus,
    layout: &ringflake::Layout,
    now_unix_ms: u64,
) -> f64 {
    let ends = status.grants.iter().map(|held| held.grant.ticks.end);
    let end_unix_ms = ends.max().map_or(0, |end| layout.tick_start_unix_ms(end));
    (end_unix_ms as f64 - now_unix_ms as f64) / 1000.0
}

#[test]
fn the_ride_through_of_the_runbook_ends_with_the_lease() {
    let World { clock, store, .. } = World::new(StoreLimits::default(), 5);
    let builder = CachedGenerator::builder(LAYOUT).plain().clock(clock);
    let ids = builder.lease_store(store).namespace("guide").build();
    let status = ids.unwrap().lease_status().unwrap();
    for (later_ms, left) in [(0, 601.0), (602_000, -1.0)] {
        assert_eq!(ride_through(&status, &LAYOUT, START_MS + later_ms), left);
    }
}
