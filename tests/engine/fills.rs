//! The three fills, together and apart: R4, hooks, and how they end.

mod panics;
mod producers;
mod schedule;
mod stripes;
mod waiting;

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Id, ManualClock, OnEmpty, PaddingFill, Refused,
    ScheduledFill, TakeError, ThresholdFill,
};

use ringflake_kit::eventually;
use ringflake_kit::oracle::Oracle;
use ringflake_kit::small::{cached, clock_at, layout, shared_layout};
use ringflake_kit::tricky_clock::TrickyClock;

const HOUR: Duration = Duration::from_secs(3600);
/// Longer than any test runs.
const NEVER: Duration = Duration::from_secs(86_400);
/// Longer than `eventually` waits, so that a take that nothing wakes fails its test.
const PATIENCE: Duration = Duration::from_secs(90);

/// At each millisecond.
const OFTEN: ScheduledFill = ScheduledFill::every(ScheduledFill::MIN_PERIOD);

/// A generator with room for 16 million IDs that need no clock.
fn builder() -> CachedGeneratorBuilder {
    let layout = shared_layout(40, 8, 10);
    cached(layout, 0..16, 0..1_000)
        .borrow_limit(HOUR)
        .stripes(1)
        .assist_fill(None)
        .on_empty(OnEmpty::Error)
}

/// One whose producers can be stopped, or made to panic, at the clock.
fn tricky_builder() -> (CachedGeneratorBuilder, TrickyClock) {
    let layout = shared_layout(40, 8, 10);
    let clock = TrickyClock::new(layout.tick_start_unix_ms(0));
    (builder().clock(clock.clone()), clock)
}

/// One node of 16 IDs a tick, by a clock that stands at the first, which may be `ahead`
/// seconds behind the IDs.
fn sixteen_a_tick(ticks: Range<u64>, ahead: u64) -> (CachedGeneratorBuilder, ManualClock) {
    let layout = layout(40, 8, 4);
    let clock = clock_at(layout, ticks.start);
    let builder = cached(layout, 0..1, ticks).clock(clock.clone());
    (builder.borrow_limit(Duration::from_secs(ahead)), clock)
}

fn take_some(ids: &CachedGenerator, count: usize) {
    for _ in 0..count {
        ids.take().unwrap();
    }
}

fn level(ids: &CachedGenerator) -> usize {
    ids.stats().level
}

#[test]
fn padding_in_the_background_lets_the_build_go_on() {
    let (builder, clock) = tricky_builder();
    clock.hold(1);
    let ids = builder
        .capacity(1 << 12)
        .padding_fill(PaddingFill::InBackground)
        .threshold_fill(None)
        .build()
        .unwrap();
    clock.wait_until_held();
    assert_eq!(level(&ids), 0);
    assert_eq!(ids.take(), Err(TakeError::Empty));
    clock.release();
    eventually("the ring is full", || level(&ids) == 1 << 12);
    eventually("the fill is counted", || ids.stats().fills.padding == 1);
}

/// It is no error.
#[test]
fn r4_padding_that_the_borrow_limit_cuts_short_goes_on_when_it_can() {
    for threshold in [None, Some(ThresholdFill::percent(50))] {
        let (builder, clock) = sixteen_a_tick(0..100, 2);
        let builder = builder.capacity(64).threshold_fill(threshold);
        let ids = builder.build().unwrap();
        let stats = ids.stats();
        assert_eq!(stats.level, 48, "three ticks of 16");
        assert!(stats.refusals >= 1, "the producer may have tried again");
        clock.advance(Duration::from_secs(10));
        eventually("the ring is full", || level(&ids) == 64);
    }
}

#[test]
fn r4_after_any_drain_the_level_comes_back() {
    for (capacity, threshold, producers) in [
        (1, ThresholdFill::percent(100), 1),
        (2, ThresholdFill::slots(1), 2),
        (64, ThresholdFill::percent(1), 1),
        (64, ThresholdFill::percent(100), 3),
        (4096, ThresholdFill::percent(50), 2),
        (4096, ThresholdFill::percent(99), 3),
    ] {
        let ids = builder()
            .capacity(capacity)
            .threshold_fill(threshold)
            .producers(producers)
            .build()
            .unwrap();
        let threshold = ids.stats().threshold;
        for round in 0..60_usize {
            thread::scope(|scope| {
                for consumer in 0..2 {
                    let ids = &ids;
                    scope.spawn(move || {
                        let mut batch = vec![Id::default(); 1 + (round * 37) % (capacity + 3)];
                        let mut handle = ids.handle().unwrap();
                        for take in 0..(round * 7) % 20 {
                            // Dry or not, what counts is the level afterwards.
                            match (take + consumer) % 3 {
                                0 => drop(ids.take()),
                                1 => drop(ids.take_batch(&mut batch)),
                                _ => drop(handle.take()),
                            }
                        }
                    });
                }
            });
            eventually("the level is not under the threshold", || {
                level(&ids) >= threshold
            });
        }
        // A fill is counted after its IDs have come.
        eventually("a fill is counted", || ids.stats().fills.threshold > 0);
    }
}

