//! Scheduled fills: how often they come, and what the hook on a full ring is told.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::{PaddingFill, ScheduledFill};

use super::builder;

#[test]
fn scheduled_fills_without_work_are_a_period_apart_and_call_the_hook() {
    const PERIOD: Duration = Duration::from_millis(30);
    // Without padding the first fill makes IDs, and the second is the first without work.
    for (padding, idle) in [(PaddingFill::BeforeFirstTake, 1), (PaddingFill::Off, 2)] {
        let (sender, calls) = mpsc::channel();
        let started = Instant::now();
        let ids = builder()
            .capacity(64)
            .padding_fill(padding)
            .threshold_fill(None)
            .scheduled_fill(ScheduledFill::every(PERIOD))
            .on_full_hook(move |full| {
                let here = thread::current().name().map(str::to_owned);
                // The test may have seen enough.
                let _ = sender.send((started.elapsed(), full.capacity, here));
            })
            .build()
            .unwrap();
        for periods in idle..idle + 4 {
            let call = calls.recv_timeout(Duration::from_secs(20)).unwrap();
            let (at, capacity, thread) = call;
            // Late ones put off those that follow, so none is ever early.
            assert!(at >= PERIOD * periods, "number {periods} after {at:?}");
            assert_eq!((capacity, thread.as_deref()), (64, Some("ringflake-0")));
        }
        assert_eq!(ids.stats().fills.scheduled, u64::from(idle - 1));
    }
}
