//! A child publishes none of its parent's figures.

use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use ringflake::metrics::Publisher;
use ringflake_kit::child::wait_for;
use ringflake_kit::small::{Watched, clock_at};

use super::*;

/// Counts what is reported.
#[derive(Default)]
struct Counting {
    reported: AtomicU64,
}

impl Recorder for Counting {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        self.reported.fetch_add(1, Relaxed);
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        self.reported.fetch_add(1, Relaxed);
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn a_child_publishes_nothing_and_its_parent_goes_on() {
    let ids = generator(layout(40, 8, 3), OnEmpty::Generate);
    let publisher = Publisher::new(&ids);
    let recorder = Counting::default();
    let published = || {
        let before = recorder.reported.load(Relaxed);
        let is_there = with_local_recorder(&recorder, || publisher.publish());
        (is_there, recorder.reported.load(Relaxed) - before)
    };
    let (is_there, series) = published();
    assert!(is_there && series > 20, "{series}");
    let status = checks_in_a_fork(|checks| {
        checks.check(published() == (false, 0));
        checks.check(published() == (false, 0));
    });
    assert_eq!(status, Ok(0));
    assert_eq!(published(), (true, series));
}

thread_local! {
    /// Whether the clock forks when this thread reads it. Others, such as a producer at its
    /// first fill, don't.
    static FORKS: Cell<bool> = const { Cell::new(false) };
}

#[test]
fn a_clock_that_forks_while_it_is_read_publishes_once() {
    let layout = layout(40, 8, 3);
    let is_child = Arc::new(AtomicBool::new(false));
    let status = Arc::new(Mutex::new(None));
    let (in_child, in_parent) = (Arc::clone(&is_child), Arc::clone(&status));
    let fork = move || {
        if FORKS.replace(false) {
            // SAFETY: the child publishes, and exits.
            match unsafe { libc::fork() } {
                0 => in_child.store(true, Relaxed),
                pid => *in_parent.lock().unwrap() = Some(wait_for(pid)),
            }
        }
    };
    let builder = cached(layout, 0..8, 0..400).threshold_fill(None);
    let builder = builder.clock(Watched(clock_at(layout, 0), fork));
    let ids = builder.build().unwrap();
    let publisher = Publisher::new(&ids);
    let recorder = Counting::default();
    FORKS.set(true);
    let is_published = with_local_recorder(&recorder, || publisher.publish());
    if is_child.load(Relaxed) {
        let reported = recorder.reported.load(Relaxed);
        let status = i32::from(is_published || reported > 0);
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(status) };
    }
    assert!(is_published);
    assert_eq!(*status.lock().unwrap(), Some(Ok(0)));
}