#[test]
fn r1_the_schedule_retires_what_is_too_old_and_nothing_else() {
    // One node of 4 IDs a tick: a ring of 64 is 16 ticks deep.
    let layout = layout(50, 2, 2);
    let clock = clock_at(layout, 0);
    let ids = cached(layout, 1..2, 0..200)
        .clock(clock.clone())
        .borrow_limit(HOUR)
        .capacity(64)
        .on_empty(OnEmpty::Error)
        .scheduled_fill(OFTEN.max_age(Duration::from_secs(5)))
        .build()
        .unwrap();
    let oracle = Oracle::new(layout, 1..2, 0..200);
    // The line has no gaps, because the clock never passes it: this is the
    // next cell that may come out.
    let mut next = 0_u64;
    let mut retired = 0;
    for now in (0..120).step_by(4) {
        clock.set(layout.tick_start_unix_ms(now));
        // A tick that began more than 5 s ago is too old; 5 s is not.
        let oldest = now.saturating_sub(5) * 4;
        retired += oldest.saturating_sub(next);
        next = next.max(oldest);
        eventually("the old ones are retired, and replaced", || {
            let stats = ids.stats();
            assert!(stats.retired <= retired, "{stats:?}");
            stats.retired == retired && stats.level == 64
        });
        for _ in 0..now % 24 {
            let parts = ids.inspect(ids.take().unwrap()).unwrap();
            assert_eq!(parts.tick * 4 + parts.sequence, next);
            oracle.mark(parts).unwrap();
            next += 1;
        }
        let stats = ids.stats();
        assert_eq!(stats.issued, oracle.marked());
        assert_eq!(stats.issued + stats.retired, next);
    }
    assert!(retired > 100 && oracle.marked() > 100);
    eventually("all that was made is accounted for", || {
        while let Ok(id) = ids.take() {
            oracle.mark(ids.inspect(id).unwrap()).unwrap();
        }
        let stats = ids.stats();
        let made = stats.issued + stats.retired + stats.level as u64;
        assert!(made <= 800, "{stats:?}");
        made == 800 && stats.level == 0
    });
    let stats = ids.stats();
    assert_eq!(stats.issued, oracle.marked());
    assert_eq!(stats.issued + stats.retired, 800);
}

#[test]
fn r4_each_policy_alone_and_all_together_with_several_producers() {
    use PaddingFill::{BeforeFirstTake, InBackground, Off};
    for padding in [BeforeFirstTake, InBackground, Off] {
        for (threshold, schedule) in [
            (None, None),
            (Some(ThresholdFill::percent(50)), None),
            (None, Some(OFTEN)),
            (Some(ThresholdFill::percent(50)), Some(OFTEN)),
        ] {
            if (padding, threshold, schedule) == (Off, None, None) {
                continue; // No policy.
            }
            for producers in [1, 4] {
                let clock = Arc::new(clock_at(shared_layout(40, 8, 10), 0));
                let ids = builder()
                    .clock(Arc::clone(&clock))
                    .capacity(256)
                    .padding_fill(padding)
                    .threshold_fill(threshold)
                    .scheduled_fill(schedule)
                    .producers(producers)
                    .build()
                    .unwrap();
                if padding != Off {
                    eventually("the padding fill is made", || level(&ids) == 256);
                    eventually("and counted", || ids.stats().fills.padding >= 1);
                }
                // One batch: a loop of takes goes on for as long as producers keep up.
                let _ = ids.take_batch(&mut [Id::default(); 256]);
                let _ = ids.take();
                if threshold.is_some() || schedule.is_some() {
                    eventually("the level comes back", || level(&ids) >= 128);
                }
                let fills = ids.stats().fills;
                assert!(padding != Off || fills.padding == 0);
                assert!(threshold.is_some() || fills.threshold == 0);
                assert!(schedule.is_some() || fills.scheduled == 0);
                drop(ids);
                assert_eq!(Arc::strong_count(&clock), 1, "the producers have ended");
            }
        }
    }
}

/// The producer without work has read the clock once a block, once at the end of a
/// fill, and perhaps once more for a fill that found no room.
#[test]
fn r3_a_producer_without_room_rests_though_the_level_is_low() {
    const BLOCK: usize = 1024;
    const FEW: u64 = 50;
    let (builder, clock) = tricky_builder();
    let ids = builder
        .capacity(4 * BLOCK)
        .threshold_fill(ThresholdFill::percent(100))
        .producers(2)
        .build()
        .unwrap();
    clock.hold(1);
    let mut batch = vec![Id::default(); 4 * BLOCK];
    assert_eq!(ids.take_batch(&mut batch), Ok(4 * BLOCK));
    clock.wait_until_held();
    eventually("the other producer fills the rest", || {
        level(&ids) == 3 * BLOCK
    });
    eventually("it rests, or never does", || {
        clock.reads() > FEW || clock.are_asleep(2)
    });
    let reads = clock.reads();
    clock.release();
    assert!(reads <= FEW, "it tried again and again: {reads} looks");
    eventually("the ring is full", || level(&ids) == 4 * BLOCK);
}

