//! Takes that find their own stripe empty, and another one full.

use super::*;

/// Two stripes, of which the second is full.
fn one_full() -> Made {
    let made = with(|setup| setup.stripes = 2);
    let mut count = 0;
    let other = &made.filler.stripes[1];
    assert_eq!(made.filler.fill_leaving(other, 0, &mut count), Ok(()));
    assert_eq!(other.ring.len(), 256);
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
    for left in (0..256).rev() {
        assert!(made.filler.take_elsewhere(0).is_some(), "{left} hidden");
        assert_eq!(levels(&made), [0, left]);
    }
    assert_eq!(made.filler.take_elsewhere(0), None);
}
