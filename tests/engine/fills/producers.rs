//! R3: one producer that is stuck or broken, and the others.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Id, OnEmpty, Refused, ScheduledFill, TakeError,
    ThresholdFill,
};

use super::{HOUR, OFTEN, builder, tricky_builder};
use ringflake_kit::eventually;
use ringflake_kit::small::{Watched, cached, clock_at, shared_layout};
use ringflake_kit::tricky_clock::TrickyClock;

/// Four producers, which can be stopped, or made to panic, at the clock.
fn four_producers() -> (CachedGeneratorBuilder, TrickyClock) {
    let (builder, clock) = super::tricky_builder();
    (builder.producers(4), clock)
}

fn drain(ids: &CachedGenerator) -> usize {
    let mut batch = vec![Id::default(); ids.stats().capacity];
    ids.take_batch(&mut batch).unwrap_or(0)
}

#[test]
fn r3_producers_go_on_beside_one_that_panics() {
    for capacity in [1, 16, 512, 4096] {
        let panics = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&panics);
        let break_in_the_first = move || {
            if thread::current().name() == Some("ringflake-0") {
                count.fetch_add(1, Relaxed);
                resume_unwind(Box::new("the clock breaks"));
            }
        };
        let clock = clock_at(shared_layout(40, 8, 10), 0);
        let ids = builder()
            .clock(Watched(clock, break_in_the_first))
            .capacity(capacity)
            .producers(4)
            .build()
            .unwrap();
        eventually("the first one panics", || {
            drain(&ids);
            panics.load(Relaxed) > 0
        });
        for round in 0..3 {
            drain(&ids);
            eventually("the ring is filled by the others", || {
                ids.stats().level >= ids.stats().threshold
            });
            // The rest of the panicking one is not what the others wait for: it
            // panics again each time.
            eventually(&format!("each is counted by round {round}"), || {
                ids.stats().panics == panics.load(Relaxed)
            });
        }
    }
}

#[test]
fn r3_producers_go_on_beside_one_that_is_stuck() {
    for (capacity, producers) in [(4, 4), (512, 4), (1024, 2), (1024, 4), (1 << 16, 4)] {
        let (builder, clock) = tricky_builder();
        let ids = builder
            .capacity(capacity)
            .producers(producers)
            .build()
            .unwrap();
        clock.hold(1);
        drain(&ids);
        clock.wait_until_held();
        for _ in 0..3 {
            let filled = format!("{capacity} slots are filled by the others");
            eventually(&filled, || {
                // A take that finds nothing asks again.
                ids.take().is_ok() && ids.stats().level >= ids.stats().threshold
            });
            drain(&ids);
        }
        clock.release();
    }
}

/// One producer that is stuck in the middle of a block: it has made some IDs, and
/// looks at the clock for more.
fn stuck_in_a_block(on_empty: OnEmpty) -> (CachedGenerator, TrickyClock) {
    // Four IDs to a look at the clock, and 128 to a block.
    let layout = shared_layout(52, 8, 2);
    let clock = TrickyClock::new(layout.tick_start_unix_ms(0));
    let ids = cached(layout, 0..1, 0..1000)
        .clock(clock.clone())
        .borrow_limit(HOUR)
        .assist_fill(None)
        .capacity(256)
        .on_empty(on_empty)
        .build()
        .unwrap();
    eventually("the producer sleeps", || ids.stats().level == 256);
    clock.hold(1);
    assert_eq!(ids.take_batch(&mut [Id::default(); 256]), Ok(256));
    clock.wait_until_held();
    clock.step();
    (ids, clock)
}

#[test]
fn s4_an_invalidation_waits_for_no_clock() {
    let (ids, clock) = stuck_in_a_block(OnEmpty::Error);
    let before = ids.stats();
    let (done, comes) = mpsc::channel();
    let invalidating = {
        let ids = ids.clone();
        thread::spawn(move || {
            ids.invalidate();
            done.send(())
        })
    };
    eventually("it is invalidated", || comes.try_recv().is_ok());
    invalidating.join().unwrap().unwrap();
    // The IDs made by the stuck producer are given up, and counted.
    clock.release();
    eventually("it comes back", || ids.stats().refusals > before.refusals);
    let stats = ids.stats();
    assert_eq!((stats.level, stats.issued), (0, 256));
    assert!(stats.retired > 0);
}

