//! Memory for the walks of vectors.

/// The most numbers that are walked from at once: as many as leave the lists in the second cache,
/// and enough that the last walks, which have vectors almost for themselves, are few among them.
const PIECE: usize = 4096;

/// The memory of [`Lists`]: room for `ROOM` blocks, and pieces of `MASKS` vectors of eight.
///
/// Aligned as vectors are, so that those at multiples of their length lie in few cache lines.
#[repr(align(64))]
pub(super) struct Memory<const ROOM: usize, const MASKS: usize> {
    words: [[u16; ROOM]; 4],
    masks: [u32; MASKS],
}

/// Room for lists of blocks, which are kept in words.
pub(in crate::cipher) struct Lists<'a> {
    /// A stream for each of the four words; all are equally long.
    pub(super) words: [&'a mut [u16]; 4],
    /// For each vector of a piece the lanes whose walks go on after the first encryption.
    pub(super) masks: &'a mut [u32],
}

impl<const ROOM: usize, const MASKS: usize> Memory<ROOM, MASKS> {
    /// The lists of a piece have together about as many blocks as it has itself, since each is
    /// half as long as the one before; an eighth more makes it unlikely that they need more.
    /// The least are two of the longest vectors, one for a piece and one that may be written
    /// behind it.
    pub(super) const fn new() -> Self {
        const { assert!(MASKS > 0 && ROOM >= 9 * MASKS + 55) }
        Self {
            words: [[0; ROOM]; 4],
            masks: [0; MASKS],
        }
    }

    pub(super) fn lists(&mut self) -> Lists<'_> {
        let [a, b, c, d] = &mut self.words;
        Lists {
            words: [a, b, c, d],
            masks: &mut self.masks,
        }
    }
}

/// Calls `walk` with memory that suits `len` numbers: clearing it costs time, too.
pub(in crate::cipher) fn with_lists(len: usize, walk: impl FnOnce(Lists<'_>)) {
    match len {
        0..=128 => with_memory::<208, 16>(walk),
        129..=1024 => with_memory::<1216, 128>(walk),
        _ => with_memory::<{ PIECE + PIECE / 8 + 64 }, { PIECE / 8 }>(walk),
    }
}

// Out of line, so that short runs have no long frame.
#[inline(never)]
fn with_memory<const ROOM: usize, const MASKS: usize>(walk: impl FnOnce(Lists<'_>)) {
    walk(Memory::<ROOM, MASKS>::new().lists());
}
