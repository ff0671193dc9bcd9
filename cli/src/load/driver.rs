//! Consumers that take each ID when it is due.
//!
//! The moments do not wait for the takes (an open loop). A take that is slow
//! delays those that were due meanwhile, and the delay is in their figures, as it
//! would be in the answers of a service: latency counts from the moment at which
//! an ID was due, not from the one at which a consumer came to it.
//!
//! Between takes a consumer has its [`Keeper`] do what is left to do, or spins;
//! where the pause is long enough it sleeps for most of it. So each consumer
//! keeps a core busy at rates above some hundred a second, and where there are
//! more of them than cores but one, they are in each other's way and in that of
//! the producer, as they would be in a service.

use std::hint::spin_loop;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::ProgressBar;
use ringflake::plan::Load;
use ringflake::{CachedGenerator, Id, TakeError};

use super::pacer::{self, Group, LARGEST, Pacer};
use super::sampler::Sampler;
use super::{Histogram, Played};
use crate::threads::in_threads;

/// From the start of the threads to the first moment of the load.
const HEAD_START: Duration = Duration::from_millis(50);

/// How long after the end a consumer that is behind goes on.
const GRACE: Duration = Duration::from_millis(250);

/// A pause of more than this is slept through, but for as much at its end.
const DOZE: Duration = Duration::from_millis(1);

/// A pause of less than this is too short for anything else.
const SPARE: Duration = Duration::from_micros(3);

/// What becomes of the IDs that a consumer takes.
pub(crate) trait Keeper: Send {
    /// Takes note of IDs, while others may be due: must be quick.
    fn keep(&mut self, ids: &[Id]);

    /// Does a microsecond's worth of what is left to do; whether there was
    /// anything.
    fn use_pause(&mut self) -> bool;

    /// Does all that is left.
    fn finish(&mut self);
}

/// Keeps nothing.
impl Keeper for () {
    fn keep(&mut self, _ids: &[Id]) {}

    fn use_pause(&mut self) -> bool {
        false
    }

    fn finish(&mut self) {}
}

/// A load, and who plays it.
#[derive(Debug)]
pub(crate) struct Driver<'a> {
    pub(crate) load: &'a Load,
    /// Threads that take, at least one.
    pub(crate) consumers: usize,
    /// For how long, at most as long as the load lasts.
    pub(crate) time: Duration,
    /// Ends it early once it is set.
    pub(crate) stop: &'a AtomicBool,
    /// Follows it in milliseconds.
    pub(crate) bar: &'a ProgressBar,
}

impl Driver<'_> {
    /// Plays the load; `keeper` makes what each consumer has for itself, which
    /// comes back with what was found out.
    ///
    /// # Errors
    ///
    /// If the threads can't be started.
    pub(crate) fn play<K: Keeper>(
        &self,
        generator: &CachedGenerator,
        keeper: impl Fn() -> K + Sync,
    ) -> Result<(Played, Vec<K>)> {
        let before = generator.stats();
        let origin = Instant::now() + HEAD_START;
        let sampler = Sampler {
            generator,
            before: &before,
            origin,
            time: self.time,
            bar: self.bar,
        };
        let next = AtomicUsize::new(0);
        let (consumed, samples) = thread::scope(|scope| {
            let (working, at_work) = mpsc::channel();
            let sampling = scope.spawn(move || sampler.run(&at_work));
            let consumed = in_threads(self.consumers, || {
                let mut consumer = Consumer::new(self, generator, origin, keeper());
                consumer.run(next.fetch_add(1, Relaxed));
                Ok(consumer)
            });
            drop(working);
            let samples = sampling.join().unwrap_or_default();
            consumed.map(|consumed| (consumed, samples))
        })?;
        let after = generator.stats();

        let mut played = Played {
            demanded: pacer::whole(self.load.demanded_by(self.time.as_secs_f64())),
            taken: 0,
            refused: 0,
            refusal: None,
            missed: 0,
            empties: after.empties - before.empties,
            in_place: after.in_place - before.in_place,
            fills: after.fills.threshold - before.fills.threshold,
            latency: Histogram::new(),
            samples,
            took: Duration::ZERO,
        };
        let mut keepers = Vec::new();
        for consumer in consumed {
            played.taken += consumer.latency.count();
            played.refused += consumer.refused;
            played.missed += consumer.missed;
            played.refusal = played.refusal.or(consumer.refusal);
            played.latency.add(&consumer.latency);
            played.took = played.took.max(consumer.took);
            keepers.push(consumer.keeper);
        }
        Ok((played, keepers))
    }
}

/// One thread that takes.
struct Consumer<'a, K> {
    driver: &'a Driver<'a>,
    generator: &'a CachedGenerator,
    /// The first moment of the load.
    origin: Instant,
    keeper: K,
    latency: Histogram,
    refused: u64,
    refusal: Option<TakeError>,
    missed: u64,
    took: Duration,
}

impl<'a, K: Keeper> Consumer<'a, K> {
    fn new(
        driver: &'a Driver<'a>,
        generator: &'a CachedGenerator,
        origin: Instant,
        keeper: K,
    ) -> Self {
        Self {
            driver,
            generator,
            origin,
            keeper,
            latency: Histogram::new(),
            refused: 0,
            refusal: None,
            missed: 0,
            took: Duration::ZERO,
        }
    }

