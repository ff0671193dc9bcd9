//! Threads that change cores all the time, over stripes of few slots: these are empty again
//! and again, so takes go to other stripes, move IDs, assist and make some all the while.
//!
//! A round takes all that a lease has. So an ID that is lost is noticed as well as one that
//! comes twice: each cell of the lease was either given out, or dropped and counted.

use std::time::Instant;

use ringflake::{AssistFill, ScheduledFill};
use ringflake_kit::affinity::Cores;

use super::*;

/// Longer than any take that waits sleeps, unless nobody wakes it.
const WAIT: Duration = Duration::from_secs(60);

/// Ways to take, one after the other.
const WAYS: [Way; 6] = [
    Way::One,
    Way::Batch(3),
    Way::Handle,
    Way::One,
    Way::Batch(64),
    Way::Handle,
];

/// Takes in all ways, each from another core than the one before, and drops its handles with the
/// IDs left in them.
struct Wanderer<'a> {
    ids: &'a CachedGenerator,
    oracle: &'a Oracle,
    cores: &'a Cores,
    /// The next of its stops. Where it begins differs from thread to thread.
    stop: usize,
}

impl<'a> Wanderer<'a> {
    fn new(ids: &'a CachedGenerator, oracle: &'a Oracle, cores: &'a Cores, thread: usize) -> Self {
        Self {
            ids,
            oracle,
            cores,
            stop: thread,
        }
    }

    /// Takes some times in one way, in the middle of which it goes to the next core.
    fn stop(&mut self, takes: usize) -> Result<(), TakeError> {
        let mut consumer = Consumer::new(self.ids, self.oracle, WAYS[self.stop % WAYS.len()]);
        for take in 0..takes {
            // Not at the first: so a handle is filled on one core and used on another.
            if take == 1 {
                self.stop += 1;
                self.cores.go_to(self.stop);
            }
            let began = Instant::now();
            let taken = consumer.step();
            let waited = began.elapsed();
            assert!(
                waited < WAIT,
                "it slept on until its time was over: {taken:?}"
            );
            taken.inspect_err(|_| self.stop += 1)?;
        }
        Ok(())
    }
}

/// A round in which all of a lease is taken.
#[derive(Clone, Copy, Debug)]
struct Round {
    stripes: usize,
    capacity: usize,
    producers: usize,
    on_empty: OnEmpty,
    assist: Option<AssistFill>,
    max_age: Option<Duration>,
    ticks: u64,
}

impl Round {
    /// Takes all in `threads` threads, and gives the number of IDs that were retired.
    fn run(self, cores: &Cores, threads: usize) -> u64 {
        let layout = layout(40, 8, 9);
        let (nodes, ticks) = (3..7, 50..50 + self.ticks);
        let cells = (nodes.end - nodes.start) * self.ticks * layout.sequences();
        let oracle = Oracle::new(layout, nodes.clone(), ticks.clone());
        let schedule = ScheduledFill::every(ScheduledFill::MIN_PERIOD);
        let clock = clock_at(layout, ticks.start);
        let ids = cached(layout, nodes, ticks)
            .clock(clock.clone())
            .borrow_limit(HOUR)
            .stripes(self.stripes)
            .capacity(self.capacity)
            .threshold_fill(ThresholdFill::percent(75))
            .assist_fill(self.assist)
            .scheduled_fill(self.max_age.map(|age| schedule.max_age(age)))
            .producers(self.producers)
            .on_empty(self.on_empty)
            .build()
            .unwrap();
        assert_eq!(ids.stats().stripes, self.stripes);
        thread::scope(|scope| {
            for thread in 0..threads {
                let mut wanderer = Wanderer::new(&ids, &oracle, cores, thread);
                let clock = &clock;
                scope.spawn(move || {
                    loop {
                        match wanderer.stop(5) {
                            Err(error) if lease_ended(error) => break,
                            Err(TakeError::Empty) => thread::yield_now(),
                            Err(error) => panic!("{error}"),
                            Ok(())
                                if self.max_age.is_some() && wanderer.stop.is_multiple_of(64) =>
                            {
                                clock.advance(Duration::from_millis(200));
                            }
                            Ok(()) => {}
                        }
                    }
                });
            }
        });
        let mut last = Wanderer::new(&ids, &oracle, cores, 0);
        eventually(
            "all that was made is given out or counted as retired",
            || {
                // A producer or a handle may have put some there since.
                while last.stop(1).is_ok() {}
                let stats = ids.stats();
                assert_eq!(stats.issued, oracle.marked(), "{self:?}: {stats:?}");
                let all = stats.issued + stats.retired;
                assert!(all <= cells, "more than there are: {self:?}: {stats:?}");
                (all, stats.level + stats.in_stocks) == (cells, 0)
            },
        );
        ids.stats().retired
    }
}

