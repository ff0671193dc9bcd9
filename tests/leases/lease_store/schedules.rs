//! Random schedules of one server whose clock jumps, and of clients that lose replies and
//! get things wrong. Servers that take over from others are in `tests/simulator`.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use ringflake::lease::{
    Acquire, Fingerprint, Floor, Grant, History, Init, LeaseStore, Listing, MemoryStore, Namespace,
    Renew, StoreError, StoreLimits,
};
use ringflake::{Clock, Layout, ManualClock};

use ringflake::lease::conformance::Given;

const LAYOUT: Layout = Layout::RANDFLAKE;
const START_MS: u64 = 1_760_000_000_000;
const DAY_MS: i64 = 86_400_000;
const HORIZON: u64 = 60;

/// A server, clients that trust every reply, and all grants so far.
struct World {
    space: Namespace,
    store: MemoryStore,
    clock: ManualClock,
    now_ms: u64,
    /// How far the server's clock is ahead of the true time.
    ahead_ms: i64,
    /// Every grant, with its end as its holder knows it.
    grants: Vec<Grant>,
    given: Given,
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::new(START_MS);
        let mut store = MemoryStore::new(Arc::new(clock.clone()));
        // Two blocks, so that the same ones come back all the time.
        let space = Namespace::new("test", &LAYOUT, Fingerprint::PLAIN)
            .and_then(|space| space.with_block_bits(16))
            .unwrap();
        let limits = StoreLimits::default().with_horizon(Duration::from_secs(HORIZON));
        let init = Init::new(History::Unused, START_MS).with_limits(limits);
        store.init(&space, &init).unwrap();
        Self {
            space,
            store,
            clock,
            now_ms: START_MS,
            ahead_ms: 0,
            grants: Vec::new(),
            given: Given::default(),
        }
    }

    fn tick(&self) -> u64 {
        LAYOUT.tick_at(self.clock.unix_ms()).unwrap()
    }

    /// The horizon of what is granted now.
    fn latest(&self) -> u64 {
        self.tick() + HORIZON
    }

    /// The grant that was made so many before the last one.
    fn grant(&self, before: usize) -> Option<usize> {
        let count = self.grants.len();
        before.checked_rem(count).map(|before| count - 1 - before)
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Acquire {
                blocks,
                length,
                lost,
            } => self.acquire(blocks, length, lost),
            Op::Past { start, length } => self.past(start, length),
            Op::Renew {
                grant,
                by,
                off,
                lost,
            } => {
                let held = self.grant(grant);
                held.into_iter()
                    .for_each(|it| self.renew(it, by, off, lost));
            }
            Op::Release { grant } => {
                let held = self.grant(grant);
                held.into_iter().for_each(|it| self.release(it));
            }
            Op::RaiseFloor { by } => {
                let floor = by.map_or(Floor::OverLostGrants, |by| Floor::Tick(self.tick() + by));
                let now = self.clock.unix_ms();
                self.store.raise_floor(&self.space, floor, now).unwrap();
            }
            Op::Advance { ms } => self.now_ms += ms,
            Op::Step { ms } => self.ahead_ms = ms,
        }
        let server_ms = self.now_ms.saturating_add_signed(self.ahead_ms);
        self.clock.set(server_ms);
    }

    fn acquire(&mut self, blocks: u32, length: u64, lost: bool) {
        let ask = Acquire::new(blocks, length, self.clock.unix_ms());
        let grants = match self.store.acquire(&self.space, &ask) {
            Ok(grants) => grants,
            Err(StoreError::Exhausted { .. } | StoreError::FloorAhead { .. }) => return,
            Err(other) => panic!("{other}"),
        };
        assert!((1..=blocks as usize).contains(&grants.len()));
        for grant in grants {
            assert!(grant.ticks.end <= self.latest(), "{grant}");
            self.given.add(&grant);
            if !lost {
                self.grants.push(grant);
            }
        }
    }

    fn past(&mut self, start: u64, length: u64) {
        let past = start..start + length;
        let ask = Acquire::past(2, past.clone(), self.clock.unix_ms());
        let floor = self.listing().record.floor;
        match self.store.acquire(&self.space, &ask) {
            Ok(grants) => {
                assert!(past.start >= floor && past.end <= self.tick(), "{past:?}");
                for grant in grants {
                    assert_eq!(grant.ticks, past);
                    self.given.add(&grant);
                    self.grants.push(grant);
                }
            }
            Err(StoreError::BeforeFloor { .. }) => assert!(past.start < floor),
            Err(StoreError::NotPast { .. }) => assert!(past.end > self.tick()),
            Err(StoreError::PastExhausted { .. }) => {
                let blocks = self.listing().blocks;
                assert!(blocks.len() == 2 && blocks.iter().all(|it| it.hwm_end > past.start));
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// Renews a grant, or one that differs from it by `off`.
    fn renew(&mut self, held: usize, by: u64, off: Off, lost: bool) {
        let mut grant = self.grants[held].clone();
        match off {
            Off::Nothing => {}
            Off::Epoch => grant.epoch = grant.epoch.next(),
            Off::End(ticks) => grant.ticks.end += ticks,
        }
        let asked = grant.ticks.end + by;
        let renew = Renew::new(&grant, asked, self.clock.unix_ms());
        let end = match self.store.renew(&self.space, &renew) {
            Ok(end) => end,
            Err(StoreError::Fenced { .. }) => return,
            Err(other) => panic!("{other}"),
        };
        let latest = self.latest().max(grant.ticks.end);
        assert!(end <= asked.min(latest), "{grant} renewed to {end}");
        self.given.extend(&grant, end);
        if !lost && off == Off::Nothing {
            self.grants[held].ticks.end = end;
        }
    }

    fn release(&mut self, held: usize) {
        let grant = &self.grants[held];
        match self.store.release(&self.space, grant.block, grant.epoch) {
            Ok(()) | Err(StoreError::Fenced { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    fn listing(&mut self) -> Listing {
        self.store.list(&self.space).unwrap()
    }
}

/// A client's error about its grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Off {
    Nothing,
    Epoch,
    End(u64),
}

/// A lost reply is one that the client never learns of. Grants are counted from the last.
#[derive(Clone, Copy, Debug)]
enum Op {
    Acquire {
        blocks: u32,
        length: u64,
        lost: bool,
    },
    /// Of these ticks since the layout's epoch, or since the schedule began.
    Past {
        start: u64,
        length: u64,
    },
    Renew {
        grant: usize,
        by: u64,
        off: Off,
        lost: bool,
    },
    Release {
        grant: usize,
    },
    RaiseFloor {
        by: Option<u64>,
    },
    Advance {
        ms: u64,
    },
    /// Sets the server's clock off by this.
    Step {
        ms: i64,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let lost = || prop::bool::weighted(0.2);
    let length = || prop_oneof![1..20_u64, Just(1000)];
    let acquire = (1..=2_u32, length(), lost()).prop_map(|(blocks, length, lost)| Op::Acquire {
        blocks,
        length,
        lost,
    });
    let off = prop_oneof![
        8 => Just(Off::Nothing),
        1 => Just(Off::Epoch),
        1 => (1..30_u64).prop_map(Off::End),
    ];
    // Late grants are those that may still be renewed.
    let grant = prop_oneof![any::<usize>(), Just(0)];
    let renew = (grant, length(), off, lost()).prop_map(|(grant, by, off, lost)| Op::Renew {
        grant,
        by,
        off,
        lost,
    });
    let jump = prop_oneof![
        -100_000..100_000_i64,
        Just(-200 * DAY_MS),
        Just(3650 * DAY_MS)
    ];
    let began = LAYOUT.tick_at(START_MS).unwrap();
    let start = prop_oneof![0..400_u64, began - 40..began + 40];
    let past = (start, 1..20_u64).prop_map(|(start, length)| Op::Past { start, length });
    prop_oneof![
        8 => acquire,
        4 => past,
        8 => renew,
        3 => any::<usize>().prop_map(|grant| Op::Release { grant }),
        1 => prop::option::of(0..40_u64).prop_map(|by| Op::RaiseFloor { by }),
        6 => prop_oneof![0..2_000_u64, 0..20_000_u64].prop_map(|ms| Op::Advance { ms }),
        2 => jump.prop_map(|ms| Op::Step { ms }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// While the store keeps its writes, its clock may jump, and its listing matches its
    /// grants.
    #[test]
    fn one_server_with_a_clock_that_jumps(ops in prop::collection::vec(op(), 1..80)) {
        let mut world = World::new();
        let mut before = world.listing();
        for op in ops {
            world.run(op);
            let after = world.listing();
            prop_assert!(after.record.floor >= before.record.floor, "{op:?}");
            for block in &after.blocks {
                prop_assert_eq!(block.hwm_end, world.given.mark(block.block), "{:?}", op);
            }
            for (old, new) in before.blocks.iter().zip(&after.blocks) {
                prop_assert!(new.hwm_end >= old.hwm_end, "{op:?}");
                prop_assert!(new.epoch >= old.epoch, "{op:?}");
            }
            before = after;
        }
    }
}
