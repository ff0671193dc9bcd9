//! AVX-512 with VBMI2: as AVX-512BW, but a rotation is one instruction.

use std::arch::x86_64::*;

use super::avx512bw::{self, Avx512Bw};
use super::kernel::Kernel;
use super::schedule::Schedule;
use super::task::Task;
use super::vector_ops::VectorOps;
use super::walk::{self, Lists};

/// Proof that this processor has AVX-512VBMI2 and what [`Avx512Bw`] is proof of.
#[derive(Clone, Copy)]
pub(super) struct Avx512Vbmi2(());

impl Avx512Vbmi2 {
    pub(super) fn detect() -> Option<Self> {
        Avx512Bw::detect()?;
        is_x86_feature_detected!("avx512vbmi2").then_some(Self(()))
    }

    pub(super) fn perform(
        self,
        schedule: &Schedule,
        task: Task,
        blocks: &mut [u64],
        lists: Option<Lists<'_>>,
    ) {
        // SAFETY: `self` exists only where AVX-512BW, VBMI2 and POPCNT were detected.
        unsafe { perform(schedule, task, blocks, lists) }
    }
}

#[target_feature(enable = "avx512bw,avx512vbmi2,popcnt")]
fn perform(schedule: &Schedule, task: Task, blocks: &mut [u64], lists: Option<Lists<'_>>) {
    let ops = VectorOps {
        order: avx512bw::order(),
        splat: |bits: u64| _mm512_set1_epi64(bits.cast_signed()),
        xor: |a, b| _mm512_xor_si512(a, b),
        add: |a, b| _mm512_add_epi16(a, b),
        subtract: |a, b| _mm512_sub_epi16(a, b),
        // Shifting a pair of equal words takes in at one end what falls off
        // at the other.
        rotate_2: |v| _mm512_shldi_epi16::<2>(v, v),
        rotate_9_add: |v, y| _mm512_add_epi16(_mm512_shldi_epi16::<9>(v, v), y),
        rotate_2_back: |v| _mm512_shrdi_epi16::<2>(v, v),
        rotate_9_back: |v| _mm512_shrdi_epi16::<9>(v, v),
        swap_bytes: |v| avx512bw::swap_bytes(v),
        interleave: |words| avx512bw::interleave(words),
        deinterleave: |blocks| avx512bw::deinterleave(blocks),
        outside: |d| avx512bw::outside(d),
        select: |bits, a, b| _mm512_mask_blend_epi16(bits, b, a),
        compress: |v, bits, to: &mut [u16; 32]| {
            *to = avx512bw::store(_mm512_maskz_compress_epi16(bits, v));
        },
        expand: |v, bits, from: &[u16; 32]| _mm512_mask_expand_epi16(v, bits, avx512bw::load(from)),
        load: |from: &[u16; 32]| avx512bw::load(from),
        store: |v| avx512bw::store(v),
        pack: |words| avx512bw::pack(words),
        unpack: |blocks| avx512bw::unpack(blocks),
    };
    match lists {
        Some(lists) => walk::walk_in_vectors(&ops, schedule, task, blocks, lists),
        None => ops.perform(schedule, task, blocks),
    }
}
