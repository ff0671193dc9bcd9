//! SPARX-64/128 over many blocks, a block to a lane: the kernel of every vector backend.
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
//! A round has as many operations either way, mixing four instead of six. Backwards it is
//!
//! ```text
//! y = rotr2(z)        x = rotr9(x - y)        z = x ^ y
//! ```
//!
//! and mixing undoes itself.
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

/// What an instruction set can do with `V`, a vector of 16-bit lanes.
pub(super) struct VectorOps<
    V,
    Splat,
    Xor,
    Add,
    Subtract,
    Rotate2,
    Rotate9Add,
    Rotate2Back,
    Rotate9Back,
    SwapBytes,
    Interleave,
    Deinterleave,
> {
    /// The place in the output of each lane's block, counted from 0.
    pub(super) order: V,
    /// The given 64 bits repeated over the vector.
    pub(super) splat: Splat,
    /// The bits that differ.
    pub(super) xor: Xor,
    /// Adds lane by lane, wrapping around.
    pub(super) add: Add,
    /// Subtracts the second lane by lane, wrapping around.
    pub(super) subtract: Subtract,
    /// Rotates each lane to the left by 2 bits.
    pub(super) rotate_2: Rotate2,
    /// Rotates each lane of the first to the left by 9 bits and adds the second.
    pub(super) rotate_9_add: Rotate9Add,
    /// Rotates each lane to the right by 2 bits.
    pub(super) rotate_2_back: Rotate2Back,
    /// Rotates each lane to the right by 9 bits.
    pub(super) rotate_9_back: Rotate9Back,
    /// Rotates each lane by 8 bits.
    pub(super) swap_bytes: SwapBytes,
    /// From vectors of first, second, third and fourth words to whole blocks, in the order
    /// that `order` describes and with the bytes of each word swapped.
    pub(super) interleave: Interleave,
    /// The inverse of `interleave`.
    pub(super) deinterleave: Deinterleave,
}

/// One branch in each vector of a group.
struct Branch<V, const GROUP: usize> {
    x: [V; GROUP],
    /// `x ^ y`.
    z: [V; GROUP],
}

/// Where a tail is made.
///
/// Aligned as vectors are, which has the compiler align the stack, and with it every vector
/// that finds no register. Otherwise it depends on the caller how many of them lie across two
/// cache lines: up to 8 % of the time on AVX2.
#[repr(align(64))]
struct Aligned<T>(T);

impl<
    const LANES: usize,
    V,
    Splat,
    Xor,
    Add,
    Subtract,
    Rotate2,
    Rotate9Add,
    Rotate2Back,
    Rotate9Back,
    SwapBytes,
    Interleave,
    Deinterleave,
>
    VectorOps<
        V,
        Splat,
        Xor,
        Add,
        Subtract,
        Rotate2,
        Rotate9Add,
        Rotate2Back,
        Rotate9Back,
        SwapBytes,
        Interleave,
        Deinterleave,
    >
