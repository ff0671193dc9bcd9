//! Takes that leave very few IDs.

use super::*;

/// A stripe with 11 IDs and a low mark of 10, for which IDs of so many ticks are left.
fn low(ticks: u64) -> Made {
    let made = with(|setup| (setup.low_mark, setup.ticks) = (10, ticks));
    // A block and 11 more.
    made.fill_leaving(256 - 64);
    let taken = made.ring().take_batch(&mut [Id::default(); 53]);
    assert_eq!(taken, 53);
    made
}

fn readings(made: &Made) -> usize {
    made.clock.readings.load(Relaxed)
}

#[test]
fn a_take_assists_below_the_low_mark() {
    let made = low(100);
    assert!(made.take().is_some());
    assert_eq!((made.ring().len(), made.filler.assists()), (10, 0), "at it");
    assert!(made.take().is_some());
    // A claim is for 64.
    assert_eq!((made.ring().len(), made.filler.assists()), (9 + 64, 1));
    assert_eq!(made.filler.counters.given_up.load(Relaxed), 0);
    assert_eq!(made.wanted(), Some(FillCause::Threshold));
    let raws = std::iter::from_fn(|| made.ring().take()).map(|id| id.to_u64());
    assert!(raws.eq(first_raws(128).skip(55)));
}

#[test]
fn a_batch_assists_too_where_it_got_all() {
    let made = low(100);
    assert_eq!(made.filler.take_batch(&mut [Id::default(); 2]), 2);
    assert_eq!(made.filler.assists(), 1);
    let made = low(100);
    assert_eq!(made.filler.take_batch(&mut [Id::default(); 12]), 11);
    assert_eq!(made.filler.assists(), 0);
}

#[test]
fn a_take_that_asks_for_nothing_assists_nothing() {
    let made = with(|setup| (setup.low_mark, setup.threshold) = (10, 0));
    made.fill_leaving(256 - 64);
    for _ in 0..64 {
        made.take().unwrap();
    }
    assert_eq!((made.filler.assists(), made.wanted()), (0, None));
}

#[test]
fn one_take_at_a_time_assists_a_stripe() {
    let made = low(100);
    assert!(made.stripe().assist.claim());
    assert!(!made.stripe().assist.claim());
    let before = readings(&made);
    for _ in 0..3 {
        made.take().unwrap();
    }
    assert_eq!((made.filler.assists(), readings(&made)), (0, before));
    made.stripe().assist.free();
    made.take().unwrap();
    assert_eq!(made.filler.assists(), 1);
    assert!(made.stripe().assist.claim(), "it is given back");
}

#[test]
fn after_a_refusal_none_assists_until_a_producer_has_served() {
    let made = low(1);
    made.take().unwrap();
    let before = readings(&made);
    made.take().unwrap();
    assert_eq!(readings(&made), before + 1);
    made.take().unwrap();
    assert_eq!(readings(&made), before + 1, "the first was refused");
    assert_eq!((made.filler.assists(), made.ring().len()), (0, 8));
    made.serve().unwrap_err();
    let before = readings(&made);
    made.take().unwrap();
    assert_eq!(readings(&made), before, "so was the producer");
    // With nothing to make it is served.
    let held = made.ring().reserve(256);
    made.serve().unwrap();
    drop(held);
    let before = readings(&made);
    made.take().unwrap();
    assert_eq!(readings(&made), before + 1);
}

#[test]
fn a_take_whose_clock_panics_in_an_assist_has_its_id() {
    let made = low(100);
    made.take().unwrap();
    made.clock.readings.store(1_000, Relaxed);
    assert!(made.take().is_some());
    made.clock.readings.store(0, Relaxed);
    assert!(made.take().is_some());
    assert_eq!(readings(&made), 0, "not again");
    assert_eq!((made.filler.assists(), made.ring().len()), (0, 8));
    assert_eq!(made.ring().reserve(256).map(|it| it.len()), Some(248));
}

/// An assist reads a clock, and that may have forked: the ID is the parent's, too.
#[test]
#[cfg(unix)]
fn a_take_that_assists_in_a_forked_child_keeps_nothing() {
    let made = low(100);
    assert!(made.filler.note_low(made.stripe(), 9));
    let kept = ringflake_kit::child::in_a_fork(|| u8::from(made.filler.note_low(made.stripe(), 9)));
    assert_eq!(kept, Ok(0));
}

/// R4: a producer may have found no room meanwhile.
#[test]
fn r4_a_stripe_whose_assist_fails_is_asked_for() {
    for panics in [false, true] {
        let made = low(if panics { 100 } else { 1 });
        if panics {
            made.clock.readings.store(1_000, Relaxed);
        }
        made.filler.assist(made.stripe());
        assert_eq!(
            made.wanted(),
            Some(FillCause::Threshold),
            "panics: {panics}"
        );
    }
}

#[test]
fn s4_what_a_recall_meets_in_an_assist_is_given_up() {
    let made = low(100);
    made.clock.recalls.store(true, Relaxed);
    made.filler.assist(made.stripe());
    assert_eq!((made.ring().len(), made.filler.assists()), (0, 0));
    assert_eq!(made.filler.counters.given_up.load(Relaxed), 64);
}

#[test]
fn without_room_there_is_no_assist() {
    let made = low(100);
    let held = made.ring().reserve(256);
    let before = readings(&made);
    made.filler.assist(made.stripe());
    assert_eq!((made.filler.assists(), readings(&made)), (0, before));
    drop(held);
    made.filler.assist(made.stripe());
    assert_eq!(made.filler.assists(), 1, "the permission is free again");
}
