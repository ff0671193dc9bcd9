//! Leases that are opened and closed under claims, and the recall of their IDs.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use ringflake::{
    CachedGenerator, Handle, Id, Layout, Lease, LeaseTimeline, ManualClock, ModelLane, PaddingFill,
    Refused, TakeError, ThresholdFill,
};
use ringflake_loom_tests::{Role, assert_distinct, explore, plain, race, thread};

const EPOCH: u64 = 1_000_000;

/// Two sequences, two nodes, eight ticks of a second.
fn layout() -> Layout {
    Layout::builder()
        .bits(3, 1, 1)
        .tick(Duration::from_secs(1))
        .epoch_unix_ms(EPOCH)
        .build()
        .unwrap()
}

fn lease(node: u64, ticks: Range<u64>) -> Lease {
    Lease::new(layout(), node..node + 1, ticks).unwrap()
}

/// The raws of one node for these ticks.
fn raws(node: u64, ticks: Range<u64>) -> Vec<u64> {
    ticks
        .flat_map(|tick| (0..2).map(move |sequence| (tick, sequence)))
        .map(|(tick, sequence)| layout().pack(tick, node, sequence).unwrap())
        .collect()
}

/// A timeline with one grant.
fn timeline(lanes: usize, node: u64, ticks: Range<u64>) -> (Arc<LeaseTimeline>, ModelLane) {
    let timeline = LeaseTimeline::new(layout(), lanes, ManualClock::new(EPOCH)).unwrap();
    let lane = timeline.open(&lease(node, ticks)).unwrap();
    (Arc::new(timeline), lane)
}

fn claiming(timeline: &Arc<LeaseTimeline>, times: usize, want: usize) -> Role<Vec<u64>> {
    let timeline = Arc::clone(timeline);
    Box::new(move || {
        (0..times)
            .filter_map(|_| timeline.claim(want))
            .flatten()
            .collect()
    })
}

/// One claim of one, from this lane alone.
fn claiming_from(timeline: &Arc<LeaseTimeline>, lane: ModelLane) -> Role<Vec<u64>> {
    let timeline = Arc::clone(timeline);
    Box::new(move || timeline.claim_from(lane, 1).into_iter().flatten().collect())
}

fn assert_distinct_and_within(taken: Vec<u64>, owned: &[Vec<u64>]) {
    for raw in &taken {
        assert!(owned.concat().contains(raw), "U2: {raw} was never granted");
    }
    assert_distinct(taken);
}

/// U1, U2: a claim that is under way while its lane is closed and opened for
/// another grant comes from one of the two, whole.
#[test]
fn claim_against_swap() {
    explore(2, Some(2), |first| {
        let (timeline, lane) = timeline(1, 0, 0..2);
        let swapping: Role<Vec<u64>> = {
            let timeline = Arc::clone(&timeline);
            Box::new(move || {
                timeline.close(lane);
                timeline.open(&lease(1, 5..6)).unwrap();
                timeline.claim(2).into_iter().flatten().collect()
            })
        };
        let taken = race(first, [claiming(&timeline, 2, 1), swapping]);
        assert_distinct_and_within(taken.concat(), &[raws(0, 0..2), raws(1, 5..6)]);
    });
}

/// The same of two claims, one of which may have the new grant already.
#[test]
fn two_claims_against_swap() {
    explore(3, Some(1), |first| {
        let (timeline, lane) = timeline(1, 0, 0..2);
        let swapping: Role<Vec<u64>> = {
            let timeline = Arc::clone(&timeline);
            Box::new(move || {
                timeline.close(lane);
                timeline.open(&lease(1, 0..1)).unwrap();
                Vec::new()
            })
        };
        let claiming = || claiming_from(&timeline, lane);
        let taken = race(first, [claiming(), claiming(), swapping]);
        assert_distinct_and_within(taken.concat(), &[raws(0, 0..2), raws(1, 0..1)]);
    });
}