where
    V: Copy,
    Splat: Fn(u64) -> V,
    Xor: Fn(V, V) -> V,
    Add: Fn(V, V) -> V,
    Subtract: Fn(V, V) -> V,
    Rotate2: Fn(V) -> V,
    Rotate9Add: Fn(V, V) -> V,
    Rotate2Back: Fn(V) -> V,
    Rotate9Back: Fn(V) -> V,
    SwapBytes: Fn(V) -> V,
    Interleave: Fn([V; 4]) -> [u64; LANES],
    Deinterleave: Fn([u64; LANES]) -> [V; 4],
{
    /// Does `task` to `blocks`.
    #[inline(always)]
    pub(super) fn perform(&self, schedule: &Schedule, task: Task, blocks: &mut [u64]) {
        // A loop for each, so that none asks inside which it is.
        match task {
            Task::EncryptRun(shared) => {
                self.perform_in_groups(schedule, Task::EncryptRun(shared), blocks);
            }
            Task::Encrypt => self.perform_in_groups(schedule, Task::Encrypt, blocks),
            Task::Decrypt => self.perform_in_groups(schedule, Task::Decrypt, blocks),
        }
    }

    #[inline(always)]
    fn perform_in_groups(&self, schedule: &Schedule, mut task: Task, blocks: &mut [u64]) {
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
        &self,
        schedule: &Schedule,
        task: &mut Task,
        group: &mut [[u64; LANES]; GROUP],
    ) {
        match task {
            Task::EncryptRun(shared) => self.encrypt_next(schedule, shared, group),
            Task::Encrypt => self.encrypt(schedule, group),
            Task::Decrypt => self.decrypt(schedule, group),
        }
    }

    /// Encrypts the next `GROUP` vectors of the section, and moves on.
    #[inline(always)]
    fn encrypt_next<const GROUP: usize>(
        &self,
        schedule: &Schedule,
        shared: &mut SharedWords,
        out: &mut [[u64; LANES]; GROUP],
    ) {
        let splat = |word| (self.splat)(widen(word));
        let offsets = (self.add)(self.order, self.order);
        // Here and below it is a loop, since the compiler leaves calls to `array::from_fn`
        // among so much code, and each costs more than a round.
        let mut x = [self.order; GROUP];
        for x in &mut x {
            let counters = (self.add)(offsets, splat(shared.counter));
            shared.counter = shared.counter.wrapping_add(2 * LANES as u16);
            *x = (self.add)((self.xor)(counters, splat(shared.key)), splat(shared.y));
        }
        let mut left = Branch {
            x,
            z: [splat(shared.z); GROUP],
        };
        let mut right = Branch {
            x: [splat(shared.right.0); GROUP],
            z: [splat(shared.right.0 ^ shared.right.1); GROUP],
        };

        // What is left of the first step, whose right branch is the same in every block.
        for round in 1..3 {
            self.round(&mut left, schedule.wide_subkey(0), round);
        }
        self.mix(&left, &mut right);
        mem::swap(&mut left, &mut right);

        for step in 1..STEPS {
            self.step(schedule, step, &mut left, &mut right);
        }
        self.write(schedule.wide_subkey(2 * STEPS), &left, &right, out);
    }

    /// Encrypts any blocks.
    #[inline(always)]
    fn encrypt<const GROUP: usize>(&self, schedule: &Schedule, blocks: &mut [[u64; LANES]; GROUP]) {
        let [mut left, mut right] = self.read(&[0; 6], blocks);
        for step in 0..STEPS {
            self.step(schedule, step, &mut left, &mut right);
        }
        self.write(schedule.wide_subkey(2 * STEPS), &left, &right, blocks);
    }

    /// Decrypts any blocks.
    #[inline(always)]
    fn decrypt<const GROUP: usize>(&self, schedule: &Schedule, blocks: &mut [[u64; LANES]; GROUP]) {
        let [mut left, mut right] = self.read(schedule.wide_subkey(2 * STEPS), blocks);
        for step in (0..STEPS).rev() {
            mem::swap(&mut left, &mut right);
            self.mix(&left, &mut right);
            for round in (0..3).rev() {
                self.round_back(&mut left, schedule.wide_subkey(2 * step), round);
                self.round_back(&mut right, schedule.wide_subkey(2 * step + 1), round);
            }
        }
        self.write(&[0; 6], &left, &right, blocks);
    }

    /// The branches of whole blocks, with a key added.
    #[inline(always)]
    fn read<const GROUP: usize>(
        &self,
        [key_a, key_b, key_c, key_d, ..]: &WideSubkey,
        blocks: &[[u64; LANES]; GROUP],
    ) -> [Branch<V, GROUP>; 2] {
        let zero = [(self.splat)(0); GROUP];
        let mut left = Branch { x: zero, z: zero };
        let mut right = Branch { x: zero, z: zero };
        for (index, &block) in blocks.iter().enumerate() {
            let [a, b, c, d] = (self.deinterleave)(block);
            left.x[index] = (self.xor)(a, (self.splat)(*key_a));
            left.z[index] = (self.xor)((self.xor)(a, b), (self.splat)(key_a ^ key_b));
            right.x[index] = (self.xor)(c, (self.splat)(*key_c));
            right.z[index] = (self.xor)((self.xor)(c, d), (self.splat)(key_c ^ key_d));
        }
        [left, right]
    }

    /// Whole blocks from their branches, with a key added.
    #[inline(always)]
    fn write<const GROUP: usize>(
        &self,
        key: &WideSubkey,
        left: &Branch<V, GROUP>,
        right: &Branch<V, GROUP>,
        out: &mut [[u64; LANES]; GROUP],
    ) {
        let [a, b, c, d, ..] = key.map(&self.splat);
        for (index, out) in out.iter_mut().enumerate() {
            let (left_x, left_z) = (left.x[index], left.z[index]);
            let (right_x, right_z) = (right.x[index], right.z[index]);
            *out = (self.interleave)([
                (self.xor)(left_x, a),
                (self.xor)((self.xor)(left_z, b), left_x),
                (self.xor)(right_x, c),
                (self.xor)((self.xor)(right_z, d), right_x),
            ]);
        }
    }

    /// A whole step, after which the branches have changed places.
    #[inline(always)]
    fn step<const GROUP: usize>(
        &self,
        schedule: &Schedule,
        step: usize,
        left: &mut Branch<V, GROUP>,
        right: &mut Branch<V, GROUP>,
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
        &self,
        Branch { x, z }: &mut Branch<V, GROUP>,
        subkey: &WideSubkey,
        round: usize,
    ) {
        let key_x = (self.splat)(subkey[2 * round]);
        let key_y = (self.splat)(subkey[2 * round + 1]);
        for (x, z) in x.iter_mut().zip(z) {
            let y = (self.xor)((self.xor)(*z, key_y), *x);
            *x = (self.rotate_9_add)((self.xor)(*x, key_x), y);
            *z = (self.rotate_2)(y);
        }
    }

    /// [`round`](Self::round) run backwards.
    #[inline(always)]
    fn round_back<const GROUP: usize>(
        &self,
        Branch { x, z }: &mut Branch<V, GROUP>,
        subkey: &WideSubkey,
        round: usize,
    ) {
        let key_x = (self.splat)(subkey[2 * round]);
        let key_y = (self.splat)(subkey[2 * round + 1]);
        for (x, z) in x.iter_mut().zip(z) {
            let y = (self.rotate_2_back)(*z);
            *x = (self.xor)((self.rotate_9_back)((self.subtract)(*x, y)), key_x);
            *z = (self.xor)((self.xor)(y, key_y), *x);
        }
    }

    /// Mixes the left branch into the right one.
    #[inline(always)]
    fn mix<const GROUP: usize>(&self, left: &Branch<V, GROUP>, right: &mut Branch<V, GROUP>) {
        for index in 0..GROUP {
            let (x, z) = (left.x[index], left.z[index]);
            let sum = (self.xor)(right.x[index], x);
            right.x[index] = (self.xor)(sum, (self.swap_bytes)(z));
            right.z[index] = (self.xor)(right.z[index], z);
        }
    }
}
