//! The scripts decide as the reference store does: random schedules on both,
//! compared at every step.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use ringflake::lease::{
    Acquire, Block, Epoch, Fingerprint, Floor, Grant, History, Holder, Incarnation, Init,
    LeaseStore, MemoryStore, Namespace, Renew, StoreLimits,
};
use ringflake::{Layout, ManualClock};

use crate::served::Served as _;
use ringflake_kit::server::{Clock, Redis, TestServer as _};

const START_MS: u64 = 1_760_000_000_500;
const DAY_MS: u64 = 86_400_000;
const SKEW_MS: u64 = 2_000;

/// The layouts of the schedules: seconds, a tick that no power of two divides,
/// milliseconds, one that is about to end, and the widest one, near its end.
fn layouts() -> [(Layout, u64); 5] {
    let build = |bits: (u32, u32, u32), tick_ms, epoch| {
        let layout = Layout::builder().bits(bits.0, bits.1, bits.2);
        let layout = layout.tick(Duration::from_millis(tick_ms));
        layout.epoch_unix_ms(epoch).build().unwrap()
    };
    let ending = Layout::JS_SAFE;
    [
        (Layout::RANDFLAKE, START_MS),
        (build((31, 10, 12), 700, 1_700_000_000_123), START_MS),
        (Layout::TWITTER, START_MS),
        (ending, ending.end_unix_ms() - 30_000),
        (build((52, 6, 6), 1, 0), (1 << 52) - 40_000_000),
    ]
}

/// One server, and the reference with the same clock, secret and blocks.
struct Twins {
    redis: Box<dyn LeaseStore>,
    memory: MemoryStore,
    server: Redis,
    clock: Arc<ManualClock>,
    space: Namespace,
    now_ms: u64,
    limits: StoreLimits,
    grants: Vec<Grant>,
}