#[test]
fn u1_r1_threads_that_change_cores_lose_and_double_none() {
    let cores = Cores::of_this_thread();
    let on_empty = [OnEmpty::Generate, OnEmpty::Wait(WAIT), OnEmpty::Error];
    let assists = [
        None,
        Some(AssistFill::below(100)),
        Some(AssistFill::below(10)),
    ];
    // One for all cores, one for each of two, and more than there are on most machines; with
    // a single slot each, and with several words of flags; without and with stocks of the cores.
    let shapes = [
        (2, 4096, 1),
        (4, 4096, 3),
        (1, 8, 1),
        (2, 2, 1),
        (2, 128, 3),
        (4, 16, 2),
        (16, 16, 3),
        (16, 1024, 1),
        (64, 256, 2),
    ];
    for (round, (stripes, capacity, producers)) in shapes.into_iter().enumerate() {
        for (turn, on_empty) in on_empty.into_iter().enumerate() {
            let round = Round {
                stripes,
                capacity,
                producers,
                on_empty,
                assist: assists[(round + turn) % assists.len()],
                max_age: None,
                // Of 2,048 IDs each: enough to fill the stripes more than once.
                ticks: short_or_long(4, 12),
            };
            round.run(&cores, 3 * cores.count().clamp(1, 4));
        }
    }
}

#[test]
fn u1_r1_threads_that_change_cores_account_for_ids_that_grow_too_old() {
    let cores = Cores::of_this_thread();
    let round = Round {
        stripes: 4,
        capacity: 256,
        producers: 2,
        on_empty: OnEmpty::Generate,
        assist: Some(AssistFill::below(10)),
        max_age: Some(Duration::from_secs(2)),
        ticks: 12,
    };
    // Whether anything grows old depends on who runs when.
    eventually("a round in which some are retired", || {
        round.run(&cores, 4) > 0
    });
}

/// In each round the last take that waits is alone: no other one wakes it, or asks for what
/// it waits for.
#[test]
fn r4_no_take_that_waits_on_changing_cores_sleeps_on() {
    const THREADS: usize = 5;
    let cores = Cores::of_this_thread();
    for (stripes, capacity, producers) in [(2, 2, 1), (4, 8, 2), (16, 16, 1)] {
        let layout = layout(40, 8, 9);
        let oracle = Oracle::new(layout, 0..4, 0..200);
        let ids = cached(layout, 0..4, 0..200)
            .borrow_limit(HOUR)
            .stripes(stripes)
            .capacity(capacity)
            .threshold_fill(ThresholdFill::slots(1))
            .assist_fill(None)
            .producers(producers)
            .on_empty(OnEmpty::Wait(WAIT))
            .build()
            .unwrap();
        for round in 0..short_or_long(50, 150) {
            thread::scope(|scope| {
                for thread in 0..THREADS {
                    let mut wanderer = Wanderer::new(&ids, &oracle, &cores, round + thread);
                    scope.spawn(move || wanderer.stop(3).unwrap());
                }
            });
        }
        assert_eq!(ids.stats().in_place, 0);
    }
}
