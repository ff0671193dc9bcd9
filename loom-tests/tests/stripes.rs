//! Several rings: takes that move IDs between them, requests of each, recalls of all.

use std::time::Duration;

use ringflake::{
    AssistFill, CachedGenerator, CachedGeneratorBuilder, Id, Layout, ManualClock, OnEmpty,
    StaticLease, ThresholdFill, run_on_core,
};
use ringflake_loom_tests::{Role, epoch_from, explore, race, thread};

const NOW: u64 = 1_763_000_000_000;

/// A plain generator, so that IDs are raws, with two stripes of `slots` each.
fn builder(slots: usize) -> CachedGeneratorBuilder {
    let layout = Layout::builder()
        .epoch_unix_ms(epoch_from(Layout::RANDFLAKE.epoch_unix_ms()))
        .build()
        .unwrap();
    CachedGenerator::builder(layout)
        .plain()
        .lease(StaticLease::assume_unique(layout, 0..1))
        .clock(ManualClock::new(NOW))
        .capacity(2 * slots)
        .stripes(2)
        .threshold_fill(None)
        .assist_fill(None)
        .on_empty(OnEmpty::Error)
}

fn taking(ids: &CachedGenerator, core: usize, times: usize) -> Role<Vec<Id>> {
    let ids = ids.clone();
    Box::new(move || {
        run_on_core(core);
        (0..times).filter_map(|_| ids.take().ok()).collect()
    })
}

fn assert_distinct(mut taken: Vec<Id>) {
    let count = taken.len();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), count, "U1: no ID twice");
}

/// R1: IDs that one take moves to its own stripe while another takes from both are
/// each given out once, and none is lost.
#[test]
fn a_move_against_a_take() {
    explore("a move against a take", 2, Some(3), |first| {
        let ids = builder(4).build().unwrap();
        // Four of its own; the next finds the other stripe, and moves one.
        let mut taken: Vec<Id> = (0..4).filter_map(|_| ids.take().ok()).collect();
        taken.extend(race(first, [taking(&ids, 0, 2), taking(&ids, 1, 1)]).concat());
        taken.extend(std::iter::from_fn(|| ids.take().ok()));
        assert_eq!(taken.len(), 8);
        assert_distinct(taken);
    });
}

/// R1: a take says empty only where each stripe was: two IDs in the other stripe are
/// enough for both, whoever moves one.
#[test]
fn an_empty_stripe_is_not_an_empty_cache() {
    explore(
        "an empty stripe is not an empty cache",
        2,
        Some(3),
        |first| {
            let ids = builder(2).build().unwrap();
            let mut taken: Vec<Id> = (0..2).filter_map(|_| ids.take().ok()).collect();
            let both = race(first, [taking(&ids, 0, 1), taking(&ids, 1, 1)]);
            assert!(both.iter().all(|taken| taken.len() == 1));
            taken.extend(both.concat());
            assert_distinct(taken);
        },
    );
}

/// S4: no ID from before is there when a recall is over, also if a take was moving some
/// from one stripe to the other.
#[test]
fn a_recall_against_a_move() {
    explore("a recall against a move", 2, Some(3), |first| {
        let ids = builder(4).build().unwrap();
        let taken = (0..4).filter_map(|_| ids.take().ok()).count();
        assert_eq!(taken, 4);
        let recalling: Role<Vec<Id>> = {
            let ids = ids.clone();
            Box::new(move || {
                run_on_core(1);
                ids.invalidate();
                (0..2).filter_map(|_| ids.take().ok()).collect()
            })
        };
        let [_, after] = race(first, [taking(&ids, 0, 1), recalling]);
        assert_eq!(after, []);
        assert!(ids.take().is_err());
    });
}

/// R4: each of two stripes that cross their thresholds at the same time is filled again,
/// by one producer, and no later take has to ask.
#[test]
fn two_stripes_cross() {
    explore("two stripes cross", 2, Some(1), |first| {
        let ids = builder(1)
            .threshold_fill(ThresholdFill::slots(2))
            .build()
            .unwrap();
        let taken = race(first, [taking(&ids, 0, 1), taking(&ids, 1, 1)]).concat();
        while ids.stats().level < 2 {
            thread::yield_now();
        }
        assert_eq!(taken.len(), 2);
        assert_distinct(taken);
    });
}

/// A consumer that waits for one stripe is woken by what is published in the other, and by
/// what a take moves.
#[test]
fn a_waiting_take_against_a_move() {
    explore("a waiting take against a move", 2, Some(1), |first| {
        let ids = builder(1)
            .threshold_fill(ThresholdFill::slots(2))
            .on_empty(OnEmpty::Wait(Duration::MAX))
            .build()
            .unwrap();
        let taken = race(first, [taking(&ids, 0, 2), taking(&ids, 0, 1)]).concat();
        assert_eq!(taken.len(), 3);
        assert_distinct(taken);
        assert_eq!(ids.stats().panics, 0);
    });
}

/// U1, R2: IDs that a take makes for its stripe are a producer's neighbours.
#[test]
fn an_assist_against_a_fill() {
    explore("an assist against a fill", 1, Some(1), |_| {
        let ids = builder(2)
            .stripes(1)
            .threshold_fill(ThresholdFill::slots(2))
            .assist_fill(AssistFill::below(50))
            .build()
            .unwrap();
        let taken: Vec<Id> = (0..5).map(|_| ids.take().unwrap()).collect();
        assert_distinct(taken);
    });
}
