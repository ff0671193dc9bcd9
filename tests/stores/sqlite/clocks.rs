//! The machine's clock, which is also the store's.

use std::process::{Command, Output};
use std::time::Duration;

use ringflake::lease::conformance::Given;
use ringflake::lease::{Acquire, History, Init, LeaseStore, StoreError};
use ringflake::{Clock, Layout, ManualClock};

use super::{JOB, Place, acquire, child, job, now, space, store};
use ringflake_kit::server;

const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

#[test]
fn the_clock_given_is_the_one_that_counts() {
    let place = Place::new();
    let clock = ManualClock::new(Layout::RANDFLAKE.tick_start_unix_ms(1_000_000) + 500);
    let mut store = place.store_at(&clock);
    let init = Init::new(History::New, clock.unix_ms());
    store.init(&space(), &init).unwrap();

    let mut given = Given::default();
    let mut acquire = |store: &mut ringflake::lease::SqliteStore| {
        let ask = Acquire::new(1, 10, clock.unix_ms());
        let grant = store.acquire(&space(), &ask).unwrap().remove(0);
        given.add(&grant);
        grant
    };
    assert_eq!(acquire(&mut store).ticks, 1_000_000..1_000_010);
    // A clock of one's own may do as it likes. What it costs is the blocks that
    // were granted meanwhile.
    clock.advance(TEN_YEARS);
    assert!(acquire(&mut store).ticks.start > 1_000_000 + 300_000_000);
    clock.step_back(TEN_YEARS);
    assert_eq!(acquire(&mut store).ticks, 1_000_000..1_000_010);

    match store
        .acquire(&space(), &Acquire::new(1, 10, now()))
        .unwrap_err()
    {
        StoreError::ClockSkew { store_unix_ms, .. } => {
            assert_eq!(store_unix_ms, clock.unix_ms());
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_process_whose_clock_is_years_off_moves_no_mark() {
    const THIS: &str = "sqlite::clocks::a_process_whose_clock_is_years_off_moves_no_mark";
    if let Some(path) = job("off") {
        let mut store = store(&path);
        for _ in 0..3 {
            match acquire(&mut store, 10).unwrap_err() {
                StoreError::ClockStepped {
                    expected_unix_ms,
                    shown_unix_ms,
                    ..
                } => {
                    let apart = expected_unix_ms.abs_diff(shown_unix_ms);
                    assert!(apart > 9 * 365 * 24 * 3_600_000, "{apart}");
                }
                other => panic!("{other}"),
            }
            let report = store.check(&space(), now()).unwrap();
            assert!(report.skew_ms().unwrap() > 9 * 365 * 24 * 3_600_000);
        }
        return;
    }
    let faketime = started!(server::find("faketime", "faketime"));
    let place = Place::initialised();
    let mut store = place.store();
    let mut given = Given::default();
    for (index, offset) in ["+3650d", "-3650d", "+7300d"].into_iter().enumerate() {
        given.add(&acquire(&mut store, 10).unwrap());
        let real = child(THIS, "off", &place.path);
        let run = || {
            Command::new(&faketime)
                .args(["-f", offset])
                .arg(real.get_program())
                .args(real.get_args())
                .env(JOB, format!("off={}", place.path.display()))
                // A clock that is set leaves the uptime as it is.
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                .env("NO_FAKE_STAT", "1")
                .output()
                .unwrap()
        };
        // It names a semaphore by its process number, and one that was killed has
        // left such a name behind. Then it has run nothing.
        let mut runs = std::iter::repeat_with(run).take(20);
        let ran = |output: &Output| !output.stderr.starts_with(b"faketime: sem_open");
        let output = runs.find(ran).expect("faketime runs");
        assert!(output.status.success(), "{offset}: {output:?}");
        assert_eq!(place.list().blocks.len(), index + 1);
    }
    let floor = store.list(&space()).unwrap().record.floor;
    given.add(&acquire(&mut store, 10).unwrap());
    assert_eq!(place.list().record.floor, floor);
}
