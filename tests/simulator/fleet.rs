//! A fleet that uses up the layout: all 131,072 nodes, 17 billion IDs a second.
//!
//! Every process is a real manager. One server answers them, one after the other
//! at a fixed rate. Some forty minutes pass, from event to event: a common start, a
//! quiet time, the store away for five minutes, and longer than any lease lasts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::time::Duration;

use ringflake::ManualClock;
use ringflake::lease::protocol::{Answer, Change, Demand, Manager, Moment, Request, Step};
use ringflake::lease::{Fingerprint, LeasePlan, MemoryStore, Namespace, StoreLimits};
use ringflake_kit::small::{namespace, store_with};
use ringflake_kit::split_mix::SplitMix64;

use crate::errors::{ambiguous, unavailable};
use crate::scenario::{LAYOUT, START_MS};

const SECOND: Duration = Duration::from_secs(1);
/// Blocks of 2^7 nodes, one to a process.
const BLOCK_BITS: u32 = 7;
const PROCESSES: u32 = 1024;
/// How long the server takes for an operation.
const OPERATION: Duration = Duration::from_micros(800);
/// When a client gives up on a reply.
const TIMEOUT: Duration = Duration::from_secs(5);
/// From a client to the server and back, the queue apart.
const ROUND_TRIP: Duration = Duration::from_millis(1);
/// The quiet time that is measured.
const STEADY: Range<Duration> = minutes(8)..minutes(20);
/// When the store is away; the second time outlives every lease by a minute.
const SHORT: Range<Duration> = minutes(20)..minutes(25);
const LONG: Range<Duration> = minutes(28)..minutes(39);
const END: Duration = minutes(41);
/// The lease duration of [`LeasePlan::new`].
const LEASE_DURATION: Duration = minutes(10);

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

struct Process {
    manager: Manager,
    /// The answer that is on its way.
    answer: Option<Answer>,
    served: Option<Duration>,
    /// When it had positive replies.
    successes: Vec<Duration>,
    /// When it was without a lease, and had one again.
    refusals: Vec<Range<Duration>>,
}

struct Fleet {
    processes: Vec<Process>,
    /// When each has its turn.
    turns: BinaryHeap<Reverse<(Duration, usize)>>,
    namespace: Namespace,
    store: MemoryStore,
    clock: ManualClock,
    /// When the server will have answered all that it was sent.
    free_at: Duration,
    /// The operations of the store in each second.
    seconds: Vec<u32>,
    /// Requests with an unknown outcome.
    unknown: u64,
}

impl Fleet {
    fn new() -> Self {
        let namespace = namespace("fleet", &LAYOUT, Fingerprint::PLAIN, BLOCK_BITS);
        assert_eq!(namespace.blocks(), u64::from(PROCESSES));
        let clock = ManualClock::new(START_MS);
        let store = store_with(&namespace, &clock, StoreLimits::default());
        let mut random = SplitMix64::new(1);
        let plan = LeasePlan::new(1).with_widen_to(1);
        let process = |_| Process {
            manager: Manager::new(namespace.clone(), plan.clone(), random.roll())
                .expect("the plan is valid"),
            answer: None,
            served: None,
            successes: Vec::new(),
            refusals: Vec::new(),
        };
        Self {
            processes: (0..PROCESSES).map(process).collect(),
            turns: (0..PROCESSES as usize)
                .map(|index| Reverse((Duration::ZERO, index)))
                .collect(),
            namespace,
            store,
            clock,
            free_at: Duration::ZERO,
            seconds: vec![0; END.as_secs() as usize + 60],
            unknown: 0,
        }
    }

    fn run(&mut self, end: Duration) {
        while let Some(&Reverse((now, index))) = self.turns.peek()
            && now < end
        {
            self.turns.pop();
            let next = self.turn(now, index);
            self.turns.push(Reverse((next, index)));
        }
    }

