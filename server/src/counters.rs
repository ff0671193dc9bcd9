//! What a server counts, for each of its protocols.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The counts of one thread of a protocol, which alone writes them by [`add`], or of several
/// threads, which write them by [`add_shared`].
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) accepted: AtomicU64,
    /// Connections that were closed at once, because there were too many.
    pub(crate) turned_away: AtomicU64,
    /// TLS handshakes that waited, because too many connections were not authorized yet.
    pub(crate) handshakes_delayed: AtomicU64,
    pub(crate) closed: AtomicU64,
    /// Requests that were answered, with an error or not.
    pub(crate) requests: AtomicU64,
    pub(crate) errors: AtomicU64,
    /// Of the errors, those for want of a token that allows the request.
    pub(crate) denied: AtomicU64,
    /// Of the errors, those that may pass in time: no lease, a store that is away, overload.
    pub(crate) unavailable: AtomicU64,
    /// HTTP requests whose token is missing or unknown, and failed AUTH and HELLO commands.
    pub(crate) auth_failures: AtomicU64,
    pub(crate) ids: AtomicU64,
    /// How long responses took, from the request as a whole to the response as a whole.
    pub(crate) durations: Durations,
}

/// A protocol's name, and the counters of its threads.
pub(crate) type NamedCounters = (&'static str, Vec<Arc<Counters>>);

/// A count of several threads, each as it is at some moment meanwhile.
pub(crate) fn total(threads: &[Arc<Counters>], count: fn(&Counters) -> &AtomicU64) -> u64 {
    // Figures, which order nothing.
    let each = threads.iter().map(|of| count(of).load(Ordering::Relaxed));
    each.fold(0, u64::wrapping_add)
}

/// Connections at this moment.
pub(crate) fn open(threads: &[Arc<Counters>]) -> u64 {
    // First, so that one that ends between the two counts as open at most.
    let closed = total(threads, |of| &of.closed);
    total(threads, |of| &of.accepted).saturating_sub(closed)
}

#[derive(Debug, Default)]
pub(crate) struct Durations {
    /// By [`BOUNDS`](Self::BOUNDS); the last one has no bound.
    buckets: [AtomicU64; 9],
    nanoseconds: AtomicU64,
}

impl Durations {
    /// Upper bounds of the buckets, in seconds.
    pub(crate) const BOUNDS: [f64; 8] = [0.000_1, 0.000_3, 0.001, 0.003, 0.01, 0.1, 1.0, 10.0];

    /// Counts `count` responses that took this long; `add` as for the other counts.
    pub(crate) fn record(&self, duration: Duration, count: u64, add: fn(&AtomicU64, u64)) {
        let seconds = duration.as_secs_f64();
        let bucket = Self::BOUNDS.partition_point(|&bound| bound < seconds);
        add(&self.buckets[bucket], count);
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        add(&self.nanoseconds, nanoseconds.saturating_mul(count));
    }

    /// Adds the counts of each bucket to `buckets`, and returns the seconds of all.
    pub(crate) fn add_to(&self, buckets: &mut [u64; 9]) -> f64 {
        for (sum, bucket) in buckets.iter_mut().zip(&self.buckets) {
            *sum += bucket.load(Ordering::Relaxed);
        }
        self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9
    }
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
