//! AVX2: sixteen blocks in a register.

use std::arch::x86_64::*;
use std::mem;

use super::schedule::Schedule;
use super::shared_words::SharedWords;
use super::vector_ops::VectorOps;

/// Proof that this processor has AVX2.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    pub(super) fn encrypt(self, schedule: &Schedule, shared: &SharedWords, out: &mut [u64]) {
        // SAFETY: `self` exists only where AVX2 was detected.
        unsafe { encrypt(schedule, shared, out) }
    }
}

#[target_feature(enable = "avx2")]
fn encrypt(schedule: &Schedule, shared: &SharedWords, out: &mut [u64]) {
    let swapped = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14,
    ));
    let ops = VectorOps {
        // Unpacking stays within 128 bits, so a pair of lanes from the lower
        // half is followed by one from the upper half.
        order: _mm256_setr_epi16(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15),
        splat: |bits: u64| _mm256_set1_epi64x(bits.cast_signed()),
        xor: |a, b| _mm256_xor_si256(a, b),
        add: |a, b| _mm256_add_epi16(a, b),
        rotate_2: |v| _mm256_or_si256(_mm256_slli_epi16::<2>(v), _mm256_srli_epi16::<14>(v)),
        rotate_9: |v| _mm256_or_si256(_mm256_slli_epi16::<9>(v), _mm256_srli_epi16::<7>(v)),
        swap_bytes: |v| _mm256_shuffle_epi8(v, swapped),
        interleave: |words| interleave(words),
    };
    ops.encrypt(schedule, shared, out);
}

#[target_feature(enable = "avx2")]
#[inline]
fn interleave([a, b, c, d]: [__m256i; 4]) -> [u64; 16] {
    let (ab_low, ab_high) = (_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
    let (cd_low, cd_high) = (_mm256_unpacklo_epi16(c, d), _mm256_unpackhi_epi16(c, d));
    let blocks = [
        _mm256_unpacklo_epi32(ab_low, cd_low),
        _mm256_unpackhi_epi32(ab_low, cd_low),
        _mm256_unpacklo_epi32(ab_high, cd_high),
        _mm256_unpackhi_epi32(ab_high, cd_high),
    ];
    // SAFETY: both sides are plain integers of the same size.
    unsafe { mem::transmute::<[__m256i; 4], [u64; 16]>(blocks) }
}
