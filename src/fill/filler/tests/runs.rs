//! IDs that a take makes which finds everything dry.

use super::*;

fn make(made: &Made, count: usize) -> Result<MadeInPlace, Refused> {
    made.filler.make_in_place(&mut vec![Id::default(); count])
}

#[test]
fn a_run_is_half_of_a_stripe_or_less() {
    for (capacity, in_a_microsecond, run) in [
        (1, 128, 1),
        (2, 128, 1),
        (64, 128, 32),
        (256, 128, 128),
        (1 << 16, 128, 128),
        (1 << 16, 10_000, LONGEST_RUN),
    ] {
        assert_eq!(run_of(capacity, in_a_microsecond), run, "{capacity}");
    }
}

#[test]
fn a_run_gives_what_was_asked_for_and_stocks_the_rest() {
    let made = SETUP.make();
    let mut out = [Id::default(); 3];
    let run = made.filler.make_in_place(&mut out);
    // A claim is for 64.
    let (given, stocked) = (3, 61);
    assert_eq!(run, Ok(MadeInPlace { given, stocked }));
    assert_eq!(made.filler.counters.given_up.load(Relaxed), 0);
    let rest = std::iter::from_fn(|| made.ring().take());
    let raws = out.into_iter().chain(rest).map(|id| id.to_u64());
    assert!(raws.eq(first_raws(64)));
}

#[test]
fn nothing_is_stocked_where_a_run_is_asked_for_or_there_is_no_room() {
    for (count, held) in [(32, 0), (128, 0), (200, 0), (3, 256)] {
        let made = SETUP.make();
        let room = made.ring().reserve(held);
        let (given, stocked) = (count.min(64), 0);
        assert_eq!(make(&made, count), Ok(MadeInPlace { given, stocked }));
        assert!(made.ring().is_empty());
        drop(room);
    }
}

/// R3: its clock may be stuck.
#[test]
fn r3_a_run_holds_no_more_of_its_stripe_than_half() {
    for (count, held) in [(1, 127), (31, 97)] {
        let made = SETUP.make();
        make(&made, count).unwrap();
        assert_eq!(made.clock.room.load(Relaxed), 256 - held, "{count}");
    }
}

#[test]
fn only_what_there_is_room_for_is_made_besides() {
    let made = SETUP.make();
    let room = made.ring().reserve(250);
    let (given, stocked) = (3, 6);
    assert_eq!(make(&made, 3), Ok(MadeInPlace { given, stocked }));
    assert_eq!(made.filler.counters.given_up.load(Relaxed), 0);
    drop(room);
}

#[test]
fn s4_nothing_is_stocked_where_a_recall_came_between() {
    let made = SETUP.make();
    made.clock.recalls.store(true, Relaxed);
    let (given, stocked) = (3, 0);
    assert_eq!(make(&made, 3), Ok(MadeInPlace { given, stocked }));
    assert!(made.ring().is_empty());
    assert_eq!(made.filler.counters.given_up.load(Relaxed), 61);
}

#[test]
fn r4_a_stripe_whose_run_is_refused_is_asked_for() {
    let made = with(|setup| setup.ticks = 1);
    make(&made, 64).unwrap();
    made.filler.requests.settle(made.filler.requests.wanted());
    made.stripe().request.close();
    make(&made, 1).unwrap_err();
    assert_eq!(made.wanted(), Some(FillCause::Threshold));
    assert_eq!(made.ring().reserve(256).map(|it| it.len()), Some(256));
}
