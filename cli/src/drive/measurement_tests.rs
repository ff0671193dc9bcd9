//! A generator under a load, measured.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ringflake::plan::Load;
use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Id, Layout, OnEmpty, PaddingFill, Secret, StaticLease,
    TakeError,
};

use super::measurement::Measurement;
use super::open_loop::{OpenLoop, TakeObserver};

/// Remembers the IDs that it saw.
#[derive(Default)]
struct Remembering {
    ids: Vec<Id>,
    finished: bool,
}

impl TakeObserver for Remembering {
    fn taken(&mut self, ids: &[Id]) {
        self.ids.extend_from_slice(ids);
    }

    fn finish(&mut self) {
        self.finished = true;
    }
}

fn builder() -> CachedGeneratorBuilder {
    let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 0..256);
    // A secret of its own: a process makes each ID only once.
    CachedGenerator::builder(Layout::RANDFLAKE)
        .secret(&Secret::generate().unwrap())
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

fn run(generator: &CachedGenerator, rate: &str, stop: bool) -> (Measurement, Vec<Remembering>) {
    with_load(rate, stop, |open_loop| {
        Measurement::run(open_loop, generator, &|_| (), Remembering::default).unwrap()
    })
}

#[test]
fn every_id_that_is_due_is_accounted_for() {
    let generator = builder().build().unwrap();
    let (run, observers) = run(&generator, "500k", false);
    assert_eq!(run.demanded, 50_000);
    assert_eq!(run.taken + run.missed, 50_000);
    assert_eq!(run.refused, 0);
    assert_eq!(run.latency.len(), run.taken);
    assert!(observers.iter().all(|observer| observer.finished));
    let mut ids: Vec<_> = observers.into_iter().flat_map(|it| it.ids).collect();
    assert_eq!(ids.len() as u64, run.taken);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len() as u64, run.taken);
    let last = run.samples.last().unwrap();
    assert!(last.level <= 1 << 16 && last.threshold == 1 << 15);
}

#[test]
fn ids_that_takes_made_themselves_are_counted() {
    let generator = builder()
        .padding_fill(PaddingFill::Off)
        .threshold_fill(None)
        .build()
        .unwrap();
    let (run, _) = run(&generator, "100k", false);
    assert_eq!(run.taken + run.missed, 10_000);
    // A dry take makes some for those that follow.
    assert!((1..=run.taken).contains(&run.empties), "{}", run.empties);
    assert!(run.in_place >= run.taken, "{}", run.in_place);
}

#[test]
fn refusals_are_counted_with_their_reason() {
    let generator = builder()
        .padding_fill(PaddingFill::Off)
        .threshold_fill(None)
        .on_empty(OnEmpty::Error)
        .build()
        .unwrap();
    let (run, _) = run(&generator, "100k", false);
    assert_eq!(run.taken, 0);
    assert_eq!(run.refused + run.missed, 10_000);
    assert_eq!(run.refusal, Some(TakeError::Empty));
    assert_eq!(run.empties, run.refused);
}

#[test]
fn without_a_generator_the_same_ids_are_due_and_none_is_refused() {
    let run = with_load("500k", false, |open_loop| {
        Measurement::without_generator(open_loop, &|_| ()).unwrap()
    });
    assert_eq!(run.demanded, 50_000);
    assert_eq!(run.taken + run.missed, 50_000);
    assert_eq!(run.latency.len(), run.taken);
    assert_eq!((run.refused, run.empties, run.fills), (0, 0, 0));
}

#[test]
fn a_run_that_is_stopped_takes_nothing_more() {
    let generator = builder().build().unwrap();
    let (run, _) = run(&generator, "100k", true);
    assert_eq!((run.taken, run.missed), (0, 0));
}
