//! AVX-512 with VBMI2: as AVX-512BW, but a rotation is one instruction.

use std::arch::x86_64::*;

use super::avx512bw;
use super::schedule::Schedule;
use super::shared_words::SharedWords;
use super::vector_ops::VectorOps;

/// Proof that this processor has AVX-512BW and AVX-512VBMI2.
#[derive(Clone, Copy)]
pub(super) struct Avx512Vbmi2(());

impl Avx512Vbmi2 {
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vbmi2"))
            .then_some(Self(()))
    }

    pub(super) fn encrypt(self, schedule: &Schedule, shared: &SharedWords, out: &mut [u64]) {
        // SAFETY: `self` exists only where AVX-512BW and VBMI2 were detected.
        unsafe { encrypt(schedule, shared, out) }
    }
}

#[target_feature(enable = "avx512bw,avx512vbmi2")]
fn encrypt(schedule: &Schedule, shared: &SharedWords, out: &mut [u64]) {
    let ops = VectorOps {
        order: avx512bw::order(),
        splat: |bits: u64| _mm512_set1_epi64(bits.cast_signed()),
        xor: |a, b| _mm512_xor_si512(a, b),
        add: |a, b| _mm512_add_epi16(a, b),
        // Shifting a pair of equal words takes in at one end what falls off
        // at the other.
        rotate_2: |v| _mm512_shldi_epi16::<2>(v, v),
        rotate_9_add: |v, y| _mm512_add_epi16(_mm512_shldi_epi16::<9>(v, v), y),
        swap_bytes: |v| avx512bw::swap_bytes(v),
        interleave: |words| avx512bw::interleave(words),
    };
    ops.encrypt(schedule, shared, out);
}
