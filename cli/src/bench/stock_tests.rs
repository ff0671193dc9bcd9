//! How much is in a stock.

use std::thread;

use super::stock::{full, places};

#[test]
fn a_full_cache_has_a_part_for_each_core_and_each_thread() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    for threads in [1, 2, 3, 64, 65] {
        let places = places(threads);
        assert!(places.is_power_of_two(), "a capacity");
        assert!(places >= threads && places >= cores);
        assert!(
            places < 2 * threads.max(cores),
            "no larger than it has to be"
        );
    }
    let stats = full(64, 3).stats();
    assert_eq!(
        (stats.level, stats.capacity),
        (64 * places(3), 64 * places(3))
    );
}
