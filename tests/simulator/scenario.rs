//! What kind of schedule a seed makes.

use std::time::Duration;

use ringflake::Layout;
use ringflake::lease::{Fingerprint, LeasePlan, Namespace, StoreLimits};
use ringflake_kit::split_mix::SplitMix64;

pub(crate) const LAYOUT: Layout = Layout::RANDFLAKE;
/// The true time at which every schedule begins.
pub(crate) const START_MS: u64 = 1_760_000_000_300;
/// How far a server's clock is off at most, unless it is broken.
pub(crate) const SKEW_MS: u64 = 1_000;
/// How far the clocks of client and server may be apart for a grant.
pub(crate) const SKEW_LIMIT_MS: u64 = 2_500;
/// How long a superseded primary answers.
pub(crate) const ALIVE_MS: u64 = 4_000;
/// When a client gives up on a reply.
pub(crate) const TIMEOUT_MS: u64 = 1_500;
const DAY_MS: i64 = 86_400_000;

/// The tick of a time; 0 before the layout's epoch.
pub(crate) fn tick(unix_ms: u64) -> u64 {
    LAYOUT.tick_at(unix_ms).unwrap_or(0)
}

/// The namespace of the simulated processes, with this secret.
pub(crate) fn namespace(secret: [u8; 16], block_bits: u32) -> Namespace {
    let fingerprint = Fingerprint::from_bytes(secret);
    ringflake_kit::small::namespace("simulated", &LAYOUT, fingerprint, block_bits)
}

pub(crate) const SECRET: [u8; 16] = [7; 16];
pub(crate) const OTHER_SECRET: [u8; 16] = [9; 16];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Partition,
    Pause,
    Crash,
    ShutDown,
    /// A snapshot is resumed beside the original, as nobody notices.
    Clone,
    /// The same, and a hook calls `invalidate` in the copy.
    CloneWithHook,
    Fork,
    RestartGenerator,
    Busy,
    ClientClock,
    ServerClock,
    /// A server restarts with what it has written, as the same incarnation.
    Restart,
    /// The same, as another.
    Reincarnate,
    /// The replica catches up with the primary.
    Replicate,
    /// The replica takes over with what it has.
    FailOver,
    /// The same, while a process that agrees with the replica sleeps past its
    /// end and others take its blocks.
    FailOverBehindSleeper,
    /// A copy is made of what the primary holds.
    Backup,
    /// The primary holds that copy again, and goes on as the same incarnation.
    RollBack,
    RaiseFloor,
    /// The record of one block that was granted is damaged.
    Damage,
    /// Every block whose record is damaged is repaired.
    Repair,
    Impostor,
    /// An import asks for ticks of the past, and issues all that it is granted.
    Import,
}

/// The faults that can go together in one schedule. Servers whose clocks jump
/// are kept from those that lose history or are repaired: the rules for those cases
/// assume a bound on the skew.
const PROCESSES: &[Fault] = &[
    Fault::Partition,
    Fault::Pause,
    Fault::Crash,
    Fault::ShutDown,
    Fault::Clone,
    Fault::CloneWithHook,
    Fault::Fork,
    Fault::RestartGenerator,
    Fault::Busy,
    Fault::ClientClock,
    Fault::Impostor,
];
const SERVER_CLOCKS: &[Fault] = &[
    Fault::ServerClock,
    Fault::Restart,
    Fault::Reincarnate,
    Fault::RaiseFloor,
    Fault::ServerClock,
];
const HISTORY: &[Fault] = &[
    Fault::Replicate,
    Fault::FailOver,
    Fault::FailOverBehindSleeper,
    Fault::Restart,
    Fault::Reincarnate,
    Fault::RollBack,
    Fault::Damage,
];

/// All that go wrong by themselves or with another.
pub(crate) fn every_fault() -> impl Iterator<Item = Fault> {
    let alone = [PROCESSES, SERVER_CLOCKS, HISTORY].concat();
    alone.into_iter().chain([
        Fault::Replicate,
        Fault::Backup,
        Fault::Repair,
        Fault::Import,
    ])
}

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) namespace: Namespace,
    pub(crate) limits: StoreLimits,
    pub(crate) horizon: u64,
    pub(crate) plan: LeasePlan,
    pub(crate) processes: usize,
    /// When faults end, and when the schedule does.
    pub(crate) calm_ms: u64,
    pub(crate) end_ms: u64,
    pub(crate) faults: Vec<(u64, Fault)>,
    /// Percentages, for each message.
    pub(crate) lost: u64,
    pub(crate) twice: u64,
    pub(crate) slow: u64,
    /// Whether what everybody's recovery needs is given, and is watched.
    pub(crate) watch_recovery: bool,
    pub(crate) loses_history: bool,
    /// For what imports ask.
    pub(crate) imports: SplitMix64,
}

