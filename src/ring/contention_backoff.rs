//! How long a consumer waits after it lost the race for `cursor`.

/// How long a consumer waits after it lost the race for `cursor`.
///
/// Two consumers that come back at once pass the cache line to and fro, and
/// share 40 M IDs/s where one alone takes 200 M. A consumer that stays away for the
/// time of a few takes lets the other take at full speed.
/// `crossbeam_utils::Backoff` starts at a single spin in every take, and that is
/// too short.
#[derive(Clone, Copy)]
pub(super) struct ContentionBackoff {
    spins: u32,
}

impl ContentionBackoff {
    pub(super) const FIRST: Self = Self { spins: 16 };
    const LONGEST: u32 = 128;

    /// Waits, and returns the wait for the next time.
    // By value: a reference would keep the state in memory on the fast path. Out of line,
    // so that a take that wins needs no registers for it.
    #[cold]
    #[inline(never)]
    pub(super) fn wait(self) -> Self {
        for _ in 0..self.spins {
            std::hint::spin_loop();
        }
        Self {
            spins: (self.spins * 2).min(Self::LONGEST),
        }
    }
}
