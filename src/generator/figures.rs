//! What a generator says of itself, for monitoring.

use std::sync::atomic::Ordering::Relaxed;

use super::cached::CachedGenerator;
use super::stats::{FillCounts, Stats};
use crate::fill::FillCause;
use crate::timeline::RefusalCounts;

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
    #[doc(alias = "len")]
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
}
