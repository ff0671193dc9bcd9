//! Many walks side by side.
//!
//! A list of numbers has been encrypted once, and about half of them lie outside, so their
//! walks go on:
//!
//! 1. *Compress*: those are copied, in their order, side by side to a list of their own.
//! 2. That list is encrypted, and if some of it lie outside, the same is done to it. Now it
//!    has the ends of its walks.
//! 3. *Expand*: they replace, in their order, the numbers of the first list that lie outside.
//!
//! # Why each end lands in its place
//!
//! By induction over the lists. Compressing and expanding go through the same list with the same
//! choice: nothing changes the list meanwhile, and its numbers show which of them lie outside. So
//! the n-th of those goes to the n-th place of the shorter list, and is replaced by the number
//! there after step 2. That number is the end of its walk: at once if it lies inside after the
//! encryption, by induction if not. The numbers that lie inside are ends, and stay. No positions
//! are stored.
//!
//! # Why it ends
//!
//! As each walk does. A list need not be shorter than the one before it, and each takes some
//! of the room: a list that is longer than what is left is taken in parts, and where nothing
//! is left the walks are gone one by one, in their places.
//!
//! # What it costs
//!
//! Whether a walk ends is as random as the cipher is, and no processor guesses it. So nothing
//! here branches on it. Each list is half as long as the one before, so all that follow the
//! first have together as many numbers as that: a number is encrypted, compressed and expanded
//! twice on average.

use std::hint::select_unpredictable;
use std::slice;

use super::is_inside;

/// Replaces each number of `list` that lies outside by the end of its walk. `next` is the
/// permutation; what is in `room` counts for nothing.
pub(in crate::cipher) fn walk_on(list: &mut [u64], room: &mut [u64], next: &impl Fn(&mut [u64])) {
    if room.is_empty() {
        for number in list {
            while !is_inside(*number) {
                next(slice::from_mut(number));
            }
        }
        return;
    }
    for part in list.chunks_mut(room.len()) {
        let len = compress(part, room, is_outside);
        if len > 0 {
            let (moved, room) = room.split_at_mut(len);
            next(moved);
            walk_on(moved, room, next);
            expand(part, moved, is_outside);
        }
    }
}

fn is_outside(number: u64) -> bool {
    !is_inside(number)
}

/// Copies those of `numbers` that `are_moved` to the front of `to`, which is as long at least.
/// Returns how many they are.
fn compress(numbers: &[u64], to: &mut [u64], are_moved: impl Fn(u64) -> bool) -> usize {
    let mut len = 0;
    for &number in numbers {
        to[len] = number;
        len += usize::from(are_moved(number));
    }
    len
}

/// The inverse: replaces those of `numbers` that `were_moved` by all of `from`, of which there
/// is one at least.
fn expand(numbers: &mut [u64], from: &[u64], were_moved: impl Fn(u64) -> bool) {
    let last = from.len() - 1;
    let mut index = 0;
    for number in numbers {
        let was_moved = were_moved(*number);
        *number = select_unpredictable(was_moved, from[last.min(index)], *number);
        index += usize::from(was_moved);
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
        fn walks_that_have_begun_end_where_single_ones_do(
            starts in vec(0_u64..1 << 63, 0..3000),
            room in prop_oneof![0_usize..40, 500_usize..4000],
        ) {
            let expected = single(&starts, toy);
            let mut numbers = starts;
            each(toy)(&mut numbers);
            walk_on(&mut numbers, &mut vec![7; room], &each(toy));
            prop_assert_eq!(numbers, expected);
        }

        #[test]
        fn what_is_compressed_is_expanded_to_its_places(
            mut numbers in vec(any::<u64>(), 0..200),
            all in prop_oneof![Just(None), any::<bool>().prop_map(Some)],
        ) {
            let are_moved = |number: u64| all.unwrap_or(number.is_multiple_of(3));
            let expected: Vec<_> = numbers.iter().copied().filter(|&n| are_moved(n)).collect();
            let mut moved = vec![7; numbers.len()];
            let len = compress(&numbers, &mut moved, are_moved);
            prop_assert_eq!(&moved[..len], &expected);
            if len > 0 {
                let mut whole = numbers.clone();
                let back: Vec<_> = expected.iter().map(|number| !number).collect();
                expand(&mut whole, &back, are_moved);
                for number in &mut numbers {
                    *number = if are_moved(*number) { !*number } else { *number };
                }
                prop_assert_eq!(whole, numbers);
            }
        }
    }

    /// Steps of which none ends a walk, before one that ends all.
    #[test]
    fn all_walks_of_all_pieces_may_go_on_together() {
        let starts: Vec<_> = (1 << 62..(1 << 62) + 5000).collect();
        for room in [0, 1, 4999, 5000, 10_001, 15_000] {
            let mut numbers = starts.clone();
            each(quarters)(&mut numbers);
            walk_on(&mut numbers, &mut vec![7; room], &each(quarters));
            assert!(numbers.iter().copied().eq(0..5000), "{room}");
        }
        assert_eq!(single(&starts[..10], quarters), Vec::from_iter(0..10));
    }
}