impl Scenario {
    pub(crate) fn new(random: &mut SplitMix64) -> Self {
        let processes = random.between(2, 3) as usize;
        let watch_recovery = random.chance(20);
        // Few blocks, so that the same ones come back all the time; enough of
        // them where everybody must get one in the end.
        let block_bits = if watch_recovery {
            11
        } else {
            random.pick(&[15, 15, 16])
        };
        let namespace = namespace(SECRET, block_bits);
        let horizon = random.pick(&[6, 12, 18, 24]);
        let limits = StoreLimits::default()
            .with_horizon(Duration::from_secs(horizon))
            .with_failover(Duration::from_millis(ALIVE_MS + 2 * SKEW_MS))
            .with_skew(Duration::from_millis(SKEW_LIMIT_MS));
        let plan = LeasePlan::new(random.pick(&[1, 1, 2]))
            .with_widen_to(3)
            .with_lease_duration(Duration::from_secs(random.pick(&[10, 10, 14])));

        let loses_history = random.chance(50);
        let servers = if loses_history {
            HISTORY
        } else {
            SERVER_CLOCKS
        };
        let mut kinds: Vec<Fault> = Vec::new();
        for (among, percent) in [(PROCESSES, 35), (servers, 65)] {
            kinds.extend(among.iter().filter(|_| random.chance(percent)));
        }
        // Two clocks that are broken at once can agree on the wrong time.
        let wild_clocks = !watch_recovery && random.chance(30);
        if !wild_clocks && kinds.contains(&Fault::ServerClock) {
            kinds.retain(|kind| *kind != Fault::ClientClock);
        }
        let calm_ms = random.between(10_000, 36_000);
        let mut faults = Vec::new();
        if !kinds.is_empty() {
            for _ in 0..random.between(2, 9) {
                let (at, fault) = (random.below(calm_ms), random.pick(&kinds));
                if fault == Fault::FailOver {
                    // The replica usually lags by some seconds.
                    let lag = random.below(8_000);
                    faults.push((at.saturating_sub(lag), Fault::Replicate));
                }
                if fault == Fault::RollBack {
                    // Of any age.
                    faults.push((random.below(at + 1), Fault::Backup));
                }
                if fault == Fault::Damage {
                    // While the block is held, or after that, or never.
                    faults.push((at + random.below(12_000), Fault::Repair));
                }
                faults.push((at, fault));
            }
        }
        let recovery_ms = horizon * 1000 + ALIVE_MS + 14_000;
        // In a part of the schedules, the others of which stay as they are without.
        let mut imports = SplitMix64::new(random.clone().roll());
        if imports.chance(40) {
            for _ in 0..imports.between(1, 8) {
                faults.push((imports.below(calm_ms), Fault::Import));
            }
        }
        let flaky = |random: &mut SplitMix64| {
            if random.chance(40) {
                random.below(20)
            } else {
                0
            }
        };
        Self {
            namespace,
            limits,
            horizon,
            plan,
            processes,
            calm_ms,
            end_ms: if watch_recovery {
                calm_ms + recovery_ms
            } else {
                calm_ms
            },
            faults,
            lost: flaky(random),
            twice: flaky(random),
            slow: flaky(random),
            watch_recovery,
            loses_history,
            imports,
        }
    }
}

/// How far a client's clock is set off.
pub(crate) fn client_jump(random: &mut SplitMix64) -> i64 {
    match random.below(4) {
        0 => random.around(20_000),
        1 => -3_600_000,
        2 => 400 * DAY_MS,
        // Before the layout's epoch.
        _ => -400 * DAY_MS,
    }
}

/// How far a server's clock is set off: never like a client's.
pub(crate) fn server_jump(random: &mut SplitMix64) -> i64 {
    match random.below(4) {
        0 => random.around(25_000),
        1 => 7_200_000,
        2 => 3650 * DAY_MS,
        _ => random.pick(&[-200, -500]) * DAY_MS,
    }
}