#[test]
fn s4_waiting_takes_see_an_invalidation_past_a_stuck_producer() {
    let (ids, clock) = stuck_in_a_block(OnEmpty::Wait(HOUR));
    let (done, comes) = mpsc::channel();
    let waiting = {
        let ids = ids.clone();
        thread::spawn(move || done.send(ids.take()))
    };
    eventually("it waits", || ids.stats().empties > 0);
    ids.invalidate();
    let mut outcome = None;
    eventually("it is refused", || {
        outcome = comes.try_recv().ok();
        outcome.is_some()
    });
    assert_eq!(outcome, Some(Err(TakeError::Refused(Refused::Invalidated))));
    clock.release();
    waiting.join().unwrap().unwrap();
}

#[test]
fn r3_a_stuck_producer_does_not_leave_the_ring_empty_for_long() {
    const CAPACITY: usize = 1 << 16;
    let (builder, clock) = four_producers();
    let ids = builder
        .capacity(CAPACITY)
        .threshold_fill(ThresholdFill::percent(100))
        .build()
        .unwrap();
    // More than once: at first some may still be on their way to sleep.
    for _ in 0..5 {
        eventually("the ring is full", || ids.stats().level == CAPACITY);
        clock.hold(1);
        // Fewer than a block: the stuck one has all the room there is.
        ids.take().unwrap();
        clock.wait_until_held();
        drain(&ids);
        eventually("the ring is filled by the others", || {
            ids.take().is_ok() && ids.stats().level > CAPACITY / 2
        });
        clock.release();
    }
}

#[test]
fn r3_a_fill_with_more_room_wakes_another_before_the_clock() {
    const CAPACITY: usize = 4096;
    let (builder, clock) = four_producers();
    let ids = builder.capacity(CAPACITY).build().unwrap();
    eventually("the ring is full", || ids.stats().level == CAPACITY);
    clock.hold(1);
    let mut batch = vec![Id::default(); CAPACITY / 2 + 1];
    assert_eq!(ids.take_batch(&mut batch), Ok(batch.len()));
    clock.wait_until_held();
    // Without another take: all but the permit of the stuck one, an eighth.
    eventually("another fills", || {
        ids.stats().level == CAPACITY - CAPACITY / 8
    });
    assert_eq!(ids.stats().empties, 0);
    clock.release();
}

#[test]
fn r3_a_stuck_producer_does_not_keep_the_timetable() {
    let (builder, clock) = four_producers();
    let ids = builder
        .capacity(512)
        .producers(2)
        .threshold_fill(None)
        .scheduled_fill(OFTEN)
        .build()
        .unwrap();
    clock.hold(1);
    drain(&ids);
    clock.wait_until_held();
    for _ in 0..3 {
        // All but what the stuck one holds, a quarter.
        eventually("a scheduled fill by the other", || ids.stats().level >= 384);
        drain(&ids);
    }
    clock.release();
}

#[test]
fn an_age_limit_is_kept_while_fills_are_refused() {
    const SLOTS: usize = 64;
    let layout = shared_layout(40, 8, 10);
    let clock = clock_at(layout, 0);
    // One tick, one node: it is used up at once, and no other ID can be made.
    let ids = cached(layout, 200..201, 0..1)
        .clock(clock.clone())
        .capacity(SLOTS)
        .threshold_fill(ThresholdFill::percent(50))
        .scheduled_fill(
            ScheduledFill::every(Duration::from_millis(5)).max_age(Duration::from_secs(2)),
        )
        .on_empty(OnEmpty::Error)
        .build()
        .unwrap();
    // One by one: what a fill brought before it was refused is left.
    while ids.stats().refusals == 0 {
        ids.take().unwrap();
        eventually("a fill, or its refusal", || {
            let now = ids.stats();
            now.level >= now.threshold || now.refusals > 0
        });
    }
    // The producer rests for up to a minute.
    let left = ids.stats().level;
    assert!(left > 0);
    clock.advance(Duration::from_secs(20));
    let moment = Instant::now();
    // Retired IDs are counted after they have left the ring.
    eventually("what is too old is gone and counted", || {
        let now = ids.stats();
        (now.level, now.retired) == (0, left as u64)
    });
    assert!(moment.elapsed() < Duration::from_secs(30), "in time");
    assert!(ids.take().is_err());
    assert_eq!(ids.stats().retired, left as u64);
}
