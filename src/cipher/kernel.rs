//! SPARX-64/128 over many blocks, a block to a lane: the kernel of every vector backend.
//!
//! Each 16-bit lane of a register belongs to one block, and a register holds the same word of all
//! its blocks. So four registers hold the blocks of a vector, and the cipher's operations on words
//! become operations on registers. Rounds depend on each other; to keep the processor busy
//! meanwhile, up to four vectors are in flight at once.
//!
//! # Second words
//!
//! A branch is kept as `x` and `z = x ^ y` instead of `x` and `y`:
//!
//! ```text
//!           with y                  with z
//!
//! round     x = rotl9(x) + y        y = x ^ z
//!           y = rotl2(y) ^ x        x = rotl9(x) + y
//!                                   z = rotl2(y)
//!
//! mixing    t = swap(x ^ y)         right.x ^= x ^ swap(z)
//!           right.x ^= x ^ t        right.z ^= z
//!           right.y ^= y ^ t
//! ```
//!
//! A round has as many operations either way, mixing four instead of six.
//!
//! # Order
//!
//! Mixing gives the next step's left branch; its right one is the old left one, there
//! already. Small groups, which wait for results most of the time, take the left half of each
//! round first, since most hangs on it. In groups of four the right half goes first and fills
//! the wait.

use std::array;
use std::mem;

use super::schedule::{STEPS, Schedule, WideSubkey, widen};
use super::shared_words::SharedWords;
use super::task::Task;
use super::vectors::{Vectors, Words};

/// One branch in each vector of a group.
pub(super) struct Branch<V, const GROUP: usize> {
    x: [V; GROUP],
    /// `x ^ y`.
    z: [V; GROUP],
}

/// The branches of a group before the last key is added.
pub(super) type Branches<V, const GROUP: usize> = [Branch<V, GROUP>; 2];

/// Aligned as vectors are, which has the compiler align the stack, and with it every vector
/// that finds no register. Otherwise it depends on the caller how many of them lie across two
/// cache lines: up to 8 % of the time on AVX2.
#[repr(align(64))]
pub(super) struct Aligned<T>(pub(super) T);

/// The cipher over the vectors of an instruction set.
pub(super) trait Kernel<const LANES: usize>: Vectors<LANES> {
    #[inline(always)]
    fn process(self, schedule: &Schedule, task: Task, blocks: &mut [u64]) {
        // A loop for each, so that none asks inside which it is.
        match task {
            Task::EncryptRun(shared) => {
                self.perform_in_groups(schedule, Task::EncryptRun(shared), blocks);
            }
            Task::Encrypt => self.perform_in_groups(schedule, Task::Encrypt, blocks),
        }
    }

    #[inline(always)]
    fn perform_in_groups(self, schedule: &Schedule, mut task: Task, blocks: &mut [u64]) {
        let (vectors, tail) = blocks.as_chunks_mut::<LANES>();
        let (fours, rest) = vectors.as_chunks_mut::<4>();
        let (twos, ones) = rest.as_chunks_mut::<2>();

        for group in fours {
            self.perform_on_group(schedule, &mut task, group);
        }
        for group in twos {
            self.perform_on_group(schedule, &mut task, group);
        }
        for vector in ones {
            self.perform_on_group(schedule, &mut task, array::from_mut(vector));
        }
        if !tail.is_empty() {
            let mut vector = Aligned([0; LANES]);
            vector.0[..tail.len()].copy_from_slice(tail);
            self.perform_on_group(schedule, &mut task, array::from_mut(&mut vector.0));
            tail.copy_from_slice(&vector.0[..tail.len()]);
        }
    }

    #[inline(always)]
    fn perform_on_group<const GROUP: usize>(
        self,
        schedule: &Schedule,
        task: &mut Task,
        group: &mut [[u64; LANES]; GROUP],
    ) {
        let branches = self.begin(schedule, task, group);
        let key = schedule.wide_subkey(2 * STEPS);
        for (index, blocks) in group.iter_mut().enumerate() {
            *blocks = self.interleave(self.join(key, &branches, index));
        }
    }

    /// The branches of a group to which `task` is done. What is in the group counts for
    /// nothing in a run, which moves on.
    #[inline(always)]
    fn begin<const GROUP: usize>(
        self,
        schedule: &Schedule,
        task: &mut Task,
        group: &[[u64; LANES]; GROUP],
    ) -> Branches<Self::V, GROUP> {
        if let Task::EncryptRun(shared) = task {
            return self.encrypt_next(schedule, shared);
        }
        let mut words = [[self.splat(0); 4]; GROUP];
        for (words, &blocks) in words.iter_mut().zip(group) {
            *words = self.deinterleave(blocks);
        }
        self.encrypt(schedule, &words)
    }

