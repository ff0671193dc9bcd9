//! Scheduled fills: how often they come, whom they call, and what they drop.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use ringflake::{PaddingFill, ScheduledFill};

use super::{HOUR, builder, four_a_tick};
use ringflake_kit::small::clock_at;

/// When the hook on a full ring was called, on a generator that is built meanwhile,
/// counted from before that.
fn full_hook_calls(padding: PaddingFill, period: Duration, calls: usize) -> Vec<Duration> {
    let (sender, receiver) = mpsc::channel();
    let started = Instant::now();
    let ids = builder()
        .capacity(64)
        .padding_fill(padding)
        .threshold_fill(None)
        .scheduled_fill(ScheduledFill::every(period))
        .on_full_hook(move |_| {
            // The test may have seen enough.
            let _ = sender.send(started.elapsed());
        })
        .build()
        .unwrap();
    let calls = (0..calls).map(|_| receiver.recv_timeout(Duration::from_secs(20)).unwrap());
    let calls = calls.collect();
    drop(ids);
    calls
}

#[test]
fn scheduled_fills_are_a_period_apart() {
    const PERIOD: Duration = Duration::from_millis(30);
    let calls = full_hook_calls(PaddingFill::BeforeFirstTake, PERIOD, 5);
    for (periods, at) in (1..).zip(calls) {
        // Late ones put off those that follow, so none is ever early.
        assert!(at >= PERIOD * periods, "number {periods} after {at:?}");
    }
}

#[test]
fn a_fill_that_made_ids_did_not_find_the_ring_full() {
    const PERIOD: Duration = Duration::from_millis(200);
    // The first fill makes all that there is room for, the second finds it full.
    let calls = full_hook_calls(PaddingFill::Off, PERIOD, 1);
    assert!(calls[0] >= PERIOD * 2, "called after {:?}", calls[0]);
}

#[test]
fn a_handle_gives_back_nothing_if_its_oldest_is_too_old() {
    // Longer than the test runs: a scheduled fill would fill the ring again.
    const PERIOD: Duration = Duration::from_secs(100);
    for (now, dropped) in [(0, 0), (100, 0), (101, 63), (105, 63), (110, 63)] {
        let (layout, builder) = four_a_tick();
        let clock = clock_at(layout, 0);
        let ids = builder
            .clock(clock.clone())
            .threshold_fill(None)
            .scheduled_fill(ScheduledFill::every(PERIOD).max_age(HOUR))
            .build()
            .unwrap();
        let mut handle = ids.handle().unwrap();
        assert_eq!(ids.inspect(handle.take().unwrap()).unwrap().tick, 0);
        clock.advance(Duration::from_secs(now));
        drop(handle);
        // Of the rest 3 are of tick 0, and the youngest of tick 15.
        assert_eq!(ids.stats().retired, dropped, "after {now} s");
        assert_eq!(ids.stats().level as u64, 63 - dropped);
    }
}