impl Twins {
    fn new(server: Redis) -> Self {
        let clock = Arc::new(ManualClock::new(START_MS));
        let memory = MemoryStore::new(clock.clone());
        Self {
            redis: server.store(),
            memory,
            clock,
            server,
            space: Namespace::new("none", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap(),
            now_ms: START_MS,
            limits: StoreLimits::default(),
            grants: Vec::new(),
        }
    }

    /// A namespace that neither has seen.
    fn begin(&mut self, number: u32, layout: usize, block_bits: u32, limits: StoreLimits) {
        let (layout, start_ms) = layouts()[layout];
        let bits = layout.nodes().ilog2() - block_bits;
        self.space = Namespace::new(format!("s{number}"), &layout, Fingerprint::PLAIN)
            .and_then(|space| space.with_block_bits(bits))
            .unwrap();
        self.limits = limits;
        self.grants.clear();
        self.set_time(start_ms);
        self.observe_incarnation();
    }

    fn set_time(&mut self, unix_ms: u64) {
        self.now_ms = unix_ms;
        self.clock.set(unix_ms);
        self.server.clock().stand_at(unix_ms);
    }

    /// Lets the reference have the server's incarnation.
    fn observe_incarnation(&mut self) {
        let field = |section: &str, name: &str| {
            let info = self.server.info(section);
            let line = info.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().to_owned()
        };
        let run_id = field("server", "run_id:");
        let replid = field("replication", "master_replid:");
        let incarnation = Incarnation::new(format!("{run_id}/{replid}"));
        self.memory.set_incarnation(incarnation);
    }

    fn restart(&mut self) {
        self.server.kill();
        self.server.restart();
        self.observe_incarnation();
    }

    /// The same call of both. They must answer the same, errors included, and
    /// hold the same afterwards.
    fn call<T: std::fmt::Debug>(
        &mut self,
        operation: impl Fn(&mut dyn LeaseStore, &Namespace) -> T,
    ) -> T {
        let mine = operation(&mut self.redis, &self.space);
        let theirs = operation(&mut self.memory, &self.space);
        assert_eq!(format!("{mine:?}"), format!("{theirs:?}"));
        assert_eq!(
            format!("{:?}", self.redis.list(&self.space)),
            format!("{:?}", self.memory.list(&self.space))
        );
        mine
    }

    fn run(&mut self, op: &Op) {
        let now_ms = self.now_ms;
        match *op {
            Op::Init(history) => {
                let init = Init::new(history, now_ms).with_limits(self.limits);
                let _ = self.call(|store, space| store.init(space, &init));
            }
            Op::Acquire {
                blocks,
                length,
                ahead_ms,
                named,
            } => {
                let client_ms = now_ms.saturating_add_signed(ahead_ms);
                let mut ask = Acquire::new(blocks, length, client_ms);
                if named {
                    ask = ask.held_by(Holder::new("hôst 1", ""));
                }
                let result = self.call(|store, space| store.acquire(space, &ask));
                self.grants.extend(result.into_iter().flatten());
            }
            Op::Past {
                blocks,
                start,
                length,
            } => {
                let now = self.space.layout().tick_at(now_ms).unwrap_or(0);
                let start = match start {
                    Start::Epoch(start) => start,
                    Start::Ago(ago) => now.saturating_sub(ago),
                };
                let past = start..start.saturating_add(length);
                let ask = Acquire::past(blocks, past, now_ms);
                let result = self.call(|store, space| store.acquire(space, &ask));
                self.grants.extend(result.into_iter().flatten());
            }
            Op::Renew { grant, by, off } => {
                let Some(at) = grant.checked_rem(self.grants.len()) else {
                    return;
                };
                let mut renew = Renew::new(&self.grants[at], 0, now_ms);
                match off {
                    Off::Nothing => {}
                    Off::Epoch => renew.epoch = renew.epoch.next(),
                    Off::End(end) => renew.known_end = end,
                    Off::Block(block) => renew.block = Block::new(block),
                }
                renew.new_end = renew.known_end.saturating_add(by);
                let result = self.call(|store, space| store.renew(space, &renew));
                if let Ok(end) = result {
                    self.grants[at].ticks.end = end;
                }
            }
            Op::Release { grant, off } => {
                let Some(at) = grant.checked_rem(self.grants.len()) else {
                    return;
                };
                let (block, mut epoch) = (self.grants[at].block, self.grants[at].epoch);
                if off {
                    epoch = Epoch::new(u64::MAX);
                }
                let _ = self.call(|store, space| store.release(space, block, epoch));
            }
            Op::RaiseFloor(floor) => {
                let floor = match floor {
                    None => Floor::OverLostGrants,
                    Some(by) => {
                        let now = self.space.layout().tick_at(now_ms).unwrap_or(0);
                        Floor::Tick(now.saturating_add(by))
                    }
                };
                let _ = self.call(|store, space| store.raise_floor(space, floor, now_ms));
            }
            Op::Step { back: false, ms } => self.set_time(now_ms + ms),
            Op::Step { back: true, ms } => self.set_time(now_ms.saturating_sub(ms).max(1)),
            Op::Restart => self.restart(),
            Op::Check => {
                let facts = |store: &mut dyn LeaseStore, space: &Namespace| {
                    let report = store.check(space, now_ms);
                    report.map(|r| {
                        let held = (r.granted_blocks, r.held_blocks);
                        (r.record, r.incarnation, r.store_unix_ms, held)
                    })
                };
                let _ = self.call(facts);
            }
            Op::Foreign(block_bits) => {
                let space = self.space.clone().with_block_bits(block_bits).unwrap();
                let ask = Acquire::new(1, 1, now_ms);
                let _ = self.call(|store, _| store.acquire(&space, &ask));
            }
        }
    }
}

/// What a client gets wrong about its grant.
#[derive(Clone, Copy, Debug)]
enum Off {
    Nothing,
    Epoch,
    End(u64),
    Block(u64),
}

/// In ticks after the layout's epoch, or before now.
#[derive(Clone, Copy, Debug)]
enum Start {
    Epoch(u64),
    Ago(u64),
}

#[derive(Clone, Debug)]
enum Op {
    Init(History),
    Acquire {
        blocks: u32,
        length: u64,
        ahead_ms: i64,
        named: bool,
    },
    /// Of ticks that are over, as a rule.
    Past {
        blocks: u32,
        start: Start,
        length: u64,
    },
    Renew {
        grant: usize,
        by: u64,
        off: Off,
    },
    Release {
        grant: usize,
        off: bool,
    },
    /// To this many ticks after now, or over lost grants.
    RaiseFloor(Option<u64>),
    Step {
        back: bool,
        ms: u64,
    },
    Restart,
    Check,
    /// A block size of so many bits, which may be another one.
    Foreign(u32),
}

fn ticks() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 1..20_u64,
        4 => 1..100_000_u64,
        1 => Just((1 << 53) - 1),
        1 => Just((1 << 53) + 1),
        1 => Just(u64::MAX),
    ]
}

