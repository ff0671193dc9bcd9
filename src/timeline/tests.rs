//! The claiming cursor against its definition.

mod geometry;
mod lanes;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::clock::ManualClock;

const EPOCH: u64 = 1_000_000;

fn layout(time: u32, node: u32, sequence: u32, tick_ms: u64) -> Layout {
    Layout::builder()
        .bits(time, node, sequence)
        .tick(Duration::from_millis(tick_ms))
        .epoch_unix_ms(EPOCH)
        .build()
        .unwrap()
}

fn timeline(
    layout: Layout,
    nodes: Range<u64>,
    ticks: Range<u64>,
    borrow_limit: u64,
    clock: &ManualClock,
) -> Timeline {
    let lease = Lease::new(layout, nodes, ticks).unwrap();
    let policy = ClaimPolicy {
        borrow_limit,
        follows_clock: true,
        serves_the_past: false,
    };
    Timeline::new(&lease, 0, Arc::new(clock.clone()), policy).unwrap()
}

/// How many raws there are until it refuses, by `want` at a time.
fn claim_all(timeline: &Timeline, want: usize) -> (usize, Refused) {
    let mut count = 0;
    loop {
        match timeline.claim(want) {
            Ok(run) => count += run.len,
            Err(refused) => return (count, refused),
        }
    }
}

fn raws(run: Run) -> Range<u64> {
    run.first..run.first + run.len as u64
}

#[test]
fn after_idling_the_cursor_skips_to_the_clock_and_never_back() {
    let layout = layout(10, 2, 4, 1000);
    let clock = ManualClock::new(EPOCH);
    let timeline = timeline(layout, 0..1, 0..1024, 3, &clock);
    let tick = |run: Run| layout.unpack(run.first).unwrap().tick;
    assert_eq!(tick(timeline.claim(1).unwrap()), 0);
    clock.advance(Duration::from_secs(500));
    assert_eq!(tick(timeline.claim(1).unwrap()), 500);
    clock.step_back(Duration::from_secs(2));
    let borrowed = timeline.claim(1).unwrap();
    assert_eq!(tick(borrowed), 500, "borrowed, within the limit");
    clock.step_back(Duration::from_secs(2));
    let (retry_after, limit) = (Duration::from_secs(1), Duration::from_secs(3));
    let refused = Refused::BorrowLimit { retry_after, limit };
    assert_eq!(timeline.claim(1), Err(refused));
}

#[test]
fn u2_the_lease_ends_whatever_the_clock_and_the_limit_say() {
    let layout = layout(10, 2, 2, 1000);
    for now in [EPOCH, EPOCH + 1_000, EPOCH + 2_000] {
        let clock = ManualClock::new(now);
        let timeline = timeline(layout, 1..3, 1..2, u64::MAX, &clock);
        let (count, refused) = claim_all(&timeline, 64);
        assert_eq!(count, if now < EPOCH + 2_000 { 8 } else { 0 });
        let (end_unix_ms, now_unix_ms) = (EPOCH + 2_000, now);
        assert_eq!(
            refused,
            Refused::LeaseEnded {
                end_unix_ms,
                now_unix_ms
            }
        );
    }
}

#[test]
fn u3_a_lease_over_all_64_bits_ends_without_wrapping() {
    let layout = Layout::RANDFLAKE;
    let last = layout.ticks() - 1;
    let clock = ManualClock::new(layout.tick_start_unix_ms(last));
    let timeline = timeline(layout, 0..layout.nodes(), 0..layout.ticks(), 0, &clock);
    let first = timeline.claim(64).unwrap();
    assert_eq!(first.first, layout.pack(last, 0, 0).unwrap());

    // The last raws of all: the cursor is moved next to them.
    timeline.cursor(0).start_at(u64::MAX - 4);
    let run = timeline.claim(64).unwrap();
    assert_eq!(raws(run), u64::MAX - 4..u64::MAX - 1);
    assert!(matches!(timeline.claim(1), Err(Refused::LeaseEnded { .. })));
}

