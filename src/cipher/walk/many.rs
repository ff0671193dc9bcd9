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

/// The most numbers that can be walked from at once, since their places are of 16 bits: as many
/// as a section has.
pub(in crate::cipher) const MOST: usize = 1 << 15;

/// Numbers that are looked at in one go. Their walks stay in the first cache.
const PIECE: usize = 1024;

/// As many blocks as fill the vectors in flight of any backend.
const FULL: usize = 128;

/// As many blocks as the largest vector of any backend has. What is encrypted is filled up to a
/// multiple with whatever lies there, which costs less than a part of a vector.
const VECTOR: usize = 32;

const ROOM: usize = PIECE + FULL;

/// Aligned as vectors are, so that none lies across two cache lines.
#[repr(align(64))]
struct Aligned<T>(T);

/// What is done to many walks at once. A backend has all but `begin`.
pub(in crate::cipher) struct Steps<Begin, Begun, Next, GoOn> {
    /// Given each piece and the place of its first number: what walks begin from.
    pub(in crate::cipher) begin: Begin,
    /// [`keep`] for the numbers from which walks go on after that.
    pub(in crate::cipher) begun: Begun,
    /// The permutation.
    pub(in crate::cipher) next: Next,
    /// [`keep`] for the numbers at which walks do not end.
    pub(in crate::cipher) go_on: GoOn,
}

/// Moves those of `numbers` that `is_kept` to the front, in their order, and their `places` with
/// them. Returns how many they are. What lies behind them is anything.
#[inline(always)]
pub(in crate::cipher) fn keep(
    numbers: &mut [u64],
    places: &mut [u16],
    is_kept: impl Fn(u64) -> bool,
) -> usize {
    let places = &mut places[..numbers.len()];
    let mut kept = 0;
    for index in 0..numbers.len() {
        let number = numbers[index];
        numbers[kept] = number;
        places[kept] = places[index];
        kept += usize::from(is_kept(number));
    }
    kept
}

/// Walks from the numbers of `out`, at most [`MOST`], to where they end.
#[inline]
pub(in crate::cipher) fn walk_all(
    out: &mut [u64],
    steps: &Steps<
        impl Fn(usize, &mut [u64]),
        impl Fn(&mut [u64], &mut [u16]) -> usize,
        impl Fn(&mut [u64]),
        impl Fn(&mut [u64], &mut [u16]) -> usize,
    >,
) {
    // Of the walks that have not ended: numbers, and places in the output.
    let mut numbers = Aligned([0; ROOM]);
    let numbers = &mut numbers.0;
    let mut places = [0; ROOM];
    let mut len = 0;
    let mut start = 0;
    while start < out.len() || len > 0 {
        let piece_len = PIECE.min(out.len() - start);
        let piece = &mut out[start..start + piece_len];
        (steps.begin)(start, piece);
        let room = len..len + piece_len;
        numbers[room.clone()].copy_from_slice(piece);
        for (place, index) in places[room.clone()].iter_mut().zip(start..) {
            *place = index as u16;
        }
        len += (steps.begun)(&mut numbers[room.clone()], &mut places[room]);
        start += piece_len;

        // What does not fill the vectors waits for the next piece, if there is one.
        let least = if start < out.len() { FULL } else { 1 };
        while len >= least {
            let count = len - len % least;
            (steps.next)(&mut numbers[..count.next_multiple_of(VECTOR)]);
            for (&number, &place) in numbers[..count].iter().zip(&places) {
                out[usize::from(place)] = number;
            }
            let kept = (steps.go_on)(&mut numbers[..count], &mut places[..count]);
            numbers.copy_within(count..len, kept);
            places.copy_within(count..len, kept);
            len -= count - kept;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::{is_inside, walk};
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

    fn outside(numbers: &mut [u64], places: &mut [u16]) -> usize {
        keep(numbers, places, |number| !is_inside(number))
    }

    /// Walks from `numbers` themselves.
    fn walk_from(numbers: &mut [u64], next: impl Fn(u64) -> u64) {
        let steps = Steps {
            begin: |_, _: &mut [u64]| {},
            begun: |numbers: &mut [u64], places: &mut [u16]| keep(numbers, places, is_inside),
            next: each(next),
            go_on: outside,
        };
        walk_all(numbers, &steps);
    }

    proptest! {
        #[test]
        fn many_walks_end_where_single_ones_do(
            mut numbers in prop_oneof![vec(any::<u64>(), 0..300), vec(any::<u64>(), 900..3000)]
        ) {
            let expected = single(&numbers, toy);
            walk_from(&mut numbers, toy);
            prop_assert_eq!(numbers, expected);
        }

        #[test]
        fn walks_that_have_begun_end_where_single_ones_do(
            starts in vec(0_u64..1 << 63, 0..3000)
        ) {
            let expected = single(&starts, toy);
            let mut numbers = vec![0; starts.len()];
            let begin = |start: usize, piece: &mut [u64]| {
                piece.copy_from_slice(&starts[start..start + piece.len()]);
                each(toy)(piece);
            };
            let steps = Steps { begin, begun: outside, next: each(toy), go_on: outside };
            walk_all(&mut numbers, &steps);
            prop_assert_eq!(numbers, expected);
        }
    }

    /// Steps of which none ends a walk, before one that ends all.
    #[test]
    fn all_walks_of_all_pieces_may_go_on_together() {
        let starts: Vec<_> = (1 << 62..(1 << 62) + MOST as u64).collect();
        let mut numbers = starts.clone();
        walk_from(&mut numbers, quarters);
        assert!(numbers.iter().copied().eq(0..MOST as u64));
        assert_eq!(numbers, single(&starts, quarters));
    }
}
