//! A fleet that uses up the layout: all 131,072 nodes, 17 billion IDs a second.
//!
//! Every process is a real manager. One server answers them, one after the other
//! at a fixed rate. An hour and a half passes, from event to event: a common start, a
//! quiet time, the store away for five minutes, and for half an hour. A plain run of the
//! tests has less of that time.

mod depot;
mod figures;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use ringflake::lease::protocol::{Answer, Change, Demand, Manager, Moment, Request, Step};
use ringflake::lease::{Fingerprint, LeasePlan, Namespace};
use ringflake_kit::short_or_long;

use self::depot::Depot;
use self::figures::{Figures, Report};
use crate::errors::{ambiguous, unavailable};
use crate::scenario::{LAYOUT, START_MS};
use crate::split_mix::SplitMix64;

const SECOND: Duration = Duration::from_secs(1);
/// When a client gives up on a reply.
const TIMEOUT: Duration = Duration::from_secs(5);
/// From a client to the server and back, the queue apart.
const ROUND_TRIP: Duration = Duration::from_millis(1);
/// The quiet time that is measured.
const STEADY: (Duration, Duration) = (minutes(8), minutes(20));
/// The lease duration of [`LeasePlan::new`].
const LEASE_DURATION: Duration = minutes(10);

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

/// How the layout's nodes are divided.
#[derive(Clone, Copy, Debug, Default)]
struct Shape {
    /// Nodes of a block, as a power of two.
    block_bits: u32,
    /// Blocks of a process.
    blocks: u32,
    /// Operations that the store can do in a second.
    capacity: u32,
    /// Over how long the processes start.
    start: Duration,
    /// When the store is away.
    outages: [(Duration, Duration); 2],
    end: Duration,
}

/// Blocks of the default size, one to a process.
const USUAL: Shape = Shape {
    block_bits: 5,
    blocks: 1,
    capacity: 5_000,
    start: Duration::ZERO,
    outages: [(minutes(20), minutes(25)), (minutes(40), minutes(70))],
    end: minutes(90),
};

/// The same, in less time: the second outage outlives every lease by a minute.
const BRIEF: Shape = Shape {
    outages: [(minutes(20), minutes(25)), (minutes(28), minutes(39))],
    end: minutes(41),
    ..USUAL
};

/// The same, 24 to a process: 100 million IDs a second each.
const WIDE: Shape = Shape {
    blocks: 24,
    ..USUAL
};

/// The usual one on a store of a tenth of the speed.
const SLOW: Shape = Shape {
    capacity: 500,
    start: minutes(1),
    ..USUAL
};

/// Every node a process.
const NARROW: Shape = Shape {
    block_bits: 0,
    capacity: 60_000,
    ..USUAL
};

struct Process {
    manager: Manager,
    /// The answer that is on its way.
    answer: Option<Answer>,
    served: bool,
    refusing_since: Option<Duration>,
}

struct Fleet {
    shape: Shape,
    processes: Vec<Process>,
    /// When each has its turn.
    turns: BinaryHeap<Reverse<(Duration, usize)>>,
    depot: Depot,
    /// When the server will have answered all that it was sent.
    free_at: Duration,
    figures: Figures,
}

impl Fleet {
    fn new(shape: Shape) -> Self {
        let namespace = Namespace::new("fleet", &LAYOUT, Fingerprint::PLAIN)
            .and_then(|space| space.with_block_bits(shape.block_bits))
            .expect("it fits the layout");
        let processes = (namespace.blocks() / u64::from(shape.blocks)) as usize;
        let plan = LeasePlan::new(shape.blocks).with_widen_to(shape.blocks);
        let mut random = SplitMix64::new(1);
        let process = |random: &mut SplitMix64| Process {
            manager: Manager::new(namespace.clone(), plan.clone(), random.roll())
                .expect("the plan is valid"),
            answer: None,
            served: false,
            refusing_since: None,
        };
        let latest = shape.start.as_micros() as u64;
        Self {
            shape,
            processes: (0..processes).map(|_| process(&mut random)).collect(),
            turns: (0..processes)
                .map(|index| {
                    let starts = Duration::from_micros(random.below(latest + 1));
                    Reverse((starts, index))
                })
                .collect(),
            depot: Depot::new(&namespace),
            free_at: Duration::ZERO,
            figures: Figures::new(shape, processes),
        }
    }

    fn run(mut self) -> Report {
        let mut counted = false;
        while let Some(Reverse((now, index))) = self.turns.pop() {
            if now >= self.shape.end {
                break;
            }
            if !counted && now >= STEADY.1 {
                counted = true;
                self.count_nodes(now);
            }
            self.turn(now, index);
        }
        self.figures.report()
    }

    fn turn(&mut self, now: Duration, index: usize) {
        let at = Moment {
            unix_ms: unix_ms(now),
            elapsed: now,
        };
        let demand = Demand {
            borrowed: Duration::ZERO,
            borrow_limit: Duration::from_secs(60),
            room: 300,
        };
        let process = &mut self.processes[index];
        if let Some(answer) = process.answer.take() {
            if let Answer::Acquired(Ok(_)) | Answer::Renewed(Ok(_)) = answer {
                self.figures.succeeded(now, index);
            }
            let changes = process.manager.answer(at, answer);
            self.note(now, index, changes);
        }
        let (changes, step) = self.processes[index].manager.next(at, demand);
        self.note(now, index, changes);
        let next = match step {
            Step::Ask(request) => self.ask(now, index, &request),
            Step::Wait(wait) => now + wait,
            Step::Done => unreachable!("nobody releases"),
        };
        self.turns.push(Reverse((next, index)));
    }