fn history() -> impl Strategy<Value = History> {
    prop_oneof![
        Just(History::Unknown),
        Just(History::New),
        Just(History::Unused),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let skew = SKEW_MS as i64;
    let ahead = prop_oneof![
        12 => -skew..=skew,
        1 => Just(skew),
        1 => Just(-skew),
        1 => Just(skew + 1),
        1 => Just(-skew - 1),
        1 => Just(i64::MAX),
        1 => Just(i64::MIN),
    ];
    let start = prop_oneof![
        2 => (0..400_u64).prop_map(Start::Epoch),
        2 => (0..400_u64).prop_map(Start::Ago),
        1 => ticks().prop_map(Start::Epoch),
    ];
    let off = prop_oneof![
        10 => Just(Off::Nothing),
        1 => Just(Off::Epoch),
        1 => ticks().prop_map(Off::End),
        1 => ticks().prop_map(Off::Block),
    ];
    prop_oneof![
        1 => history().prop_map(Op::Init),
        6 => (1..=5_u32, start, ticks())
            .prop_map(|(blocks, start, length)| Op::Past { blocks, start, length }),
        12 => (1..=5_u32, ticks(), ahead, any::<bool>()).prop_map(
            |(blocks, length, ahead_ms, named)| Op::Acquire { blocks, length, ahead_ms, named }
        ),
        10 => (any::<usize>(), ticks(), off)
            .prop_map(|(grant, by, off)| Op::Renew { grant, by, off }),
        5 => (any::<usize>(), prop::bool::weighted(0.1))
            .prop_map(|(grant, off)| Op::Release { grant, off }),
        1 => prop::option::of(ticks()).prop_map(Op::RaiseFloor),
        10 => prop_oneof![0..3_000_u64, 0..100_000_u64].prop_map(|ms| Op::Step { back: false, ms }),
        1 => (any::<bool>(), prop_oneof![0..100_000_u64, Just(4000 * DAY_MS)])
            .prop_map(|(back, ms)| Op::Step { back, ms }),
        1 => Just(Op::Check),
        1 => (0..6_u32).prop_map(Op::Foreign),
    ]
}

fn schedule() -> impl Strategy<Value = (usize, u32, StoreLimits, Vec<Op>)> {
    // Beyond a horizon of 60 s there are also ones of a tick and of a year.
    let horizon = prop_oneof![8 => Just(60_000), 1 => Just(1_000), 1 => Just(31_000_000_001)];
    let limits = (horizon, 2 * SKEW_MS..20_001).prop_map(|(horizon, failover)| {
        StoreLimits::default()
            .with_horizon(Duration::from_millis(horizon))
            .with_failover(Duration::from_millis(failover))
            .with_skew(Duration::from_millis(SKEW_MS))
    });
    // A restart takes longer than a hundred other operations.
    let others = 60 * ringflake_kit::short_or_long(4, 1);
    let rest = prop::collection::vec(prop_oneof![others => op(), 1 => Just(Op::Restart)], 1..60);
    let first = prop_oneof![Just(History::New), Just(History::Unused)];
    let schedule = (0..5_usize, 0..4_u32, limits, first, rest);
    schedule.prop_map(|(layout, blocks, limits, first, rest)| {
        let init = vec![Op::Init(first)];
        (layout, blocks, limits, [init, rest].concat())
    })
}

#[test]
fn the_scripts_decide_as_the_reference() {
    let server = started!(Redis::start_with_clock(Clock::new()));
    let config = ProptestConfig {
        cases: ringflake_kit::short_or_long(100, 300),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let twins = std::cell::RefCell::new((Twins::new(server), 0));
    proptest!(config, |((layout, blocks, limits, ops) in schedule())| {
        let (twins, number) = &mut *twins.borrow_mut();
        *number += 1;
        twins.begin(*number, layout, blocks, limits);
        for op in &ops {
            twins.run(op);
        }
    });
}
