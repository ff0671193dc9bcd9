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

use super::casts::casts;
use super::kernel::Kernel;
use super::lanes;
use super::schedule::Schedule;
use super::task::Task;
use super::vector_ops::VectorOps;
use super::walk::{self, Lists};

/// Proof that this processor has AVX2, and POPCNT as all that do.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")).then_some(Self(()))
    }

    pub(super) fn perform(
        self,
        schedule: &Schedule,
        task: Task,
        blocks: &mut [u64],
        lists: Option<Lists<'_>>,
    ) {
        // SAFETY: `self` exists only where AVX2 and POPCNT were detected.
        unsafe { perform(schedule, task, blocks, lists) }
    }
}

#[target_feature(enable = "avx2,popcnt")]
fn perform(schedule: &Schedule, task: Task, blocks: &mut [u64], lists: Option<Lists<'_>>) {
    let swapped = opaque(_mm256_broadcastsi128_si256(_mm_setr_epi8(
        1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14,
    )));
    let two_to_9 = opaque(_mm256_set1_epi16(1 << 9));
    let ops = VectorOps {
        // Unpacking stays within 128 bits, so a pair of lanes from the lower
        // half is followed by one from the upper half.
        order: _mm256_setr_epi16(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15),
        splat: |bits: u64| _mm256_set1_epi64x(bits.cast_signed()),
        xor: |a, b| _mm256_xor_si256(a, b),
        add: |a, b| _mm256_add_epi16(a, b),
        subtract: |a, b| _mm256_sub_epi16(a, b),
        rotate_2: |v| _mm256_or_si256(_mm256_slli_epi16::<2>(v), _mm256_srli_epi16::<14>(v)),
        rotate_9_add: |v, y| {
            _mm256_add_epi16(
                _mm256_mullo_epi16(v, two_to_9),
                _mm256_add_epi16(_mm256_srli_epi16::<7>(v), y),
            )
        },
        rotate_2_back: |v| _mm256_or_si256(_mm256_srli_epi16::<2>(v), _mm256_slli_epi16::<14>(v)),
        rotate_9_back: |v| _mm256_or_si256(_mm256_srli_epi16::<9>(v), _mm256_slli_epi16::<7>(v)),
        swap_bytes: |v| _mm256_shuffle_epi8(v, swapped),
        interleave: |words| interleave(words, swapped),
        deinterleave: |blocks| deinterleave(blocks),
        outside: |d| outside(d),
        select: |bits, a, b| select(bits, a, b),
        compress: |v, bits, to: &mut [u16; 16]| compress(v, bits, to),
        expand: |v, bits, from: &[u16; 16]| expand(v, bits, from),
        load: |from: &[u16; 16]| load(from),
        store: |v| store(v),
        pack: |words| pack(words),
        unpack: |blocks| unpack(blocks),
    };
    match lists {
        Some(lists) => walk::walk_in_vectors(&ops, schedule, task, blocks, lists),
        None => ops.perform(schedule, task, blocks),
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
    pack(blocks)
}

#[target_feature(enable = "avx2")]
#[inline]
fn deinterleave(blocks: [u64; 16]) -> [__m256i; 4] {
    // The words of two blocks side by side: two first words, two second words, ...
    let pairs = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        1, 0, 9, 8, 3, 2, 11, 10, 5, 4, 13, 12, 7, 6, 15, 14,
    ));
    let [p, q, r, s] = unpack(blocks).map(|blocks| _mm256_shuffle_epi8(blocks, pairs));
    let (ab_low, cd_low) = (_mm256_unpacklo_epi32(p, q), _mm256_unpackhi_epi32(p, q));
    let (ab_high, cd_high) = (_mm256_unpacklo_epi32(r, s), _mm256_unpackhi_epi32(r, s));
    [
        _mm256_unpacklo_epi64(ab_low, ab_high),
        _mm256_unpackhi_epi64(ab_low, ab_high),
        _mm256_unpacklo_epi64(cd_low, cd_high),
        _mm256_unpackhi_epi64(cd_low, cd_high),
    ]
}

/// Which lanes of fourth words are of blocks outside of the domain of walks.
#[target_feature(enable = "avx2")]
#[inline]
fn outside(d: __m256i) -> u32 {
    let signs = _mm256_slli_epi16::<8>(d);
    let signs = _mm256_packs_epi16(signs, _mm256_setzero_si256());
    let bits = _mm256_movemask_epi8(signs).cast_unsigned();
    // Packing has left zeros between the halves.
    (bits | bits >> 8) & 0xffff
}

#[target_feature(enable = "avx2")]
#[inline]
fn select(bits: u32, a: __m256i, b: __m256i) -> __m256i {
    let lanes = _mm256_setr_epi16(
        1,
        2,
        4,
        8,
        16,
        32,
        64,
        128,
        256,
        512,
        1024,
        2048,
        4096,
        8192,
        1 << 14,
        i16::MIN,
    );
    let is_set = _mm256_and_si256(_mm256_set1_epi16(bits as i16), lanes);
    _mm256_blendv_epi8(b, a, _mm256_cmpeq_epi16(is_set, lanes))
}

/// Each half by itself, the higher one behind what the lower has written.
#[target_feature(enable = "avx2,popcnt")]
#[inline]
fn compress(v: __m256i, bits: u32, to: &mut [u16; 16]) {
    let order = bytes(lanes::compressed(bits), lanes::compressed(bits >> 8));
    let words = store(_mm256_shuffle_epi8(v, order));
    let lower = (bits & 0xff).count_ones() as usize;
    to[..8].copy_from_slice(&words[..8]);
    to[lower..lower + 8].copy_from_slice(&words[8..]);
}

#[target_feature(enable = "avx2,popcnt")]
#[inline]
fn expand(v: __m256i, bits: u32, from: &[u16; 16]) -> __m256i {
    let order = bytes(lanes::expanded(bits), lanes::expanded(bits >> 8));
    let lower = (bits & 0xff).count_ones() as usize;
    let mut words = *from;
    words[8..].copy_from_slice(&from[lower..lower + 8]);
    _mm256_blendv_epi8(_mm256_shuffle_epi8(load(&words), order), v, order)
}

#[target_feature(enable = "avx2")]
#[inline]
fn bytes(lower: &[u8; 16], higher: &[u8; 16]) -> __m256i {
    // SAFETY: both sides are plain integers of the same size.
    unsafe { mem::transmute::<[[u8; 16]; 2], __m256i>([*lower, *higher]) }
}

casts!("avx2", __m256i, 16);
