//! Several rings: takes that move IDs between them, requests of each, recalls of all.

use std::task::{Poll, Waker};

use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Id, OnEmpty, PaddingFill, Stripes, ThresholdFill,
    run_on_core,
};
use ringflake_loom_tests::{Role, assert_distinct, explore, plain, race, thread, waker};

/// A plain generator, so that IDs are raws, with two stripes of `slots` each.
fn builder(slots: usize) -> CachedGeneratorBuilder {
    plain()
        .capacity(2 * slots)
        .stripes(2)
        .threshold_fill(None)
        .assist_fill(None)
}

fn taking(ids: &CachedGenerator, core: usize, times: usize) -> Role<Vec<Id>> {
    let ids = ids.clone();
    Box::new(move || {
        run_on_core(core);
        (0..times).filter_map(|_| ids.take().ok()).collect()
    })
}

/// R1: IDs that one take moves to its own stripe while another takes from both are
/// each given out once, and none is lost.
#[test]
fn a_move_against_a_take() {
    explore(2, Some(3), |first| {
        let ids = builder(4).build().unwrap();
        // Four of its own; the next finds the other stripe, and moves one.
        let mut taken: Vec<Id> = (0..4).filter_map(|_| ids.take().ok()).collect();
        taken.extend(race(first, [taking(&ids, 0, 2), taking(&ids, 1, 1)]).concat());
        taken.extend(std::iter::from_fn(|| ids.take().ok()));
        assert_eq!(taken.len(), 8);
        assert_distinct(taken);
    });
}

/// R1: a take reports empty only if every stripe was empty. Two IDs in the other stripe are enough
/// for both takes, whichever of them moves an ID.
#[test]
fn an_empty_stripe_is_not_an_empty_cache() {
    explore(2, Some(3), |first| {
        let ids = builder(2).build().unwrap();
        let mut taken: Vec<Id> = (0..2).filter_map(|_| ids.take().ok()).collect();
        let both = race(first, [taking(&ids, 0, 1), taking(&ids, 1, 1)]);
        assert!(both.iter().all(|taken| taken.len() == 1));
        taken.extend(both.concat());
        assert_distinct(taken);
    });
}

