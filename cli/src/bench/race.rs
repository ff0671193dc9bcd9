//! The one loop that every contestant runs in.
//!
//! All threads start together on a new stock and call `take`. A race lasts from
//! the first start to the last end. The threads meet at a barrier that spins,
//! because waking a sleeping thread takes as long as many a race.
//!
//! Each call writes its numbers to memory. When they are to be checked, that
//! memory is as long as the race; when not, it is short and used over and
//! over, so that it stays in the first cache. Nothing else differs.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicUsize};
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
    /// Makes what the threads share.
    stock: Stock,
    /// Makes what a thread has for itself.
    seat: Seat,
    /// Writes `N` numbers, or says that they were not to be had.
    take: Take,
}

/// The answer of a call: puts what was got in its place.
#[inline]
pub(crate) fn put<V>(place: &mut V, got: Option<V>) -> bool {
    got.map(|number| *place = number).is_some()
}

/// How long a race is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) threads: usize,
    /// Calls of each thread.
    pub(crate) calls: u64,
    /// Ends it earlier.
    pub(crate) limit: Option<Duration>,
    /// How long after the start calls that were not served are made again.
    pub(crate) patience: Duration,
    /// Whether to keep all numbers.
    pub(crate) keep: bool,
    /// Called in each thread before it starts, with its number in `0..threads`.
    pub(crate) prepare: fn(usize),
}

impl Plan {
    /// A fixed number of calls.
    pub(crate) fn calls(threads: usize, calls: u64) -> Self {
        Self {
            threads,
            calls,
            limit: None,
            patience: Duration::ZERO,
            keep: false,
            prepare: |_| (),
        }
    }

    /// The same, making calls that were not served again, within the time of the race: for a
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
    pub(crate) time: Duration,
    /// Numbers that were handed out.
    pub(crate) given: u64,
    /// Those numbers, or the last of them if they were not to be kept: a list for each
    /// thread, of the answers to its calls.
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

/// One thread's part of a race.
#[derive(Clone, Copy)]
pub(super) struct Lap {
    pub(super) start: Instant,
    pub(super) end: Instant,
    pub(super) calls_served: usize,
}

impl Lap {
    /// How long the race of these laps lasted: from the first start to the last end. A thread
    /// that comes late, or is done early, does not shorten it.
    pub(super) fn race(laps: impl Iterator<Item = Self> + Clone) -> Duration {
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
        S: Sync,
        V: Copy + Default + Send,
    {
        let stock = (self.stock)();
        let barrier = Barrier::new(plan.threads);
        let run = |number| self.run(plan, number, &barrier, &stock);
        let (laps, kept): (Vec<_>, Vec<_>) = thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> = (0..plan.threads)
                .map(|number| scope.spawn(move || run(number)))
                .collect();
            let threads = threads.into_iter();
            threads
                .map(|thread| thread.join().expect("a contestant panicked"))
                .unzip()
        });

        let served = laps.iter().map(|lap| lap.calls_served as u64);
        Outcome {
            time: Lap::race(laps.iter().copied()),
            given: served.sum::<u64>() * N as u64,
            kept,
        }
    }

    fn run<S, T, V, const N: usize>(
        &self,
        plan: Plan,
        number: usize,
        barrier: &Barrier,
        stock: &S,
    ) -> (Lap, Vec<[V; N]>)
    where
        Seat: Fn(&S) -> T,
        Take: Fn(&S, &mut T, &mut [V; N]) -> bool,
        V: Copy + Default,
    {
        let _guard = Guard(barrier);
        let room = match plan.keep {
            true => (plan.calls as usize).next_power_of_two(),
            false => (SCRATCH / N).max(1),
        };
        (plan.prepare)(number);
        let mut seat = (self.seat)(stock);
        let mut record = vec![[V::default(); N]; room];

        barrier.wait();
        let lap = self.lap(plan, stock, &mut seat, &mut record);
        // Nobody puts anything back before all are done.
        barrier.wait();
        record.truncate(lap.calls_served);
        (lap, record)
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
}

/// Breaks the barrier if its thread panics, or the others would wait for it for ever.
struct Guard<'a>(&'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.broken.store(true, Relaxed);
        }
    }
}