#[test]
fn on_empty_error_fails_at_once_until_a_producer_has_come() {
    let (builder, clock) = tricky_builder();
    let ids = builder.capacity(16).build().unwrap();
    clock.hold(1);
    take_some(&ids, 16);
    let mut batch = [Id::default(); 4];
    assert_eq!(ids.take(), Err(TakeError::Empty));
    assert_eq!(ids.take_batch(&mut batch), Err(TakeError::Empty));
    assert_eq!(ids.handle().unwrap().take(), Err(TakeError::Empty));
    assert_eq!(ids.take_batch(&mut []), Ok(0));
    let stats = ids.stats();
    assert_eq!((stats.empties, stats.in_place), (3, 0));
    clock.release();
    eventually("a take succeeds", || ids.take().is_ok());
}

#[test]
fn a_batch_gets_what_there_is_rather_than_an_error() {
    for answer in [OnEmpty::Error, OnEmpty::Wait(PATIENCE)] {
        let (builder, clock) = tricky_builder();
        let ids = builder.capacity(16).on_empty(answer).build().unwrap();
        clock.hold(1);
        take_some(&ids, 12);
        let started = Instant::now();
        let taken = ids.take_batch(&mut [Id::default(); 9]);
        let waited = started.elapsed();
        // Before it can fail: the generator joins its producers.
        clock.release();
        assert_eq!(taken, Ok(4));
        assert!(waited < PATIENCE, "it waited for more");
    }
}

fn a_second_early() -> TakeError {
    let (retry_after, limit) = (Duration::from_secs(1), Duration::ZERO);
    TakeError::Refused(Refused::BorrowLimit { retry_after, limit })
}

#[test]
fn on_empty_wait_gives_up_when_nobody_comes() {
    let timeout = Duration::from_millis(30);
    let ids = sixteen_a_tick(0..2, 0)
        .0
        .capacity(16)
        .on_empty(OnEmpty::Wait(timeout))
        .build()
        .unwrap();
    take_some(&ids, 16);
    let started = Instant::now();
    let error = ids.take().unwrap_err();
    assert!(started.elapsed() >= timeout);
    assert_eq!(error, a_second_early(), "the reason rather than the time");
}

#[test]
fn the_last_of_the_clones_and_handles_joins_the_producers() {
    let clock = Arc::new(clock_at(shared_layout(40, 8, 10), 0));
    let ids = builder()
        .clock(Arc::clone(&clock))
        .capacity(64)
        .producers(4)
        .scheduled_fill(ScheduledFill::every(NEVER))
        .build()
        .unwrap();
    let clone = ids.clone();
    let mut handle = clone.handle().unwrap();
    drop(ids);
    drop(clone);
    // It is still filled.
    for _ in 0..1_000 {
        eventually("an ID comes", || handle.take().is_ok());
    }
    assert!(Arc::strong_count(&clock) > 1);
    drop(handle);
    assert_eq!(Arc::strong_count(&clock), 1, "the producers have ended");
}

#[test]
fn dropping_the_last_clone_in_a_hook_does_not_hang() {
    for producers in [1, 3] {
        let clock = Arc::new(clock_at(shared_layout(40, 8, 10), 0));
        let last = Arc::new(Mutex::new(None::<CachedGenerator>));
        let dropped = Arc::new(AtomicU64::new(0));
        let (to_drop, count) = (Arc::clone(&last), Arc::clone(&dropped));
        let ids = builder()
            .clock(Arc::clone(&clock))
            .capacity(16)
            .producers(producers)
            .scheduled_fill(OFTEN)
            .on_full_hook(move |_| {
                let ids = to_drop.lock().unwrap().take();
                if ids.is_some() {
                    drop(ids);
                    count.fetch_add(1, Relaxed);
                }
            })
            .build()
            .unwrap();
        *last.lock().unwrap() = Some(ids);
        eventually("the drop returns", || dropped.load(Relaxed) == 1);
        eventually("the hook's thread has ended too", || {
            Arc::strong_count(&clock) == 1
        });
    }
}

#[test]
fn a_drop_ends_the_rest_of_a_producer_that_was_refused() {
    let layout = layout(40, 8, 4);
    let clock = Arc::new(clock_at(layout, 0));
    for _ in 0..5 {
        let ids = cached(layout, 0..1, 5_000..5_002)
            .clock(Arc::clone(&clock))
            .capacity(16)
            .build()
            .unwrap();
        assert!(ids.take().is_err());
        let before = ids.stats().refusals;
        eventually("the fill is refused", || ids.stats().refusals > before);
        drop(ids);
        assert_eq!(Arc::strong_count(&clock), 1, "the producer has ended");
    }
}
