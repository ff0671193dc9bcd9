//! Looking at the ring from time to time while a load is played.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use ringflake::{CachedGenerator, Stats};

use super::Sample;

/// Samples of a run, unless it is so short that they would be less than
/// `SHORTEST` apart. Enough for a picture, and too few to be in anybody's way.
const SAMPLES: u32 = 5000;
const SHORTEST: Duration = Duration::from_millis(1);

/// A thread's work: takes samples, and moves the bar.
pub(super) struct Sampler<'a> {
    pub(super) generator: &'a CachedGenerator,
    pub(super) before: &'a Stats,
    pub(super) origin: Instant,
    pub(super) time: Duration,
    pub(super) bar: &'a ProgressBar,
}

impl Sampler<'_> {
    /// Works until the other end of `at_work` is gone.
    pub(super) fn run(&self, at_work: &Receiver<()>) -> Vec<Sample> {
        let period = (self.time / SAMPLES).max(SHORTEST);
        let mut samples = Vec::with_capacity(SAMPLES as usize + 16);
        while at_work.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
            samples.extend(self.sample());
        }
        samples.extend(self.sample());
        samples
    }

    /// The ring as it is; before the first moment there is nothing to see.
    fn sample(&self) -> Option<Sample> {
        let since = Instant::now().checked_duration_since(self.origin)?;
        self.bar.set_position(since.as_millis() as u64);
        let stats = self.generator.stats();
        Some(Sample {
            seconds: since.as_secs_f64(),
            level: stats.level,
            threshold: stats.threshold,
            borrowed: stats.borrowed.as_secs_f64(),
            fills: stats.fills.threshold - self.before.fills.threshold,
            empties: stats.empties - self.before.empties,
        })
    }
}
