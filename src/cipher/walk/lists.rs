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

impl Lists<'_> {
    /// The most numbers that are walked from at once: one vector, or as many as there are masks
    /// for. The lists have room for them, and for a vector behind them.
    pub(super) fn piece<const LANES: usize>(&self) -> usize {
        (8 * self.masks.len() / LANES).max(1) * LANES
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(lists: &Lists<'_>) -> [usize; 3] {
        [lists.piece::<8>(), lists.piece::<16>(), lists.piece::<32>()]
    }

    #[test]
    fn a_run_has_memory_for_pieces_of_about_its_length() {
        for (len, piece) in [
            (1, 128),
            (128, 128),
            (129, 1024),
            (1024, 1024),
            (1025, 4096),
            (1 << 20, 4096),
        ] {
            let mut called = false;
            with_lists(len, |lists| {
                assert_eq!(pieces(&lists), [piece; 3], "{len}");
                let rooms = lists.words.each_ref().map(|words| words.len());
                assert_eq!(rooms, [piece + piece / 8 + 64; 4], "{len}");
                called = true;
            });
            assert!(called);
        }
    }

    #[test]
    fn the_least_memory_has_room_for_a_vector_and_one_behind_it() {
        let mut memory = Memory::<64, 1>::new();
        let lists = memory.lists();
        assert_eq!(pieces(&lists), [8, 16, 32]);
        assert!(
            pieces(&lists)
                .iter()
                .all(|piece| 2 * piece <= lists.words[0].len())
        );
    }
}
