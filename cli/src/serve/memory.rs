//! Returns memory that connections have freed to the system.
//!
//! glibc keeps freed memory below memory that is in use: after thousands of connections, most
//! of what they had. `malloc_trim` returns its pages.

use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_secs(30);

/// Growth that is not worth a call.
const SLACK_KIB: u64 = 8 << 10;

/// Trims the heap when the process has more memory than it had at the start.
#[derive(Debug)]
pub(super) struct HeapTrimmer {
    /// Resident memory at the start.
    baseline_kib: u64,
    next: Instant,
}

impl HeapTrimmer {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            baseline_kib: resident_kib().unwrap_or(0),
            next: now + PERIOD,
        }
    }

    /// Trims the heap if that is due. Call it every second or so.
    pub(super) fn look(&mut self, now: Instant) {
        if self.is_due(now, resident_kib) {
            // SAFETY: any thread may call it at any time. It releases pages of freed memory
            // only.
            unsafe { libc::malloc_trim(0) };
        }
    }

    fn is_due(&mut self, now: Instant, resident_kib: impl FnOnce() -> Option<u64>) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + PERIOD;
        resident_kib().is_some_and(|kib| kib > self.baseline_kib + SLACK_KIB)
    }
}

fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    kib.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_is_trimmed_once_a_period_and_only_after_growth() {
        let start = Instant::now();
        let mut trimmer = HeapTrimmer {
            baseline_kib: 10_000,
            next: start + PERIOD,
        };
        let mut is_due = |after: Duration, kib| trimmer.is_due(start + after, || kib);
        let (less, more) = (Some(10_000 + SLACK_KIB), Some(10_001 + SLACK_KIB));
        assert!(!is_due(PERIOD / 2, more));
        assert!(!is_due(PERIOD, less));
        assert!(!is_due(PERIOD * 3 / 2, more));
        assert!(is_due(PERIOD * 2, more));
        assert!(!is_due(PERIOD * 2, more));
        assert!(is_due(PERIOD * 3, more));
        assert!(!is_due(PERIOD * 4, None));
        assert!(resident_kib().unwrap() > 0);
    }
}
