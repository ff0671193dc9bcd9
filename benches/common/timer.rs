//! A timer for spans of nanoseconds.
//!
//! On x86-64 it is the time stamp counter, fenced on both sides: a reading
//! waits for what came before it and holds back what comes after. The counter
//! must run at one speed and alike on all cores, as it does on every processor
//! of the last decade. Elsewhere it is `Instant`.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// The time since some fixed moment, in ticks.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: an instruction of every x86-64 processor, without operands.
    unsafe { _mm_lfence() };
    // SAFETY: as above; reads a register.
    let ticks = unsafe { _rdtsc() };
    // SAFETY: as the first.
    unsafe { _mm_lfence() };
    ticks
}

/// The time since some fixed moment, in ticks.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn ticks() -> u64 {
    use std::sync::OnceLock;
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// The name of the timer.
pub(crate) const NAME: &str = if cfg!(target_arch = "x86_64") {
    "rdtsc between two lfence"
} else {
    "std::time::Instant"
};

/// Nanoseconds in a tick, measured against `Instant`.
pub(crate) fn nanos_per_tick() -> f64 {
    let (clock, before) = (Instant::now(), ticks());
    while clock.elapsed() < Duration::from_millis(100) {
        spin_loop();
    }
    clock.elapsed().as_nanos() as f64 / (ticks() - before) as f64
}
