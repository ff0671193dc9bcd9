//! Returns memory that connections have freed to the system.
//!
//! glibc keeps freed memory below memory that is in use: after thousands of connections, most
//! of what they had. `malloc_trim` gives these pages back, and costs little if there are none.

use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct HeapTrimmer {
    next: Instant,
}

impl HeapTrimmer {
    pub(super) fn new(now: Instant) -> Self {
        Self { next: now + PERIOD }
    }

    /// Trims glibc's heap if that is due; does nothing elsewhere. Call it every second or so.
    pub(super) fn look(&mut self, now: Instant) {
        if now >= self.next {
            self.next = now + PERIOD;
            // SAFETY: any thread may call it at any time. It releases pages of freed memory
            // only.
            #[cfg(all(target_os = "linux", target_env = "gnu"))]
            unsafe {
                libc::malloc_trim(0)
            };
        }
    }
}
