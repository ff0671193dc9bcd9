//! What the blocks of a run have in common.
//!
//! Consecutive raws agree in their upper 48 bits until the low 16 bits wrap
//! around. The low 16 bits are the cipher's first word and the rest its other
//! three, so within such a *section* of a run only one word of four changes from block to
//! block, and the first step of the right branch is the same for all of them.

use std::iter;
use std::mem;

use super::arx::Branch;
use super::scalar;
use super::schedule::Schedule;

/// The beginning of a section, and what its blocks share.
#[derive(Clone, Copy)]
pub(super) struct SharedWords {
    /// The low 16 bits of the first raw. The cipher's first word is this,
    /// counted upwards, with its bytes swapped.
    pub(super) counter: u16,
    /// The second word, the same in every block.
    pub(super) word_1: u16,
    /// The third and fourth word after the first step's three rounds, the same
    /// in every block.
    pub(super) right: Branch,
}

impl SharedWords {
    /// The section that begins with the raw `first`.
    pub(super) fn new(schedule: &Schedule, first: u64) -> Self {
        let [_, word_1, word_2, word_3] = scalar::words(first);
        Self {
            counter: first as u16,
            word_1,
            right: scalar::rounds((word_2, word_3), schedule.subkey(1)),
        }
    }
}

/// Cuts a run where the low 16 bits of its raws wrap around.
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
        let room = (1 << 16) - usize::from(first as u16);
        let length = room.min(out.len());
        let (head, tail) = mem::take(&mut out).split_at_mut(length);
        let section = (first, head);
        first = first.wrapping_add(length as u64);
        out = tail;
        Some(section)
    })
}
