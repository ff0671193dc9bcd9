//! Consumers that take each ID when it is due.
//!
//! The schedule does not wait for the takes (an open loop). A slow take delays the IDs due in the
//! meantime. That delay is counted, as in the responses of a service: latency counts from the
//! moment at which an ID was due, not from the call that took it.
//!
//! Between takes a consumer spins; in a long pause it sleeps. So each consumer keeps a core busy at
//! rates above some hundred a second. If there are as many consumers as cores, they delay each other
//! and the producer, as they would in a service.

use std::hint::spin_loop;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::plan::Load;
use ringflake::{Id, TakeError};

use super::pacer::{self, Group, LARGEST, Pacer};

/// From the start of the threads to the first moment of the load.
const HEAD_START: Duration = Duration::from_millis(50);

/// How long after the end a consumer that is behind goes on.
const GRACE: Duration = Duration::from_millis(250);

/// A consumer sleeps through a longer pause, except for its last millisecond.
const SPIN_AT_MOST: Duration = Duration::from_millis(1);

/// Longer latencies count as this one.
const LONGEST: Duration = Duration::from_secs(3600);

/// Counts of times in nanoseconds, each known to 1 part in 100.
pub(crate) type Histogram = hdrhistogram::Histogram<u64>;

/// A histogram of times of up to an hour.
pub(crate) fn histogram() -> Histogram {
    Histogram::new_with_max(LONGEST.as_nanos() as u64, 2).expect("the bounds are valid")
}

/// Sees the IDs that a consumer takes.
pub(crate) trait TakeObserver: Send {
    /// Sees IDs while others may be due: must be quick.
    fn taken(&mut self, ids: &[Id]);
}

/// Ignores the IDs.
impl TakeObserver for () {
    fn taken(&mut self, _ids: &[Id]) {}
}

/// A load, and how it is driven.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenLoop<'a> {
    pub(crate) load: &'a Load,
    /// Threads that take, at least one.
    pub(crate) consumers: usize,
    /// For how long, at most as long as the load lasts.
    pub(crate) time: Duration,
    /// Ends it early once it is set.
    pub(crate) stop: &'a AtomicBool,
    /// Times a second that a consumer looks at the clock, at most. Above that rate IDs
    /// are due in groups.
    pub(crate) groups_per_second: f64,
}

/// What one consumer did.
#[derive(Debug)]
pub(crate) struct Consumed<O> {
    /// From the moment an ID was due to its return. All IDs of a group have the latency
    /// of the last one.
    pub(crate) latency: Histogram,
    /// From the call to its return, of a group the whole of it.
    pub(crate) service: Histogram,
    /// IDs that were refused. They are not asked for again.
    pub(crate) refused: u64,
    /// Why the last of them was.
    pub(crate) refusal: Option<TakeError>,
    /// IDs that it had taken when the time was over.
    pub(crate) by_end: u64,
    /// Whether it gave up, so far behind that not all IDs that were due were asked for.
    pub(crate) gave_up: bool,
    pub(crate) took: Duration,
    pub(crate) observer: O,
}

impl OpenLoop<'_> {
    /// The first moment of a load that is run now.
    pub(crate) fn origin() -> Instant {
        Instant::now() + HEAD_START
    }

    /// IDs that are due by its end.
    pub(crate) fn demanded(self) -> u64 {
        pacer::whole(self.load.demanded_by(self.time.as_secs_f64()))
    }

    /// Runs the load from `origin` on. `source` makes a consumer's way of taking an ID,
    /// `observer` what sees its IDs.
    ///
    /// # Errors
    ///
    /// If the threads can't be started.
    pub(crate) fn run<T, O>(
        self,
        origin: Instant,
        source: impl Fn() -> T + Sync,
        observer: impl Fn() -> O + Sync,
    ) -> io::Result<Vec<Consumed<O>>>
    where
        T: FnMut() -> Result<Id, TakeError>,
        O: TakeObserver,
    {
        let consume = |index| {
            let mut consumer = Consumer {
                open_loop: self,
                origin,
                source: source(),
                result: Consumed {
                    latency: histogram(),
                    service: histogram(),
                    refused: 0,
                    refusal: None,
                    by_end: 0,
                    gave_up: false,
                    took: Duration::ZERO,
                    observer: observer(),
                },
            };
            consumer.run(index);
            consumer.result
        };
        thread::scope(|scope| {
            let consume = &consume;
            let start = |index| thread::Builder::new().spawn_scoped(scope, move || consume(index));
            let threads = (0..self.consumers)
                .map(start)
                .collect::<io::Result<Vec<_>>>()?;
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().expect("a consumer panicked")
            };
            Ok(threads.into_iter().map(join).collect())
        })
    }
}

/// One thread that takes.
struct Consumer<'a, T, O> {
    open_loop: OpenLoop<'a>,
    origin: Instant,
    source: T,
    result: Consumed<O>,
}

impl<T, O> Consumer<'_, T, O>
where
    T: FnMut() -> Result<Id, TakeError>,
    O: TakeObserver,
{
    fn run(&mut self, index: usize) {
        let open_loop = self.open_loop;
        let seconds = open_loop.time.as_secs_f64();
        let share = (index, open_loop.consumers);
        let groups = Pacer::new(open_loop.load, seconds, share, open_loop.groups_per_second);
        let end = open_loop.time.saturating_add(GRACE);
        for group in groups {
            let now = self.wait_until(group.due);
            if open_loop.stop.load(Relaxed) {
                break;
            }
            if now > end {
                self.result.gave_up = true;
                break;
            }
            self.take(group, now);
        }
        self.result.took = self.since_origin().min(open_loop.time);
    }

    fn since_origin(&self) -> Duration {
        Instant::now().saturating_duration_since(self.origin)
    }

    /// Returns the time once it is `due`, or the run was stopped.
    fn wait_until(&mut self, due: f64) -> Duration {
        let due = Duration::from_secs_f64(due);
        loop {
            let now = self.since_origin();
            let left = due.saturating_sub(now);
            // Relaxed: a request to end, which carries nothing.
            if left.is_zero() || self.open_loop.stop.load(Relaxed) {
                return now;
            }
            if left > SPIN_AT_MOST {
                // Not for long, so that an early end is noticed.
                thread::sleep((left - SPIN_AT_MOST).min(SPIN_AT_MOST * 50));
            } else {
                spin_loop();
            }
        }
    }

    fn take(&mut self, group: Group, start: Duration) {
        let mut ids = [Id::default(); LARGEST];
        let mut taken = 0;
        while taken < group.ids {
            match (self.source)() {
                Ok(id) => ids[taken] = id,
                Err(error) => {
                    self.result.refused += (group.ids - taken) as u64;
                    self.result.refusal = Some(error);
                    break;
                }
            }
            taken += 1;
        }
        let end = self.since_origin();
        if end <= self.open_loop.time {
            self.result.by_end += taken as u64;
        }
        let latency = end.saturating_sub(Duration::from_secs_f64(group.due));
        let (latencies, services) = (&mut self.result.latency, &mut self.result.service);
        latencies.saturating_record_n(latency.as_nanos() as u64, taken as u64);
        services.saturating_record_n((end - start).as_nanos() as u64, taken as u64);
        self.result.observer.taken(&ids[..taken]);
    }
}
