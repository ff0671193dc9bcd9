//! SSE4.1: eight blocks in a register.

use std::arch::x86_64::*;
use std::mem;

use super::casts::casts;
use super::kernel::Kernel;
use super::lanes;
use super::schedule::Schedule;
use super::task::Task;
use super::vector_ops::VectorOps;
use super::walk::{self, Lists};

/// Proof that this processor has SSE4.1.
#[derive(Clone, Copy)]
pub(super) struct Sse41(());

impl Sse41 {
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("sse4.1").then_some(Self(()))
    }

    pub(super) fn perform(
        self,
        schedule: &Schedule,
        task: Task,
        blocks: &mut [u64],
        lists: Option<Lists<'_>>,
    ) {
        // SAFETY: `self` exists only where SSE4.1 was detected.
        unsafe { perform(schedule, task, blocks, lists) }
    }
}

#[target_feature(enable = "sse4.1")]
fn perform(schedule: &Schedule, task: Task, blocks: &mut [u64], lists: Option<Lists<'_>>) {
    let ops = VectorOps {
        order: _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7),
        splat: |bits: u64| _mm_set1_epi64x(bits.cast_signed()),
        xor: |a, b| _mm_xor_si128(a, b),
        add: |a, b| _mm_add_epi16(a, b),
        subtract: |a, b| _mm_sub_epi16(a, b),
        rotate_2: |v| _mm_or_si128(_mm_slli_epi16::<2>(v), _mm_srli_epi16::<14>(v)),
        rotate_9_add: |v, y| {
            _mm_add_epi16(
                _mm_or_si128(_mm_slli_epi16::<9>(v), _mm_srli_epi16::<7>(v)),
                y,
            )
        },
        rotate_2_back: |v| _mm_or_si128(_mm_srli_epi16::<2>(v), _mm_slli_epi16::<14>(v)),
        rotate_9_back: |v| _mm_or_si128(_mm_srli_epi16::<9>(v), _mm_slli_epi16::<7>(v)),
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

#[target_feature(enable = "sse4.1")]
#[inline]
fn swap_bytes(v: __m128i) -> __m128i {
    let swapped = _mm_setr_epi8(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    _mm_shuffle_epi8(v, swapped)
}

#[target_feature(enable = "sse4.1")]
#[inline]
fn interleave([a, b, c, d]: [__m128i; 4]) -> [u64; 8] {
    let (ab_low, ab_high) = (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b));
    let (cd_low, cd_high) = (_mm_unpacklo_epi16(c, d), _mm_unpackhi_epi16(c, d));
    let blocks = [
        swap_bytes(_mm_unpacklo_epi32(ab_low, cd_low)),
        swap_bytes(_mm_unpackhi_epi32(ab_low, cd_low)),
        swap_bytes(_mm_unpacklo_epi32(ab_high, cd_high)),
        swap_bytes(_mm_unpackhi_epi32(ab_high, cd_high)),
    ];
    pack(blocks)
}

#[target_feature(enable = "sse4.1")]
#[inline]
fn deinterleave(blocks: [u64; 8]) -> [__m128i; 4] {
    // The words of two blocks side by side: two first words, two second words, ...
    let pairs = _mm_setr_epi8(1, 0, 9, 8, 3, 2, 11, 10, 5, 4, 13, 12, 7, 6, 15, 14);
    let [p, q, r, s] = unpack(blocks).map(|blocks| _mm_shuffle_epi8(blocks, pairs));
    let (ab_low, cd_low) = (_mm_unpacklo_epi32(p, q), _mm_unpackhi_epi32(p, q));
    let (ab_high, cd_high) = (_mm_unpacklo_epi32(r, s), _mm_unpackhi_epi32(r, s));
    [
        _mm_unpacklo_epi64(ab_low, ab_high),
        _mm_unpackhi_epi64(ab_low, ab_high),
        _mm_unpacklo_epi64(cd_low, cd_high),
        _mm_unpackhi_epi64(cd_low, cd_high),
    ]
}

/// Which lanes of fourth words are of blocks outside of the domain of walks.
#[target_feature(enable = "sse4.1")]
#[inline]
fn outside(d: __m128i) -> u32 {
    let signs = _mm_slli_epi16::<8>(d);
    _mm_movemask_epi8(_mm_packs_epi16(signs, _mm_setzero_si128())).cast_unsigned()
}

#[target_feature(enable = "sse4.1")]
#[inline]
fn select(bits: u32, a: __m128i, b: __m128i) -> __m128i {
    let lanes = _mm_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128);
    let is_set = _mm_and_si128(_mm_set1_epi16(bits as i16), lanes);
    _mm_blendv_epi8(b, a, _mm_cmpeq_epi16(is_set, lanes))
}

#[target_feature(enable = "sse4.1")]
#[inline]
fn compress(v: __m128i, bits: u32, to: &mut [u16; 8]) {
    *to = store(_mm_shuffle_epi8(v, bytes(lanes::compressed(bits))));
}

#[target_feature(enable = "sse4.1")]
#[inline]
fn expand(v: __m128i, bits: u32, from: &[u16; 8]) -> __m128i {
    let order = bytes(lanes::expanded(bits));
    _mm_blendv_epi8(_mm_shuffle_epi8(load(from), order), v, order)
}

#[target_feature(enable = "sse4.1")]
#[inline]
fn bytes(order: &[u8; 16]) -> __m128i {
    // SAFETY: both sides are plain integers of the same size.
    unsafe { mem::transmute::<[u8; 16], __m128i>(*order) }
}

casts!("sse4.1", __m128i, 8);
