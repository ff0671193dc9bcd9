//! A child publishes none of its parent's figures.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use ringflake::metrics::Publisher;

use super::*;

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
