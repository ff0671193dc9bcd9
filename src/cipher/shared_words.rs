//! The words that the blocks of a run share.
//!
//! Consecutive raws agree in their upper 49 bits until the low 15 bits wrap around. The low
//! 16 bits are the cipher's first word and the rest its other three, so within such a
//! *section* of a run only one word of four changes from block to block: the first step of
//! the right branch is the same for all of them, and of the left branch's first round little
//! is left.
//!
//! The first word is the low 16 bits `c` with their bytes swapped. The first round adds a key
//! to it and rotates it by 9 bits, which with the swap makes 17, that is, 1:
//!
//! ```text
//! rotl9(swap(c) ^ key) = rotl1(c) ^ rotl9(key)
//! ```
//!
//! From one raw to the next `rotl1(c)` grows by 2, as long as the highest bit of `c` stays.

use std::iter;
use std::mem;

use super::arx::Branch;
use super::scalar;
use super::schedule::Schedule;

const SECTION: usize = 1 << 15;

/// The beginning of a section, and what its blocks share.
///
/// The left branch of the block `n` after the first round is
/// `x = ((counter + 2 * n) ^ key) + y` and `x ^ z`.
#[derive(Clone, Copy)]
pub(super) struct SharedWords {
    /// The low 16 bits of the first raw, rotated to the left by 1.
    pub(super) counter: u16,
    /// The first word's key in the first round, rotated as the word is.
    pub(super) key: u16,
    /// The second word with its key.
    pub(super) y: u16,
    /// `y` rotated to the left by 2.
    pub(super) z: u16,
    /// The right branch after the first step's three rounds.
    pub(super) right: Branch,
}

impl SharedWords {
    /// The section that begins with the raw `first`.
    pub(super) fn new(schedule: &Schedule, first: u64) -> Self {
        let [_, word_1, word_2, word_3] = scalar::words(first);
        let [key_x, key_y, ..] = schedule.subkey(0);
        let y = word_1 ^ key_y;
        Self {
            counter: (first as u16).rotate_left(1),
            key: key_x.rotate_left(9),
            y,
            z: y.rotate_left(2),
            right: scalar::rounds((word_2, word_3), schedule.subkey(1)),
        }
    }
}

/// Cuts a run where the low 15 bits of its raws wrap around.
///
/// Gives the first raw of each section and the part of `out` that it fills.
pub(super) fn split(
    mut first: u64,
    mut out: &mut [u64],
) -> impl Iterator<Item = (u64, &mut [u64])> {
    iter::from_fn(move || {
        if out.is_empty() {
            return None;
        }
        let room = SECTION - (first % SECTION as u64) as usize;
        let length = room.min(out.len());
        let (head, tail) = mem::take(&mut out).split_at_mut(length);
        let section = (first, head);
        first = first.wrapping_add(length as u64);
        out = tail;
        Some(section)
    })
}
