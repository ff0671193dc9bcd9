//! AVX-512BW: thirty-two blocks in a register.

use std::arch::x86_64::*;
use std::mem;

use super::schedule::Schedule;
use super::task::Task;
use super::vector_ops::VectorOps;
use super::walk;

/// Proof that this processor has AVX-512BW.
#[derive(Clone, Copy)]
pub(super) struct Avx512Bw(());

impl Avx512Bw {
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx512bw").then_some(Self(()))
    }

    pub(super) fn perform(self, schedule: &Schedule, task: Task, blocks: &mut [u64]) {
        // SAFETY: `self` exists only where AVX-512BW was detected.
        unsafe { perform(schedule, task, blocks) }
    }

    pub(super) fn keep_outside(self, numbers: &mut [u64], places: &mut [u16]) -> usize {
        // SAFETY: `self` exists only where AVX-512BW was detected.
        unsafe { keep_outside(numbers, places) }
    }
}

#[target_feature(enable = "avx512bw")]
fn perform(schedule: &Schedule, task: Task, blocks: &mut [u64]) {
    let ops = VectorOps {
        order: order(),
        splat: |bits: u64| _mm512_set1_epi64(bits.cast_signed()),
        xor: |a, b| _mm512_xor_si512(a, b),
        add: |a, b| _mm512_add_epi16(a, b),
        subtract: |a, b| _mm512_sub_epi16(a, b),
        rotate_2: |v| _mm512_or_si512(_mm512_slli_epi16::<2>(v), _mm512_srli_epi16::<14>(v)),
        rotate_9_add: |v, y| {
            _mm512_add_epi16(
                _mm512_or_si512(_mm512_slli_epi16::<9>(v), _mm512_srli_epi16::<7>(v)),
                y,
            )
        },
        rotate_2_back: |v| _mm512_or_si512(_mm512_srli_epi16::<2>(v), _mm512_slli_epi16::<14>(v)),
        rotate_9_back: |v| _mm512_or_si512(_mm512_srli_epi16::<9>(v), _mm512_slli_epi16::<7>(v)),
        swap_bytes: |v| swap_bytes(v),
        interleave: |words| interleave(words),
        deinterleave: |blocks| deinterleave(blocks),
    };
    ops.perform(schedule, task, blocks);
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
    // SAFETY: both sides are plain integers of the same size.
    let blocks = unsafe { mem::transmute::<[u64; 32], [__m512i; 4]>(blocks) };
    // The words of two blocks side by side: two first words, two second words, ...
    let pairs = _mm_setr_epi8(1, 0, 9, 8, 3, 2, 11, 10, 5, 4, 13, 12, 7, 6, 15, 14);
    let pairs = _mm512_broadcast_i32x4(pairs);
    let [p, q, r, s] = blocks.map(|blocks| _mm512_shuffle_epi8(blocks, pairs));
    let (ab_low, cd_low) = (_mm512_unpacklo_epi32(p, q), _mm512_unpackhi_epi32(p, q));
    let (ab_high, cd_high) = (_mm512_unpacklo_epi32(r, s), _mm512_unpackhi_epi32(r, s));
    [
        _mm512_unpacklo_epi64(ab_low, ab_high),
        _mm512_unpackhi_epi64(ab_low, ab_high),
        _mm512_unpacklo_epi64(cd_low, cd_high),
        _mm512_unpackhi_epi64(cd_low, cd_high),
    ]
}

/// [`walk::keep`] for numbers that lie outside, eight at a time.
#[target_feature(enable = "avx512bw")]
pub(super) fn keep_outside(numbers: &mut [u64], places: &mut [u16]) -> usize {
    let mut read = 0;
    let mut kept = 0;
    while let Some((eight, their_places)) = numbers[read..]
        .first_chunk::<8>()
        .zip(places[read..].first_chunk::<8>())
    {
        // SAFETY: both sides are plain integers of the same size.
        let eight = unsafe { mem::transmute::<[u64; 8], __m512i>(*eight) };
        // SAFETY: as above.
        let their_places = unsafe { mem::transmute::<[u16; 8], __m128i>(*their_places) };
        let their_places = _mm512_cvtepu16_epi64(their_places);
        // Outside are those whose highest bit is set, as the sign is.
        let is_kept = _mm512_cmplt_epi64_mask(eight, _mm512_setzero_si512());
        let eight = _mm512_maskz_compress_epi64(is_kept, eight);
        let their_places = _mm512_maskz_compress_epi64(is_kept, their_places);
        let their_places = _mm512_cvtepi64_epi16(their_places);
        // SAFETY: as above.
        let eight = unsafe { mem::transmute::<__m512i, [u64; 8]>(eight) };
        // SAFETY: as above.
        let their_places = unsafe { mem::transmute::<__m128i, [u16; 8]>(their_places) };
        // Over what is read already, since no more are kept than were read.
        numbers[kept..kept + 8].copy_from_slice(&eight);
        places[kept..kept + 8].copy_from_slice(&their_places);
        kept += is_kept.count_ones() as usize;
        read += 8;
    }
    for index in read..numbers.len() {
        let number = numbers[index];
        numbers[kept] = number;
        places[kept] = places[index];
        kept += usize::from(!walk::is_inside(number));
    }
    kept
}
