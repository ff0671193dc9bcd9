//! A threshold that moves: on a live ring.

use std::time::Duration;

use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Id, OnEmpty, PaddingFill, ScheduledFill, ThresholdFill,
};

use ringflake_kit::small::{cached, layout};
use ringflake_kit::tricky_clock::TrickyClock;
use ringflake_kit::{eventually, short_or_long};

const CAPACITY: usize = 1000_usize.next_power_of_two();

/// 10 to 90 %: 103 to 922 slots.
const BOUNDS: (usize, usize) = (103, 922);

fn builder() -> CachedGeneratorBuilder {
    let layout = layout(40, 8, 10);
    cached(layout, 0..16, 0..100_000)
        .borrow_limit(Duration::from_secs(3600))
        .on_empty(OnEmpty::Error)
        .stripes(1)
        .assist_fill(None)
        .capacity(CAPACITY)
        .threshold_fill(ThresholdFill::adaptive().between(10, 90))
}

/// Takes IDs until the level is just under the threshold, and waits for the fill.
///
/// A fill is counted before it moves the threshold, so a level that was just under
/// the threshold may not be under it any more. Then some more are taken.
fn cross(ids: &CachedGenerator) {
    let before = ids.stats().fills.threshold;
    eventually("a crossing is a fill", || {
        let now = ids.stats();
        let is_under = now.level < now.threshold;
        if now.fills.threshold > before {
            return !is_under;
        }
        if !is_under {
            let mut batch = vec![Id::default(); now.level + 1 - now.threshold];
            ids.take_batch(&mut batch).unwrap();
        }
        false
    });
}

/// A generator whose threshold has come down by a tenth.
fn come_down() -> (CachedGenerator, TrickyClock) {
    let clock = TrickyClock::new(layout(40, 8, 10).tick_start_unix_ms(0));
    let ids = builder().clock(clock.clone()).build().unwrap();
    eventually("it comes down", || {
        cross(&ids);
        ids.stats().threshold < BOUNDS.1 * 9 / 10
    });
    (ids, clock)
}

#[test]
fn it_comes_down_while_nothing_is_taken_and_rises_on_underrun() {
    let ids = builder().build().unwrap();
    assert_eq!(ids.stats().threshold, BOUNDS.1);
    eventually("it comes down", || {
        cross(&ids);
        ids.stats().threshold == BOUNDS.0
    });
    // Not full: an eighth of the ring above the threshold at the most.
    cross(&ids);
    let level = ids.stats().level;
    assert!(
        (BOUNDS.0..=BOUNDS.0 + CAPACITY / 8).contains(&level),
        "{level}"
    );

    eventually("it rises", || {
        let mut all = [Id::default(); CAPACITY];
        // A take that finds nothing asks for a fill, too.
        let _ = ids.take_batch(&mut all);
        ids.stats().threshold == BOUNDS.1
    });
    assert_eq!(ids.stats().panics, 0);
}

#[test]
fn r4_no_wake_up_is_lost_while_it_moves() {
    let ids = builder().build().unwrap();
    let each = short_or_long(15_000, 50_000);
    std::thread::scope(|scope| {
        for size in [1, 7, 64] {
            let ids = &ids;
            scope.spawn(move || {
                let mut batch = vec![Id::default(); size];
                let mut taken = 0;
                while taken < each {
                    match ids.take_batch(&mut batch) {
                        Ok(count) => taken += count,
                        // The producer may need this core.
                        Err(_) => std::thread::yield_now(),
                    }
                }
            });
        }
    });
    eventually("the ring is filled", || {
        let stats = ids.stats();
        stats.level >= stats.threshold
    });
}

#[test]
fn a_level_that_fell_before_a_fill_raises_it() {
    let (ids, clock) = come_down();
    let before = ids.stats();
    let mut batch = [Id::default(); CAPACITY];
    ids.take_batch(&mut batch).unwrap();
    eventually("there is a fill", || {
        ids.stats().fills.threshold > before.fills.threshold
    });
    // It is counted before the producer looks back on it.
    clock.wait_until_asleep(1);
    // On a slow machine the threshold may have come down far before. A fill that met an
    // empty ring at least doubles it.
    let doubled = BOUNDS.1.min(2 * before.threshold);
    let threshold = ids.stats().threshold;
    assert!(
        threshold >= doubled,
        "{threshold} after {}",
        before.threshold
    );
}

#[test]
fn a_scheduled_fill_goes_to_the_brim() {
    let ids = builder()
        .padding_fill(PaddingFill::Off)
        .scheduled_fill(ScheduledFill::every(Duration::from_millis(1)))
        .build()
        .unwrap();
    eventually("the ring is filled", || ids.stats().fills.scheduled > 0);
    assert_eq!(ids.stats().level, CAPACITY);
}