    /// Encrypts the next `GROUP` vectors of the section, and moves on.
    #[inline(always)]
    fn encrypt_next<const GROUP: usize>(
        self,
        schedule: &Schedule,
        shared: &mut SharedWords,
    ) -> Branches<Self::V, GROUP> {
        let offsets = self.add(self.order(), self.order());
        // Here and elsewhere it is a loop, since the compiler leaves calls to `array::from_fn`
        // and to `map` among so much code, and each costs more than a round.
        let mut x = [self.order(); GROUP];
        for x in &mut x {
            let counters = self.add(offsets, self.splat(widen(shared.counter)));
            shared.counter = shared.counter.wrapping_add(2 * LANES as u16);
            *x = self.add(
                self.xor(counters, self.splat(widen(shared.key))),
                self.splat(widen(shared.y)),
            );
        }
        let mut left = Branch {
            x,
            z: [self.splat(widen(shared.z)); GROUP],
        };
        let mut right = Branch {
            x: [self.splat(widen(shared.right.0)); GROUP],
            z: [self.splat(widen(shared.right.0 ^ shared.right.1)); GROUP],
        };

        // The rest of the first step, whose right branch is the same in every block.
        for round in 1..3 {
            self.round(&mut left, schedule.wide_subkey(0), round);
        }
        self.mix(&left, &mut right);
        mem::swap(&mut left, &mut right);

        for step in 1..STEPS {
            self.step(schedule, step, &mut left, &mut right);
        }
        [left, right]
    }

    /// Encrypts any blocks.
    #[inline(always)]
    fn encrypt<const GROUP: usize>(
        self,
        schedule: &Schedule,
        words: &[Words<Self::V>; GROUP],
    ) -> Branches<Self::V, GROUP> {
        let [mut left, mut right] = self.split(words);
        for step in 0..STEPS {
            self.step(schedule, step, &mut left, &mut right);
        }
        [left, right]
    }

    /// The words of the vector `index` of a group, with a key added.
    ///
    /// One by one, as each leaves: all at once, they and what is made of them would need more
    /// registers than there are.
    #[inline(always)]
    fn join<const GROUP: usize>(
        self,
        key: &WideSubkey,
        [left, right]: &Branches<Self::V, GROUP>,
        index: usize,
    ) -> Words<Self::V> {
        let [a, b, c, d, ..] = *key;
        let [a, b, c, d] = [self.splat(a), self.splat(b), self.splat(c), self.splat(d)];
        let (left_x, left_z) = (left.x[index], left.z[index]);
        let (right_x, right_z) = (right.x[index], right.z[index]);
        [
            self.xor(left_x, a),
            self.xor(self.xor(left_z, b), left_x),
            self.xor(right_x, c),
            self.xor(self.xor(right_z, d), right_x),
        ]
    }

    /// The branches of blocks.
    #[inline(always)]
    fn split<const GROUP: usize>(
        self,
        words: &[Words<Self::V>; GROUP],
    ) -> Branches<Self::V, GROUP> {
        let zero = [self.splat(0); GROUP];
        let mut left = Branch { x: zero, z: zero };
        let mut right = Branch { x: zero, z: zero };
        for (index, &[a, b, c, d]) in words.iter().enumerate() {
            (left.x[index], left.z[index]) = (a, self.xor(a, b));
            (right.x[index], right.z[index]) = (c, self.xor(c, d));
        }
        [left, right]
    }

    /// A whole step, after which the branches have changed places.
    #[inline(always)]
    fn step<const GROUP: usize>(
        self,
        schedule: &Schedule,
        step: usize,
        left: &mut Branch<Self::V, GROUP>,
        right: &mut Branch<Self::V, GROUP>,
    ) {
        for round in 0..3 {
            let left = (&mut *left, schedule.wide_subkey(2 * step));
            let right = (&mut *right, schedule.wide_subkey(2 * step + 1));
            let order = if GROUP > 2 {
                [right, left]
            } else {
                [left, right]
            };
            for (branch, subkey) in order {
                self.round(branch, subkey, round);
            }
        }
        self.mix(left, right);
        mem::swap(left, right);
    }

    /// One of a step's three rounds, for one branch.
    #[inline(always)]
    fn round<const GROUP: usize>(
        self,
        Branch { x, z }: &mut Branch<Self::V, GROUP>,
        subkey: &WideSubkey,
        round: usize,
    ) {
        let key_x = self.splat(subkey[2 * round]);
        let key_y = self.splat(subkey[2 * round + 1]);
        for (x, z) in x.iter_mut().zip(z) {
            let y = self.xor(self.xor(*z, key_y), *x);
            *x = self.rotate_9_add(self.xor(*x, key_x), y);
            *z = self.rotate_2(y);
        }
    }

    /// Mixes the left branch into the right one.
    #[inline(always)]
    fn mix<const GROUP: usize>(
        self,
        left: &Branch<Self::V, GROUP>,
        right: &mut Branch<Self::V, GROUP>,
    ) {
        for index in 0..GROUP {
            let (x, z) = (left.x[index], left.z[index]);
            let sum = self.xor(right.x[index], x);
            right.x[index] = self.xor(sum, self.swap_bytes(z));
            right.z[index] = self.xor(right.z[index], z);
        }
    }
}

impl<const LANES: usize, Ops: Vectors<LANES>> Kernel<LANES> for Ops {}
