//! What a take that finds the ring dry says, where no ID can be made.

use std::thread;
use std::time::{Duration, Instant};

use ringflake::{
    CachedGenerator, Id, Layout, ManualClock, OnEmpty, PaddingFill, Refused, TakeError,
};

use ringflake_kit::eventually;
use ringflake_kit::small::{clock_at, lease, secret_of_its_own, shared_layout};

/// Longer than a test may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn layout() -> Layout {
    shared_layout(50, 8, 4)
}

/// Two ticks of 16 IDs, none of them borrowed.
fn ids(clock: &ManualClock, answer: OnEmpty) -> CachedGenerator {
    CachedGenerator::builder(layout())
        .secret(secret_of_its_own())
        .lease(lease(layout(), 0..1, 0..2))
        .clock(clock.clone())
        .borrow_limit(Duration::ZERO)
        .capacity(16)
        .padding_fill(PaddingFill::Off)
        .on_empty(answer)
        .build()
        .unwrap()
}

fn use_up(ids: &CachedGenerator) {
    eventually("a tick is used up", || {
        let _ = ids.take();
        ids.stats().issued == 16
    });
}

fn is_ended(error: TakeError) -> bool {
    matches!(error, TakeError::Refused(Refused::LeaseEnded { .. }))
}

#[test]
fn a_take_that_would_wait_fails_at_once_when_the_lease_ended() {
    let clock = clock_at(layout(), 0);
    let ids = ids(&clock, OnEmpty::Wait(PATIENCE));
    clock.advance(Duration::from_secs(5));
    let started = Instant::now();
    assert!(is_ended(ids.take().unwrap_err()));
    assert!(is_ended(
        ids.take_batch(&mut [Id::default(); 4]).unwrap_err()
    ));
    assert!(is_ended(ids.handle().unwrap().take().unwrap_err()));
    assert!(started.elapsed() < PATIENCE);
}

#[test]
fn a_take_that_waits_is_told_when_the_lease_ends_meanwhile() {
    let clock = clock_at(layout(), 0);
    let ids = ids(&clock, OnEmpty::Wait(Duration::MAX));
    for _ in 0..16 {
        ids.take().unwrap();
    }
    let before = ids.stats().empties;
    thread::scope(|scope| {
        let waiting = scope.spawn(|| ids.take().unwrap_err());
        eventually("it waits", || {
            let now = ids.stats();
            now.empties > before && now.refusals > 0
        });
        clock.advance(Duration::from_secs(5));
        assert!(is_ended(waiting.join().unwrap()));
    });
}

#[test]
fn waiting_takes_get_the_leases_last_id_before_its_end_is_said() {
    for _ in 0..200 {
        let ids = CachedGenerator::builder(layout())
            .secret(secret_of_its_own())
            .lease(lease(layout(), 0..1, 0..4))
            .clock(clock_at(layout(), 0))
            .borrow_limit(Duration::from_secs(60))
            .capacity(32)
            .producers(2)
            .on_empty(OnEmpty::Wait(PATIENCE))
            .build()
            .unwrap();
        let mut taken = 0;
        let error = loop {
            match ids.take() {
                Ok(_) => taken += 1,
                Err(error) => break error,
            }
        };
        assert!(is_ended(error));
        assert_eq!(taken, 4 * 16);
    }
}

#[test]
fn a_take_that_fails_at_once_gives_the_reason_if_there_is_one() {
    let clock = clock_at(layout(), 0);
    let ids = ids(&clock, OnEmpty::Error);
    use_up(&ids);
    let limit = |error| matches!(error, TakeError::Refused(Refused::BorrowLimit { .. }));
    assert!(limit(ids.take().unwrap_err()));
    clock.advance(Duration::from_secs(5));
    assert!(is_ended(ids.take().unwrap_err()));
}
