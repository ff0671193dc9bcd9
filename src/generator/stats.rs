//! The figures of a generator.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::cached::CachedGenerator;
use crate::fill::FillCause;
use crate::lease::protocol::LeaseStatus;
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

impl CachedGenerator {
    /// The generator's figures at this moment. Reads counters and the clock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use ringflake::{CachedGenerator, Layout, StaticLease};
    /// # let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 0..32);
    /// # let ids = CachedGenerator::builder(Layout::RANDFLAKE).plain().lease(lease).build()?;
    /// ids.take()?;
    /// let stats = ids.stats();
    /// assert_eq!((stats.issued, stats.empties), (1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stats(&self) -> Stats {
        let counters = self.filler.counters();
        let taken = self.filler.taken();
        let timeline = self.filler.source().timeline();
        let fills = |cause: FillCause| counters.fills[cause as usize].load(Relaxed);
        let given_in_place = self.shared.dry.given();
        let returned = self.shared.returned.load(Relaxed);
        let in_stocks = self.filler.in_stocks();
        let not_issued = taken.retired + taken.moved + returned + in_stocks as u64;
        let mut refused = RefusalCounts::default();
        counters.refused.add_to(&mut refused);
        Stats {
            level: self.filler.level(),
            in_stocks,
            capacity: self.filler.capacity(),
            stripes: self.filler.stripes().len(),
            threshold: self.filler.threshold(),
            issued: (taken.all + given_in_place).saturating_sub(not_issued),
            in_place: self.shared.dry.in_place(),
            fills: FillCounts {
                padding: fills(FillCause::Padding),
                threshold: fills(FillCause::Threshold),
                scheduled: fills(FillCause::Scheduled),
                assist: self.filler.assists(),
            },
            refusals: counters.refusals.load(Relaxed),
            refused,
            failed: self.shared.dry.failures(),
            panics: counters.panics.load(Relaxed),
            empties: self.shared.dry.empties(),
            retired: taken.retired
                + self.shared.dropped.load(Relaxed)
                + counters.given_up.load(Relaxed),
            borrowed: timeline.borrowed(),
            borrow_limit: timeline.borrow_limit(),
            lease_end_unix_ms: timeline.end_unix_ms(),
            now_unix_ms: timeline.clock().unix_ms(),
        }
    }

    /// The status of the leases from a store; none if the lease was given.
    pub fn lease_status(&self) -> Option<LeaseStatus> {
        // A child has a copy of the renewal state's lock, but nobody to unlock it.
        if self.is_forked() {
            None
        } else {
            self.shared.leases.status()
        }
    }
}
