//! AVX-512BW: thirty-two blocks in a register.

use std::arch::x86_64::*;

use super::casts::casts;
use super::kernel::Kernel;
use super::schedule::Schedule;
use super::task::Task;
use super::vector_ops::VectorOps;
use super::walk::{self, Lists};

/// Proof that this processor has AVX-512BW, and POPCNT as all that do.
#[derive(Clone, Copy)]
pub(super) struct Avx512Bw(());

impl Avx512Bw {
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("popcnt"))
            .then_some(Self(()))
    }

    pub(super) fn perform(
        self,
        schedule: &Schedule,
        task: Task,
        blocks: &mut [u64],
        lists: Option<Lists<'_>>,
    ) {
        // SAFETY: `self` exists only where AVX-512BW and POPCNT were detected.
        unsafe { perform(schedule, task, blocks, lists) }
    }
}

#[target_feature(enable = "avx512bw,popcnt")]
fn perform(schedule: &Schedule, task: Task, blocks: &mut [u64], lists: Option<Lists<'_>>) {
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
        outside: |d| outside(d),
        select: |bits, a, b| _mm512_mask_blend_epi16(bits, b, a),
        compress: |v, bits: u32, to: &mut [u16; 32]| {
            let lower = (bits & 0xffff).count_ones() as usize;
            let lanes = store(_mm512_permutexvar_epi16(compressed(bits), v));
            to[..16].copy_from_slice(&lanes[..16]);
            to[lower..lower + 16].copy_from_slice(&lanes[16..]);
        },
        expand: |v, bits: u32, from: &[u16; 32]| {
            let lower = (bits & 0xffff).count_ones() as usize;
            let mut lanes = *from;
            lanes[16..].copy_from_slice(&from[lower..lower + 16]);
            _mm512_mask_permutexvar_epi16(v, bits, expanded(bits), load(&lanes))
        },
        load: |from: &[u16; 32]| load(from),
        store: |v| store(v),
        pack: |words| pack(words),
        unpack: |blocks| unpack(blocks),
    };
    match lists {
        Some(lists) => walk::walk_in_vectors(&ops, schedule, task, blocks, lists),
        None => ops.perform(schedule, task, blocks),
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
    pack(blocks)
}

#[target_feature(enable = "avx512bw")]
#[inline]
pub(super) fn deinterleave(blocks: [u64; 32]) -> [__m512i; 4] {
    // The words of two blocks side by side: two first words, two second words, ...
    let pairs = _mm_setr_epi8(1, 0, 9, 8, 3, 2, 11, 10, 5, 4, 13, 12, 7, 6, 15, 14);
    let pairs = _mm512_broadcast_i32x4(pairs);
    let [p, q, r, s] = unpack(blocks).map(|blocks| _mm512_shuffle_epi8(blocks, pairs));
    let (ab_low, cd_low) = (_mm512_unpacklo_epi32(p, q), _mm512_unpackhi_epi32(p, q));
    let (ab_high, cd_high) = (_mm512_unpacklo_epi32(r, s), _mm512_unpackhi_epi32(r, s));
    [
        _mm512_unpacklo_epi64(ab_low, ab_high),
        _mm512_unpackhi_epi64(ab_low, ab_high),
        _mm512_unpacklo_epi64(cd_low, cd_high),
        _mm512_unpackhi_epi64(cd_low, cd_high),
    ]
}

/// Which lanes of fourth words are of blocks outside of the domain of walks.
#[target_feature(enable = "avx512bw")]
#[inline]
pub(super) fn outside(d: __m512i) -> u32 {
    _mm512_test_epi16_mask(d, _mm512_set1_epi16(0x80))
}

/// For each half of the lanes, the places of those whose bit is set, side by side.
#[target_feature(enable = "avx512bw")]
#[inline]
fn compressed(bits: u32) -> __m512i {
    let lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    let lower = _mm512_maskz_compress_epi32(bits as u16, lanes);
    let higher = _mm512_add_epi32(lanes, _mm512_set1_epi32(16));
    let higher = _mm512_maskz_compress_epi32((bits >> 16) as u16, higher);
    halves(lower, higher)
}

/// The inverse of [`compressed`].
#[target_feature(enable = "avx512bw")]
#[inline]
fn expanded(bits: u32) -> __m512i {
    let lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    let lower = _mm512_maskz_expand_epi32(bits as u16, lanes);
    let higher = _mm512_add_epi32(lanes, _mm512_set1_epi32(16));
    let higher = _mm512_maskz_expand_epi32((bits >> 16) as u16, higher);
    halves(lower, higher)
}

/// Lanes of 16 bits from twice sixteen of 32 bits.
#[target_feature(enable = "avx512bw")]
#[inline]
fn halves(lower: __m512i, higher: __m512i) -> __m512i {
    let lower = _mm512_castsi256_si512(_mm512_cvtepi32_epi16(lower));
    _mm512_inserti64x4::<1>(lower, _mm512_cvtepi32_epi16(higher))
}

casts!("avx512bw", __m512i, 32);
