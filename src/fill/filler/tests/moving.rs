//! Takes that find their own stripe empty, and another one full.

use super::*;

/// Two stripes, of which the second is full. Takes that leave fewer than 26 assist.
fn one_full() -> Made {
    let made = with(|setup| {
        setup.stripes = 2;
        setup.low_mark = 26;
    });
    made.fill_leaving_in(1, 0);
    assert_eq!(levels(&made), [0, 256]);
    made
}

fn levels(made: &Made) -> [usize; 2] {
    [0, 1].map(|place| made.filler.stripes[place].ring.len())
}

#[test]
fn a_take_moves_half_of_what_another_stripe_has() {
    let made = one_full();
    assert!(made.filler.take_elsewhere(0).is_some());
    assert_eq!(levels(&made), [127, 128]);
}

#[test]
fn nothing_is_moved_behind_a_thread_that_was_stopped() {
    let made = one_full();
    made.filler.stripes[0].ring.hold_back(1);
    for left in (26..256).rev() {
        assert!(made.filler.take_elsewhere(0).is_some(), "{left} hidden");
        assert_eq!(levels(&made), [0, left]);
    }
}

#[test]
fn takes_assist_the_stripe_that_they_have_gone_to() {
    let made = one_full();
    made.filler.stripes[0].ring.hold_back(1);
    for taken in 0..1000 {
        assert!(made.filler.take_elsewhere(0).is_some(), "dry after {taken}");
    }
    // Those before were made by a producer; each run gives a tick's 64.
    let assists = [0, 1].map(|place| made.filler.stripes[place].assists());
    assert_eq!(assists, [0, (1000 - 256 + 26_u64).div_ceil(64)]);

    let mut ids = [Id::default(); 10];
    for _ in 0..100 {
        assert_eq!(made.filler.take_batch_elsewhere(0, &mut ids), Some(10));
    }
}

#[test]
fn nothing_is_made_for_a_stripe_that_would_hide_it() {
    let made = one_full();
    // The empty one, in which there is room.
    let held_back = &made.filler.stripes[0];
    held_back.ring.hold_back(1);
    made.filler.assist(held_back);
    assert_eq!((held_back.assists(), levels(&made)), (0, [0, 256]));

    for place in [0, 1] {
        let made = with(|setup| setup.stripes = 2);
        made.filler.stripes[place].ring.hold_back(1);
        let mut id = [Id::default()];
        let MadeInPlace { given, stocked } = made.filler.make_in_place(&mut id).unwrap();
        assert_eq!((given, stocked), (1, 63));
        assert_eq!(levels(&made)[1 - place], 63, "{place} is held back");
    }
}