/// The same where one thread closes the lane and another opens it, as soon as
/// it sees that there is room.
#[test]
fn claim_against_swap_by_two_threads() {
    explore(3, Some(2), |first| {
        let (timeline, lane) = timeline(1, 0, 0..2);
        let closing: Role<Vec<u64>> = {
            let timeline = Arc::clone(&timeline);
            Box::new(move || {
                timeline.close(lane);
                Vec::new()
            })
        };
        let opening: Role<Vec<u64>> = {
            let timeline = Arc::clone(&timeline);
            Box::new(move || {
                timeline.open(&lease(1, 0..1));
                Vec::new()
            })
        };
        let claiming = claiming_from(&timeline, lane);
        let taken = race(first, [claiming, closing, opening]);
        assert_distinct_and_within(taken.concat(), &[raws(0, 0..2), raws(1, 0..1)]);
    });
}

/// S4: a claim that begins after a lane was closed gets nothing from it.
#[test]
fn close_against_claim() {
    explore(2, None, |first| {
        let (timeline, lane) = timeline(1, 0, 0..2);
        let closing: Role<Vec<u64>> = {
            let timeline = Arc::clone(&timeline);
            Box::new(move || {
                timeline.close(lane);
                assert_eq!(timeline.claim(1), None);
                Vec::new()
            })
        };
        let taken = race(first, [claiming(&timeline, 2, 1), closing]);
        assert_eq!(timeline.claim(1), None);
        assert_distinct_and_within(taken.concat(), &[raws(0, 0..2)]);
    });
}

/// U1, U2: claims that meet a renewal go on where they are, up to the new end.
#[test]
fn claims_against_extension() {
    explore(2, None, |first| {
        let (timeline, lane) = timeline(1, 0, 0..1);
        let extending: Role<Vec<u64>> = {
            let timeline = Arc::clone(&timeline);
            Box::new(move || {
                timeline.extend(lane, 2);
                timeline.claim(2).into_iter().flatten().collect()
            })
        };
        let mut taken = race(first, [claiming(&timeline, 2, 1), extending]).concat();
        while let Some(rest) = timeline.claim(2) {
            taken.extend(rest);
        }
        taken.sort_unstable();
        assert_eq!(taken, raws(0, 0..2), "every cell once");
    });
}

/// U1: threads that disagree about the lane in use claim different raws. A claim that finds its
/// lane used up goes on with the other.
#[test]
fn claims_move_on_to_the_other_lane() {
    explore(2, Some(3), |first| {
        let (timeline, _) = timeline(2, 0, 0..2);
        timeline.open(&lease(1, 0..2)).unwrap();
        let taken = race(
            first,
            [claiming(&timeline, 3, 2), claiming(&timeline, 1, 2)],
        );
        let mut taken = taken.concat();
        taken.sort_unstable();
        let all = [raws(0, 0..2), raws(1, 0..2)].concat();
        assert_eq!(taken.len(), all.len());
        assert_distinct_and_within(taken, &[all]);
    });
}

/// S4: when `invalidate` returns, no ID from before can be taken any more,
/// wherever the producer was.
#[test]
fn invalidate_against_fill() {
    explore(1, Some(3), |_| {
        let ids = plain()
            .capacity(1)
            .padding_fill(PaddingFill::InBackground)
            .threshold_fill(ThresholdFill::slots(1))
            .build()
            .unwrap();
        ids.invalidate();
        // Lets the producer finish what it has begun.
        thread::yield_now();
        let refused = ids.take().unwrap_err();
        assert_eq!(refused, TakeError::Refused(Refused::Invalidated));
    });
}

/// A generator that is not filled again, and a handle that has handed out one ID of its
/// stock.
fn with_a_stock(slots: usize) -> (CachedGenerator, Handle) {
    let ids = plain()
        .capacity(slots)
        .threshold_fill(None)
        .build()
        .unwrap();
    let mut handle = ids.handle().unwrap();
    handle.take().unwrap();
    (ids, handle)
}

/// The same for a handle that is dropped: its stock does not go back.
#[test]
fn invalidate_against_handle() {
    explore(2, None, |first| {
        let (ids, handle) = with_a_stock(2);
        let invalidating: Role<()> = {
            let ids = ids.clone();
            Box::new(move || {
                ids.invalidate();
                assert!(ids.take().is_err());
            })
        };
        let dropping: Role<()> = Box::new(move || drop(handle));
        race(first, [invalidating, dropping]);
        assert_eq!(ids.stats().level, 0);
        assert!(ids.take().is_err());
    });
}

