//! AVX-512BW: thirty-two blocks in a register.

use std::arch::x86_64::*;
use std::mem;

use super::kernel::Kernel;
use super::schedule::Schedule;
use super::task::Task;
use super::vectors::{Vectors, Words, methods};

/// Proof that this processor has AVX-512BW.
#[derive(Clone, Copy)]
pub(super) struct Avx512Bw(());

impl Avx512Bw {
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx512bw").then_some(Self(()))
    }

    pub(super) fn perform(self, schedule: &Schedule, task: Task, blocks: &mut [u64]) {
        // SAFETY: `self` exists only where AVX-512BW was detected.
        unsafe { perform(self, schedule, task, blocks) }
    }
}

#[target_feature(enable = "avx512bw")]
fn perform(vectors: Avx512Bw, schedule: &Schedule, task: Task, blocks: &mut [u64]) {
    vectors.process(schedule, task, blocks);
}

impl Vectors<32> for Avx512Bw {
    type V = __m512i;

    methods! {
        fn order(self) -> __m512i { order() }
        fn splat(self, bits: u64) -> __m512i { _mm512_set1_epi64(bits.cast_signed()) }
        fn xor(self, a: __m512i, b: __m512i) -> __m512i { _mm512_xor_si512(a, b) }
        fn add(self, a: __m512i, b: __m512i) -> __m512i { _mm512_add_epi16(a, b) }
        fn rotate_2(self, v: __m512i) -> __m512i {
            _mm512_or_si512(_mm512_slli_epi16::<2>(v), _mm512_srli_epi16::<14>(v))
        }
        fn rotate_9_add(self, v: __m512i, y: __m512i) -> __m512i {
            let rotated = _mm512_or_si512(_mm512_slli_epi16::<9>(v), _mm512_srli_epi16::<7>(v));
            _mm512_add_epi16(rotated, y)
        }
        fn swap_bytes(self, v: __m512i) -> __m512i { swap_bytes(v) }
        fn interleave(self, words: Words<__m512i>) -> [u64; 32] { interleave(words) }
        fn deinterleave(self, blocks: [u64; 32]) -> Words<__m512i> { deinterleave(blocks) }
    }
}

/// The order of lanes that [`interleave`] undoes.
///
/// Unpacking stays within 128 bits, so the pairs of lanes in a vector of blocks
/// come from its four quarters in turn.
#[target_feature(enable = "avx512bw")]
#[inline]
pub(super) fn order() -> __m512i {
    // Listed from the last lane to the first.
    _mm512_set_epi16(
        31, 30, 23, 22, 15, 14, 7, 6, 29, 28, 21, 20, 13, 12, 5, 4, //
        27, 26, 19, 18, 11, 10, 3, 2, 25, 24, 17, 16, 9, 8, 1, 0,
    )
}

#[target_feature(enable = "avx512bw")]
#[inline]
pub(super) fn swap_bytes(v: __m512i) -> __m512i {
    let swapped = _mm_setr_epi8(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(swapped))
}

#[target_feature(enable = "avx512bw")]
#[inline]
pub(super) fn interleave([a, b, c, d]: [__m512i; 4]) -> [u64; 32] {
    let (ab_low, ab_high) = (_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b));
    let (cd_low, cd_high) = (_mm512_unpacklo_epi16(c, d), _mm512_unpackhi_epi16(c, d));
    let blocks = [
        swap_bytes(_mm512_unpacklo_epi32(ab_low, cd_low)),
        swap_bytes(_mm512_unpackhi_epi32(ab_low, cd_low)),
        swap_bytes(_mm512_unpacklo_epi32(ab_high, cd_high)),
        swap_bytes(_mm512_unpackhi_epi32(ab_high, cd_high)),
    ];
    // SAFETY: both sides are plain integers of the same size.
    unsafe { mem::transmute::<[__m512i; 4], [u64; 32]>(blocks) }
}

#[target_feature(enable = "avx512bw")]
#[inline]
pub(super) fn deinterleave(blocks: [u64; 32]) -> [__m512i; 4] {
    // The words of two blocks side by side: two first words, two second words, ...
    let pairs = _mm_setr_epi8(1, 0, 9, 8, 3, 2, 11, 10, 5, 4, 13, 12, 7, 6, 15, 14);
    let pairs = _mm512_broadcast_i32x4(pairs);
    // SAFETY: both sides are plain integers of the same size.
    let vectors = unsafe { mem::transmute::<[u64; 32], [__m512i; 4]>(blocks) };
    let [p, q, r, s] = vectors.map(|blocks| _mm512_shuffle_epi8(blocks, pairs));
    let (ab_low, cd_low) = (_mm512_unpacklo_epi32(p, q), _mm512_unpackhi_epi32(p, q));
    let (ab_high, cd_high) = (_mm512_unpacklo_epi32(r, s), _mm512_unpackhi_epi32(r, s));
    [
        _mm512_unpacklo_epi64(ab_low, ab_high),
        _mm512_unpackhi_epi64(ab_low, ab_high),
        _mm512_unpacklo_epi64(cd_low, cd_high),
        _mm512_unpackhi_epi64(cd_low, cd_high),
    ]
}
