//! NEON: eight blocks in a register.

use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;
use std::mem;

use super::casts::casts;
use super::kernel::Kernel;
use super::lanes;
use super::schedule::Schedule;
use super::task::Task;
use super::vector_ops::VectorOps;
use super::walk::{self, Lists};

/// Proof that this processor has NEON.
#[derive(Clone, Copy)]
pub(super) struct Neon(());

impl Neon {
    pub(super) fn detect() -> Option<Self> {
        is_aarch64_feature_detected!("neon").then_some(Self(()))
    }

    pub(super) fn perform(
        self,
        schedule: &Schedule,
        task: Task,
        blocks: &mut [u64],
        lists: Option<Lists<'_>>,
    ) {
        // SAFETY: `self` exists only where NEON was detected.
        unsafe { perform(schedule, task, blocks, lists) }
    }
}

#[target_feature(enable = "neon")]
fn perform(schedule: &Schedule, task: Task, blocks: &mut [u64], lists: Option<Lists<'_>>) {
    let low = vcreate_u16(0x0003_0002_0001_0000);
    let high = vcreate_u16(0x0007_0006_0005_0004);
    let ops = VectorOps {
        order: vcombine_u16(low, high),
        splat: |bits: u64| vreinterpretq_u16_u64(vdupq_n_u64(bits)),
        xor: |a, b| veorq_u16(a, b),
        add: |a, b| vaddq_u16(a, b),
        subtract: |a, b| vsubq_u16(a, b),
        // The bits shifted out on the left are inserted on the right.
        rotate_2: |v| vsriq_n_u16::<14>(vshlq_n_u16::<2>(v), v),
        rotate_9_add: |v, y| vaddq_u16(vsriq_n_u16::<7>(vshlq_n_u16::<9>(v), v), y),
        rotate_2_back: |v| vsliq_n_u16::<14>(vshrq_n_u16::<2>(v), v),
        rotate_9_back: |v| vsliq_n_u16::<7>(vshrq_n_u16::<9>(v), v),
        swap_bytes: |v| swap_bytes(v),
        interleave: |words| interleave(words),
        deinterleave: |blocks| deinterleave(blocks),
        outside: |d| outside(d),
        select: |bits, a, b| select(bits, a, b),
        compress: |v, bits, to: &mut [u16; 8]| compress(v, bits, to),
        expand: |v, bits, from: &[u16; 8]| expand(v, bits, from),
        load: |from: &[u16; 8]| load(from),
        store: |v| store(v),
        pack: |words| pack(words),
        unpack: |blocks| unpack(blocks),
    };
    match lists {
        Some(lists) => walk::walk_in_vectors(&ops, schedule, task, blocks, lists),
        None => ops.perform(schedule, task, blocks),
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

/// Which lanes of fourth words are of blocks outside of the domain of walks.
#[target_feature(enable = "neon")]
#[inline]
fn outside(d: uint16x8_t) -> u32 {
    let is_outside = vtstq_u16(d, vdupq_n_u16(0x80));
    u32::from(vaddvq_u16(vandq_u16(is_outside, bits_of_lanes())))
}

#[target_feature(enable = "neon")]
#[inline]
fn select(bits: u32, a: uint16x8_t, b: uint16x8_t) -> uint16x8_t {
    vbslq_u16(vtstq_u16(vdupq_n_u16(bits as u16), bits_of_lanes()), a, b)
}

#[target_feature(enable = "neon")]
#[inline]
fn bits_of_lanes() -> uint16x8_t {
    let low = vcreate_u16(0x0008_0004_0002_0001);
    let high = vcreate_u16(0x0080_0040_0020_0010);
    vcombine_u16(low, high)
}

#[target_feature(enable = "neon")]
#[inline]
fn compress(v: uint16x8_t, bits: u32, to: &mut [u16; 8]) {
    let order = bytes(lanes::compressed(bits));
    *to = store(vreinterpretq_u16_u8(vqtbl1q_u8(
        vreinterpretq_u8_u16(v),
        order,
    )));
}

#[target_feature(enable = "neon")]
#[inline]
fn expand(v: uint16x8_t, bits: u32, from: &[u16; 8]) -> uint16x8_t {
    let order = bytes(lanes::expanded(bits));
    let (v, from) = (vreinterpretq_u8_u16(v), vreinterpretq_u8_u16(load(from)));
    // A byte keeps its value where the order has a place that does not exist.
    vreinterpretq_u16_u8(vqtbx1q_u8(v, from, order))
}

#[target_feature(enable = "neon")]
#[inline]
fn bytes(order: &[u8; 16]) -> uint8x16_t {
    // SAFETY: both sides are plain integers of the same size.
    unsafe { mem::transmute::<[u8; 16], uint8x16_t>(*order) }
}

casts!("neon", uint16x8_t, 8);
