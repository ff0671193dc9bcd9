//! A generator under a load, measured.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ringflake::plan::Load;
use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Id, Layout, OnEmpty, PaddingFill, Secret, StaticLease,
    TakeError,
};
use ringflake_kit::eventually;

use super::measurement::Measurement;
use super::open_loop::{OpenLoop, TakeObserver};

/// Remembers the IDs that it saw.
#[derive(Default)]
struct Remembering {
    ids: Vec<Id>,
}

impl TakeObserver for Remembering {
    fn taken(&mut self, ids: &[Id]) {
        self.ids.extend_from_slice(ids);
    }
}

fn builder() -> CachedGeneratorBuilder {
    let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 0..256);
    // A secret of its own: a process makes each ID only once.
    CachedGenerator::builder(Layout::RANDFLAKE)
        .secret(Secret::generate().unwrap())
        .lease(lease)
}

/// Hands `test` a load of two consumers that lasts for a tenth of a second.
fn with_load<T>(rate: &str, stop: bool, test: impl FnOnce(OpenLoop<'_>) -> T) -> T {
    test(OpenLoop {
        load: &Load::steady(rate.parse().unwrap()),
        consumers: 2,
        time: Duration::from_millis(100),
        stop: &AtomicBool::new(stop),
        groups_per_second: 1e6,
    })
}

fn run(generator: &CachedGenerator, rate: &str, stop: bool) -> Measurement {
    with_load(rate, stop, |open_loop| {
        Measurement::run(open_loop, generator).unwrap()
    })
}

/// Measures again until `shows` holds of it: a busy machine may let no consumer run until the
/// load has long been over.
#[track_caller]
fn until(
    shows: impl Fn(&Measurement) -> bool,
    mut measure: impl FnMut() -> Measurement,
) -> Measurement {
    let mut found = None;
    eventually("a consumer runs in time", || {
        found = Some(measure()).filter(|run| shows(run));
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
    assert!(last.level <= 1 << 16 && last.threshold == 1 << 15);
}

#[test]
fn an_observer_sees_each_id_that_is_taken_once() {
    let generator = builder().build().unwrap();
    let consumed = with_load("500k", false, |open_loop| {
        let source = || || generator.take();
        open_loop.run(OpenLoop::origin(), source, Remembering::default)
    })
    .unwrap();
    let taken: u64 = consumed.iter().map(|it| it.latency.len()).sum();
    let mut ids: Vec<_> = (consumed.into_iter())
        .flat_map(|it| it.observer.ids)
        .collect();
    assert_eq!(ids.len() as u64, taken);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len() as u64, taken);
}

#[test]
fn takes_that_find_the_ring_empty_are_counted() {
    let generator = builder()
        .padding_fill(PaddingFill::Off)
        .threshold_fill(None)
        .build()
        .unwrap();
    let run = until(|run| run.taken > 0, || run(&generator, "100k", false));
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
    let run = until(|run| run.refused > 0, || run(&generator, "100k", false));
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
    let measure = |rate| run(&generator, rate, false);
    // The consumers go on for longer than the load lasts.
    let run = until(|run| run.by_end < run.taken, || measure("1000G"));
    assert_eq!(run.demanded, 100_000_000_000);
    assert_eq!(run.taken + run.missed, run.demanded);
    assert!(run.taken < run.missed, "{run:?}");
    let served = until(|run| run.missed == 0, || measure("1k"));
    assert_eq!(served.taken, 100);
}
