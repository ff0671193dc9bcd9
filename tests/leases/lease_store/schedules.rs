//! Random schedules: clients, servers, clocks and failovers in any order.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use ringflake::lease::{
    Acquire, Fingerprint, Floor, Grant, History, Incarnation, Init, LeaseStore, Listing,
    MemorySnapshot, MemoryStore, Namespace, Renew, StoreError, StoreLimits,
};
use ringflake::{Clock, Layout, ManualClock};

use ringflake::lease::conformance::Given;

const LAYOUT: Layout = Layout::RANDFLAKE;
const START_MS: u64 = 1_760_000_000_000;
const DAY_MS: i64 = 86_400_000;
const HORIZON: u64 = 60;
/// How far a server's clock is off at most, in schedules with failovers.
const SKEW_MS: u64 = 2_000;
/// How long a superseded primary answers.
const ALIVE_MS: u64 = 10_000;
/// Few enough that the same blocks come back all the time.
const BLOCKS: u64 = 2;

fn limits() -> StoreLimits {
    StoreLimits::default()
        .with_horizon(Duration::from_secs(HORIZON))
        .with_failover(Duration::from_millis(ALIVE_MS + 2 * SKEW_MS))
        .with_skew(Duration::from_millis(SKEW_MS))
}

fn space() -> Namespace {
    let space = Namespace::new("test", &LAYOUT, Fingerprint::PLAIN)
        .and_then(|space| space.with_block_bits(16))
        .unwrap();
    assert_eq!(space.blocks(), BLOCKS);
    space
}

struct Server {
    store: MemoryStore,
    clock: Arc<ManualClock>,
    /// How far its clock is ahead of the true time.
    ahead_ms: i64,
    superseded_ms: Option<u64>,
}

impl Server {
    fn new(incarnation: usize, now_ms: u64, ahead_ms: i64) -> Self {
        let clock = Arc::new(ManualClock::new(now_ms.saturating_add_signed(ahead_ms)));
        let store = MemoryStore::new(clock.clone());
        store.set_incarnation(Incarnation::new(format!("server {incarnation}")));
        Self {
            store,
            clock,
            ahead_ms,
            superseded_ms: None,
        }
    }

    fn tick(&self) -> u64 {
        LAYOUT.tick_at(self.clock.unix_ms()).unwrap()
    }
}

/// Servers, of which the last is the primary, clients that believe every reply,
/// and all that was ever granted.
struct World {
    space: Namespace,
    now_ms: u64,
    servers: Vec<Server>,
    snapshot: MemorySnapshot,
    /// Every grant, with its end as its holder knows it.
    grants: Vec<Grant>,
    given: Given,
}

impl World {
    fn new() -> Self {
        let space = space();
        let mut server = Server::new(0, START_MS, 0);
        let init = Init::new(History::New, START_MS).with_limits(limits());
        server.store.init(&space, &init).unwrap();
        Self {
            space,
            now_ms: START_MS,
            snapshot: server.store.snapshot(),
            servers: vec![server],
            grants: Vec::new(),
            given: Given::default(),
        }
    }

    /// The `pick`th of the servers that still answer; 0 is the primary.
    fn server(&mut self, pick: usize) -> &mut Server {
        let now_ms = self.now_ms;
        let alive = |server: &&mut Server| {
            server
                .superseded_ms
                .is_none_or(|since| now_ms <= since + ALIVE_MS)
        };
        let mut alive: Vec<_> = self.servers.iter_mut().rev().filter(alive).collect();
        let pick = pick % alive.len();
        alive.swap_remove(pick)
    }

