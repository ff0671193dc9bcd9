//! What this machine can do: how fast a producer fills, how long it takes to wake up, what a
//! take costs. Measured on real generators, one thread at a time, in half a second.

use std::hint::{black_box, spin_loop};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use ringflake::plan::{self, Rate};
use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Id, Layout, OnEmpty, Secret, StaticLease,
    ThresholdFill,
};

/// The measurements. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    /// IDs a second that a producer makes while it runs.
    pub(super) fill_rate: f64,
    /// From the take that leaves too few to the first ID that is added: the median.
    pub(super) wake_median: f64,
    /// The longest.
    pub(super) wake_longest: f64,
    /// Of a take, while its thread runs.
    pub(super) take_cost: f64,
}

/// The time for each of the three figures: an answer without a run takes less than two seconds.
const WAKES: Duration = Duration::from_millis(300);
const FILLS: Duration = Duration::from_millis(100);
const TAKES: Duration = Duration::from_millis(50);
const _: () = assert!(WAKES.as_millis() + FILLS.as_millis() + TAKES.as_millis() <= 1_000);

/// IDs that a producer puts into the ring in one step.
const BLOCK: usize = 64;

/// Slots of the ring whose filling is timed. A build without optimisation is a hundred times
/// slower.
const SLOTS: usize = if cfg!(debug_assertions) {
    1 << 13
} else {
    1 << 20
};

/// The longest wait for a ring to be full.
const PATIENCE: Duration = Duration::from_secs(20);

/// For how long a waiting thread spins before it yields. A consumer under load keeps its core
/// busy, too, and a producer that is woken on that core is late.
const SPIN_AT_MOST: Duration = Duration::from_millis(100);

impl Measured {
    pub(super) fn now() -> Result<Self> {
        let wakes = wakes()?;
        let wake_median = wakes[wakes.len() / 2];
        let fills = fills(wake_median)?;
        Ok(Self {
            // The fastest: a thread that was kept from running was late and not slow.
            fill_rate: 1.0 / fills[0],
            wake_median,
            wake_longest: wakes[wakes.len() - 1],
            take_cost: takes()?[0],
        })
    }

    /// The inputs of the formula.
    pub(super) fn machine(&self, threads: Threads) -> plan::Machine {
        let rate = |per_second: f64| Rate::new((per_second as u64).max(1)).unwrap_or(Rate::MAX);
        let mut machine = plan::Machine::default();
        machine.cores = threads.cores;
        machine.producers = threads.producers;
        machine.consumers = threads.consumers;
        machine.fill_rate = rate(self.fill_rate);
        machine.take_rate = rate(1.0 / self.take_cost);
        machine.wake_up = Duration::from_secs_f64(self.wake_longest);
        machine
    }
}

/// The threads that take part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads {
    pub(super) cores: usize,
    pub(super) producers: usize,
    pub(super) consumers: usize,
}

/// Its IDs are thrown away: any lease will do, and the widest never borrows. One ring that
/// only its producer fills: takes that assist would be measured in place of the producer.
fn builder() -> Result<CachedGeneratorBuilder> {
    let layout = Layout::RANDFLAKE;
    Ok(CachedGenerator::builder(layout)
        .stripes(1)
        .assist_fill(None)
        .secret(Secret::generate()?)
        .lease(StaticLease::assume_unique(layout, 0..layout.nodes())))
}

/// The results of `measure` in ascending order: of as many calls as fit into `time`, and of
/// `fewest` at least.
fn repeated(
    time: Duration,
    fewest: usize,
    mut measure: impl FnMut() -> Result<f64>,
) -> Result<Vec<f64>> {
    let mut values = Vec::new();
    let began = Instant::now();
    while values.len() < fewest || began.elapsed() < time {
        values.push(measure()?);
    }
    values.sort_unstable_by(f64::total_cmp);
    Ok(values)
}

/// How long a producer that sleeps needs until it has added something.
fn wakes() -> Result<Vec<f64>> {
    /// Long enough for a producer to fall asleep.
    const REST: Duration = Duration::from_micros(500);
    let generator = builder()?
        .capacity(1 << 12)
        .threshold_fill(ThresholdFill::percent(100))
        .build()?;
    let mut ids = [Id::default(); BLOCK];
    repeated(WAKES, 20, || {
        thread::sleep(REST);
        let start = Instant::now();
        black_box(generator.take_batch(&mut ids)?);
        wait_until_full(&generator)?;
        Ok(start.elapsed().as_secs_f64())
    })
}

/// Seconds for each ID of a fill, from how long half of a ring takes.
fn fills(wake: f64) -> Result<Vec<f64>> {
    let generator = builder()?.capacity(SLOTS).build()?;
    let mut ids = vec![Id::default(); SLOTS / 2];
    repeated(FILLS, 5, || {
        // The next take, which asks for the fill, is timed: a producer that takes the core
        // from this thread must not be done before.
        let taken = generator.take_batch(&mut ids)? + 1;
        let start = Instant::now();
        black_box(generator.take()?);
        wait_until_full(&generator)?;
        let elapsed = start.elapsed().as_secs_f64();
        // The usual wake-up may be longer than this one and its fill together.
        Ok((elapsed - wake).max(elapsed / 2.0) / taken as f64)
    })
}

/// Seconds for a take from a ring that is full and stays untouched by others.
fn takes() -> Result<Vec<f64>> {
    let capacity = 1 << 16;
    repeated(TAKES, 3, || {
        let generator = builder()?
            .capacity(capacity)
            .threshold_fill(None)
            .on_empty(OnEmpty::Error)
            .build()?;
        let start = Instant::now();
        for _ in 0..capacity {
            black_box(generator.take()?);
        }
        Ok(start.elapsed().as_secs_f64() / capacity as f64)
    })
}

fn wait_until_full(generator: &CachedGenerator) -> Result<()> {
    let start = Instant::now();
    let is_full = || {
        let stats = generator.stats();
        stats.level >= stats.capacity
    };
    while !is_full() {
        let waited = start.elapsed();
        if waited > PATIENCE {
            bail!("a producer did not fill its ring within 20s: the machine is too busy");
        }
        if waited > SPIN_AT_MOST {
            // The producer may want this very core.
            thread::yield_now();
        } else {
            spin_loop();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ringflake_kit::eventually;

    use super::*;

    #[test]
    fn every_figure_of_the_machine_is_measured() {
        let mut measured = None;
        // A busy machine may stop the producers of one attempt for most of its time.
        eventually("producers fill their rings", || {
            measured = Measured::now().ok();
            measured.as_ref().is_some_and(|it| it.fill_rate > 1e4)
        });
        let found = measured.unwrap();
        assert!(found.take_cost > 0.0 && found.take_cost < 1e-3, "{found:?}");
        let wakes = 0.0 < found.wake_median && found.wake_median <= found.wake_longest;
        assert!(wakes, "{found:?}");
        let machine = found.machine(Threads {
            cores: 3,
            producers: 2,
            consumers: 1,
        });
        assert_eq!(
            (machine.cores, machine.producers, machine.consumers),
            (3, 2, 1)
        );
        assert_eq!(machine.wake_up.as_secs_f64(), found.wake_longest);
        let near = |rate: Rate, expected: f64| (rate.per_second() as f64 - expected).abs() <= 1.0;
        assert!(near(machine.fill_rate, found.fill_rate), "{machine:?}");
        let take_rate = 1.0 / found.take_cost;
        assert!(near(machine.take_rate, take_rate), "{machine:?}");
    }
}
