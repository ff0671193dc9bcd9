//! AVX-512 with VBMI2: as AVX-512BW, but a rotation is one instruction.

use std::arch::x86_64::*;

use super::avx512bw::{self, Avx512Bw};
use super::kernel::Kernel;
use super::schedule::Schedule;
use super::task::Task;
use super::vectors::{Vectors, Words, methods};

/// Proof that this processor has AVX-512VBMI2 and what [`Avx512Bw`] is proof of.
#[derive(Clone, Copy)]
pub(super) struct Avx512Vbmi2(());

impl Avx512Vbmi2 {
    pub(super) fn detect() -> Option<Self> {
        Avx512Bw::detect()?;
        is_x86_feature_detected!("avx512vbmi2").then_some(Self(()))
    }

    pub(super) fn perform(self, schedule: &Schedule, task: Task, blocks: &mut [u64]) {
        // SAFETY: `self` exists only where AVX-512BW and VBMI2 were detected.
        unsafe { perform(self, schedule, task, blocks) }
    }
}

#[target_feature(enable = "avx512bw,avx512vbmi2")]
fn perform(vectors: Avx512Vbmi2, schedule: &Schedule, task: Task, blocks: &mut [u64]) {
    vectors.process(schedule, task, blocks);
}

impl Vectors<32> for Avx512Vbmi2 {
    type V = __m512i;

    methods! {
        fn order(self) -> __m512i { avx512bw::order() }
        fn splat(self, bits: u64) -> __m512i { _mm512_set1_epi64(bits.cast_signed()) }
        fn xor(self, a: __m512i, b: __m512i) -> __m512i { _mm512_xor_si512(a, b) }
        fn add(self, a: __m512i, b: __m512i) -> __m512i { _mm512_add_epi16(a, b) }
        // Shifting a pair of equal words takes in at one end what falls off at the other.
        fn rotate_2(self, v: __m512i) -> __m512i { _mm512_shldi_epi16::<2>(v, v) }
        fn rotate_9_add(self, v: __m512i, y: __m512i) -> __m512i {
            _mm512_add_epi16(_mm512_shldi_epi16::<9>(v, v), y)
        }
        fn swap_bytes(self, v: __m512i) -> __m512i { avx512bw::swap_bytes(v) }
        fn interleave(self, words: Words<__m512i>) -> [u64; 32] { avx512bw::interleave(words) }
        fn deinterleave(self, blocks: [u64; 32]) -> Words<__m512i> { avx512bw::deinterleave(blocks) }
    }
}
