//! SPARX-64/128 over a section of a run, a block to a lane: the kernel of every vector
//! backend.
//!
//! A register holds the same word of as many blocks as it has 16-bit lanes, so
//! four registers hold the blocks of a vector, and the cipher's operations on
//! words become operations on registers. Rounds depend on each other; to keep
//! the processor busy meanwhile, up to four vectors are in flight at once.
//!
//! An instruction set is a [`VectorOps`] full of closures. Closures inherit the
//! `target_feature` of the function around them, so there the intrinsics in
//! them are safe to call. Everything here is `inline(always)`: it must end up
//! in that same function, or each operation would become a call.

use std::array;
use std::mem;

use super::schedule::{STEPS, Schedule, WideSubkey, widen};
use super::shared_words::SharedWords;

/// What an instruction set can do with `V`, a vector of 16-bit lanes.
pub(super) struct VectorOps<V, Splat, Xor, Add, Rotate2, Rotate9, SwapBytes, Interleave> {
    /// The place in the output of each lane's block, counted from 0.
    pub(super) order: V,
    /// The given 64 bits repeated over the vector.
    pub(super) splat: Splat,
    /// The bits that differ.
    pub(super) xor: Xor,
    /// Adds lane by lane, wrapping around.
    pub(super) add: Add,
    /// Rotates each lane to the left by 2 bits.
    pub(super) rotate_2: Rotate2,
    /// Rotates each lane to the left by 9 bits.
    pub(super) rotate_9: Rotate9,
    /// Rotates each lane by 8 bits.
    pub(super) swap_bytes: SwapBytes,
    /// From vectors of first, second, third and fourth 16 bits to whole blocks,
    /// in the order that `order` describes.
    pub(super) interleave: Interleave,
}

/// The two words of one branch, in each vector of a group.
type Branch<V, const GROUP: usize> = [[V; GROUP]; 2];

impl<const LANES: usize, V, Splat, Xor, Add, Rotate2, Rotate9, SwapBytes, Interleave>
    VectorOps<V, Splat, Xor, Add, Rotate2, Rotate9, SwapBytes, Interleave>
where
    V: Copy,
    Splat: Fn(u64) -> V,
    Xor: Fn(V, V) -> V,
    Add: Fn(V, V) -> V,
    Rotate2: Fn(V) -> V,
    Rotate9: Fn(V) -> V,
    SwapBytes: Fn(V) -> V,
    Interleave: Fn([V; 4]) -> [u64; LANES],
{
    /// Fills `out`, at most as long as the section, with its IDs.
    #[inline(always)]
    pub(super) fn encrypt(&self, schedule: &Schedule, shared: &SharedWords, out: &mut [u64]) {
        let (vectors, tail) = out.as_chunks_mut::<LANES>();
        let (fours, rest) = vectors.as_chunks_mut::<4>();
        let (twos, ones) = rest.as_chunks_mut::<2>();

        let mut shared = *shared;
        for group in fours {
            self.encrypt_group(schedule, &mut shared, group);
        }
        for group in twos {
            self.encrypt_group(schedule, &mut shared, group);
        }
        for vector in ones {
            self.encrypt_group(schedule, &mut shared, array::from_mut(vector));
        }
        if !tail.is_empty() {
            let mut vector = [0; LANES];
            self.encrypt_group(schedule, &mut shared, array::from_mut(&mut vector));
            tail.copy_from_slice(&vector[..tail.len()]);
        }
    }

    /// Encrypts the next `GROUP` vectors of the section, and moves on.
    #[inline(always)]
    fn encrypt_group<const GROUP: usize>(
        &self,
        schedule: &Schedule,
        shared: &mut SharedWords,
        out: &mut [[u64; LANES]; GROUP],
    ) {
        let splat = |word| (self.splat)(widen(word));
        let counters = array::from_fn(|_| {
            let counters = (self.add)(self.order, splat(shared.counter));
            shared.counter = shared.counter.wrapping_add(LANES as u16);
            (self.swap_bytes)(counters)
        });

        // In the first step the right branch is the same in every block.
        let mut left = [counters, [splat(shared.word_1); GROUP]];
        let mut right = [
            [splat(shared.right.0); GROUP],
            [splat(shared.right.1); GROUP],
        ];
        for round in 0..3 {
            self.round(&mut left, schedule.wide_subkey(0), round);
        }
        self.mix(&left, &mut right);
        mem::swap(&mut left, &mut right);

        for step in 1..STEPS {
            for round in 0..3 {
                self.round(&mut left, schedule.wide_subkey(2 * step), round);
                self.round(&mut right, schedule.wide_subkey(2 * step + 1), round);
            }
            self.mix(&left, &mut right);
            mem::swap(&mut left, &mut right);
        }

        // The last key goes in by word and not by vector, because loops this
        // small are always unrolled, and only then do words stay in registers.
        let [mut a, mut b] = left;
        let [mut c, mut d] = right;
        let last = schedule.wide_subkey(2 * STEPS);
        for (words, key) in [&mut a, &mut b, &mut c, &mut d].into_iter().zip(last) {
            let key = (self.splat)(*key);
            for word in words {
                *word = (self.swap_bytes)((self.xor)(*word, key));
            }
        }
        for (index, out) in out.iter_mut().enumerate() {
            *out = (self.interleave)([a[index], b[index], c[index], d[index]]);
        }
    }

    /// One of a step's three rounds, for one branch.
    #[inline(always)]
    fn round<const GROUP: usize>(
        &self,
        [x, y]: &mut Branch<V, GROUP>,
        subkey: &WideSubkey,
        round: usize,
    ) {
        let key_x = (self.splat)(subkey[2 * round]);
        let key_y = (self.splat)(subkey[2 * round + 1]);
        for (x, y) in x.iter_mut().zip(y) {
            *y = (self.xor)(*y, key_y);
            *x = (self.add)((self.rotate_9)((self.xor)(*x, key_x)), *y);
            *y = (self.xor)((self.rotate_2)(*y), *x);
        }
    }

    /// Mixes the left branch into the right one.
    #[inline(always)]
    fn mix<const GROUP: usize>(&self, left: &Branch<V, GROUP>, right: &mut Branch<V, GROUP>) {
        for index in 0..GROUP {
            let [x, y] = [left[0][index], left[1][index]];
            let t = (self.swap_bytes)((self.xor)(x, y));
            right[0][index] = (self.xor)(right[0][index], (self.xor)(x, t));
            right[1][index] = (self.xor)(right[1][index], (self.xor)(y, t));
        }
    }
}
