//! How long a consumer waits after it lost the race for `cursor`.
//!
//! Two consumers that come back at once pass the cache line to and fro, and share
//! 40 M IDs/s where one alone takes 200 M. A consumer that stays away for the time of some
//! takes lets the other take at full speed. `crossbeam_utils::Backoff` starts at a single
//! spin in every take, and that is too short.
//!
//! The wait is a time and not a number of spins, because a `pause` takes 10 cycles on Intel's
//! processors before Skylake, 140 since (Intel's optimization manual, 2.6.4), and 22 ns on
//! the one of the figures in `benches`. A take must not read the clock, which may be a
//! system call. So the first ring of the process measures a pause, and a wait counts them.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// How long a consumer waits after it lost the race for `cursor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentionBackoff {
    nanos: u32,
}

impl ContentionBackoff {
    /// Some hundred takes at full speed.
    pub(super) const FIRST: Self = Self { nanos: 350 };
    const LONGEST: u32 = 2_800;

    /// Waits, and returns the wait for the next time.
    // By value: a reference would keep the state in memory on the fast path. Out of line,
    // so that a take that wins needs no registers for it.
    #[cold]
    #[inline(never)]
    pub(super) fn wait(self) -> Self {
        for _ in 0..pauses_in(self.nanos, PAUSE_PICOS.load(Relaxed)) {
            spin_loop();
        }
        Self {
            nanos: (self.nanos * 2).min(Self::LONGEST),
        }
    }
}

/// How long a pause takes, in picoseconds; a guess until it is measured.
// Relaxed, everywhere: whichever measurement is read is good.
static PAUSE_PICOS: AtomicU32 = AtomicU32::new(GUESS);
const GUESS: u32 = 20_000;

/// Measures a pause unless that is done. Takes some 10 microseconds, once a process.
pub(super) fn calibrate() {
    if PAUSE_PICOS.load(Relaxed) == GUESS {
        PAUSE_PICOS.store(measured_pause(), Relaxed);
    }
}

/// The shortest of some measurements: the others were interrupted.
fn measured_pause() -> u32 {
    const PAUSES: u32 = 64;
    let measure = || {
        let start = Instant::now();
        (0..PAUSES).for_each(|_| spin_loop());
        start.elapsed().as_nanos() as u32
    };
    let nanos = (0..8).map(|_| measure()).min().unwrap_or_default();
    let picos = nanos.saturating_mul(1000) / PAUSES;
    // Never the guess, which would have it measured again.
    picos.max(1) + u32::from(picos == GUESS)
}

/// The number of pauses that last `nanos`, at least one, and with a clock that stands
/// still no more than is bearable.
fn pauses_in(nanos: u32, pause_picos: u32) -> u32 {
    (nanos.saturating_mul(1000) / pause_picos).clamp(1, 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_as_long_on_every_processor() {
        for (pause_picos, pauses) in [(3_000, 116), (22_600, 15), (56_000, 6), (400_000, 1)] {
            assert_eq!(pauses_in(350, pause_picos), pauses, "{pause_picos} ps");
        }
        assert_eq!(pauses_in(2_800, 1), 1_000, "a clock that stands still");
    }

    #[test]
    fn each_wait_is_twice_the_one_before_up_to_a_bound() {
        let waits = std::iter::successors(Some(ContentionBackoff::FIRST), |wait| Some(wait.wait()));
        let nanos: Vec<u32> = waits.take(6).map(|wait| wait.nanos).collect();
        assert_eq!(nanos, [350, 700, 1_400, 2_800, 2_800, 2_800]);
    }

    #[test]
    fn the_first_ring_measures_a_pause() {
        calibrate();
        let measured = PAUSE_PICOS.load(Relaxed);
        assert_ne!(measured, GUESS);
        calibrate();
        assert_eq!(PAUSE_PICOS.load(Relaxed), measured, "once");
    }
}
