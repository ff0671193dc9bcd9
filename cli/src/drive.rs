//! A load on a generator: what its consumers got, and the level of its ring over time.
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
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use ringflake::plan::Load;
use ringflake::{CachedGenerator, TakeError};

use self::pacer::{Group, Pacer};

mod pacer;

/// From the start of the threads to the first moment of the load.
const HEAD_START: Duration = Duration::from_millis(50);

/// How long after the end a consumer that is behind goes on.
const GRACE: Duration = Duration::from_millis(250);

/// A consumer sleeps through a longer pause, except for its last millisecond.
const SPIN_AT_MOST: Duration = Duration::from_millis(1);

/// Longer latencies count as this one.
const LONGEST: Duration = Duration::from_secs(3600);

/// Samples of a run, unless it is so short that they would be less than
/// `SHORTEST` apart. Enough for a picture, and too few to disturb the takes.
const SAMPLES: u32 = 5000;
const SHORTEST: Duration = Duration::from_millis(1);

/// A load, and how it is driven.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenLoop<'a> {
    pub(crate) generator: &'a CachedGenerator,
    pub(crate) load: &'a Load,
    /// Threads that take IDs one by one, at least one.
    pub(crate) consumers: usize,
    /// For how long, at most as long as the load lasts.
    pub(crate) time: Duration,
    /// Ends it early once it is set.
    pub(crate) stop: &'a AtomicBool,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub(crate) struct Measurement {
    /// IDs that were due by the end.
    pub(crate) demanded: u64,
    pub(crate) taken: u64,
    /// IDs that the generator refused. They are not asked for again.
    pub(crate) refused: u64,
    /// The error of the last refused take.
    pub(crate) refusal: Option<TakeError>,
    /// IDs that were due and not asked for in time.
    pub(crate) missed: u64,
    /// IDs that had been taken when the time was over.
    pub(crate) by_end: u64,
    /// Takes that found the ring empty, successful or not.
    pub(crate) empties: u64,
    /// Threshold fills that were completed.
    pub(crate) fills: u64,
    /// Runs that takes made for the ring, because it had few IDs.
    pub(crate) assists: u64,
    /// Nanoseconds from the moment at which an ID was due to its return, each known to 1 part
    /// in 100. All IDs of a group have the latency of the last one.
    pub(crate) latency: Histogram<u64>,
    /// The ring over time, at least a millisecond apart.
    pub(crate) samples: Vec<Sample>,
    /// How long it ran: less than asked for if it was stopped.
    pub(crate) took: Duration,
}

/// The ring at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Since the first moment of the load.
    pub(crate) seconds: f64,
    pub(crate) level: usize,
    /// IDs handed out so far.
    pub(crate) issued: u64,
    /// Seconds that were borrowed.
    pub(crate) borrowed: f64,
}

impl Measurement {
    /// The measurement of no load at all.
    pub(crate) fn nothing() -> Self {
        Self {
            demanded: 0,
            taken: 0,
            refused: 0,
            refusal: None,
            missed: 0,
            by_end: 0,
            empties: 0,
            fills: 0,
            assists: 0,
            latency: Histogram::new_with_max(LONGEST.as_nanos() as u64, 2)
                .expect("the bounds are valid"),
            samples: Vec::new(),
            took: Duration::ZERO,
        }
    }

    /// The most seconds that were seen to be borrowed.
    pub(crate) fn most_borrowed(&self) -> f64 {
        let borrowed = self.samples.iter().map(|sample| sample.borrowed);
        borrowed.fold(0.0, f64::max)
    }

    /// Adds what one consumer took.
    fn add(&mut self, one: Self) {
        self.taken += one.taken;
        self.refused += one.refused;
        self.refusal = self.refusal.or(one.refusal);
        self.by_end += one.by_end;
        self.latency += one.latency;
        self.took = self.took.max(one.took);
    }
}