/// The same for a handle that goes on taking: it gives up what it has.
#[test]
fn invalidate_against_handle_take() {
    explore(2, None, |first| {
        let (ids, mut handle) = with_a_stock(4);
        let invalidating: Role<Option<Handle>> = {
            let ids = ids.clone();
            Box::new(move || {
                ids.invalidate();
                None
            })
        };
        // One of the IDs that are left may be taken at the same time, none later.
        let taking: Role<Option<Handle>> = Box::new(move || {
            let _ = handle.take();
            Some(handle)
        });
        for mut handle in race(first, [invalidating, taking]).into_iter().flatten() {
            let refused = handle.take().unwrap_err();
            assert_eq!(refused, TakeError::Refused(Refused::Invalidated));
        }
        let issued = ids.stats().issued;
        assert!((1..=2).contains(&issued), "{issued} of four");
    });
}

/// A role that takes until the handle has restocked, which it does with less than
/// the ring has.
fn restocking(mut handle: Handle) -> Role<Option<Handle>> {
    Box::new(move || {
        // Three are left in the stock; the fourth take brings in more.
        for _ in 0..4 {
            let _ = handle.take();
        }
        Some(handle)
    })
}

fn invalidating(ids: &CachedGenerator) -> Role<Option<Handle>> {
    let ids = ids.clone();
    Box::new(move || {
        ids.invalidate();
        None
    })
}

/// S4: a handle that restocks while the ring is being emptied has nothing to give
/// afterwards.
#[test]
fn invalidate_against_restock() {
    explore(2, Some(3), |first| {
        let (ids, handle) = with_a_stock(8);
        let roles = [invalidating(&ids), restocking(handle)];
        for mut handle in race(first, roles).into_iter().flatten() {
            let refused = handle.take().unwrap_err();
            assert_eq!(refused, TakeError::Refused(Refused::Invalidated), "S4");
        }
    });
}

/// S4: nor does a handle that restocks and is dropped meanwhile give anything back.
#[test]
fn invalidate_against_restock_and_drop() {
    explore(2, Some(3), |first| {
        let (ids, handle) = with_a_stock(8);
        let stocking = restocking(handle);
        let dropping: Role<Option<Handle>> = Box::new(move || {
            drop(stocking());
            None
        });
        race(first, [invalidating(&ids), dropping]);
        assert_eq!(ids.stats().level, 0, "S4");
        assert!(ids.take().is_err(), "S4");
    });
}

/// S4: nor does a batch whose hook panics, which had some IDs by then.
#[test]
fn invalidate_against_a_batch_that_panics() {
    explore(2, Some(3), |first| {
        let ids = plain()
            .capacity(2)
            .threshold_fill(None)
            .on_empty_hook(|_| resume_unwind(Box::new("the hook breaks")))
            .build()
            .unwrap();
        let invalidating: Role<()> = {
            let ids = ids.clone();
            Box::new(move || ids.invalidate())
        };
        let taking: Role<()> = {
            let ids = ids.clone();
            Box::new(move || {
                let take = || ids.take_batch(&mut [Id::default(); 3]);
                assert!(catch_unwind(AssertUnwindSafe(take)).is_err());
            })
        };
        race(first, [invalidating, taking]);
        assert_eq!(ids.stats().level, 0, "S4");
    });
}

/// R1: of two threads that call it at once, neither drops IDs that the other counts.
#[test]
fn invalidate_against_invalidate() {
    explore(2, None, |first| {
        let (ids, handle) = with_a_stock(2);
        drop(handle);
        let invalidating = || -> Role<()> {
            let ids = ids.clone();
            Box::new(move || {
                ids.invalidate();
                assert_eq!(ids.stats().level, 0);
            })
        };
        race(first, [invalidating(), invalidating()]);
        let stats = ids.stats();
        assert_eq!((stats.issued, stats.retired), (1, 1));
    });
}