    fn run(&mut self, index: usize) {
        let driver = self.driver;
        let seconds = driver.time.as_secs_f64();
        let mut groups = Pacer::new(driver.load, seconds, driver.consumers, index);
        let end = driver.time.saturating_add(GRACE);
        while let Some(group) = groups.next() {
            let now = self.wait_until(group.due);
            if driver.stop.load(Relaxed) {
                break;
            }
            if now > end {
                let left = groups.map(|group| group.ids as u64).sum::<u64>();
                self.missed += group.ids as u64 + left;
                break;
            }
            self.take(group);
        }
        self.took = self.since_origin().min(driver.time);
        self.keeper.finish();
    }

    fn since_origin(&self) -> Duration {
        Instant::now().saturating_duration_since(self.origin)
    }

    /// Returns once it is `due`, or the run was stopped, and says what time it is.
    fn wait_until(&mut self, due: f64) -> Duration {
        let due = Duration::from_secs_f64(due);
        loop {
            let now = self.since_origin();
            let left = due.saturating_sub(now);
            if left.is_zero() || self.driver.stop.load(Relaxed) {
                return now;
            }
            let busy = left > SPARE && self.keeper.use_pause();
            if !busy && left > DOZE {
                // Not for long, so that an early end is noticed.
                thread::sleep((left - DOZE).min(DOZE * 50));
            } else if !busy {
                spin_loop();
            }
        }
    }

    fn take(&mut self, group: Group) {
        let mut ids = [Id::default(); LARGEST];
        let mut taken = 0;
        while taken < group.ids {
            match self.generator.take() {
                Ok(id) => ids[taken] = id,
                Err(error) => {
                    self.refused += (group.ids - taken) as u64;
                    self.refusal = Some(error);
                    break;
                }
            }
            taken += 1;
        }
        let due = Duration::from_secs_f64(group.due);
        let latency = self.since_origin().saturating_sub(due);
        self.latency.record(latency.as_nanos() as u64, taken as u64);
        self.keeper.keep(&ids[..taken]);
    }
}

#[cfg(test)]
mod tests {
    use ringflake::{Layout, OnEmpty, PaddingFill, Secret, StaticLease};

    use super::*;

    /// Remembers what it was given.
    #[derive(Default)]
    struct Remembering {
        ids: Vec<Id>,
        finished: bool,
    }

    impl Keeper for Remembering {
        fn keep(&mut self, ids: &[Id]) {
            self.ids.extend_from_slice(ids);
        }

        fn use_pause(&mut self) -> bool {
            false
        }

        fn finish(&mut self) {
            self.finished = true;
        }
    }

    fn builder() -> ringflake::CachedGeneratorBuilder {
        let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 0..256);
        // IDs of its own: each is made once in a process.
        CachedGenerator::builder(Layout::RANDFLAKE)
            .secret(&Secret::generate().unwrap())
            .lease(lease)
    }

    fn play(generator: &CachedGenerator, rate: &str, stop: bool) -> (Played, Vec<Remembering>) {
        let driver = Driver {
            load: &Load::steady(rate.parse().unwrap()),
            consumers: 2,
            time: Duration::from_millis(100),
            stop: &AtomicBool::new(stop),
            bar: &ProgressBar::hidden(),
        };
        driver.play(generator, Remembering::default).unwrap()
    }

    #[test]
    fn every_id_that_is_due_is_accounted_for() {
        let generator = builder().build().unwrap();
        let (played, keepers) = play(&generator, "500k", false);
        assert_eq!(played.demanded, 50_000);
        assert_eq!(played.taken + played.missed, 50_000);
        assert_eq!(played.refused, 0);
        assert_eq!(played.latency.count(), played.taken);
        assert!(keepers.iter().all(|keeper| keeper.finished));
        let mut ids: Vec<_> = keepers.into_iter().flat_map(|keeper| keeper.ids).collect();
        assert_eq!(ids.len() as u64, played.taken);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len() as u64, played.taken);
        let last = played.samples.last().unwrap();
        assert!(last.level <= 1 << 16 && last.threshold == 1 << 15);
    }

    #[test]
    fn takes_that_made_their_id_themselves_count_as_empties() {
        let generator = builder()
            .padding_fill(PaddingFill::Off)
            .threshold_fill(None)
            .build()
            .unwrap();
        let (played, _) = play(&generator, "100k", false);
        assert_eq!(played.taken + played.missed, 10_000);
        assert_eq!(played.empties, played.taken);
        assert_eq!(played.in_place, played.taken);
    }

    #[test]
    fn refusals_are_told() {
        let generator = builder()
            .padding_fill(PaddingFill::Off)
            .threshold_fill(None)
            .on_empty(OnEmpty::Error)
            .build()
            .unwrap();
        let (played, _) = play(&generator, "100k", false);
        assert_eq!(played.taken, 0);
        assert_eq!(played.refused + played.missed, 10_000);
        assert_eq!(played.refusal, Some(TakeError::Empty));
        assert_eq!(played.empties, played.refused);
    }

    #[test]
    fn it_ends_when_it_is_told_to() {
        let generator = builder().build().unwrap();
        let (played, _) = play(&generator, "100k", true);
        assert_eq!((played.taken, played.missed), (0, 0));
    }
}
