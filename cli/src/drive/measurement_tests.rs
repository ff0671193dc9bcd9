//! A generator under a load, measured.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use indicatif::ProgressBar;
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

fn run(generator: &CachedGenerator, rate: &str, stop: bool) -> (Measurement, Vec<Remembering>) {
    with_load(rate, stop, |open_loop| {
        Measurement::run(
            open_loop,
            generator,
            &ProgressBar::hidden(),
            Remembering::default,
        )
        .unwrap()
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
    let (run, observers) = run(&generator, "500k", false);
    assert_eq!(run.demanded, 50_000);
    assert_eq!(run.taken + run.missed, 50_000);
    assert_eq!(run.refused, 0);
    assert_eq!(run.latency.len(), run.taken);
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
    let run = until(|run| run.taken > 0, || run(&generator, "100k", false).0);
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
    let run = until(|run| run.refused > 0, || run(&generator, "100k", false).0);
    assert_eq!(run.taken, 0);
    assert_eq!(run.refused + run.missed, 10_000);
    assert_eq!(run.refusal, Some(TakeError::Empty));
    assert_eq!(run.empties, run.refused);
}

#[test]
fn without_a_generator_the_same_ids_are_due_and_none_is_refused() {
    let run = with_load("500k", false, |open_loop| {
        Measurement::without_generator(open_loop, &ProgressBar::hidden()).unwrap()
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

#[test]
fn what_no_consumer_can_take_is_missed_and_what_came_after_the_end_is_told_apart() {
    let measure = |rate| {
        with_load(rate, false, |open_loop| {
            Measurement::without_generator(open_loop, &ProgressBar::hidden()).unwrap()
        })
    };
    // The consumers go on for longer than the load lasts.
    let run = until(|run| run.by_end < run.taken, || measure("1000G"));
    assert_eq!(run.demanded, 100_000_000_000);
    assert_eq!(run.taken + run.missed, run.demanded);
    assert!(run.taken < run.missed, "{run:?}");
    let served = until(|run| run.missed == 0, || measure("1k"));
    assert_eq!(served.taken, 100);
}

#[test]
fn the_time_for_which_a_consumer_does_not_run_is_measured() {
    let stop = AtomicBool::new(false);
    let open_loop = OpenLoop {
        load: &Load::steady("1k".parse().unwrap()),
        consumers: 1,
        time: Duration::from_secs(3600),
        stop: &stop,
        groups_per_second: 1e6,
    };
    let nap = Duration::from_millis(2);
    // As if the system had given the core to another thread in the middle of a take.
    let source = || {
        || {
            thread::sleep(nap);
            stop.store(true, Relaxed);
            Ok(Id::default())
        }
    };
    let consumed = open_loop.run(OpenLoop::origin(), source, || ()).unwrap();
    assert!(consumed[0].away >= nap, "{:?}", consumed[0].away);
    assert_eq!((consumed[0].by_end, consumed[0].gave_up), (1, false));
}
