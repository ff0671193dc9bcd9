//! Many walks side by side.
//!
//! Backends encrypt vectors of blocks, and of each vector about half the walks end. Those that
//! go on are moved together, with the places that they came from, so that the next encryption
//! has full vectors again. What remains of a piece, too little to fill the vectors in flight,
//! waits for what remains of the next.
//!
//! Whether a walk ends is as random as the cipher is, and no processor guesses it. So nothing
//! here branches on it: each number goes to its place and to the end of the list, and the list
//! grows by one or by none.

use super::is_inside;

/// The most numbers that can be walked from at once, since their places are of 16 bits: as many
/// as a section has.
pub(in crate::cipher) const MOST: usize = 1 << 15;

/// Numbers that are looked at in one go. Their walks stay in the first cache.
const PIECE: usize = 1024;

/// As many blocks as fill the vectors in flight of any backend.
const FULL: usize = 128;

const ROOM: usize = PIECE + FULL;

/// Walks that have not ended.
struct Walks {
    numbers: [u64; ROOM],
    /// The place in the output of each.
    places: [u16; ROOM],
    len: usize,
}

impl Walks {
    /// Takes up those of `numbers` for which `goes_on` is true; the first has the place `start`.
    #[inline]
    fn take_up(&mut self, numbers: &[u64], start: usize, goes_on: impl Fn(u64) -> bool) {
        for (&number, place) in numbers.iter().zip(start as u16..) {
            self.numbers[self.len] = number;
            self.places[self.len] = place;
            self.len += usize::from(goes_on(number));
        }
    }

    /// Takes the first `count` walks a step further, `next`, and those out that end there.
    #[inline]
    fn step(&mut self, count: usize, out: &mut [u64], next: impl Fn(&mut [u64])) {
        next(&mut self.numbers[..count]);
        let mut kept = 0;
        for index in 0..count {
            let (number, place) = (self.numbers[index], self.places[index]);
            out[usize::from(place)] = number;
            self.numbers[kept] = number;
            self.places[kept] = place;
            kept += usize::from(!is_inside(number));
        }
        self.numbers.copy_within(count..self.len, kept);
        self.places.copy_within(count..self.len, kept);
        self.len -= count - kept;
    }
}

/// Walks from the numbers of `out`, at most [`MOST`], to where they end.
///
/// `begin` is given each piece and the place of its first number, and says which walks go on
/// from what it leaves there. `next` is the permutation.
#[inline]
pub(in crate::cipher) fn walk_all<GoesOn: Fn(u64) -> bool>(
    out: &mut [u64],
    begin: impl Fn(usize, &mut [u64]) -> GoesOn,
    next: impl Fn(&mut [u64]),
) {
    let mut walks = Walks {
        numbers: [0; ROOM],
        places: [0; ROOM],
        len: 0,
    };
    let mut start = 0;
    while start < out.len() {
        let end = out.len().min(start + PIECE);
        let piece = &mut out[start..end];
        let goes_on = begin(start, piece);
        walks.take_up(piece, start, goes_on);
        while walks.len >= FULL {
            let full = walks.len - walks.len % FULL;
            walks.step(full, out, &next);
        }
        start = end;
    }
    while walks.len > 0 {
        walks.step(walks.len, out, &next);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::walk;
    use super::*;

    /// A permutation of all numbers with walks of many lengths.
    fn toy(number: u64) -> u64 {
        (number ^ number >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// One of which a quarter of the walks take one step, and another quarter three.
    fn quarters(number: u64) -> u64 {
        number.wrapping_add(1 << 62)
    }

    fn each(next: impl Fn(u64) -> u64) -> impl Fn(&mut [u64]) {
        move |numbers| {
            numbers
                .iter_mut()
                .for_each(|number| *number = next(*number))
        }
    }

    fn single(numbers: &[u64], next: impl Fn(u64) -> u64) -> Vec<u64> {
        let one = |&start| walk(start, &next, is_inside);
        numbers.iter().map(one).collect()
    }

    proptest! {
        #[test]
        fn many_walks_end_where_single_ones_do(
            mut numbers in prop_oneof![vec(any::<u64>(), 0..300), vec(any::<u64>(), 900..3000)]
        ) {
            let expected = single(&numbers, toy);
            walk_all(&mut numbers, |_, _| is_inside, each(toy));
            prop_assert_eq!(numbers, expected);
        }

        #[test]
        fn walks_that_have_begun_end_where_single_ones_do(
            starts in vec(0_u64..1 << 63, 0..3000)
        ) {
            let expected = single(&starts, toy);
            let mut numbers = vec![0; starts.len()];
            let begin = |start: usize, piece: &mut [u64]| {
                let starts = &starts[start..start + piece.len()];
                piece.copy_from_slice(starts);
                each(toy)(piece);
                |number: u64| !is_inside(number)
            };
            walk_all(&mut numbers, begin, each(toy));
            prop_assert_eq!(numbers, expected);
        }
    }

    /// Steps of which none ends a walk, before one that ends all.
    #[test]
    fn all_walks_of_all_pieces_may_go_on_together() {
        let starts: Vec<_> = (1 << 62..(1 << 62) + MOST as u64).collect();
        let mut numbers = starts.clone();
        walk_all(&mut numbers, |_, _| is_inside, each(quarters));
        assert!(numbers.iter().copied().eq(0..MOST as u64));
        assert_eq!(numbers, single(&starts, quarters));
    }
}
