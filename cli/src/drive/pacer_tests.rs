//! Who takes how many IDs at which moment, as the load asks for them.

use proptest::prelude::*;
use std::time::Duration;

use ringflake::plan::{Burst, Load, Rate};

use super::pacer::{LARGEST, Pacer};

fn pacer(load: &Load, seconds: f64, consumers: usize, index: usize) -> Pacer<'_> {
    Pacer::new(load, seconds, (index, consumers), 1e6)
}

fn load(steady: u64, high: u64) -> Load {
    let rate = |rate| Rate::new(rate).unwrap();
    let millis = Duration::from_millis;
    let burst = Burst::new(rate(high), millis(3), millis(10)).unwrap();
    Load::steady(rate(steady)).with_burst(burst)
}

#[test]
fn a_slow_load_is_taken_one_by_one_and_a_fast_one_in_groups() {
    let slow = Load::steady("1M".parse().unwrap());
    let groups: Vec<_> = pacer(&slow, 0.001, 1, 0).collect();
    assert_eq!(groups.len(), 1000);
    assert!(groups.iter().all(|group| group.ids == 1));
    assert!((groups[9].due - 10e-6).abs() < 1e-12);
    let fast = Load::steady("20M".parse().unwrap());
    let groups: Vec<_> = pacer(&fast, 0.001, 2, 1).collect();
    assert_eq!(groups.len(), 1000);
    assert!(groups.iter().all(|group| group.ids == 10));
    assert!((groups[0].due - 1e-6).abs() < 1e-12);
}

#[test]
fn an_id_that_is_nearly_whole_at_the_end_is_due_then() {
    // 25,862.999 IDs in 5 ms: the last is 0.001 short of a whole one.
    let load = load(288_271, 8_428_819);
    let ids = load.demanded_by(0.005);
    assert!(ids.fract() > 0.999 && ids.fract() < 1.0, "{ids}");
    let last = pacer(&load, 0.005, 1, 0).last().unwrap();
    assert_eq!(last.due, 0.005);
}

proptest! {
    #[test]
    fn every_id_is_due_once(
        steady in 1..5_000_000_u64,
        high in 1..50_000_000_u64,
        millis in 1..30_u32,
        consumers in 1..5_usize,
    ) {
        let load = load(steady, high);
        let seconds = f64::from(millis) / 1000.0;
        let mut ids = 0;
        for index in 0..consumers {
            let mut before = 0.0;
            for group in pacer(&load, seconds, consumers, index) {
                prop_assert!(before <= group.due && group.due <= seconds);
                prop_assert!((1..=LARGEST).contains(&group.ids));
                before = group.due;
                ids += group.ids;
            }
        }
        let demanded = load.demanded_by(seconds);
        prop_assert!(demanded - 1.0 < ids as f64 && ids as f64 <= demanded + 0.01, "{ids} {demanded}");
    }

    #[test]
    fn no_id_is_due_before_it_is_asked_for(steady in 1..50_000_000_u64, high in 1..50_000_000_u64) {
        let load = load(steady, high);
        let mut taken = 0.0;
        for group in pacer(&load, 0.02, 1, 0) {
            taken += group.ids as f64;
            prop_assert!(taken <= load.demanded_by(group.due) + 0.01);
        }
    }
}