    /// Asks for blocks. A lost reply is one that the client never learns of.
    fn acquire(&mut self, pick: usize, blocks: u32, length: u64, lost: bool) {
        let space = self.space.clone();
        let server = self.server(pick);
        let ask = Acquire::new(blocks, length, server.clock.unix_ms());
        let latest = server.tick() + HORIZON;
        match server.store.acquire(&space, &ask) {
            Ok(grants) => {
                assert!(!grants.is_empty() && grants.len() <= blocks as usize);
                for grant in grants {
                    assert!(grant.ticks.end <= latest, "{grant} ends after {latest}");
                    self.given.add(&grant);
                    if !lost {
                        self.grants.push(grant);
                    }
                }
            }
            Err(StoreError::Exhausted { .. } | StoreError::FloorAhead { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    /// Renews a grant, or one that differs from it by `off`.
    fn renew(&mut self, pick: usize, which: usize, by: u64, off: Off, lost: bool) {
        let Some(held) = which.checked_rem(self.grants.len()) else {
            return;
        };
        let space = self.space.clone();
        let mut grant = self.grants[held].clone();
        match off {
            Off::Nothing => {}
            Off::Epoch => grant.epoch = grant.epoch.next(),
            Off::End(ticks) => grant.ticks.end += ticks,
        }
        let asked = grant.ticks.end + by;
        let server = self.server(pick);
        let latest = server.tick() + HORIZON;
        let renew = Renew::new(&grant, asked, server.clock.unix_ms());
        match server.store.renew(&space, &renew) {
            Ok(end) => {
                assert!(end <= asked);
                assert!(
                    end <= latest || end == grant.ticks.end,
                    "{grant} renewed to {end}, after {latest}"
                );
                self.given.extend(&grant, end);
                if !lost && off == Off::Nothing {
                    self.grants[held].ticks.end = end;
                }
            }
            Err(StoreError::Fenced { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    fn release(&mut self, pick: usize, which: usize) {
        let Some(held) = which.checked_rem(self.grants.len()) else {
            return;
        };
        let space = self.space.clone();
        let (block, epoch) = (self.grants[held].block, self.grants[held].epoch);
        match self.server(pick).store.release(&space, block, epoch) {
            Ok(()) | Err(StoreError::Fenced { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    fn raise_floor(&mut self, pick: usize, by: Option<u64>) {
        let space = self.space.clone();
        let server = self.server(pick);
        let floor = by.map_or(Floor::OverLostGrants, |by| Floor::Tick(server.tick() + by));
        let now = server.clock.unix_ms();
        server.store.raise_floor(&space, floor, now).unwrap();
    }

    fn advance(&mut self, by_ms: u64) {
        self.now_ms += by_ms;
        for server in &self.servers {
            server
                .clock
                .set(self.now_ms.saturating_add_signed(server.ahead_ms));
        }
    }

    /// Promotes a replica that has what the last snapshot has.
    fn fail_over(&mut self, ahead_ms: i64) {
        for server in &mut self.servers {
            server.superseded_ms.get_or_insert(self.now_ms);
        }
        let server = Server::new(self.servers.len(), self.now_ms, ahead_ms);
        server.store.restore(&self.snapshot);
        self.servers.push(server);
    }

    fn listing(&mut self) -> Listing {
        let space = self.space.clone();
        self.server(0).store.list(&space).unwrap()
    }
}

/// What a client gets wrong about its grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Off {
    Nothing,
    Epoch,
    End(u64),
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Acquire {
        server: usize,
        blocks: u32,
        length: u64,
        lost: bool,
    },
    Renew {
        server: usize,
        grant: usize,
        by: u64,
        off: Off,
        lost: bool,
    },
    Release {
        server: usize,
        grant: usize,
    },
    RaiseFloor {
        by: Option<u64>,
    },
    Advance {
        ms: u64,
    },
    /// Sets the primary's clock off by this.
    Step {
        ms: i64,
    },
    Snapshot,
    FailOver {
        ahead_ms: i64,
    },
}

fn length() -> impl Strategy<Value = u64> {
    prop_oneof![1..20_u64, Just(1000)]
}

fn acquire() -> impl Strategy<Value = Op> {
    (0..3_usize, 1..=2_u32, length(), prop::bool::weighted(0.2)).prop_map(
        |(server, blocks, length, lost)| Op::Acquire {
            server,
            blocks,
            length,
            lost,
        },
    )
}

fn renew() -> impl Strategy<Value = Op> {
    let off = prop_oneof![
        8 => Just(Off::Nothing),
        1 => Just(Off::Epoch),
        1 => (1..30_u64).prop_map(Off::End),
    ];
    // Late grants are those that may still be renewed.
    let grant = prop_oneof![any::<usize>(), Just(usize::MAX)];
    (0..3_usize, grant, length(), off, prop::bool::weighted(0.2)).prop_map(
        |(server, grant, by, off, lost)| Op::Renew {
            server,
            grant,
            by,
            off,
            lost,
        },
    )
}

fn release() -> impl Strategy<Value = Op> {
    (0..3_usize, any::<usize>()).prop_map(|(server, grant)| Op::Release { server, grant })
}

fn raise_floor() -> impl Strategy<Value = Op> {
    prop::option::of(0..40_u64).prop_map(|by| Op::RaiseFloor { by })
}

fn advance() -> impl Strategy<Value = Op> {
    prop_oneof![0..2_000_u64, 0..20_000_u64].prop_map(|ms| Op::Advance { ms })
}

fn run(world: &mut World, op: Op) {
    match op {
        Op::Acquire {
            server,
            blocks,
            length,
            lost,
        } => world.acquire(server, blocks, length, lost),
        Op::Renew {
            server,
            grant,
            by,
            off,
            lost,
        } => {
            // The largest number means the grant made last.
            let grant = if grant == usize::MAX {
                world.grants.len().saturating_sub(1)
            } else {
                grant
            };
            world.renew(server, grant, by, off, lost);
        }
        Op::Release { server, grant } => world.release(server, grant),
        Op::RaiseFloor { by } => world.raise_floor(0, by),
        Op::Advance { ms } => world.advance(ms),
        Op::Step { ms } => {
            let server = world.servers.last_mut().unwrap();
            server.ahead_ms = ms;
            world.advance(0);
        }
        Op::Snapshot => world.snapshot = world.server(0).store.snapshot(),
        Op::FailOver { ahead_ms } => world.fail_over(ahead_ms),
    }
}

fn schedules(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(schedules(512))]

    /// While the store keeps what it wrote, its clock may do what it likes, and
    /// what it lists is what it gave.
    #[test]
    fn one_server_with_a_clock_that_jumps(
        ops in prop::collection::vec(
            prop_oneof![
                8 => acquire(),
                8 => renew(),
                3 => release(),
                1 => raise_floor(),
                6 => advance(),
                2 => prop_oneof![
                    -100_000..100_000_i64,
                    Just(-200 * DAY_MS),
                    Just(3650 * DAY_MS),
                ]
                .prop_map(|ms| Op::Step { ms }),
            ],
            1..80,
        ),
    ) {
        let mut world = World::new();
        let mut before = world.listing();
        for op in ops {
            run(&mut world, op);
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

    /// Replicas that lack the latest writes take over, while the primaries that
    /// they supersede go on for a while. The world checks S1 and S7 at each step.
    #[test]
    fn stale_replicas_that_take_over(
        ops in prop::collection::vec(
            prop_oneof![
                10 => acquire(),
                8 => renew(),
                2 => release(),
                8 => advance(),
                2 => Just(Op::Snapshot),
                1 => (-(SKEW_MS as i64)..=SKEW_MS as i64)
                    .prop_map(|ahead_ms| Op::FailOver { ahead_ms }),
            ],
            1..120,
        ),
    ) {
        let mut world = World::new();
        for op in ops {
            run(&mut world, op);
        }
    }
}
