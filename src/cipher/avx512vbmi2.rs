//! AVX-512 with VBMI2: as AVX-512BW, but a rotation is one instruction.

use std::arch::x86_64::*;

use super::avx512bw;
use super::schedule::Schedule;
use super::task::Task;
use super::vector_ops::VectorOps;

/// Proof that this processor has AVX-512BW and AVX-512VBMI2.
#[derive(Clone, Copy)]
pub(super) struct Avx512Vbmi2(());

impl Avx512Vbmi2 {
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vbmi2"))
            .then_some(Self(()))
    }

    pub(super) fn perform(self, schedule: &Schedule, task: Task, blocks: &mut [u64]) {
        // SAFETY: `self` exists only where AVX-512BW and VBMI2 were detected.
        unsafe { perform(schedule, task, blocks) }
    }

    pub(super) fn keep_outside(self, numbers: &mut [u64], places: &mut [u16]) -> usize {
        // SAFETY: as above.
        unsafe { avx512bw::keep_outside(numbers, places) }
    }
}

#[target_feature(enable = "avx512bw,avx512vbmi2")]
fn perform(schedule: &Schedule, task: Task, blocks: &mut [u64]) {
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
    };
    ops.perform(schedule, task, blocks);
}