/// S4: no ID from before is there when a recall is over, also if a take was moving some
/// from one stripe to the other.
#[test]
fn a_recall_against_a_move() {
    explore(2, Some(3), |first| {
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
    explore(2, Some(1), |first| {
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

/// Puts these back in one publication.
fn putting_back(ids: Vec<Id>) -> impl FnOnce(&Stripes) -> Vec<Id> + Send {
    move |stripes| {
        stripes.put_back(&ids);
        Vec::new()
    }
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

/// U1, R1, R4: IDs that a take makes for its stripe are a producer's neighbours.
#[test]
fn an_assist_against_a_fill() {
    explore(2, Some(2), |first| {
        let stripes = Stripes::full(4, 4, true, 16);
        run_on_core(0);
        // Asks for a fill.
        let mut taken = take_one(&stripes);
        let three = |stripes: &Stripes| stripes.take_batch(3);
        let roles = [on_core(0, &stripes, three), on_core(1, &stripes, produce)];
        taken.extend(race(first, roles).concat());
        assert!(stripes.are_filled_or_wanted(), "R4");
        taken.extend(rest(&stripes));
        assert_eq!(taken.len(), 16, "R1: none is lost");
        assert_complete(taken);
    });
}

/// S4: no ID that an assist made before is there when a recall is over.
#[test]
fn a_recall_against_an_assist() {
    explore(2, Some(3), |first| {
        let stripes = Stripes::full(2, 2, true, 16);
        let roles = [
            on_core(0, &stripes, take_one),
            on_core(1, &stripes, invalidate),
        ];
        race(first, roles);
        assert_eq!(stripes.level(), 0, "S4");
    });
}

/// S4: nor is one that a take has put into its stripe with its own.
#[test]
fn a_recall_against_a_run_in_place() {
    explore(2, Some(3), |first| {
        let stripes = Stripes::full(4, 0, false, 16);
        assert_eq!(rest(&stripes).len(), 8);
        let making = |stripes: &Stripes| stripes.make_in_place().into_iter().collect();
        let roles = [
            on_core(0, &stripes, making),
            on_core(1, &stripes, invalidate),
        ];
        race(first, roles);
        assert_eq!(stripes.level(), 0, "S4");
    });
}

/// U1, R2, R4: the rest of a run in place is a producer's neighbour in the stripe, and the
/// room that it did not need is not forgotten.
#[test]
fn a_run_in_place_against_a_fill() {
    explore(2, Some(2), |first| {
        let stripes = Stripes::full(4, 4, false, 32);
        let mut taken = rest(&stripes);
        let making = |stripes: &Stripes| stripes.make_in_place().into_iter().collect();
        let roles = [on_core(0, &stripes, making), on_core(1, &stripes, produce)];
        taken.extend(race(first, roles).concat());
        assert!(stripes.are_filled_or_wanted(), "R4");
        taken.extend(rest(&stripes));
        assert_complete(taken);
    });
}

/// R4: a run in place that is refused leaves no room that nobody fills: a producer that found no
/// room relied on that run.
#[test]
fn a_run_that_is_refused_against_a_fill() {
    explore(2, Some(2), |first| {
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
    });
}

/// U1: two takes on two stripes that find everything dry make different IDs.
#[test]
fn takes_in_place_on_two_stripes() {
    explore(2, Some(3), |first| {
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
    explore(2, Some(3), |first| {
        let stripes = Stripes::full(1, 1, false, 8);
        run_on_core(0);
        let mut taken = take_one(&stripes);
        let roles = [
            on_core(1, &stripes, take_one),
            on_core(0, &stripes, produce),
        ];
        taken.extend(race(first, roles).concat());
        assert!(stripes.are_filled_or_wanted(), "R4");
        taken.extend(rest(&stripes));
        assert_complete(taken);
    });
}

/// R4: the same where two producers have both found the stripe's request, and each may
/// close it after the other.
#[test]
fn two_producers_serve_two_stripes() {
    explore(3, Some(1), |first| {
        let stripes = Stripes::full(1, 1, false, 12);
        run_on_core(0);
        let mut taken = take_one(&stripes);
        let roles = [
            on_core(1, &stripes, take_one),
            on_core(0, &stripes, produce),
            on_core(1, &stripes, produce),
        ];
        taken.extend(race(first, roles).concat());
        assert!(stripes.are_filled_or_wanted(), "R4");
        taken.extend(rest(&stripes));
        assert_complete(taken);
    });
}

/// R1, R2, R4: IDs that a take moves to its stripe while a producer fills it: none is lost,
/// and where the move has taken the room, or has more of it than IDs, it asks for the rest.
#[test]
fn a_move_against_a_fill() {
    explore(2, Some(3), |first| {
        let stripes = Stripes::full(4, 4, false, 32);
        run_on_core(0);
        let mut taken = stripes.take_batch(4);
        let roles = [
            on_core(0, &stripes, take_one),
            on_core(1, &stripes, produce),
        ];
        taken.extend(race(first, roles).concat());
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
    explore(3, Some(1), |first| {
        let stripes = Stripes::full(4, 4, false, 32);
        run_on_core(0);
        let mut taken = stripes.take_batch(4);
        let all = |stripes: &Stripes| stripes.take_batch(4);
        let roles = [
            on_core(0, &stripes, take_one),
            on_core(1, &stripes, all),
            on_core(1, &stripes, produce),
        ];
        taken.extend(race(first, roles).concat());
        assert!(stripes.are_filled_or_wanted(), "R4");
        taken.extend(rest(&stripes));
        assert_complete(taken);
    });
}

/// A batch that finds its stripe empty goes on to the other one while a take moves IDs from
/// there: R1, each ID is given out once and none is lost; R4, both stripes are asked for.
#[test]
fn a_batch_against_a_move() {
    explore(2, Some(3), |first| {
        let stripes = Stripes::full(4, 4, false, 16);
        run_on_core(0);
        let mut taken = stripes.take_batch(4);
        let all = |stripes: &Stripes| stripes.take_batch(4);
        let roles = [on_core(0, &stripes, take_one), on_core(0, &stripes, all)];
        let [one, batch] = race(first, roles);
        assert!(batch.len() >= 2, "R1: the take has at most two of the four");
        taken.extend([one, batch].concat());
        assert!(stripes.are_filled_or_wanted(), "R4");
        taken.extend(rest(&stripes));
        assert_eq!(taken.len(), 8, "R1: none is lost");
        assert_complete(taken);
    });
}

/// A consumer that finds all stripes empty, because the last ID is on its way from one to
/// the other, is woken when that arrives.
#[test]
fn a_waiting_take_against_a_move() {
    explore(2, Some(2), |first| {
        let stripes = Stripes::full(4, 0, false, 16);
        run_on_core(0);
        let mut taken = stripes.take_batch(4);
        run_on_core(1);
        taken.extend(take_one(&stripes));
        // Of the other three the move takes two, and publishes one of these again.
        let roles = [
            on_core(0, &stripes, take_one),
            on_core(1, &stripes, |stripes| {
                let mut taken = take_one(stripes);
                taken.extend(stripes.wait());
                taken
            }),
        ];
        taken.extend(race(first, roles).concat());
        assert_complete(taken);
    });
}

/// The last ID goes back into a stripe while two consumers of the other one wait. The consumer that
/// does not get it gives up, because no more IDs will come.
#[test]
fn two_that_wait_for_the_last() {
    explore(3, Some(2), |first| {
        let stripes = Stripes::full(2, 0, false, 4);
        run_on_core(0);
        let mut taken = rest(&stripes);
        let last = taken.split_off(3);
        let waiting = |stripes: &Stripes| stripes.wait().into_iter().collect();
        let roles = [
            on_core(1, &stripes, putting_back(last)),
            on_core(0, &stripes, waiting),
            on_core(0, &stripes, waiting),
        ];
        taken.extend(race(first, roles).concat());
        taken.extend(rest(&stripes));
        assert_eq!(taken.len(), 4);
        assert_complete(taken);
    });
}

/// The last ID of a lease, which a producer makes for one stripe while a consumer of the
/// other one waits: a consumer that finds the lease used up finds this ID, too.
#[test]
fn a_waiting_take_against_the_last_fill() {
    explore(2, Some(3), |first| {
        let stripes = Stripes::full(1, 1, false, 4);
        run_on_core(0);
        let mut taken = rest(&stripes);
        taken.extend(stripes.make_in_place());
        assert_eq!(taken.len(), 3);
        let waiting = |stripes: &Stripes| stripes.wait().into_iter().collect();
        let roles = [on_core(0, &stripes, waiting), on_core(1, &stripes, produce)];
        taken.extend(race(first, roles).concat());
        assert_eq!(taken.len(), 4, "nothing was to come");
        assert_complete(taken);
    });
}

/// Empty stripes, the first IDs that were made, and the last of them, so many.
fn all_but_the_last(count: usize) -> (Stripes, Vec<Id>, Vec<Id>) {
    let stripes = Stripes::full(2, 0, false, 16);
    run_on_core(0);
    let mut taken = rest(&stripes);
    let last = taken.split_off(taken.len() - count);
    (stripes, taken, last)
}

/// Polls a take until it is ready.
fn block_on_take(stripes: &Stripes) -> Vec<Id> {
    let waker = waker();
    let mut take = stripes.taking();
    loop {
        match take.poll(&waker) {
            Poll::Ready(taken) => return taken.into_iter().collect(),
            Poll::Pending => thread::park(),
        }
    }
}

/// A task that waits for an ID and then for a lease, which does not come, keeps no wake-up
/// from a task that waits for an ID.
#[test]
fn a_wait_for_a_lease_against_a_publication() {
    explore(3, Some(2), |first| {
        let (stripes, mut taken, last) = all_but_the_last(1);
        let losing = |stripes: &Stripes| {
            let mut ready = stripes.ready();
            if ready.poll(true, Waker::noop()).is_pending() {
                assert!(ready.poll(false, Waker::noop()).is_pending());
            }
            // Nobody polls it again, or drops it.
            std::mem::forget(ready);
            Vec::new()
        };
        let roles = [
            on_core(0, &stripes, losing),
            on_core(0, &stripes, block_on_take),
            on_core(1, &stripes, putting_back(last)),
        ];
        taken.extend(race(first, roles).concat());
        assert_eq!(taken.len(), 4);
        assert_complete(taken);
    });
}

/// A task that is woken by an ID, and takes none, wakes the next one, which does.
#[test]
fn a_wait_for_an_id_against_a_take() {
    explore(3, Some(2), |first| {
        let (stripes, mut taken, last) = all_but_the_last(2);
        let ready = |stripes: &Stripes| {
            let waker = waker();
            let mut ready = stripes.ready();
            while ready.poll(true, &waker).is_pending() {
                thread::park();
            }
            Vec::new()
        };
        let roles = [
            on_core(0, &stripes, ready),
            on_core(0, &stripes, block_on_take),
            on_core(1, &stripes, putting_back(last)),
        ];
        taken.extend(race(first, roles).concat());
        taken.extend(rest(&stripes));
        assert_eq!(taken.len(), 4);
        assert_complete(taken);
    });
}

/// However an assist that is refused meets a producer, and a lease that is extended: once
/// a producer has served the stripe again, takes assist it.
#[test]
fn a_refused_assist_against_a_fill() {
    explore(2, Some(3), |first| {
        let stripes = Stripes::full(2, 2, true, 4);
        let extend = |stripes: &Stripes| {
            stripes.extend(32);
            produce(stripes)
        };
        let roles = [on_core(0, &stripes, take_one), on_core(1, &stripes, extend)];
        let mut taken = race(first, roles).concat();
        assert!(stripes.are_filled_or_wanted(), "R4");
        run_on_core(0);
        // Its assist is made or not; a producer serves what it has asked for.
        taken.extend(take_one(&stripes));
        produce(&stripes);
        assert!(stripes.may_assist(), "no take assists any more");
        assert!(stripes.are_filled_or_wanted(), "R4");
        taken.extend(rest(&stripes));
        assert_distinct(taken);
    });
}
