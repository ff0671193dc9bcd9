//! Several rings: takes that move IDs between them, requests of each, recalls of all.

use std::time::Duration;

use ringflake::{
    AssistFill, CachedGenerator, CachedGeneratorBuilder, Id, Layout, ManualClock, OnEmpty,
    PaddingFill, StaticLease, Stripes, ThresholdFill, run_on_core,
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
    explore("a waiting take against a move", 2, Some(0), |first| {
        let ids = builder(1)
            .threshold_fill(ThresholdFill::slots(2))
            .on_empty(OnEmpty::Wait(Duration::MAX))
            .build()
            .unwrap();
        let mut taken = vec![ids.take().unwrap()];
        taken.extend(race(first, [taking(&ids, 0, 1), taking(&ids, 0, 1)]).concat());
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

/// A role on one core, of the stripes without their producers.
fn on_core(
    core: usize,
    stripes: &Stripes,
    role: impl FnOnce(&Stripes) -> Vec<Id> + Send + 'static,
) -> Role<Vec<Id>> {
    let stripes = stripes.clone();
    Box::new(move || {
        run_on_core(core);
        role(&stripes)
    })
}

fn take_one(stripes: &Stripes) -> Vec<Id> {
    stripes.take().into_iter().collect()
}

fn produce(stripes: &Stripes) -> Vec<Id> {
    stripes.produce();
    Vec::new()
}

fn invalidate(stripes: &Stripes) -> Vec<Id> {
    stripes.invalidate();
    Vec::new()
}

/// R1: each ID that was made, two to a tick and the first of all 0, was given out once.
fn assert_complete(mut taken: Vec<Id>) {
    taken.sort_unstable();
    let all = (0..taken.len() as u64).map(|at| (at / 2) * 4 + at % 2);
    assert!(taken.iter().map(|id| id.to_u64()).eq(all), "{taken:?}");
}

/// All that is left in the stripes.
fn rest(stripes: &Stripes) -> Vec<Id> {
    std::iter::from_fn(|| stripes.take()).collect()
}

/// S4: no ID that an assist made before is there when a recall is over.
#[test]
fn a_recall_against_an_assist() {
    explore("a recall against an assist", 2, Some(3), |first| {
        let stripes = Stripes::full(2, 2, true, 16);
        race(
            first,
            [
                on_core(0, &stripes, take_one),
                on_core(1, &stripes, invalidate),
            ],
        );
        assert_eq!(stripes.level(), 0, "S4");
    });
}

/// S4: nor is one that a take has put into its stripe with its own.
#[test]
fn a_recall_against_a_run_in_place() {
    explore("a recall against a run in place", 2, Some(3), |first| {
        let stripes = Stripes::full(4, 0, false, 16);
        assert_eq!(rest(&stripes).len(), 8);
        let making = |stripes: &Stripes| stripes.make_in_place().into_iter().collect();
        race(
            first,
            [
                on_core(0, &stripes, making),
                on_core(1, &stripes, invalidate),
            ],
        );
        assert_eq!(stripes.level(), 0, "S4");
    });
}

/// U1, R2, R4: the rest of a run in place is a producer's neighbour in the stripe, and the
/// room that it did not need is not forgotten.
#[test]
fn a_run_in_place_against_a_fill() {
    explore("a run in place against a fill", 2, Some(2), |first| {
        let stripes = Stripes::full(4, 4, false, 32);
        let mut taken = rest(&stripes);
        let making = |stripes: &Stripes| stripes.make_in_place().into_iter().collect();
        taken.extend(
            race(
                first,
                [on_core(0, &stripes, making), on_core(1, &stripes, produce)],
            )
            .concat(),
        );
        assert!(stripes.are_filled_or_wanted(), "R4");
        taken.extend(rest(&stripes));
        assert_complete(taken);
    });
}

/// R4: a run in place that is refused leaves no room behind that nobody fills: the producer
/// that found none has left that to it.
#[test]
fn a_run_that_is_refused_against_a_fill() {
    explore(
        "a run that is refused against a fill",
        2,
        Some(2),
        |first| {
            // As many as the slots, so that nothing more can be made.
            let stripes = Stripes::full(2, 2, true, 4);
            let roles = [
                on_core(0, &stripes, take_one),
                on_core(1, &stripes, produce),
            ];
            let mut taken = race(first, roles).concat();
            assert!(stripes.are_filled_or_wanted(), "R4");
            taken.extend(rest(&stripes));
            assert_distinct(taken);
        },
    );
}

/// U1: two takes on two stripes that find everything dry make different IDs.
#[test]
fn takes_in_place_on_two_stripes() {
    explore("takes in place on two stripes", 2, Some(3), |first| {
        let ids = builder(4)
            .padding_fill(PaddingFill::Off)
            .on_empty(OnEmpty::Generate)
            .build()
            .unwrap();
        let mut taken = race(first, [taking(&ids, 0, 2), taking(&ids, 1, 2)]).concat();
        assert_eq!(taken.len(), 4);
        let stats = ids.stats();
        assert_eq!(stats.in_place, stats.issued + stats.level as u64);
        taken.extend((0..stats.level).map(|_| ids.take().unwrap()));
        assert_distinct(taken);
    });
}

/// R4: a stripe whose level falls while the only producer serves the other one is filled,
/// or there is a request that this producer finds when it is done.
#[test]
fn a_wake_up_for_the_stripe_that_nobody_fills() {
    explore(
        "a wake-up for the stripe that nobody fills",
        2,
        Some(3),
        |first| {
            let stripes = Stripes::full(1, 1, false, 8);
            run_on_core(0);
            let mut taken = take_one(&stripes);
            taken.extend(
                race(
                    first,
                    [
                        on_core(1, &stripes, take_one),
                        on_core(0, &stripes, produce),
                    ],
                )
                .concat(),
            );
            assert!(stripes.are_filled_or_wanted(), "R4");
            taken.extend(rest(&stripes));
            assert_complete(taken);
        },
    );
}

/// R4: the same where two producers have both found the stripe's request, and each may
/// close it after the other.
#[test]
fn two_producers_serve_two_stripes() {
    explore("two producers serve two stripes", 3, Some(1), |first| {
        let stripes = Stripes::full(1, 1, false, 12);
        run_on_core(0);
        let mut taken = take_one(&stripes);
        taken.extend(
            race(
                first,
                [
                    on_core(1, &stripes, take_one),
                    on_core(0, &stripes, produce),
                    on_core(1, &stripes, produce),
                ],
            )
            .concat(),
        );
        assert!(stripes.are_filled_or_wanted(), "R4");
        taken.extend(rest(&stripes));
        assert_complete(taken);
    });
}

/// R1, R2, R4: IDs that a take moves to its stripe while a producer fills it: none is lost,
/// and where the move has taken the room, or has more of it than IDs, it asks for the rest.
#[test]
fn a_move_against_a_fill() {
    explore("a move against a fill", 2, Some(3), |first| {
        let stripes = Stripes::full(4, 4, false, 32);
        run_on_core(0);
        let mut taken = stripes.take_batch(4);
        taken.extend(
            race(
                first,
                [
                    on_core(0, &stripes, take_one),
                    on_core(1, &stripes, produce),
                ],
            )
            .concat(),
        );
        assert!(stripes.are_filled_or_wanted(), "R4");
        let left = stripes.level();
        let rest = rest(&stripes);
        assert_eq!(rest.len(), left, "R1: none is lost");
        taken.extend(rest);
        assert_complete(taken);
    });
}

/// R4: a take that has reserved room for a move, and then finds that another one was
/// faster, gives the room back and asks for what a producer has left to it.
#[test]
fn a_move_that_comes_too_late() {
    explore("a move that comes too late", 3, Some(1), |first| {
        let stripes = Stripes::full(4, 4, false, 32);
        run_on_core(0);
        let mut taken = stripes.take_batch(4);
        let all = |stripes: &Stripes| stripes.take_batch(4);
        taken.extend(
            race(
                first,
                [
                    on_core(0, &stripes, take_one),
                    on_core(1, &stripes, all),
                    on_core(1, &stripes, produce),
                ],
            )
            .concat(),
        );
        assert!(stripes.are_filled_or_wanted(), "R4");
        taken.extend(rest(&stripes));
        assert_complete(taken);
    });
}
