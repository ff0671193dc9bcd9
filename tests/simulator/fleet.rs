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
use crate::errors::{ambiguous, refuse, unavailable};
use crate::scenario::{LAYOUT, START_MS};
use crate::split_mix::SplitMix64;

// All times are in microseconds since the start.
const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
/// When a client gives up on a reply.
const TIMEOUT: u64 = 5 * SECOND;
/// From a client to the server and back, the queue apart.
const ROUND_TRIP: u64 = 1_000;
/// The quiet time that is measured.
const STEADY: (u64, u64) = (8 * MINUTE, 20 * MINUTE);
/// The lease duration of [`LeasePlan::new`].
const LEASE_DURATION: u64 = 600 * SECOND;

/// How the layout's nodes are divided.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Nodes of a block, as a power of two.
    block_bits: u32,
    /// Blocks of a process.
    blocks: u32,
    /// Operations that the store can do in a second.
    capacity: u64,
    /// Over how long the processes start.
    start: u64,
    /// When the store is away.
    outages: [(u64, u64); 2],
    end: u64,
}

/// Blocks of the default size, one to a process.
const USUAL: Shape = Shape {
    block_bits: 5,
    blocks: 1,
    capacity: 5_000,
    start: 0,
    outages: [(20 * MINUTE, 25 * MINUTE), (40 * MINUTE, 70 * MINUTE)],
    end: 90 * MINUTE,
};

/// The same, in less time: the second outage outlives every lease by a minute.
const BRIEF: Shape = Shape {
    outages: [(20 * MINUTE, 25 * MINUTE), (28 * MINUTE, 39 * MINUTE)],
    end: 41 * MINUTE,
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
    start: 60 * SECOND,
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
    refusing_since: Option<u64>,
}

struct Fleet {
    shape: Shape,
    processes: Vec<Process>,
    /// When each has its turn.
    turns: BinaryHeap<Reverse<(u64, usize)>>,
    depot: Depot,
    /// When the server will have answered all that it was sent.
    free_at: u64,
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
        Self {
            shape,
            processes: (0..processes).map(|_| process(&mut random)).collect(),
            turns: (0..processes)
                .map(|index| Reverse((random.below(shape.start + 1), index)))
                .collect(),
            depot: Depot::new(&namespace),
            free_at: 0,
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

    fn turn(&mut self, now: u64, index: usize) {
        let at = Moment {
            unix_ms: START_MS + now / 1000,
            elapsed: Duration::from_micros(now),
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
            Step::Wait(wait) => now + wait.as_micros() as u64,
            Step::Done => unreachable!("nobody releases"),
        };
        self.turns.push(Reverse((next, index)));
    }

    /// Sends a request; answers when its outcome will be known.
    fn ask(&mut self, now: u64, index: usize, request: &Request) -> u64 {
        let outages = self.shape.outages;
        let away = |at: u64| outages.iter().any(|(from, to)| (*from..*to).contains(&at));
        let process = &mut self.processes[index];
        if away(now) {
            self.figures.refused(now);
            process.answer = Some(refuse(request, unavailable()));
            return now + ROUND_TRIP;
        }
        let done = self.free_at.max(now) + SECOND / self.shape.capacity;
        if !away(done) {
            self.free_at = done;
            self.figures.operation(done);
            let answer = self.depot.answer(request, START_MS + done / 1000);
            let wait = done + ROUND_TRIP - now;
            if wait <= TIMEOUT {
                self.figures.waited(request, wait);
                process.answer = Some(answer);
                return now + wait;
            }
        }
        // The reply goes down with the server, or comes when nobody waits any
        // more.
        self.figures.unknown += 1;
        process.answer = Some(refuse(request, ambiguous()));
        now + TIMEOUT
    }

    fn note(&mut self, now: u64, index: usize, changes: Vec<Change>) {
        let process = &mut self.processes[index];
        for change in changes {
            match change {
                Change::Opened(grant) => {
                    assert!(self.depot.backs(&grant), "{grant} was never given");
                    if !std::mem::replace(&mut process.served, true) {
                        self.figures.served_first(now);
                    }
                }
                Change::Extended(grant) => {
                    assert!(self.depot.backs(&grant), "{grant} was never given");
                }
                Change::Expired { .. } => process.refusing_since = Some(now),
                Change::Revived => {
                    let since = process.refusing_since.take();
                    let since = since.expect("it was without a lease");
                    self.figures.was_refusing(since, now);
                }
                // A block was given up whose renewal went down with the server.
                Change::Closed(_) => {}
                other => unreachable!("{other:?}"),
            }
        }
    }

    fn count_nodes(&mut self, now: u64) {
        let tick = LAYOUT
            .tick_at(START_MS + now / 1000)
            .expect("after the epoch");
        let grants = self
            .processes
            .iter()
            .flat_map(|process| process.manager.status().grants);
        let in_force = grants.filter(|held| held.grant.ticks.end > tick).count();
        self.figures.nodes_in_force = (in_force as u64) << self.shape.block_bits;
    }
}

/// What the design promises of a fleet.
fn check(report: &Report) {
    let processes = report.processes as u64;
    let blocks = processes * u64::from(report.shape.blocks);

    // The start is over as fast as the store can answer.
    let work = |operations: u64| operations * SECOND / report.shape.capacity;
    assert!(report.last_served <= report.shape.start + work(processes) + ROUND_TRIP);

    // Everything is in force: 17 billion IDs a second, but for the blocks that
    // don't make up a process.
    let nodes = blocks << report.shape.block_bits;
    assert_eq!(report.nodes_in_force, nodes);
    assert!(report.id_space() > 17e9);

    // Each block is renewed every 60 to 90 seconds.
    let expected = blocks as f64 / 75.0;
    let mean = report.steady_mean;
    assert!(
        (mean / expected - 1.0).abs() < 0.02,
        "{mean} is not {expected}"
    );
    assert!(f64::from(report.steady_peak) < 2.0 * expected);

    let [short, long] = &report.outages;
    // Nobody notices five minutes. Then what is left is some four minutes, and
    // the retries spread over a twentieth of that.
    assert_eq!(short.refusing, 0);
    assert_eq!(short.back, report.processes);
    assert!(short.all <= 16 * SECOND, "{}", short.all);
    assert!(u64::from(short.peak) <= blocks / 4, "{}", short.peak);

    // What is longer is served through for the lease duration less a top-up period, up to
    // the whole lease duration; then everybody refuses, and retries every five seconds.
    assert_eq!(long.refusing, report.processes);
    assert!(long.first_refusal >= Some(LEASE_DURATION - 91 * SECOND));
    assert!(long.last_refusal <= Some(LEASE_DURATION + 2 * SECOND));
    assert_eq!(long.back, report.processes);
    let slowest = work(blocks).max(5 * SECOND) + SECOND / 2;
    assert!(long.all <= slowest, "{}", long.all);
    assert!(long.last_revival <= Some(long.all));
    assert!(u64::from(long.peak) <= blocks / 2, "{}", long.peak);
    // What was under way when the store went.
    assert!(report.unknown <= 2, "{}", report.unknown);
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
    let reports: Vec<_> = shapes
        .iter()
        .map(|shape| Fleet::new(*shape).run())
        .collect();
    figures::print(&reports);
    println!(
        "the table: cargo test --test simulator fleet -- --nocapture\n\
         the whole: RINGFLAKE_FLEET=all cargo test --release --test simulator fleet -- --nocapture"
    );
    reports.iter().for_each(check);
}
