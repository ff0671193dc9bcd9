//! What a race counts, and the time that it takes for its own.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::race::{Contest, Lap, Plan};

fn lap(origin: Instant, start: u64, end: u64) -> Lap {
    Lap {
        start: origin + Duration::from_micros(start),
        end: origin + Duration::from_micros(end),
        calls_served: 1,
    }
}

#[test]
fn a_race_lasts_from_the_first_start_to_the_last_end() {
    let origin = Instant::now();
    let race = |laps: &[(u64, u64)]| {
        let laps = laps.iter().map(|&(start, end)| lap(origin, start, end));
        Lap::race(laps).as_micros()
    };
    assert_eq!(race(&[(5, 25)]), 20);
    assert_eq!(race(&[(5, 25), (7, 27)]), 22);
    // One that is done early, one that comes late, and two that never met.
    assert_eq!(race(&[(5, 25), (5, 6)]), 20);
    assert_eq!(race(&[(24, 30), (5, 25)]), 25);
    assert_eq!(race(&[(5, 6), (8, 9)]), 4);
}

#[test]
fn each_thread_takes_its_share_and_has_a_number() {
    static NUMBERS: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let take = |_: &(), next: &mut u64, [number]: &mut [u64; 1]| {
        *number = *next;
        *next += 1;
        true
    };
    let contest = Contest::new(|| (), |()| 0, take);
    let plan = Plan {
        prepare: |number| NUMBERS.lock().unwrap().push(number),
        ..Plan::calls(3, 5)
    };
    let outcome = contest.race(plan.keeping());
    assert_eq!(outcome.given, 3 * 5);
    let mut kept: Vec<u64> = outcome.kept().collect();
    kept.sort_unstable();
    // The five of each thread.
    let expected: Vec<u64> = (0..5).flat_map(|number| [number; 3]).collect();
    assert_eq!(kept, expected);
    let mut numbers = NUMBERS.lock().unwrap().clone();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
fn a_patient_race_makes_calls_again_that_were_not_served() {
    // Serves every other call.
    let take = |_: &(), calls: &mut u64, [number]: &mut [u64; 1]| {
        *number = *calls / 2;
        *calls += 1;
        (*calls).is_multiple_of(2)
    };
    let contest = Contest::new(|| (), |()| 0, take);
    let plan = Plan::calls(1, 64);
    assert_eq!(contest.race(plan).given, 32);
    let outcome = contest.race(plan.patient().keeping());
    assert_eq!(outcome.given, 64);
    assert!(outcome.kept().eq(0..64));
}
