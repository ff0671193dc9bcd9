//! The figures of a generator.

use std::time::Duration;

use crate::timeline::RefusalCounts;

/// A generator's figures at one moment.
///
/// They are read one after the other, so together they may be a few takes apart.
/// Counts only grow, but for `issued`. By `default()` everything is zero, for a test or a
/// figure that has to start somewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Stats {
    /// IDs in all stripes.
    pub level: usize,
    /// IDs in the stocks of all cores, not in `level`: see [`CoreStocks`](crate::CoreStocks).
    /// After an invalidation the IDs from before count here until the core's next take drops
    /// them. Then they count as retired.
    pub in_stocks: usize,
    /// Slots in all stripes.
    pub capacity: usize,
    /// The number of stripes, which all have equally many slots.
    pub stripes: usize,
    /// The thresholds of all stripes together: a take that leaves its stripe fewer IDs than
    /// the stripe's own asks for a fill; 0 if none does.
    pub threshold: usize,
    /// IDs handed to consumers, those in handles included. Goes down when a handle that
    /// still has some is dropped. Each take in progress may put it off by up to 127.
    pub issued: u64,
    /// IDs that consumers made themselves because every stripe was empty, with the rest of
    /// each run, which went into a stripe. Those of assists are not among them.
    pub in_place: u64,
    /// Fills after which the stripes that asked were full, by cause; and assists.
    pub fills: FillCounts,
    /// Fills that stopped early at the borrow limit or the end of the lease.
    pub refusals: u64,
    /// The same by reason: why the stripes were not filled.
    pub refused: RefusalCounts,
    /// Takes and batches that gave no ID at all, by reason. Those that wait and are given up
    /// by their caller are not among them.
    pub failed: TakeFailures,
    /// Fills that ended in a panic of a clock or a hook.
    pub panics: u64,
    /// Takes and batches that found fewer IDs in all stripes together than they asked for,
    /// each stripe at its own moment.
    pub empties: u64,
    /// IDs that were dropped unissued: too old, given up by an invalidation, or left
    /// over in a dropped handle when all stripes were full.
    pub retired: u64,
    /// How far the last ID that was made lies ahead of the clock, in whole ticks.
    pub borrowed: Duration,
    /// The borrow limit.
    pub borrow_limit: Duration,
    /// When the lease ends, in Unix milliseconds.
    pub lease_end_unix_ms: u64,
    /// The clock's time, in Unix milliseconds.
    pub now_unix_ms: u64,
}

/// Finished fills, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct FillCounts {
    /// At the start.
    pub padding: u64,
    /// Because a take left too few.
    pub threshold: u64,
    /// Because the period was over.
    pub scheduled: u64,
    /// Runs of IDs that takes made for their stripe because they left very few:
    /// [`AssistFill`](crate::AssistFill).
    pub assist: u64,
}

/// Takes that failed, by reason: a count for each [`TakeError`](crate::TakeError). Those in a
/// forked child are not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TakeFailures {
    /// No ID could be made.
    pub refused: RefusalCounts,
    /// [`TakeError::Empty`](crate::TakeError::Empty).
    pub empty: u64,
    /// [`TakeError::TimedOut`](crate::TakeError::TimedOut).
    pub timed_out: u64,
}
