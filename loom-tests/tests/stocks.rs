//! Stocks of cores in front of two stripes: two IDs each, so that a restock is a batch of three.
//!
//! A restartable section is a lock of its core here. A thread is migrated, or interrupted in a
//! section, where its plan says so.

use ringflake::{Id, Stripes, run_on_core, run_on_cores};
use ringflake_loom_tests::{Role, assert_distinct, explore, race};

/// A core without a stock: what a thread finds that is interrupted in a section.
const ABORTED: usize = usize::MAX;

/// A role that runs on one core after the other.
fn on_cores(
    cores: &'static [usize],
    stripes: &Stripes,
    role: impl FnOnce(&Stripes) -> Vec<Id> + Send + 'static,
) -> Role<Vec<Id>> {
    let stripes = stripes.clone();
    Box::new(move || {
        run_on_cores(cores);
        role(&stripes)
    })
}

fn take(times: usize) -> impl FnOnce(&Stripes) -> Vec<Id> + Send {
    move |stripes| (0..times).filter_map(|_| stripes.take()).collect()
}

fn invalidate(stripes: &Stripes) -> Vec<Id> {
    stripes.invalidate();
    Vec::new()
}

/// All that there is.
fn rest(stripes: &Stripes) -> Vec<Id> {
    std::iter::from_fn(|| stripes.take_last()).collect()
}

/// Each take found an ID. Real threads run on cores of the scheduler's choice, and may find all
/// IDs in another core's stock.
fn assert_found(taken: &[Id], takes: usize) {
    if cfg!(loom) {
        assert_eq!(taken.len(), takes, "R1");
    }
}

/// R1: none of `taken` came twice, and the counts are those of what happened.
fn assert_exact(stripes: &Stripes, taken: Vec<Id>, made: u64) {
    let (issued, retired) = stripes.issued_and_retired();
    assert_eq!(
        issued,
        taken.len() as u64,
        "R1: what is counted was given out"
    );
    assert_distinct(taken);
    let kept = (stripes.level() + stripes.in_stocks()) as u64;
    assert_eq!(issued + retired + kept, made, "R1: none is lost");
}

/// R1: threads of one core pop from one stock, and fill it.
#[test]
fn two_takes_of_one_core() {
    explore(2, Some(3), |first| {
        let stripes = Stripes::stocked(8, 0, 16);
        let roles = || on_cores(&[0], &stripes, take(2));
        let mut taken = race(first, [roles(), roles()]).concat();
        assert_found(&taken, 4);
        assert_exact(&stripes, taken.clone(), 16);
        taken.extend(rest(&stripes));
        assert_exact(&stripes, taken, 16);
        assert_eq!(stripes.issued_and_retired().1, 0, "R1: none is dropped");
    });
}

/// R1: a thread that is migrated or interrupted between any two steps of its restock puts what
/// it has where the other threads find it.
#[test]
fn a_restock_that_is_moved() {
    // The core is asked for by the first pop, by the slow path, its pop, the choice of the
    // stripe, the look for a stale stock, and the section that fills.
    const PLANS: [&[usize]; 6] = [
        &[0, 1],
        &[0, 0, 0, 1],
        &[0, 0, 0, 0, 1],
        &[0, 0, 0, 0, 0, 1],
        &[0, 0, 0, 0, 0, ABORTED, 0],
        &[ABORTED, 0, ABORTED, 0],
    ];
    for plan in PLANS {
        explore(2, Some(2), move |first| {
            let stripes = Stripes::stocked(4, 0, 8);
            let moved = on_cores(plan, &stripes, take(1));
            let other = on_cores(&[1], &stripes, take(1));
            let mut taken = race(first, [moved, other]).concat();
            assert_found(&taken, 2);
            assert_exact(&stripes, taken.clone(), 8);
            taken.extend(rest(&stripes));
            assert_exact(&stripes, taken, 8);
            assert_eq!(stripes.issued_and_retired().1, 0, "R1: none is dropped");
        });
    }
}

/// S4: a take that begins after a recall finds no ID from before in the stock.
#[test]
fn a_recall_against_a_pop() {
    explore(2, Some(3), |first| {
        let stripes = Stripes::stocked(4, 0, 8);
        run_on_core(0);
        let mut taken: Vec<Id> = stripes.take().into_iter().collect();
        let recalling = on_cores(&[0], &stripes, |stripes| {
            stripes.invalidate();
            stripes.take().into_iter().collect()
        });
        let [during, after] = race(first, [on_cores(&[0], &stripes, take(1)), recalling]);
        assert_eq!(after, [], "S4");
        taken.extend(during);
        assert_eq!(rest(&stripes), [], "S4");
        assert_exact(&stripes, taken, 8);
    });
}

/// S4: no stock is filled with IDs from before a recall that later takes find.
#[test]
fn a_recall_against_a_restock() {
    explore(2, Some(3), |first| {
        let stripes = Stripes::stocked(4, 0, 8);
        let roles = [
            on_cores(&[0], &stripes, take(1)),
            on_cores(&[1], &stripes, invalidate),
        ];
        let [taken, _] = race(first, roles);
        assert_eq!(rest(&stripes), [], "S4");
        assert_exact(&stripes, taken, 8);
    });
}

