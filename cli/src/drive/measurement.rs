//! A generator under a load: what its consumers got, and the level of its ring over time.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use ringflake::{CachedGenerator, TakeError};

use super::open_loop::{Histogram, OpenLoop, histogram};

/// Samples of a run, unless it is so short that they would be less than
/// `SHORTEST` apart. Enough for a picture, and too few to disturb the takes.
const SAMPLES: u32 = 5000;
const SHORTEST: Duration = Duration::from_millis(1);

/// What came of a load.
#[derive(Clone, Debug)]
pub(crate) struct Measurement {
    /// IDs that were due by the end.
    pub(crate) demanded: u64,
    pub(crate) taken: u64,
    /// IDs that the generator refused. They are not asked for again.
    pub(crate) refused: u64,
    /// Why the last of them was.
    pub(crate) refusal: Option<TakeError>,
    /// IDs that were due and not asked for in time.
    pub(crate) missed: u64,
    /// IDs that had been taken when the time was over.
    pub(crate) by_end: u64,
    /// Takes that found the ring empty, whatever came of them.
    pub(crate) empties: u64,
    /// Threshold fills that were completed.
    pub(crate) fills: u64,
    /// Runs that takes made for the ring, because it had few IDs.
    pub(crate) assists: u64,
    /// From the moment at which an ID was due to its return.
    pub(crate) latency: Histogram,
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
    pub(crate) threshold: usize,
    /// Seconds that were borrowed.
    pub(crate) borrowed: f64,
}

impl Measurement {
    /// Runs a load with takes one by one from `generator`.
    ///
    /// # Errors
    ///
    /// If the threads can't be started.
    pub(crate) fn run(open_loop: OpenLoop<'_>, generator: &CachedGenerator) -> io::Result<Self> {
        let before = generator.stats();
        let origin = OpenLoop::origin();
        let period = (open_loop.time / SAMPLES).max(SHORTEST);
        let sample = || {
            let since = Instant::now().checked_duration_since(origin)?;
            Some(sample(generator, since))
        };
        let (consumed, samples) = thread::scope(|scope| {
            let (working, at_work) = mpsc::channel();
            let sampling = scope.spawn(|| sample_until_closed(at_work, period, sample));
            let consumed = open_loop.run(origin, || || generator.take(), || ());
            drop::<mpsc::Sender<()>>(working);
            let samples = sampling.join().unwrap_or_default();
            consumed.map(|consumed| (consumed, samples))
        })?;
        let after = generator.stats();

        let mut all = Self {
            demanded: open_loop.demanded(),
            empties: after.empties - before.empties,
            fills: after.fills.threshold - before.fills.threshold,
            assists: after.fills.assist - before.fills.assist,
            samples,
            ..Self::nothing()
        };
        let mut gave_up = false;
        for consumer in consumed {
            all.taken += consumer.latency.len();
            all.refused += consumer.refused;
            all.by_end += consumer.by_end;
            gave_up |= consumer.gave_up;
            all.refusal = all.refusal.or(consumer.refusal);
            all.latency += consumer.latency;
            all.took = all.took.max(consumer.took);
        }
        // Relaxed: a request to end, which carries nothing. What a run that was stopped did
        // not ask for says nothing.
        if gave_up && !open_loop.stop.load(Relaxed) {
            all.missed = all.demanded.saturating_sub(all.taken + all.refused);
        }
        Ok(all)
    }

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
            latency: histogram(),
            samples: Vec::new(),
            took: Duration::ZERO,
        }
    }

    /// The most seconds that were seen to be borrowed.
    pub(crate) fn most_borrowed(&self) -> f64 {
        let borrowed = self.samples.iter().map(|sample| sample.borrowed);
        borrowed.fold(0.0, f64::max)
    }

    /// The lowest level in the samples; the true one may be lower.
    pub(crate) fn lowest_level(&self) -> Option<usize> {
        self.samples.iter().map(|sample| sample.level).min()
    }
}

/// Takes samples until the other end of `at_work` is dropped.
fn sample_until_closed(
    at_work: Receiver<()>,
    period: Duration,
    sample: impl Fn() -> Option<Sample>,
) -> Vec<Sample> {
    let mut samples = Vec::with_capacity(SAMPLES as usize + 16);
    while at_work.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
        samples.extend(sample());
    }
    samples.extend(sample());
    samples
}

/// The ring as it is.
fn sample(generator: &CachedGenerator, since: Duration) -> Sample {
    let stats = generator.stats();
    Sample {
        seconds: since.as_secs_f64(),
        level: stats.level,
        threshold: stats.threshold,
        borrowed: stats.borrowed.as_secs_f64(),
    }
}
