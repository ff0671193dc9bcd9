//! Runs on any processor: plain loops over arrays of words.
//!
//! Each loop does the same to all blocks of a batch and is simple enough for
//! the compiler to vectorise with what the target guarantees (SSE2 on x86-64,
//! NEON on 64-bit Arm). Going through memory once for every three rounds is
//! what makes that dependable: the same operations on short arrays held in
//! registers are left scalar on x86-64.

use super::scalar;
use super::schedule::{STEPS, Schedule};
use super::shared_words::SharedWords;

/// Blocks in a batch. Their words take 512 bytes, well inside the first cache.
const BATCH: usize = 64;

/// Fills `out`, at most as long as the section, with its IDs.
pub(super) fn encrypt(schedule: &Schedule, shared: &SharedWords, out: &mut [u64]) {
    let mut shared = *shared;
    for batch in out.chunks_mut(BATCH) {
        encrypt_batch(schedule, &shared, batch);
        shared.counter = shared.counter.wrapping_add(2 * batch.len() as u16);
    }
}

fn encrypt_batch(schedule: &Schedule, shared: &SharedWords, out: &mut [u64]) {
    let mut words = [
        [0; BATCH],
        [0; BATCH],
        [shared.right.0; BATCH],
        [shared.right.1; BATCH],
    ];
    let [a, b, c, d] = words.each_mut().map(|words| &mut words[..out.len()]);
    for ((x, y), place) in a.iter_mut().zip(b.iter_mut()).zip(0..) {
        let counter: u16 = shared.counter.wrapping_add(2 * place);
        *x = (counter ^ shared.key).wrapping_add(shared.y);
        *y = *x ^ shared.z;
    }

    // What is left of the first step, whose right branch is the same in every block.
    let (mut left, mut right) = ([a, b], [c, d]);
    let [_, _, keys @ ..] = schedule.subkey(0);
    rounds(&mut left, keys);
    mix(&left, &mut right);
    (left, right) = (right, left);

    for step in 1..STEPS {
        rounds(&mut left, schedule.subkey(2 * step));
        rounds(&mut right, schedule.subkey(2 * step + 1));
        mix(&left, &mut right);
        (left, right) = (right, left);
    }

    let [a, b, c, d, ..] = schedule.subkey(2 * STEPS);
    let [left_x, left_y] = left;
    let [right_x, right_y] = right;
    for index in 0..out.len() {
        out[index] = scalar::unwords([
            left_x[index] ^ a,
            left_y[index] ^ b,
            right_x[index] ^ c,
            right_y[index] ^ d,
        ]);
    }
}

fn rounds<const KEYS: usize>([x, y]: &mut [&mut [u16]; 2], keys: &[u16; KEYS]) {
    for (x, y) in x.iter_mut().zip(y.iter_mut()) {
        (*x, *y) = scalar::rounds((*x, *y), keys);
    }
}

fn mix(left: &[&mut [u16]; 2], right: &mut [&mut [u16]; 2]) {
    let [left_x, left_y] = left;
    let [right_x, right_y] = right;
    let left = left_x.iter().zip(left_y.iter());
    let right = right_x.iter_mut().zip(right_y.iter_mut());
    for ((left_x, left_y), (right_x, right_y)) in left.zip(right) {
        (*right_x, *right_y) = scalar::mix((*left_x, *left_y), (*right_x, *right_y));
    }
}
