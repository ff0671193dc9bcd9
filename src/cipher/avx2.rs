//! AVX2: sixteen blocks in a register.
//!
//! # What limits it
//!
//! A round of one branch is ten instructions: two rotations of three (two shifts, and an or
//! or addition), three exclusive ors and an addition. With 44 such rounds, what is left of
//! the first one, eight mixings and the way out, a vector takes some 490 instructions, 31 for
//! each block. AMD's cores begin four vector instructions a cycle, so 7.7 cycles a block is
//! the least; Intel's begin three, so 10.2.
//!
//! Four of the ten are shifts, and not every pipe takes those:
//!
//! | core | shifts | multiplications | least cycles a round | with one multiplication |
//! |---|---|---|---:|---:|
//! | Zen 1 and 2 | FP2 | FP0 | 4 | 3 |
//! | Zen 3 to 5 | FP1, FP2 | FP0, FP3 | 2.5, by all pipes | 2.5 |
//! | Haswell, Broadwell | p0 | p0 | 4 | 4 |
//! | Skylake, Ice Lake | p0, p1 | p0, p1 | 3.3, by all ports | 3.3 |
//!
//! (Zen 1 halves its vectors and takes twice as long.) So one shift of four is a
//! multiplication, whose longer latency hides behind the other vectors. The pipes are those
//! of GCC's machine model `znver1.md` and of LLVM's for the other cores; only Zen 5 was
//! measured.

use std::arch::asm;
use std::arch::x86_64::*;
use std::mem;

use super::kernel::Kernel;
use super::schedule::Schedule;
use super::task::Task;
use super::vectors::{Vectors, Words, methods};

/// Proof that this processor has AVX2.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    pub(super) fn perform(self, schedule: &Schedule, task: Task, blocks: &mut [u64]) {
        // SAFETY: `self` exists only where AVX2 was detected.
        unsafe { perform(schedule, task, blocks) }
    }
}

#[target_feature(enable = "avx2")]
fn perform(schedule: &Schedule, task: Task, blocks: &mut [u64]) {
    let swapped = _mm_setr_epi8(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    let vectors = Constants {
        swapped: opaque(_mm256_broadcastsi128_si256(swapped)),
        two_to_9: opaque(_mm256_set1_epi16(1 << 9)),
    };
    vectors.process(schedule, task, blocks);
}

/// Made by [`perform`] alone, so only where there is AVX2.
#[derive(Clone, Copy)]
struct Constants {
    swapped: __m256i,
    two_to_9: __m256i,
}

impl Vectors<16> for Constants {
    type V = __m256i;

    methods! {
        fn order(self) -> __m256i {
            // Unpacking stays within 128 bits, so a pair of lanes from the lower half is
            // followed by one from the upper half.
            _mm256_setr_epi16(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15)
        }
        fn splat(self, bits: u64) -> __m256i { _mm256_set1_epi64x(bits.cast_signed()) }
        fn xor(self, a: __m256i, b: __m256i) -> __m256i { _mm256_xor_si256(a, b) }
        fn add(self, a: __m256i, b: __m256i) -> __m256i { _mm256_add_epi16(a, b) }
        fn rotate_2(self, v: __m256i) -> __m256i {
            _mm256_or_si256(_mm256_slli_epi16::<2>(v), _mm256_srli_epi16::<14>(v))
        }
        fn rotate_9_add(self, v: __m256i, y: __m256i) -> __m256i {
            let high = _mm256_mullo_epi16(v, self.two_to_9);
            _mm256_add_epi16(high, _mm256_add_epi16(_mm256_srli_epi16::<7>(v), y))
        }
        fn swap_bytes(self, v: __m256i) -> __m256i { _mm256_shuffle_epi8(v, self.swapped) }
        fn interleave(self, words: Words<__m256i>) -> [u64; 16] { interleave(words, self.swapped) }
        fn deinterleave(self, blocks: [u64; 16]) -> Words<__m256i> { deinterleave(blocks) }
    }
}

/// `v`, of which the compiler does not know that it is a constant.
///
/// Else it turns the multiplication back into a shift, and swapping bytes after unpacking
/// into more shuffles than the two are.
#[target_feature(enable = "avx2")]
#[inline]
fn opaque(mut v: __m256i) -> __m256i {
    // SAFETY: there is no instruction in it.
    unsafe { asm!("/* {} */", inout(ymm_reg) v, options(pure, nomem, nostack, preserves_flags)) };
    v
}

#[target_feature(enable = "avx2")]
#[inline]
fn interleave([a, b, c, d]: [__m256i; 4], swapped: __m256i) -> [u64; 16] {
    let (ab_low, ab_high) = (_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
    let (cd_low, cd_high) = (_mm256_unpacklo_epi16(c, d), _mm256_unpackhi_epi16(c, d));
    let blocks = [
        _mm256_shuffle_epi8(_mm256_unpacklo_epi32(ab_low, cd_low), swapped),
        _mm256_shuffle_epi8(_mm256_unpackhi_epi32(ab_low, cd_low), swapped),
        _mm256_shuffle_epi8(_mm256_unpacklo_epi32(ab_high, cd_high), swapped),
        _mm256_shuffle_epi8(_mm256_unpackhi_epi32(ab_high, cd_high), swapped),
    ];
    // SAFETY: both sides are plain integers of the same size.
    unsafe { mem::transmute::<[__m256i; 4], [u64; 16]>(blocks) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn deinterleave(blocks: [u64; 16]) -> [__m256i; 4] {
    // The words of two blocks side by side: two first words, two second words, ...
    let pairs = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        1, 0, 9, 8, 3, 2, 11, 10, 5, 4, 13, 12, 7, 6, 15, 14,
    ));
    // SAFETY: both sides are plain integers of the same size.
    let vectors = unsafe { mem::transmute::<[u64; 16], [__m256i; 4]>(blocks) };
    let [p, q, r, s] = vectors.map(|blocks| _mm256_shuffle_epi8(blocks, pairs));
    let (ab_low, cd_low) = (_mm256_unpacklo_epi32(p, q), _mm256_unpackhi_epi32(p, q));
    let (ab_high, cd_high) = (_mm256_unpacklo_epi32(r, s), _mm256_unpackhi_epi32(r, s));
    [
        _mm256_unpacklo_epi64(ab_low, ab_high),
        _mm256_unpackhi_epi64(ab_low, ab_high),
        _mm256_unpacklo_epi64(cd_low, cd_high),
        _mm256_unpackhi_epi64(cd_low, cd_high),
    ]
}