    /// Answers when its next turn is.
    fn turn(&mut self, now: Duration, index: usize) -> Duration {
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
                process.successes.push(now);
            }
            let changes = process.manager.answer(at, answer);
            process.note(now, changes);
        }
        let (changes, step) = process.manager.next(at, demand);
        process.note(now, changes);
        match step {
            Step::Ask(request) => self.ask(now, index, &request),
            Step::Wait(wait) => now + wait,
            Step::Done => unreachable!("nobody releases"),
        }
    }

    /// Sends a request; answers when its outcome will be known.
    fn ask(&mut self, now: Duration, index: usize, request: &Request) -> Duration {
        let away = |at: Duration| SHORT.contains(&at) || LONG.contains(&at);
        let process = &mut self.processes[index];
        if away(now) {
            process.answer = Some(request.failed(unavailable()));
            return now + ROUND_TRIP;
        }
        let done = self.free_at.max(now) + OPERATION;
        if !away(done) {
            self.free_at = done;
            self.seconds[done.as_secs() as usize] += 1;
            self.clock.set(unix_ms(done));
            let answer = request.send(&mut self.store, &self.namespace);
            let known_at = done + ROUND_TRIP;
            if known_at - now <= TIMEOUT {
                process.answer = Some(answer);
                return known_at;
            }
        }
        // The reply goes down with the server, or comes when nobody waits any more.
        self.unknown += 1;
        process.answer = Some(request.failed(ambiguous()));
        now + TIMEOUT
    }

    fn operations(&self, time: &Range<Duration>) -> &[u32] {
        &self.seconds[time.start.as_secs() as usize..time.end.as_secs() as usize]
    }

    /// The most operations in a second after this outage, and how long it took until all
    /// processes had a positive reply.
    fn after(&self, outage: &Range<Duration>) -> (u32, Duration) {
        let end = outage.end;
        let back = self.processes.iter().map(|process| {
            let first = process.successes.iter().find(|at| **at > end);
            *first.expect("it is answered again") - end
        });
        let operations = self.operations(&(end..end + minutes(1)));
        let peak = operations.iter().max().expect("there are seconds");
        (*peak, back.max().expect("there are processes"))
    }
}

impl Process {
    fn note(&mut self, now: Duration, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Opened(_) | Change::Extended(_) => _ = self.served.get_or_insert(now),
                Change::Expired { .. } => self.refusals.push(now..END),
                Change::Revived => {
                    let last = self.refusals.last_mut();
                    last.expect("it was without a lease").end = now;
                }
                // A block was given up whose renewal went down with the server.
                Change::Closed(_) => {}
                other => unreachable!("{other:?}"),
            }
        }
    }
}

fn unix_ms(now: Duration) -> u64 {
    START_MS + now.as_millis() as u64
}

#[test]
fn a_fleet_of_131_072_nodes_comes_back_after_outages_without_a_herd() {
    let mut fleet = Fleet::new();
    fleet.run(STEADY.end);

    // The start was over as fast as the store can answer.
    let work = OPERATION * PROCESSES;
    let served = fleet.processes.iter().map(|process| process.served);
    assert!(served.max().flatten() <= Some(work + ROUND_TRIP));
    // Everything is in force.
    let tick = LAYOUT
        .tick_at(unix_ms(STEADY.end))
        .expect("after the epoch");
    for process in &fleet.processes {
        let grants = process.manager.status().grants;
        assert!(grants.len() == 1 && grants[0].grant.ticks.end > tick);
    }
    // Each block is renewed every 60 to 90 seconds.
    let expected = f64::from(PROCESSES) / 75.0;
    let steady = fleet.operations(&STEADY);
    let mean = f64::from(steady.iter().sum::<u32>()) / steady.len() as f64;
    assert!(
        (mean / expected - 1.0).abs() < 0.02,
        "{mean}, not {expected}"
    );
    assert!(steady.iter().all(|peak| f64::from(*peak) < 3.0 * expected));

    // Nobody notices five minutes. Then what is left is some four minutes, and
    // the retries spread over a twentieth of that.
    fleet.run(LONG.start);
    assert!(fleet.processes.iter().all(|it| it.refusals.is_empty()));
    let (peak, all) = fleet.after(&SHORT);
    assert!(
        all <= 16 * SECOND && peak <= PROCESSES / 4,
        "{all:?}, {peak}"
    );

    // Through a longer outage, processes serve for the lease duration less a top-up period, up to
    // the whole lease duration. Then everybody refuses, and retries every five seconds.
    fleet.run(END);
    let (peak, all) = fleet.after(&LONG);
    assert!(
        all <= work.max(5 * SECOND) + SECOND / 2 && peak <= PROCESSES / 2,
        "{all:?}, {peak}"
    );
    for process in &fleet.processes {
        let [refusal] = &process.refusals[..] else {
            panic!("{:?}", process.refusals);
        };
        let since = refusal.start - LONG.start;
        assert!((LEASE_DURATION - 91 * SECOND..=LEASE_DURATION + 2 * SECOND).contains(&since));
        assert!(refusal.end <= LONG.end + all);
    }
    // Requests in flight when the store went away.
    assert!(fleet.unknown <= 2);
}