/// R1: stale IDs are counted as retired when a take fills their stock, once.
#[test]
fn two_restocks_after_a_recall() {
    explore(2, Some(2), |first| {
        let stripes = Stripes::stocked(4, 0, 16);
        run_on_core(0);
        let mut taken: Vec<Id> = stripes.take().into_iter().collect();
        stripes.recall();
        let (issued, retired) = stripes.issued_and_retired();
        assert_eq!((issued, retired + stripes.in_stocks() as u64), (1, 7));
        assert!(stripes.fill());
        let roles = || on_cores(&[0], &stripes, take(1));
        taken.extend(race(first, [roles(), roles()]).concat());
        assert_found(&taken, 3);
        assert_eq!(stripes.issued_and_retired().1, 7);
        assert_exact(&stripes, taken, 16);
    });
}

/// R4: a restock that leaves its stripe below the threshold asks for a fill.
#[test]
fn a_restock_against_a_fill() {
    explore(2, Some(2), |first| {
        let stripes = Stripes::stocked(4, 4, 16);
        run_on_core(1);
        // Asks for a fill.
        let mut taken: Vec<Id> = stripes.take().into_iter().collect();
        let producing = on_cores(&[1], &stripes, |stripes| {
            stripes.produce();
            Vec::new()
        });
        let roles = [on_cores(&[0], &stripes, take(1)), producing];
        taken.extend(race(first, roles).concat());
        assert!(stripes.are_filled_or_wanted(), "R4");
        taken.extend(rest(&stripes));
        let made = (taken.len() + stripes.level() + stripes.in_stocks()) as u64;
        assert_exact(&stripes, taken, made);
    });
}

/// R1: a consumer that finds nothing else takes what the stock of another core has, once, while
/// that core's threads pop from it and fill it.
#[test]
fn a_seizure_against_takes() {
    explore(2, Some(3), |first| {
        let stripes = Stripes::stocked(4, 0, 8);
        run_on_core(0);
        let mut taken: Vec<Id> = stripes.take().into_iter().collect();
        taken.extend(stripes.take_batch(5));
        // Both others are in the stock.
        let last = on_cores(&[1], &stripes, |stripes| {
            stripes.take_last().into_iter().collect()
        });
        let both = race(first, [on_cores(&[0], &stripes, take(2)), last]);
        taken.extend(both.concat());
        assert_exact(&stripes, taken.clone(), 8);
        taken.extend(rest(&stripes));
        assert_exact(&stripes, taken, 8);
        assert_eq!(stripes.issued_and_retired().1, 0, "R1: none is dropped");
    });
}

/// Waiting: a take that sleeps while another one has the last IDs in hand is woken when these
/// come to a stock.
#[test]
fn a_waiting_take_against_a_restock() {
    explore(2, Some(2), |first| {
        let stripes = Stripes::stocked_at_the_limit(4);
        run_on_core(1);
        let mut taken = stripes.take_batch(5);
        // Three are left, on core 0.
        let waiting = on_cores(&[1], &stripes, |stripes| {
            stripes.wait().into_iter().collect()
        });
        let both = race(first, [waiting, on_cores(&[0], &stripes, take(1))]);
        assert_found(&both.concat(), 2);
        taken.extend(both.concat());
        assert_exact(&stripes, taken, 8);
    });
}

/// R1: of two that seize, each gets what the other has not.
#[test]
fn two_seizures() {
    explore(2, Some(3), |first| {
        let stripes = Stripes::stocked(4, 0, 8);
        run_on_core(0);
        let mut taken: Vec<Id> = stripes.take().into_iter().collect();
        taken.extend(stripes.take_batch(5));
        let last = || {
            on_cores(&[1], &stripes, |stripes| {
                stripes.take_last().into_iter().collect()
            })
        };
        taken.extend(race(first, [last(), last()]).concat());
        assert_exact(&stripes, taken.clone(), 8);
        taken.extend(rest(&stripes));
        assert_exact(&stripes, taken, 8);
    });
}

/// S4: nor does a consumer that seizes a stock after a recall get an ID from before.
#[test]
fn a_recall_against_a_seizure() {
    explore(2, Some(3), |first| {
        let stripes = Stripes::stocked(4, 0, 8);
        run_on_core(0);
        let mut taken: Vec<Id> = stripes.take().into_iter().collect();
        taken.extend(stripes.take_batch(5));
        let recalling = on_cores(&[0], &stripes, |stripes| {
            stripes.invalidate();
            stripes.take_last().into_iter().collect()
        });
        let last = on_cores(&[1], &stripes, |stripes| {
            stripes.take_last().into_iter().collect()
        });
        let [during, after] = race(first, [last, recalling]);
        assert_eq!(after, [], "S4");
        taken.extend(during);
        assert_eq!(rest(&stripes), [], "S4");
        assert_exact(&stripes, taken, 8);
    });
}