impl OpenLoop<'_> {
    /// Runs the load.
    ///
    /// # Errors
    ///
    /// If the threads can't be started.
    pub(crate) fn run(self) -> io::Result<Measurement> {
        let before = self.generator.stats();
        let origin = Instant::now() + HEAD_START;
        let mut all = Measurement {
            demanded: pacer::whole(self.load.demanded_by(self.time.as_secs_f64())),
            samples: Vec::with_capacity(SAMPLES as usize + 16),
            ..Measurement::nothing()
        };
        let mut gave_up = false;
        thread::scope(|scope| {
            let (running, has_ended) = mpsc::channel::<()>();
            let start = |index| {
                let mut consumer = Consumer {
                    open_loop: self,
                    origin,
                    measured: Measurement::nothing(),
                    gave_up: false,
                };
                let running = running.clone();
                thread::Builder::new().spawn_scoped(scope, move || {
                    consumer.run(index);
                    drop(running);
                    consumer
                })
            };
            let threads: io::Result<Vec<_>> = (0..self.consumers).map(start).collect();
            let threads = threads?;
            drop(running);
            let period = (self.time / SAMPLES).max(SHORTEST);
            while has_ended.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                all.samples.extend(self.sample(origin));
            }
            all.samples.extend(self.sample(origin));
            for thread in threads {
                let consumer = thread.join().expect("a consumer panicked");
                gave_up |= consumer.gave_up;
                all.add(consumer.measured);
            }
            io::Result::Ok(())
        })?;
        let after = self.generator.stats();
        all.empties = after.empties - before.empties;
        all.fills = after.fills.threshold - before.fills.threshold;
        all.assists = after.fills.assist - before.fills.assist;
        // A run that was stopped asks for no more, which is no miss. Relaxed: a request to end,
        // which carries nothing.
        if gave_up && !self.stop.load(Relaxed) {
            all.missed = all.demanded.saturating_sub(all.taken + all.refused);
        }
        Ok(all)
    }

    /// The ring as it is; none before the load begins.
    fn sample(self, origin: Instant) -> Option<Sample> {
        let since = Instant::now().checked_duration_since(origin)?;
        let stats = self.generator.stats();
        Some(Sample {
            seconds: since.as_secs_f64(),
            level: stats.level,
            issued: stats.issued,
            borrowed: stats.borrowed.as_secs_f64(),
        })
    }
}

/// One thread that takes.
struct Consumer<'a> {
    open_loop: OpenLoop<'a>,
    origin: Instant,
    measured: Measurement,
    /// Whether it gave up, so far behind that not all IDs that were due were asked for.
    gave_up: bool,
}

impl Consumer<'_> {
    fn run(&mut self, index: usize) {
        let open_loop = self.open_loop;
        let seconds = open_loop.time.as_secs_f64();
        let end = open_loop.time.saturating_add(GRACE);
        for group in Pacer::new(open_loop.load, seconds, index, open_loop.consumers) {
            let now = self.wait_until(group.due);
            if open_loop.stop.load(Relaxed) {
                break;
            }
            if now > end {
                self.gave_up = true;
                break;
            }
            self.take(group);
        }
        self.measured.took = self.since_origin().min(open_loop.time);
    }

    fn since_origin(&self) -> Duration {
        Instant::now().saturating_duration_since(self.origin)
    }

    /// Returns the time once it is `due`, or the run was stopped.
    fn wait_until(&self, due: f64) -> Duration {
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

    fn take(&mut self, group: Group) {
        let mut taken = 0;
        while taken < group.ids {
            if let Err(error) = self.open_loop.generator.take() {
                self.measured.refused += group.ids - taken;
                self.measured.refusal = Some(error);
                break;
            }
            taken += 1;
        }
        let end = self.since_origin();
        self.measured.taken += taken;
        if end <= self.open_loop.time {
            self.measured.by_end += taken;
        }
        let latency = end.saturating_sub(Duration::from_secs_f64(group.due));
        let latencies = &mut self.measured.latency;
        latencies.saturating_record_n(latency.as_nanos() as u64, taken);
    }
}

