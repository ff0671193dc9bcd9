//! Ctrl-C ends the measuring; what is known by then is still printed.
//!
//! A second signal ends the process at once, if it comes a second after the first or later.
//! `timeout` signals a process and then its group: two signals for one request, after which
//! work in progress ends in order.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level;

/// The exit status of a process that an interrupt ended.
const INTERRUPTED: u8 = 130;

/// A signal sooner after the first one belongs to it.
const INSISTENCE: Duration = Duration::from_secs(1);

/// Whether the run was asked to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<Request>);

impl Interrupt {
    /// From now on the first signal is noted, and one that insists ends the process.
    pub(crate) fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        let start = Instant::now();
        for signal in [SIGINT, SIGTERM] {
            let request = Arc::clone(&interrupt.0);
            let handle = move || {
                if request.insists(start.elapsed()) {
                    low_level::exit(INTERRUPTED.into());
                }
            };
            // SAFETY: as a handler of signals may, it reads the monotonic clock, accesses
            // atomics, and ends the process without running anything else of it. It has no
            // lock, allocates nothing, and does not panic: `start` is in the past.
            unsafe { low_level::register(signal, handle) }?;
        }
        Ok(interrupt)
    }

    pub(crate) fn came(&self) -> bool {
        // Relaxed: nothing is read that was written before the signal.
        self.0.came.load(Relaxed)
    }

    /// The exit status of a run that did its work, or was interrupted at it.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.came() {
            true => ExitCode::from(INTERRUPTED),
            false => ExitCode::SUCCESS,
        }
    }

    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0.came
    }
}

/// The request that the process ends.
#[derive(Debug, Default)]
struct Request {
    came: AtomicBool,
    /// The nanoseconds until the first signal, and one; 0 before there was any.
    first: AtomicU64,
}

impl Request {
    /// Notes a signal that comes after this time, and whether it asks again.
    fn insists(&self, after: Duration) -> bool {
        let now = u64::try_from(after.as_nanos()).map_or(u64::MAX, |nanos| nanos.saturating_add(1));
        // Relaxed: the word stands for itself.
        let first = self.first.compare_exchange(0, now, Relaxed, Relaxed);
        // Relaxed: see `came`.
        self.came.store(true, Relaxed);
        first.is_err_and(|first| u128::from(now.saturating_sub(first)) >= INSISTENCE.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn only_a_signal_a_second_later_insists() {
        let within = INSISTENCE - Duration::from_nanos(1);
        for first in [NOW, 5 * INSISTENCE] {
            let request = Request::default();
            assert!(!request.insists(first));
            assert!(!request.insists(first));
            assert!(!request.insists(first + within));
            assert!(request.insists(first + INSISTENCE));
        }
        // As many as there are: it is the first one that counts.
        let request = Request::default();
        assert!(!request.insists(NOW) && !request.insists(within));
        assert!(request.insists(2 * within));
    }
}
