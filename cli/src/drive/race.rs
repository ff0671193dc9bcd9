//! The one loop that every contestant runs in.
//!
//! A race has rounds. In each, one thread makes a new stock while the others
//! wait; then all of them start together and call `take`. A round lasts from
//! the first start to the last end. Threads are made once a race and meet at a
//! barrier that spins, because waking a sleeping thread takes as long as many
//! a round.
//!
//! Each call writes its numbers to memory. When they are to be checked, that
//! memory is as long as the round; when not, it is short and used over and
//! over, so that it stays in the first cache. Nothing else differs.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

/// Numbers between two looks at the time, in a race that has a limit.
const PATIENCE: usize = 4096;

/// Numbers in the memory that is used over and over.
const SCRATCH: usize = 64;

/// How long a patient race goes on with calls that were not served.
const PATIENT_FOR: Duration = Duration::from_secs(1);

/// Something that hands out numbers of type `V`, `N` to a call.
pub(crate) struct Contest<Stock, Seat, Take> {
    /// Makes what the threads of a round share.
    stock: Stock,
    /// Makes what a thread of a round has for itself.
    seat: Seat,
    /// Writes `N` numbers, or says that they were not to be had.
    take: Take,
}

/// The answer of a call: puts what was got in its place.
#[inline]
pub(crate) fn put<V>(place: &mut V, got: Option<V>) -> bool {
    match got {
        Some(number) => {
            *place = number;
            true
        }
        None => false,
    }
}

/// How long a race is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) threads: usize,
    pub(crate) rounds: u64,
    /// Calls of each thread in each round.
    pub(crate) calls: u64,
    /// Ends a round earlier.
    pub(crate) limit: Option<Duration>,
    /// How long after the start calls that were not served are made again.
    pub(crate) patience: Duration,
    /// Whether to keep all numbers.
    pub(crate) keep: bool,
    /// Called in each thread before it starts, with its number in `0..threads`.
    pub(crate) prepare: fn(usize),
}

impl Plan {
    /// Rounds of a fixed number of calls.
    pub(crate) fn calls(threads: usize, rounds: u64, calls: u64) -> Self {
        Self {
            threads,
            rounds,
            calls,
            limit: None,
            patience: Duration::ZERO,
            keep: false,
            prepare: |_| (),
        }
    }

    /// The same, making calls that were not served again, within the time of the round: for a
    /// stock that has enough, and where a thread that is stopped may hold some back.
    pub(crate) fn patient(self) -> Self {
        Self {
            patience: PATIENT_FOR,
            ..self
        }
    }

    /// The same, keeping the numbers. There must be memory for all of `calls`.
    pub(crate) fn keeping(self) -> Self {
        Self { keep: true, ..self }
    }
}

/// What came of a race.
#[derive(Debug)]
pub(crate) struct Outcome<V, const N: usize> {
    /// All rounds together.
    pub(crate) time: Duration,
    /// Numbers that were handed out.
    pub(crate) given: u64,
    /// Those numbers, or the last of them if they were not to be kept: a list for each
    /// thread and round, of the answers to its calls.
    kept: Vec<Vec<[V; N]>>,
}

impl<V, const N: usize> Outcome<V, N> {
    /// The numbers that were kept: all, or what was left in the memory that is used over
    /// and over.
    pub(crate) fn kept(self) -> impl Iterator<Item = V> {
        self.kept.into_iter().flatten().flatten()
    }

    pub(crate) fn nanos_each(&self) -> f64 {
        self.time.as_nanos() as f64 / self.given as f64
    }
}

/// One thread's part of one round.
#[derive(Clone, Copy)]
pub(super) struct Lap {
    pub(super) start: Instant,
    pub(super) end: Instant,
    pub(super) calls_served: usize,
}

impl Lap {
    /// How long a round lasted: from the first start to the last end. A thread that comes
    /// late, or is done early, does not shorten it.
    pub(super) fn round(laps: impl Iterator<Item = Self> + Clone) -> Duration {
        let start = laps.clone().map(|lap| lap.start).min();
        let end = laps.map(|lap| lap.end).max();
        end.zip(start)
            .map_or(Duration::ZERO, |(end, start)| end - start)
    }
}

impl<Stock, Seat, Take> Contest<Stock, Seat, Take> {
    pub(crate) fn new<S, T, V, const N: usize>(stock: Stock, seat: Seat, take: Take) -> Self
    where
        Stock: Fn() -> S,
        Seat: Fn(&S) -> T,
        Take: Fn(&S, &mut T, &mut [V; N]) -> bool,
    {
        Self { stock, seat, take }
    }