#[test]
fn a_wiped_cursor_means_a_forked_child() {
    let clock = ManualClock::new(EPOCH);
    let timeline = timeline(layout(10, 2, 2, 1000), 0..1, 0..1024, 3, &clock);
    assert!(!timeline.is_forked());
    let words = timeline.words.iter();
    words.for_each(|word| word.store(0, Relaxed));
    assert!(timeline.is_forked());
    assert_eq!(timeline.claim(1), Err(Refused::Forked));
}

fn timeline_for_leases(layout: Layout, serves_the_past: bool, clock: &ManualClock) -> Timeline {
    let policy = ClaimPolicy {
        borrow_limit: 2,
        follows_clock: true,
        serves_the_past,
    };
    let clock = Arc::new(clock.clone());
    Timeline::for_leases(layout, 3, clock, policy, Arc::default()).unwrap()
}

#[test]
fn no_more_than_the_limit_counts_while_there_is_more_to_claim() {
    let layout = layout(10, 2, 2, 1000);
    let clock = ManualClock::new(EPOCH + 10_000);
    let timeline = timeline_for_leases(layout, false, &clock);
    let open = |nodes| timeline.open(&Lease::new(layout, nodes, 0..100).unwrap());
    open(0..1).unwrap();
    timeline.claim(1).unwrap();
    // The last raw now lies ten ticks ahead, and the next one out of reach.
    clock.set(EPOCH);
    assert_eq!(timeline.borrowed(), Duration::from_secs(10));
    assert_eq!(timeline.ahead(), Some(Duration::from_secs(10)));
    open(1..2).unwrap();
    assert_eq!(timeline.ahead(), Some(Duration::from_secs(2)));
}

proptest! {
    /// U1, U2, U3: whatever the layout, the lease, the clock and the claims,
    /// the raws are distinct, ascending, in the lease, in one run each, and no
    /// further ahead of the clock than the limit.
    #[test]
    fn claims_keep_their_promises(
        (time, node, sequence) in (3u32..8, 1u32..6, 1u32..8),
        tick_ms in prop_oneof![Just(1u64), Just(10), Just(1000), 1..5000u64],
        corner in any::<[u64; 4]>(),
        borrow_limit in 0u64..5,
        steps in prop::collection::vec((1usize..200, -3_000i64..6_000), 1..200),
    ) {
        let layout = layout(time, node, sequence, tick_ms);
        let between = |a: u64, b: u64, end: u64| {
            let (a, b) = (a % end, b % end);
            a.min(b)..a.max(b) + 1
        };
        let nodes = between(corner[0], corner[1], layout.nodes());
        let ticks = between(corner[2], corner[3], layout.ticks());
        let clock = ManualClock::new(layout.tick_start_unix_ms(ticks.start));
        let timeline = timeline(layout, nodes.clone(), ticks.clone(), borrow_limit, &clock);
        let mut last = None;
        for (want, step) in steps {
            if step < 0 {
                clock.step_back(Duration::from_millis(step.unsigned_abs()));
            } else {
                clock.advance(Duration::from_millis(step.unsigned_abs()));
            }
            let now = clock.unix_ms();
            let Ok(run) = timeline.claim(want) else { continue };
            prop_assert!((1..=want).contains(&run.len));
            let (first, end) = (raws(run).start, raws(run).end - 1);
            prop_assert!(last.is_none_or(|last| first > last), "ascending, none twice");
            last = Some(end);
            let (a, b) = (layout.unpack(first).unwrap(), layout.unpack(end).unwrap());
            prop_assert_eq!((a.tick, a.node), (b.tick, b.node));
            prop_assert!(nodes.contains(&a.node));
            prop_assert!(ticks.contains(&a.tick));
            let ahead = a.unix_ms.saturating_sub(now).div_ceil(tick_ms);
            prop_assert!(ahead <= borrow_limit, "{ahead} ticks ahead");
            let clocks_tick = layout.tick_at(now).unwrap_or(0);
            prop_assert!(a.tick >= clocks_tick.min(ticks.end - 1), "never behind the clock");
        }
    }
}
