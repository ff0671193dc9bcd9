//! NEON: eight blocks in a register.

use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;

use super::kernel::Kernel;
use super::schedule::Schedule;
use super::task::Task;
use super::vectors::{Vectors, Words, methods};

/// Proof that this processor has NEON.
#[derive(Clone, Copy)]
pub(super) struct Neon(());

impl Neon {
    pub(super) fn detect() -> Option<Self> {
        is_aarch64_feature_detected!("neon").then_some(Self(()))
    }

    pub(super) fn perform(self, schedule: &Schedule, task: Task, blocks: &mut [u64]) {
        // SAFETY: `self` exists only where NEON was detected.
        unsafe { perform(self, schedule, task, blocks) }
    }
}

#[target_feature(enable = "neon")]
fn perform(vectors: Neon, schedule: &Schedule, task: Task, blocks: &mut [u64]) {
    vectors.process(schedule, task, blocks);
}

impl Vectors<8> for Neon {
    type V = uint16x8_t;

    methods! {
        fn order(self) -> uint16x8_t {
            vcombine_u16(vcreate_u16(0x0003_0002_0001_0000), vcreate_u16(0x0007_0006_0005_0004))
        }
        fn splat(self, bits: u64) -> uint16x8_t { vreinterpretq_u16_u64(vdupq_n_u64(bits)) }
        fn xor(self, a: uint16x8_t, b: uint16x8_t) -> uint16x8_t { veorq_u16(a, b) }
        fn add(self, a: uint16x8_t, b: uint16x8_t) -> uint16x8_t { vaddq_u16(a, b) }
        // The bits shifted out on the left are inserted on the right.
        fn rotate_2(self, v: uint16x8_t) -> uint16x8_t {
            vsriq_n_u16::<14>(vshlq_n_u16::<2>(v), v)
        }
        fn rotate_9_add(self, v: uint16x8_t, y: uint16x8_t) -> uint16x8_t {
            vaddq_u16(vsriq_n_u16::<7>(vshlq_n_u16::<9>(v), v), y)
        }
        fn swap_bytes(self, v: uint16x8_t) -> uint16x8_t { swap_bytes(v) }
        fn interleave(self, words: Words<uint16x8_t>) -> [u64; 8] { interleave(words) }
        fn deinterleave(self, blocks: [u64; 8]) -> Words<uint16x8_t> { deinterleave(blocks) }
    }
}

#[target_feature(enable = "neon")]
#[inline]
fn swap_bytes(v: uint16x8_t) -> uint16x8_t {
    vreinterpretq_u16_u8(vrev16q_u8(vreinterpretq_u8_u16(v)))
}

#[target_feature(enable = "neon")]
#[inline]
fn interleave([a, b, c, d]: [uint16x8_t; 4]) -> [u64; 8] {
    let words = uint16x8x4_t(swap_bytes(a), swap_bytes(b), swap_bytes(c), swap_bytes(d));
    let mut blocks = [0; 8];
    let place = blocks.as_mut_ptr().cast::<u16>();
    // SAFETY: `blocks` has room for the 32 words that are written.
    unsafe { vst4q_u16(place, words) };
    blocks
}

#[target_feature(enable = "neon")]
#[inline]
fn deinterleave(blocks: [u64; 8]) -> [uint16x8_t; 4] {
    let place = blocks.as_ptr().cast::<u16>();
    // SAFETY: `blocks` has the 32 words that are read.
    let uint16x8x4_t(a, b, c, d) = unsafe { vld4q_u16(place) };
    [swap_bytes(a), swap_bytes(b), swap_bytes(c), swap_bytes(d)]
}
