//! What this machine can do: how fast a producer fills, how long it takes to
//! wake up, what a take costs.
//!
//! All of it is measured on real generators, one thread at a time. Nothing of it is an
//! average: there is the median, and of the wake-ups the 99th percentile and the longest.

use std::hint::{black_box, spin_loop};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Id, Layout, OnEmpty, Secret, StaticLease,
    ThresholdFill,
};

/// What was measured. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Machine {
    /// IDs a second that one producer makes and puts into a ring.
    pub(super) fill_rate: f64,
    /// The same while it runs, which on a busy machine is not all the time. A take that
    /// assists makes IDs so fast: it is running.
    pub(super) running_fill_rate: f64,
    /// From the take that leaves too few to the first ID that is added, usually.
    pub(super) wake_usual: f64,
    /// The same, exceeded once in a hundred times.
    pub(super) wake_slow: f64,
    /// The longest that was seen.
    pub(super) wake_longest: f64,
    pub(super) take_cost: f64,
}

/// IDs that a producer puts into the ring in one step.
const BLOCK: usize = 64;

/// Slots of the ring whose filling is timed.
const SLOTS: usize = if cfg!(debug_assertions) {
    // A build that is not optimised is a hundred times slower.
    1 << 13
} else {
    1 << 20
};

/// The longest that is waited for a ring to be full.
const PATIENCE: Duration = Duration::from_secs(20);

/// For how long a waiting thread spins before it yields. A consumer under load keeps its
/// core busy, too, and a producer that is woken on that core is late.
const IMPATIENCE: Duration = Duration::from_millis(100);

impl Machine {
    /// Measures for about `time`, most of it wake-ups: it is the rare ones that
    /// count.
    pub(super) fn measure(time: Duration) -> Result<Self> {
        let wakes = wakes(time.mul_f64(0.8))?;
        let wake_usual = percentile(&wakes, 0.5);
        let fills = fills(time / 10, wake_usual)?;
        Ok(Self {
            fill_rate: 1.0 / percentile(&fills, 0.5),
            running_fill_rate: 1.0 / percentile(&fills, 0.0),
            wake_usual,
            wake_slow: percentile(&wakes, 0.99),
            wake_longest: percentile(&wakes, 1.0),
            take_cost: take_cost(time / 10)?,
        })
    }
}

/// Its IDs are thrown away: any lease will do, and the widest never borrows. One ring that
/// only its producer fills: a stripe that is not below its threshold would never be full
/// again, and takes that help would be measured in place of the producer.
fn builder() -> Result<CachedGeneratorBuilder> {
    let layout = Layout::RANDFLAKE;
    Ok(CachedGenerator::builder(layout)
        .stripes(1)
        .assist_fill(None)
        .secret(&Secret::generate()?)
        .lease(StaticLease::assume_unique(layout, 0..layout.nodes())))
}

/// The results of `measure`, in ascending order: of as many calls as fit into `time`, and
/// of `fewest` at least.
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
fn wakes(time: Duration) -> Result<Vec<f64>> {
    /// Long enough for a producer to fall asleep.
    const REST: Duration = Duration::from_micros(500);
    let generator = builder()?
        .capacity(1 << 12)
        .threshold_fill(ThresholdFill::percent(100))
        .build()?;
    let mut ids = [Id::default(); BLOCK];
    repeated(time, 20, || {
        thread::sleep(REST);
        let start = Instant::now();
        black_box(generator.take_batch(&mut ids)?);
        wait_until_full(&generator)?;
        Ok(start.elapsed().as_secs_f64())
    })
}

/// Seconds for each ID of a fill, from how long half of a ring takes.
fn fills(time: Duration, wake: f64) -> Result<Vec<f64>> {
    let generator = builder()?.capacity(SLOTS).build()?;
    let mut ids = vec![Id::default(); SLOTS / 2];
    repeated(time, 5, || {
        // The next take, which asks for the fill, is timed: a producer that takes the core
        // from this thread must not be done before.
        let taken = generator.take_batch(&mut ids)? + 1;
        let start = Instant::now();
        black_box(generator.take()?);
        wait_until_full(&generator)?;
        Ok(without_wake(start.elapsed().as_secs_f64(), wake) / taken as f64)
    })
}

/// The part of `elapsed` that was spent on filling, where a wake-up usually takes `wake`.
///
/// At least half: on a busy machine the usual wake-up may be longer than this one and its
/// fill together. So the rate is never more than twice too high.
fn without_wake(elapsed: f64, wake: f64) -> f64 {
    (elapsed - wake).max(elapsed / 2.0)
}

/// Seconds for a take from a ring that is full and stays untouched by others.
fn take_cost(time: Duration) -> Result<f64> {
    let capacity = 1 << 16;
    let costs = repeated(time, 3, || {
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
    })?;
    Ok(percentile(&costs, 0.5))
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
            bail!("a producer did not fill its ring within 20 s: the machine is too busy");
        }
        if waited > IMPATIENCE {
            // The producer may want this very core.
            thread::yield_now();
        } else {
            spin_loop();
        }
    }
    Ok(())
}

/// The value that a share of `values`, which ascend, does not exceed.
fn percentile(values: &[f64], share: f64) -> f64 {
    let rank = (share * values.len() as f64).ceil() as usize;
    values[rank.saturating_sub(1)]
}

#[cfg(test)]
mod tests {
    use ringflake_kit::eventually;

    use super::*;

    #[test]
    fn a_wake_up_takes_half_of_a_fill_at_most() {
        assert_eq!(without_wake(10.0, 2.0), 8.0);
        assert_eq!(without_wake(10.0, 9.0), 5.0);
        assert_eq!(without_wake(10.0, 12.0), 5.0);
    }

    #[test]
    fn every_machine_can_do_something() {
        let mut measured = None;
        // A busy machine may stop the producers of one attempt for most of its time.
        eventually("producers fill their rings", || {
            measured = Machine::measure(Duration::from_millis(20)).ok();
            measured.as_ref().is_some_and(|it| it.fill_rate > 1e4)
        });
        let machine = measured.unwrap();
        assert!(
            machine.running_fill_rate >= machine.fill_rate,
            "{machine:?}"
        );
        assert!(machine.take_cost > 0.0, "{machine:?}");
        let wakes = [machine.wake_usual, machine.wake_slow, machine.wake_longest];
        assert!(wakes[0] > 0.0 && wakes.is_sorted(), "{machine:?}");
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let mut values = [4.0, 1.0, 3.0, 2.0].into_iter();
        let values = repeated(Duration::ZERO, 4, || Ok(values.next().unwrap())).unwrap();
        for (share, value) in [(0.0, 1.0), (0.5, 2.0), (0.99, 4.0), (1.0, 4.0)] {
            assert_eq!(percentile(&values, share), value);
        }
    }
}
