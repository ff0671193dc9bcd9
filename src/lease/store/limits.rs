//! The limits of a store's grants.

use std::time::Duration;

use crate::layout::Layout;
use crate::lease::error::StoreError;

/// How far ahead grants may reach, and how wrong clocks may be.
///
/// They are recorded when a namespace is initialised and hold for all of its
/// clients: one that granted further than another expects would break rule S7.
///
/// # Horizon and failover
/// While the store keeps its promise of durability, neither matters. They bound
/// the grants of a store that then lost them. When a lost history is noticed,
/// the floor rises to `now + horizon + failover`, one tick more, and
///
/// * nothing is granted until `failover` has passed, since every grant must end
///   within the horizon and starts at the floor;
/// * grants made then lie `horizon` ahead of the clock, so generators that may
///   not borrow that far have to wait for it.
///
/// So the horizon should be no longer than needed: the time that a process wants
/// to be covered without its store, and a tenth more. Leases that are held when the
/// history is lost bridge the pause if they are covered for longer than `failover`,
/// and a generator that may borrow goes on from there without a gap: the defaults of
/// limits, lease duration and borrow limit fit each other, see [`gap`](Self::gap).
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ringflake::lease::StoreLimits;
///
/// let limits = StoreLimits::default().with_horizon(Duration::from_secs(3600));
/// assert_eq!(limits.failover(), Duration::from_secs(60));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoreLimits {
    horizon_ms: u64,
    failover_ms: u64,
    skew_ms: u64,
}

impl StoreLimits {
    /// No limit may be longer: 366 days.
    pub const MAX: Duration = Duration::from_secs(366 * 24 * 3600);

    /// How long after the store's time a grant or a renewal may end: one tick up
    /// to [`MAX`](Self::MAX), 11 minutes by default: the default lease duration, and a tenth
    /// more. Counted in whole ticks, rounded down.
    #[must_use]
    pub fn with_horizon(mut self, horizon: Duration) -> Self {
        self.horizon_ms = millis(horizon);
        self
    }

    /// How long a superseded primary can still grant, plus twice the skew: twice
    /// the skew up to [`MAX`](Self::MAX), one minute by default. Counted in
    /// whole ticks, rounded up.
    #[must_use]
    pub fn with_failover(mut self, failover: Duration) -> Self {
        // Up, since a fraction cut off here would not be covered.
        self.failover_ms = millis(failover.saturating_add(Duration::from_nanos(999_999)));
        self
    }

    /// How far the clocks of store and client may be apart when a block is
    /// granted: 1 ms up to [`MAX`](Self::MAX), 5 seconds by default.
    #[must_use]
    pub fn with_skew(mut self, skew: Duration) -> Self {
        self.skew_ms = millis(skew);
        self
    }

    /// See [`with_horizon`](Self::with_horizon).
    pub fn horizon(&self) -> Duration {
        Duration::from_millis(self.horizon_ms)
    }

    /// See [`with_failover`](Self::with_failover).
    pub fn failover(&self) -> Duration {
        Duration::from_millis(self.failover_ms)
    }

    /// See [`with_skew`](Self::with_skew).
    pub fn skew(&self) -> Duration {
        Duration::from_millis(self.skew_ms)
    }

    /// For how long a generator that runs may have no IDs after the store's history was
    /// lost, or a failover looked like that; zero where it misses none. `lease_duration` and
    /// `borrow_limit` are the generator's: zero for a
    /// [`DirectGenerator`](crate::DirectGenerator), which does not borrow, and where it is
    /// not said, [`STORE_BORROW_LIMIT`](crate::CachedGeneratorBuilder::STORE_BORROW_LIMIT).
    ///
    /// An upper bound, for ticks of at most a second. One that starts after that has
    /// nothing to bridge it with: its lease duration counts as zero, and where it borrows as
    /// far as the horizon it may ask a twentieth of its lease duration later.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use ringflake::lease::StoreLimits;
    ///
    /// let (lease_duration, borrow_limit) = (Duration::from_secs(600), Duration::from_secs(250));
    /// let limits = StoreLimits::default();
    /// assert_eq!(limits.gap(lease_duration, borrow_limit), Duration::ZERO);
    /// let limits = limits.with_horizon(Duration::from_secs(1200));
    /// assert_eq!(limits.gap(lease_duration, borrow_limit), Duration::from_secs(532));
    /// ```
    pub fn gap(&self, lease_duration: Duration, borrow_limit: Duration) -> Duration {
        const TWO_TICKS: Duration = Duration::from_secs(2);
        // The least remaining time of a lease when its renewal is due.
        let held = lease_duration.min(self.horizon()) * 17 / 20;
        // The time over which processes spread an acquisition: the one that notices the loss,
        // and the first that is granted, which matters to who need not wait for the floor.
        let spread = lease_duration / 20;
        let ahead = self.horizon().saturating_sub(borrow_limit).max(spread);
        (self.failover() + TWO_TICKS + spread + ahead).saturating_sub(held)
    }

    pub(in crate::lease) fn horizon_ms(&self) -> u64 {
        self.horizon_ms
    }

    pub(in crate::lease) fn failover_ms(&self) -> u64 {
        self.failover_ms
    }

    pub(in crate::lease) fn skew_ms(&self) -> u64 {
        self.skew_ms
    }

    /// Checks the numbers against each other and against the length of a tick.
    pub(in crate::lease) fn validate(&self, layout: &Layout) -> Result<(), StoreError> {
        let max = millis(Self::MAX);
        for (what, value, min) in [
            (
                "the horizon in milliseconds",
                self.horizon_ms,
                layout.tick_ms(),
            ),
            ("the skew limit in milliseconds", self.skew_ms, 1),
            (
                "the failover time in milliseconds",
                self.failover_ms,
                self.skew_ms.saturating_mul(2),
            ),
        ] {
            StoreError::check_range(what, value, min..=max)?;
        }
        Ok(())
    }
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            horizon_ms: 11 * 60 * 1000,
            failover_ms: 60 * 1000,
            skew_ms: 5 * 1000,
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_a_millisecond_are_cut_to_the_safe_side() {
        let time = Duration::from_micros(10_500);
        let limits = StoreLimits::default()
            .with_horizon(time)
            .with_failover(time)
            .with_skew(time);
        assert_eq!(limits.horizon(), Duration::from_millis(10));
        assert_eq!(limits.failover(), Duration::from_millis(11));
        assert_eq!(limits.skew(), Duration::from_millis(10));
    }

    #[test]
    fn each_limit_has_a_range() {
        let layout = Layout::RANDFLAKE;
        let limits = StoreLimits::default();
        limits.validate(&layout).unwrap();

        let (ms, max) = (Duration::from_millis, StoreLimits::MAX);
        let tick = ms(layout.tick_ms());
        for (good, bad) in [
            (limits.with_horizon(tick), limits.with_horizon(tick - ms(1))),
            (limits.with_horizon(max), limits.with_horizon(max + ms(1))),
            (limits.with_failover(max), limits.with_failover(max + ms(1))),
            (
                limits.with_failover(limits.skew() * 2),
                limits.with_failover(limits.skew() * 2 - ms(1)),
            ),
            (limits.with_skew(ms(1)), limits.with_skew(ms(0))),
            (
                limits.with_failover(max).with_skew(max / 2),
                limits.with_failover(max).with_skew(max / 2 + ms(1)),
            ),
        ] {
            good.validate(&layout).unwrap();
            let error = bad.validate(&layout).unwrap_err();
            assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
        }
    }
}