#[cfg(test)]
mod tests {
    use ringflake::{CachedGeneratorBuilder, Layout, OnEmpty, PaddingFill, Secret, StaticLease};
    use ringflake_kit::eventually;

    use super::*;

    fn builder() -> CachedGeneratorBuilder {
        let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 0..256);
        // A secret of its own: a process makes each ID only once.
        CachedGenerator::builder(Layout::RANDFLAKE)
            .secret(Secret::generate().unwrap())
            .lease(lease)
    }

    /// Runs a load of two consumers for a tenth of a second.
    fn run(generator: &CachedGenerator, rate: &str, stop: bool) -> Measurement {
        let open_loop = OpenLoop {
            generator,
            load: &Load::steady(rate.parse().unwrap()),
            consumers: 2,
            time: Duration::from_millis(100),
            stop: &AtomicBool::new(stop),
        };
        open_loop.run().unwrap()
    }

    /// Runs a load again until `shows` holds of it: a busy machine may let no consumer run until
    /// the load has long been over.
    #[track_caller]
    fn run_until(
        shows: impl Fn(&Measurement) -> bool,
        generator: &CachedGenerator,
        rate: &str,
    ) -> Measurement {
        let mut found = None;
        eventually("a consumer runs in time", || {
            found = Some(run(generator, rate, false)).filter(|run| shows(run));
            found.is_some()
        });
        found.unwrap()
    }

    #[test]
    fn every_id_that_is_due_is_accounted_for() {
        let generator = builder().build().unwrap();
        let run = run(&generator, "500k", false);
        assert_eq!(run.demanded, 50_000);
        assert_eq!(run.taken + run.missed, 50_000);
        assert_eq!(run.refused, 0);
        assert_eq!(run.latency.len(), run.taken);
        let last = run.samples.last().unwrap();
        assert!(last.level <= 1 << 16 && last.issued == run.taken);
    }

    #[test]
    fn takes_that_find_the_ring_empty_are_counted() {
        let generator = builder()
            .padding_fill(PaddingFill::Off)
            .threshold_fill(None)
            .build()
            .unwrap();
        let run = run_until(|run| run.taken > 0, &generator, "100k");
        assert_eq!(run.taken + run.missed, 10_000);
        // A dry take makes some for those that follow.
        assert!((1..=run.taken).contains(&run.empties), "{}", run.empties);
    }

    #[test]
    fn refusals_are_counted_with_their_reason() {
        let generator = builder()
            .capacity(1)
            .threshold_fill(None)
            .on_empty(OnEmpty::Error)
            .build()
            .unwrap();
        generator.take().unwrap();
        let run = run_until(|run| run.refused > 0, &generator, "100k");
        assert_eq!(run.taken, 0);
        assert_eq!(run.refused + run.missed, 10_000);
        assert_eq!(run.refusal, Some(TakeError::Empty));
        assert_eq!(run.empties, run.refused);
    }

    #[test]
    fn a_run_that_is_stopped_takes_nothing_more() {
        let generator = builder().build().unwrap();
        let run = run(&generator, "100k", true);
        assert_eq!((run.taken, run.missed), (0, 0));
    }

    #[test]
    fn what_no_consumer_can_take_is_missed_and_what_came_after_the_end_is_told_apart() {
        let generator = builder().build().unwrap();
        // The consumers go on for longer than the load lasts.
        let run = run_until(|run| run.by_end < run.taken, &generator, "1000G");
        assert_eq!(run.demanded, 100_000_000_000);
        assert_eq!(run.taken + run.missed, run.demanded);
        assert!(run.taken < run.missed, "{run:?}");
        let served = run_until(|run| run.missed == 0, &generator, "1k");
        assert_eq!(served.taken, 100);
    }
}