    /// Runs the race.
    pub(crate) fn race<S, T, V, const N: usize>(&self, plan: Plan) -> Outcome<V, N>
    where
        Stock: Fn() -> S + Sync,
        Seat: Fn(&S) -> T + Sync,
        Take: Fn(&S, &mut T, &mut [V; N]) -> bool + Sync,
        S: Send + Sync,
        V: Copy + Default + Send,
    {
        let barrier = Barrier::new(plan.threads);
        let shared = Mutex::new(None);
        let run = |number| self.run(plan, number, &barrier, &shared);
        let (laps, kept): (Vec<_>, Vec<_>) = thread::scope(|scope| {
            let run = &run;
            let others: Vec<_> = (1..plan.threads)
                .map(|number| scope.spawn(move || run(number)))
                .collect();
            let leader = scope.spawn(move || run(0));
            let all = others.into_iter().chain([leader]);
            all.map(|thread| thread.join().expect("a contestant panicked"))
                .unzip()
        });

        let time =
            (0..plan.rounds as usize).map(|round| Lap::round(laps.iter().map(|laps| laps[round])));
        let served = laps.iter().flatten().map(|lap| lap.calls_served as u64);
        Outcome {
            time: time.sum(),
            given: served.sum::<u64>() * N as u64,
            kept: kept.into_iter().flatten().collect(),
        }
    }

    fn run<S, T, V, const N: usize>(
        &self,
        plan: Plan,
        number: usize,
        barrier: &Barrier,
        shared: &Mutex<Option<Arc<S>>>,
    ) -> (Vec<Lap>, Vec<Vec<[V; N]>>)
    where
        Stock: Fn() -> S,
        Seat: Fn(&S) -> T,
        Take: Fn(&S, &mut T, &mut [V; N]) -> bool,
        V: Copy + Default,
    {
        let _guard = barrier.guard();
        let room = if plan.keep {
            (plan.calls as usize).next_power_of_two()
        } else {
            (SCRATCH / N).max(1)
        };
        let mut laps = Vec::new();
        let mut kept = Vec::new();
        for _ in 0..plan.rounds {
            // The leader.
            if number == 0 {
                let stock = Arc::new((self.stock)());
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(stock);
            }
            barrier.wait();
            let stock = shared
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
                .expect("the leader has made a stock");
            // After the stock was made, which may look at what the leader may use.
            (plan.prepare)(number);
            let mut seat = (self.seat)(&stock);
            let mut record = vec![[V::default(); N]; room];

            barrier.wait();
            let lap = self.lap(plan, &stock, &mut seat, &mut record);
            barrier.wait();

            record.truncate(lap.calls_served);
            kept.push(record);
            laps.push(lap);
        }
        (laps, kept)
    }

    /// The loop.
    #[inline(never)]
    fn lap<S, T, V, const N: usize>(
        &self,
        plan: Plan,
        stock: &S,
        seat: &mut T,
        record: &mut [[V; N]],
    ) -> Lap
    where
        Take: Fn(&S, &mut T, &mut [V; N]) -> bool,
    {
        let mask = record.len() - 1;
        let stretch = match plan.limit {
            Some(_) => (PATIENCE / N).max(1) as u64,
            None => plan.calls,
        };
        let mut left = plan.calls;
        let mut served = 0;
        let start = Instant::now();
        let end = loop {
            let calls = left.min(stretch);
            for _ in 0..calls {
                let numbers = &mut record[served & mask];
                let given = (self.take)(stock, seat, numbers);
                served += usize::from(given);
            }
            // Once for all calls: once a call costs as much as some calls do.
            black_box(&mut *record);
            left -= calls;
            let now = Instant::now();
            if plan.limit.is_some_and(|limit| now - start >= limit) {
                break now;
            }
            if left == 0 {
                left = plan.calls - served as u64;
                if left == 0 || now - start >= plan.patience {
                    break now;
                }
                thread::yield_now();
            }
        };
        Lap {
            start,
            end,
            calls_served: served,
        }
    }
}

/// Lets threads go on when all of them have come, and all at once.
struct Barrier {
    threads: usize,
    arrivals: CachePadded<AtomicUsize>,
    broken: AtomicBool,
}

impl Barrier {
    /// Spins until the thread gives way to others, in case there are more of
    /// them than cores.
    const SPINS: u32 = 1 << 14;

    fn new(threads: usize) -> Self {
        Self {
            threads,
            arrivals: CachePadded::new(AtomicUsize::new(0)),
            broken: AtomicBool::new(false),
        }
    }

    fn wait(&self) {
        // Release and Acquire: what was done before is seen after.
        let arrival = self.arrivals.fetch_add(1, AcqRel);
        let all = (arrival / self.threads + 1) * self.threads;
        let mut spins = 0;
        while self.arrivals.load(Acquire) < all {
            if spins < Self::SPINS {
                spins += 1;
                spin_loop();
            } else {
                // Relaxed: a wish to end, which carries nothing.
                assert!(!self.broken.load(Relaxed), "another contestant panicked");
                thread::yield_now();
            }
        }
    }

    /// Breaks the barrier if the thread panics, or the others would wait for
    /// it for ever.
    fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

struct Guard<'a>(&'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.broken.store(true, Relaxed);
        }
    }
}
