//! SSE4.1: eight blocks in a register.

use std::arch::x86_64::*;
use std::mem;

use super::kernel::Kernel;
use super::schedule::Schedule;
use super::task::Task;
use super::vectors::{Vectors, Words, methods};

/// Proof that this processor has SSE4.1.
#[derive(Clone, Copy)]
pub(super) struct Sse41(());

impl Sse41 {
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("sse4.1").then_some(Self(()))
    }

    pub(super) fn perform(self, schedule: &Schedule, task: Task, blocks: &mut [u64]) {
        // SAFETY: `self` exists only where SSE4.1 was detected.
        unsafe { perform(self, schedule, task, blocks) }
    }
}

#[target_feature(enable = "sse4.1")]
fn perform(vectors: Sse41, schedule: &Schedule, task: Task, blocks: &mut [u64]) {
    vectors.process(schedule, task, blocks);
}

impl Vectors<8> for Sse41 {
    type V = __m128i;

    methods! {
        fn order(self) -> __m128i { _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7) }
        fn splat(self, bits: u64) -> __m128i { _mm_set1_epi64x(bits.cast_signed()) }
        fn xor(self, a: __m128i, b: __m128i) -> __m128i { _mm_xor_si128(a, b) }
        fn add(self, a: __m128i, b: __m128i) -> __m128i { _mm_add_epi16(a, b) }
        fn rotate_2(self, v: __m128i) -> __m128i {
            _mm_or_si128(_mm_slli_epi16::<2>(v), _mm_srli_epi16::<14>(v))
        }
        fn rotate_9_add(self, v: __m128i, y: __m128i) -> __m128i {
            _mm_add_epi16(_mm_or_si128(_mm_slli_epi16::<9>(v), _mm_srli_epi16::<7>(v)), y)
        }
        fn swap_bytes(self, v: __m128i) -> __m128i { swap_bytes(v) }
        fn interleave(self, words: Words<__m128i>) -> [u64; 8] { interleave(words) }
        fn deinterleave(self, blocks: [u64; 8]) -> Words<__m128i> { deinterleave(blocks) }
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
    // SAFETY: both sides are plain integers of the same size.
    unsafe { mem::transmute::<[__m128i; 4], [u64; 8]>(blocks) }
}

#[target_feature(enable = "sse4.1")]
#[inline]
fn deinterleave(blocks: [u64; 8]) -> [__m128i; 4] {
    // The words of two blocks side by side: two first words, two second words, ...
    let pairs = _mm_setr_epi8(1, 0, 9, 8, 3, 2, 11, 10, 5, 4, 13, 12, 7, 6, 15, 14);
    // SAFETY: both sides are plain integers of the same size.
    let vectors = unsafe { mem::transmute::<[u64; 8], [__m128i; 4]>(blocks) };
    let [p, q, r, s] = vectors.map(|blocks| _mm_shuffle_epi8(blocks, pairs));
    let (ab_low, cd_low) = (_mm_unpacklo_epi32(p, q), _mm_unpackhi_epi32(p, q));
    let (ab_high, cd_high) = (_mm_unpacklo_epi32(r, s), _mm_unpackhi_epi32(r, s));
    [
        _mm_unpacklo_epi64(ab_low, ab_high),
        _mm_unpackhi_epi64(ab_low, ab_high),
        _mm_unpacklo_epi64(cd_low, cd_high),
        _mm_unpackhi_epi64(cd_low, cd_high),
    ]
}
