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
use super::task::Task;

/// Blocks in a batch. Their words take 512 bytes, well inside the first cache.
const BATCH: usize = 64;

/// The four words of the blocks of a batch.
type Words<'a> = [&'a mut [u16]; 4];

pub(super) fn perform(schedule: &Schedule, mut task: Task, blocks: &mut [u64]) {
    for batch in blocks.chunks_mut(BATCH) {
        let mut words = [[0; BATCH]; 4];
        let words = words.each_mut().map(|words| &mut words[..batch.len()]);
        match &mut task {
            Task::EncryptRun(shared) => {
                encrypt_next(schedule, shared, words, batch);
                shared.counter = shared.counter.wrapping_add(2 * batch.len() as u16);
            }
            Task::Encrypt => encrypt(schedule, words, batch),
        }
    }
}

fn encrypt_next(schedule: &Schedule, shared: &SharedWords, words: Words<'_>, out: &mut [u64]) {
    let [a, b, c, d] = words;
    for ((x, y), place) in a.iter_mut().zip(b.iter_mut()).zip(0..) {
        let counter: u16 = shared.counter.wrapping_add(2 * place);
        *x = (counter ^ shared.key).wrapping_add(shared.y);
        *y = *x ^ shared.z;
    }
    c.fill(shared.right.0);
    d.fill(shared.right.1);

    // The rest of the first step, whose right branch is the same in every block.
    let (mut left, mut right) = ([a, b], [c, d]);
    let [_, _, keys @ ..] = schedule.subkey(0);
    rounds(&mut left, keys);
    mix(&left, &mut right);
    finish(schedule, 1, [right, left], out);
}

fn encrypt(schedule: &Schedule, mut words: Words<'_>, blocks: &mut [u64]) {
    read(blocks, &mut words);
    let [a, b, c, d] = words;
    finish(schedule, 0, [[a, b], [c, d]], blocks);
}

/// The steps from `first` on, and the last key.
fn finish(schedule: &Schedule, first: usize, branches: [[&mut [u16]; 2]; 2], out: &mut [u64]) {
    let [mut left, mut right] = branches;
    for step in first..STEPS {
        rounds(&mut left, schedule.subkey(2 * step));
        rounds(&mut right, schedule.subkey(2 * step + 1));
        mix(&left, &mut right);
        (left, right) = (right, left);
    }
    let [a, b, c, d, ..] = *schedule.subkey(2 * STEPS);
    write([left, right], [a, b, c, d], out);
}

fn read(blocks: &[u64], [a, b, c, d]: &mut Words<'_>) {
    for (index, &block) in blocks.iter().enumerate() {
        [a[index], b[index], c[index], d[index]] = scalar::words(block);
    }
}

fn write(branches: [[&mut [u16]; 2]; 2], keys: [u16; 4], blocks: &mut [u64]) {
    let [[left_x, left_y], [right_x, right_y]] = branches;
    let [a, b, c, d] = keys;
    for index in 0..blocks.len() {
        blocks[index] = scalar::unwords([
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
