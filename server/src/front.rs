//! What every front counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of one thread of a front, which alone writes them by [`add`], or of several,
/// which write them by [`add_shared`].
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct FrontCounters {
    /// Connections that were accepted.
    pub(crate) accepted: AtomicU64,
    /// Those that were closed at once, since there were too many.
    pub(crate) turned_away: AtomicU64,
    /// Those that have ended, of the accepted.
    pub(crate) closed: AtomicU64,
    /// Requests that were answered, with an error or not.
    pub(crate) requests: AtomicU64,
    /// Those that were answered with an error.
    pub(crate) errors: AtomicU64,
    /// IDs that were sent.
    pub(crate) ids: AtomicU64,
}

/// Adds to a count that this thread alone writes: no locked instruction.
pub(crate) fn add(count: &AtomicU64, more: u64) {
    count.store(
        count.load(Ordering::Relaxed).wrapping_add(more),
        Ordering::Relaxed,
    );
}

/// Adds to a count that other threads write, too.
pub(crate) fn add_shared(count: &AtomicU64, more: u64) {
    // A figure, which orders nothing.
    count.fetch_add(more, Ordering::Relaxed);
}
