//! The ARX-box, which the rounds and the key schedule share: addition, rotation, exclusive
//! or.

/// The two words of a branch.
pub(super) type Branch = (u16, u16);

/// The only non-linear part of the cipher.
pub(super) fn arx_box((x, y): Branch) -> Branch {
    let x = x.rotate_left(9).wrapping_add(y);
    (x, y.rotate_left(2) ^ x)
}

/// [`arx_box`] run backwards.
pub(super) fn arx_box_back((x, y): Branch) -> Branch {
    let y = (y ^ x).rotate_right(2);
    (x.wrapping_sub(y).rotate_right(9), y)
}