    /// Sends a request; answers when its outcome will be known.
    fn ask(&mut self, now: Duration, index: usize, request: &Request) -> Duration {
        let outages = self.shape.outages;
        let away = |at: Duration| outages.iter().any(|(from, to)| (*from..*to).contains(&at));
        let process = &mut self.processes[index];
        if away(now) {
            self.figures.second(now).refused += 1;
            process.answer = Some(request.failed(unavailable()));
            return now + ROUND_TRIP;
        }
        let done = self.free_at.max(now) + SECOND / self.shape.capacity;
        if !away(done) {
            self.free_at = done;
            self.figures.second(done).operations += 1;
            let answer = self.depot.answer(request, unix_ms(done));
            let wait = done + ROUND_TRIP - now;
            if wait <= TIMEOUT {
                let longest = &mut self.figures.report.longest_wait;
                *longest = wait.max(*longest);
                process.answer = Some(answer);
                return now + wait;
            }
        }
        // The reply goes down with the server, or comes when nobody waits any
        // more.
        self.figures.report.unknown += 1;
        process.answer = Some(request.failed(ambiguous()));
        now + TIMEOUT
    }

    fn note(&mut self, now: Duration, index: usize, changes: Vec<Change>) {
        let process = &mut self.processes[index];
        for change in changes {
            match change {
                Change::Opened(grant) | Change::Extended(grant) => {
                    assert!(self.depot.backs(&grant), "{grant} was never given");
                    if !std::mem::replace(&mut process.served, true) {
                        let last = &mut self.figures.report.last_served;
                        *last = now.max(*last);
                    }
                }
                Change::Expired { .. } => process.refusing_since = Some(now),
                Change::Revived => {
                    let since = process.refusing_since.take();
                    let since = since.expect("it was without a lease");
                    self.figures.refusals.push((since, now));
                }
                // A block was given up whose renewal went down with the server.
                Change::Closed(_) => {}
                other => unreachable!("{other:?}"),
            }
        }
    }

    fn count_nodes(&mut self, now: Duration) {
        let tick = LAYOUT.tick_at(unix_ms(now)).expect("after the epoch");
        let statuses = self
            .processes
            .iter()
            .map(|process| process.manager.status());
        let grants = statuses.flat_map(|status| status.grants);
        let in_force = grants.filter(|held| held.grant.ticks.end > tick).count();
        let report = &mut self.figures.report;
        report.nodes_in_force = (in_force as u64) << self.shape.block_bits;
        report.ids_in_force = report.nodes_in_force as f64 * LAYOUT.sequences() as f64;
    }
}

fn unix_ms(now: Duration) -> u64 {
    START_MS + now.as_millis() as u64
}

/// What the design promises of a fleet.
fn check(report: &Report) {
    let processes = report.processes as u32;
    let blocks = processes * report.shape.blocks;

    // The start is over as fast as the store can answer.
    let work = |operations: u32| SECOND / report.shape.capacity * operations;
    assert!(report.last_served <= report.shape.start + work(processes) + ROUND_TRIP);

    // Everything is in force: 17 billion IDs a second, but for the blocks that
    // don't make up a process.
    assert_eq!(
        report.nodes_in_force,
        u64::from(blocks) << report.shape.block_bits
    );
    assert!(report.ids_in_force > 17e9);

    // Each block is renewed every 60 to 90 seconds.
    let expected = f64::from(blocks) / 75.0;
    let mean = report.steady_mean;
    assert!((mean / expected - 1.0).abs() < 0.02, "not {expected}");
    assert!(f64::from(report.steady_peak) < 2.0 * expected);

    let [short, long] = &report.outages;
    // Nobody notices five minutes. Then what is left is some four minutes, and
    // the retries spread over a twentieth of that.
    assert_eq!((short.refusing, short.back), (0, report.processes));
    assert!(short.all <= 16 * SECOND);
    assert!(short.peak <= blocks / 4);

    // Through a longer outage, processes serve for the lease duration less a top-up period, up to
    // the whole lease duration. Then everybody refuses, and retries every five seconds.
    assert_eq!(long.refusing, report.processes);
    assert!(long.first_refusal >= Some(LEASE_DURATION - 91 * SECOND));
    assert!(long.last_refusal <= Some(LEASE_DURATION + 2 * SECOND));
    assert_eq!(long.back, report.processes);
    assert!(long.all <= work(blocks).max(5 * SECOND) + SECOND / 2);
    assert!(long.last_revival <= Some(long.all));
    assert!(long.peak <= blocks / 2);
    // Requests in flight when the store went away.
    assert!(report.unknown <= 2);
}

/// All nodes of the layout. With `RINGFLAKE_FLEET=all` also other divisions of them, up
/// to 131,072 processes; better in release.
#[test]
fn a_fleet_of_131_072_nodes() {
    let all = std::env::var_os("RINGFLAKE_FLEET").is_some();
    let shapes: &[Shape] = if all {
        &[USUAL, WIDE, SLOW, NARROW]
    } else {
        short_or_long(&[BRIEF], &[USUAL])
    };
    println!(
        "the whole: RINGFLAKE_FLEET=all cargo test --release --test simulator fleet -- --nocapture"
    );
    for shape in shapes {
        let report = Fleet::new(*shape).run();
        println!("{report:#.2?}");
        check(&report);
    }
}
