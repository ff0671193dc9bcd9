//! A permutation of the numbers below 2^63, made from one of all 64-bit numbers.
//!
//! SPARX-64/128 permutes all 64-bit numbers. IDs that are kept as signed numbers, none of them
//! below zero, need a permutation of the numbers under 2^63, the *domain*. Cycle-walking makes one:
//! it encrypts a number of the domain, and encrypts again for as long as the result lies outside.
//!
//! # Why it is one to one
//!
//! * It ends: a permutation splits its numbers into cycles, and a walk goes along one. At the
//!   latest it comes back to its start, which lies in the domain.
//! * Different starts have different ends: walking backwards from an end, by decryption, the
//!   first number of the domain is the start, since all between them lie outside.
//! * So it maps the domain into itself one to one, and the domain is finite: it is a
//!   permutation of the domain, and the walk backwards is its inverse.
//!
//! # How long it takes
//!
//! Half of all numbers lie in the domain. A cipher's outputs can't be told from random ones, so a
//! walk takes more than `n` encryptions with a probability of 2^-n, and 2 on average. Only this is
//! proven: it meets each number outside at most once, which makes 2^63 + 1 encryptions. That bound
//! shows that the walk ends, not when. When is a matter of chance. The probability is about 2^-65
//! that any of the 2^63 walks of a secret takes more than 128 encryptions, and one walk in a
//! million takes more than 20.
//!
//! The length of a walk depends on the raw and the secret, and so does the time it takes. Who
//! measures that learns how many numbers lie between the two, and nothing about which. Numbers
//! of walks, of which the key is none, are left on the stack.
//!
//! # Outside
//!
//! A number outside is its own image. That needs no walk, which would not end in a cycle that
//! lies outside as a whole; the map of all 64-bit numbers stays one to one; and such a number
//! is recognised from either side.
//!
//! Source: Black, Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, where it is
//! the second method.

mod many;

pub(super) use self::many::walk_on;

pub(super) const BITS: u32 = 63;

/// Whether `number` lies in the domain of positive IDs.
pub(super) const fn is_inside(number: u64) -> bool {
    number >> BITS == 0
}

/// The image of `start` under the permutation `next`, walked onto the numbers that
/// `is_inside` accepts; with the inverse of `next`, its inverse.
pub(super) fn walk<N: Copy>(start: N, next: impl Fn(N) -> N, is_inside: impl Fn(N) -> bool) -> N {
    if !is_inside(start) {
        return start;
    }
    let mut number = next(start);
    while !is_inside(number) {
        number = next(number);
    }
    number
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// All 16-bit numbers; those of 15 bits are the domain.
    const ALL: u32 = 1 << 16;

    fn is_small(number: u16) -> bool {
        number >> 15 == 0
    }

    /// A permutation of all 16-bit numbers, since each of its steps is one.
    fn toy(number: u16) -> u16 {
        (1..=4).fold(number, |number, round| {
            let product = (number ^ (0x2b7e * round)).wrapping_mul(0x9e37);
            product ^ product >> 7
        })
    }

    fn toy_back() -> impl Fn(u16) -> u16 {
        let mut back = vec![0; ALL as usize];
        for number in 0..=u16::MAX {
            back[usize::from(toy(number))] = number;
        }
        move |number| back[usize::from(number)]
    }

    #[test]
    fn a_walk_stays_in_the_domain_and_the_walk_backwards_is_its_inverse() {
        let back = toy_back();
        for start in 0..=u16::MAX {
            let end = walk(start, toy, is_small);
            assert_eq!(is_small(end), is_small(start), "{start} ends at {end}");
            // So no two starts have one end.
            assert_eq!(walk(end, &back, is_small), start);
        }
    }

    #[test]
    fn a_number_outside_is_its_own_image_without_a_step() {
        for outside in [1 << 15, u16::MAX] {
            let next = |_| unreachable!("a step from outside");
            assert_eq!(walk(outside, next, is_small), outside);
        }
        assert!(is_inside(0) && is_inside((1 << 63) - 1));
        assert!(!is_inside(1 << 63) && !is_inside(u64::MAX));
    }

    /// All numbers in one cycle, those outside in a row: the longest walk there is.
    #[test]
    fn a_walk_goes_through_all_that_lies_outside_if_it_must() {
        let steps = Cell::new(0_u32);
        let next = |number: u16| {
            steps.set(steps.get() + 1);
            number.wrapping_add(1)
        };
        assert_eq!(walk((1 << 15) - 1, next, is_small), 0);
        assert_eq!(steps.get(), ALL / 2 + 1);
        assert_eq!(walk(6, next, is_small), 7);
        assert_eq!(steps.get(), ALL / 2 + 2);
    }
}
