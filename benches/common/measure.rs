//! A race as a criterion benchmark.

use std::cell::Cell;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput};

use super::flags;
use super::race::{Contest, Plan};
use super::unique::Marks;

/// Slots in a ring: the default of [`ringflake::CachedGenerator`], half a megabyte.
pub(crate) const SLOTS: usize = 1 << 16;

/// Short, so that all benchmarks together take minutes.
pub(crate) fn config() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(1))
        .sample_size(50)
        .nresamples(10_000)
}

/// How long a short run goes on with takes that were not served, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether each iteration gets a stock of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supply {
    /// Each does: one that holds at least what an iteration takes.
    OneStock,
    /// All the iterations of a sample take from one that never ends.
    Endless,
}

/// A group of benchmarks whose iterations hand out as many numbers as a ring
/// has slots, so that criterion prints IDs per second as `elem/s`.
pub(crate) fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(SLOTS as u64));
    group.sampling_mode(SamplingMode::Flat);
    group
}

/// Measures `contest` with `threads` threads, then runs as much as a whole
/// sample again and checks that no number comes twice; `read` turns what is
/// handed out back into the number that must be unique.
///
/// # Panics
///
/// If a number comes twice, or fewer are handed out than were asked for.
pub(crate) fn measure<Stock, Seat, Take, S, T, V, const N: usize>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    threads: usize,
    supply: Supply,
    contest: &Contest<Stock, Seat, Take>,
    read: impl Fn(V) -> u64,
) where
    Stock: Fn() -> S + Sync,
    Seat: Fn(&S) -> T + Sync,
    Take: Fn(&S, &mut T, &mut [V; N]) -> bool + Sync,
    S: Send + Sync,
    V: Copy + Default + Send,
{
    let plan = |iterations: u64| {
        let calls = (SLOTS / N / threads) as u64;
        match supply {
            Supply::OneStock if flags::is_bench() => {
                Plan::calls(threads, iterations, calls).patient()
            }
            Supply::OneStock => Plan {
                patience: PATIENCE,
                ..Plan::calls(threads, iterations, calls)
            },
            Supply::Endless => Plan::calls(threads, 1, iterations * calls),
        }
    };
    let name = match threads {
        1 => name.to_owned(),
        _ => format!("{name}, {threads} threads"),
    };
    let sample = Cell::new(0);
    group.bench_function(&name, |bencher| {
        bencher.iter_custom(|iterations| {
            sample.set(iterations);
            let outcome = contest.race(plan(iterations));
            assert_eq!(outcome.given, iterations * SLOTS as u64, "{name}: ran dry");
            outcome.time
        });
    });

    let outcome = contest.race(plan(sample.get()).keeping());
    let mut marks = Marks::default();
    for number in outcome.kept() {
        let raw = read(number);
        assert!(marks.mark(raw), "{name}: {raw:#x} came twice");
    }
}
