//! The machine's clock, which is also the store's.

use ringflake::lease::LeaseStore;
use ringflake::lease::conformance::Given;
use ringflake_kit::server::Clock;

use super::{Place, acquire, child, given_path, now, space, store};
use crate::kit::clock_stepped;

const YEAR_MS: i64 = 365 * 24 * 3_600_000;

#[test]
fn a_process_whose_clock_is_years_off_moves_no_mark() {
    if let Some(path) = given_path() {
        let mut store = store(&path);
        for _ in 0..3 {
            clock_stepped(acquire(&mut store));
            let report = store.check(&space(), now()).unwrap();
            assert!(report.skew_ms().unwrap() > 9 * YEAR_MS.unsigned_abs());
        }
        return;
    }
    let place = Place::initialised();
    let mut store = place.store();
    let mut given = Given::default();
    let clock = Clock::new();
    for (index, years) in [10, -10, 20].into_iter().enumerate() {
        given.add(&acquire(&mut store).unwrap());
        clock.run_ahead(years * YEAR_MS);
        let mut child = child(&place.path);
        clock.preload(&mut child);
        let output = child.output().unwrap();
        assert!(output.status.success(), "{years} years: {output:?}");
        assert_eq!(place.list().blocks.len(), index + 1);
    }
    let floor = place.list().record.floor;
    given.add(&acquire(&mut store).unwrap());
    assert_eq!(place.list().record.floor, floor);
}
