//! SPARX-64/128 one block at a time: the reference for every other backend.
//!
//! A block is two branches of two words. Each of 8 steps takes both branches
//! through 3 rounds (add the key, then the ARX-box), mixes the left branch into
//! the right one, and swaps the two. A last key is added at the end.

use super::arx::{Branch, arx_box, arx_box_back};
use super::schedule::{STEPS, Schedule, Subkey};

/// The ID of a raw.
pub(super) fn encrypt(schedule: &Schedule, raw: u64) -> u64 {
    let [a, b, c, d] = words(raw);
    let (mut left, mut right) = ((a, b), (c, d));
    for step in 0..STEPS {
        left = rounds(left, schedule.subkey(2 * step));
        right = rounds(right, schedule.subkey(2 * step + 1));
        (left, right) = (mix(left, right), left);
    }
    unwords(add_last_key(schedule, left, right))
}

/// The raw of an ID: [`encrypt`] run backwards.
pub(super) fn decrypt(schedule: &Schedule, id: u64) -> u64 {
    let [a, b, c, d] = words(id);
    let [a, b, c, d] = add_last_key(schedule, (a, b), (c, d));
    let (mut left, mut right) = ((a, b), (c, d));
    for step in (0..STEPS).rev() {
        // Mixing the same branch in twice changes nothing.
        (left, right) = (right, mix(right, left));
        left = rounds_back(left, schedule.subkey(2 * step));
        right = rounds_back(right, schedule.subkey(2 * step + 1));
    }
    unwords([left.0, left.1, right.0, right.1])
}

/// The cipher's view of a raw or an ID.
pub(super) fn words(block: u64) -> [u16; 4] {
    let [a, b, c, d, e, f, g, h] = block.to_le_bytes();
    [[a, b], [c, d], [e, f], [g, h]].map(u16::from_be_bytes)
}

/// The inverse of [`words`].
pub(super) fn unwords(words: [u16; 4]) -> u64 {
    let [[a, b], [c, d], [e, f], [g, h]] = words.map(u16::to_be_bytes);
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// One branch through rounds, one for each pair of keys.
pub(super) fn rounds<const KEYS: usize>((mut x, mut y): Branch, keys: &[u16; KEYS]) -> Branch {
    let (keys, _) = keys.as_chunks();
    for [key_x, key_y] in keys {
        (x, y) = arx_box((x ^ key_x, y ^ key_y));
    }
    (x, y)
}

/// [`rounds`] run backwards.
fn rounds_back((mut x, mut y): Branch, subkey: &Subkey) -> Branch {
    let (keys, _) = subkey.as_chunks();
    for [key_x, key_y] in keys.iter().rev() {
        (x, y) = arx_box_back((x, y));
        x ^= key_x;
        y ^= key_y;
    }
    (x, y)
}

/// The right branch with the left one mixed in.
pub(super) fn mix(left: Branch, right: Branch) -> Branch {
    let t = (left.0 ^ left.1).rotate_left(8);
    (right.0 ^ left.0 ^ t, right.1 ^ left.1 ^ t)
}

fn add_last_key(schedule: &Schedule, left: Branch, right: Branch) -> [u16; 4] {
    let [a, b, c, d, ..] = schedule.subkey(2 * STEPS);
    [left.0 ^ a, left.1 ^ b, right.0 ^ c, right.1 ^ d]
}
