//! What is asked of a layout.

use std::time::Duration;

use super::AdviceError;
use crate::layout::LayoutError;

const YEAR_MS: u128 = 31_557_600_000;
const DAYS_A_YEAR: f64 = 365.25;
const MAX_RESTARTS: f64 = 1e6;
const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(31_557_600);

/// What a layout has to be good for; [`Layout::advise`](crate::Layout::advise) finds one.
///
/// Ranges are checked there.
///
/// # Examples
///
/// ```
/// use ringflake::{Layout, LayoutNeeds};
///
/// // Plain IDs for a `BIGINT`, from 2026-01-01 on.
/// let needs = LayoutNeeds::new(1_767_225_600_000).years(50).nodes(100).rate(1_000_000);
/// let advice = Layout::advise(&needs)?;
/// let positive = advice.alternatives()[0].as_ref().map(|advised| advised.layout());
/// assert_eq!(positive.map(|layout| layout.total_bits()), Ok(63));
/// # Ok::<(), ringflake::AdviceError>(())
/// ```
#[must_use = "needs do nothing until `Layout::advise` reads them"]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayoutNeeds {
    pub(super) epoch_unix_ms: u64,
    pub(super) years: u32,
    pub(super) nodes: u64,
    pub(super) restarts_per_day: f64,
    pub(super) disposable: bool,
    pub(super) rate: u64,
    pub(super) burst: u64,
    pub(super) capacity: u64,
    pub(super) borrow_limit: Duration,
    pub(super) lease_duration: Duration,
    pub(super) tick_ms: Option<u64>,
    /// What `tick_ms` was made from.
    tick: Option<Duration>,
}

impl LayoutNeeds {
    /// The most [`years`](Self::years).
    pub const MAX_YEARS: u32 = 1_000;
    /// The most [`nodes`](Self::nodes), 2<sup>32</sup>.
    pub const MAX_NODES: u64 = 1 << 32;
    /// The highest [`rate`](Self::rate), 10<sup>12</sup> IDs a second.
    pub const MAX_RATE: u64 = 1_000_000_000_000;
    /// The largest [`burst`](Self::burst), 10<sup>15</sup> IDs.
    pub const MAX_BURST: u64 = 1_000_000_000_000_000;

    /// Ten years from this epoch on, in milliseconds since 1970, with one node that never
    /// starts again, one ID a second and no bursts. The epoch is the first moment that an
    /// ID can be of.
    pub const fn new(epoch_unix_ms: u64) -> Self {
        Self {
            epoch_unix_ms,
            years: 10,
            nodes: 1,
            restarts_per_day: 0.0,
            disposable: false,
            rate: 1,
            burst: 0,
            capacity: 1 << 16,
            borrow_limit: Duration::from_secs(60),
            lease_duration: Duration::from_secs(60),
            tick_ms: None,
            tick: None,
        }
    }

    /// Life of the layout in years of 365.25 days from the epoch: 1 to
    /// [`MAX_YEARS`](Self::MAX_YEARS).
    pub const fn years(mut self, years: u32) -> Self {
        self.years = years;
        self
    }

    /// Nodes alive at once, 1 to [`MAX_NODES`](Self::MAX_NODES). With a store of leases
    /// these are all nodes of the blocks that are held.
    pub const fn nodes(mut self, nodes: u64) -> Self {
        self.nodes = nodes;
        self
    }

    /// How often each node starts again, on average: times a day, 0 to 1,000,000.
    ///
    /// With leases, as by default, nodes are reused, and the number only says how many wait
    /// for the lease of a killed holder to end: see
    /// [`lease_duration`](Self::lease_duration). With
    /// [`disposable_nodes`](Self::disposable_nodes) each start uses up a number for ever.
    pub const fn restarts_per_day(mut self, restarts: f64) -> Self {
        self.restarts_per_day = restarts;
        self
    }

    /// Each start of a node has a number that was never used before, and never is again, as
    /// where nobody keeps leases: `nodes x (1 + restarts_per_day x 365.25 x years)` numbers.
    pub const fn disposable_nodes(mut self) -> Self {
        self.disposable = true;
        self
    }

    /// IDs a second that all nodes together give for ever, evenly divided among them: 1 to
    /// [`MAX_RATE`](Self::MAX_RATE).
    pub const fn rate(mut self, ids_per_second: u64) -> Self {
        self.rate = ids_per_second;
        self
    }

    /// IDs that all nodes together give at once, evenly divided among them, after a quiet
    /// time: 0 to [`MAX_BURST`](Self::MAX_BURST). They come from full rings, and what rings do
    /// not hold is borrowed from the ticks of the borrow limit.
    pub const fn burst(mut self, ids: u64) -> Self {
        self.burst = ids;
        self
    }

    /// Slots of each node's ring: 65,536 unless given, up to
    /// [`MAX_BURST`](Self::MAX_BURST).
    pub const fn capacity(mut self, slots: u64) -> Self {
        self.capacity = slots;
        self
    }

    /// How far ahead of the clock IDs may lie: 60 s unless given, up to a year. Whole
    /// ticks of it count.
    pub const fn borrow_limit(mut self, limit: Duration) -> Self {
        self.borrow_limit = limit;
        self
    }

    /// How long the lease of a killed holder keeps its node from others: 60 s unless given,
    /// up to a year. There are then `nodes x (1 + restarts_per_day x lease_duration / 1 day)`
    /// numbers in use, the factor rounded up: with any restarts at all at least twice the
    /// nodes, so that all may be killed at once and start again.
    pub const fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// The length of a tick, whole milliseconds from 1 ms to a day; what an ID tells of its
    /// time. Unless given it is chosen: 1 s where that fits.
    pub const fn tick(mut self, tick: Duration) -> Self {
        self.tick = Some(tick);
        // At most a day, or refused by `check`.
        self.tick_ms = Some(tick.as_millis() as u64);
        self
    }

    pub(super) fn check(&self) -> Result<(), AdviceError> {
        let tick = self.tick.unwrap_or(Duration::from_secs(1));
        if tick.is_zero() || !tick.subsec_nanos().is_multiple_of(1_000_000) {
            return Err(AdviceError::Layout(LayoutError::Tick { tick }));
        }
        let [years, burst] = [f64::from(Self::MAX_YEARS), Self::MAX_BURST as f64];
        let [nodes, rate] = [Self::MAX_NODES, Self::MAX_RATE].map(|most| most as f64);
        let [borrow_limit, lease, tick, day, year] =
            [self.borrow_limit, self.lease_duration, tick, DAY, YEAR]
                .map(|time| time.as_secs_f64());
        let ranges = [
            ("years", f64::from(self.years), 1.0, years),
            ("nodes", self.nodes as f64, 1.0, nodes),
            ("restarts a day", self.restarts_per_day, 0.0, MAX_RESTARTS),
            ("IDs a second", self.rate as f64, 1.0, rate),
            ("IDs of a burst", self.burst as f64, 0.0, burst),
            ("slots", self.capacity as f64, 0.0, burst),
            ("seconds of the borrow limit", borrow_limit, 0.0, year),
            ("seconds of a lease", lease, 0.0, year),
            ("seconds of a tick", tick, 0.001, day),
        ];
        for (need, given, least, most) in ranges {
            // A NaN is in no range.
            if !(least..=most).contains(&given) {
                return Err(AdviceError::OutOfRange {
                    need,
                    given,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }

    pub(super) fn life_ms(&self) -> u128 {
        u128::from(self.years) * YEAR_MS
    }

    /// Node numbers that are used until the end.
    pub(super) fn node_numbers(&self) -> u128 {
        let nodes = u128::from(self.nodes);
        if self.disposable {
            let restarts = self.restarts_per_day * DAYS_A_YEAR * f64::from(self.years);
            return nodes + (self.nodes as f64 * restarts).ceil() as u128;
        }
        let waiting = self.restarts_per_day * self.lease_duration.as_secs_f64();
        // What is a whole number but for an error of rounding is that number.
        let waiting = waiting / DAY.as_secs_f64() * (1.0 - 1e-12);
        nodes * (1 + waiting.ceil() as u128)
    }

    /// Sequences a node needs in a tick of this length.
    pub(super) fn sequences(&self, tick_ms: u64) -> u128 {
        let nodes = u128::from(self.nodes);
        let sustained = (u128::from(self.rate) * u128::from(tick_ms)).div_ceil(1_000 * nodes);
        let burst = u128::from(self.burst).div_ceil(nodes);
        let borrowed = match burst.saturating_sub(u128::from(self.capacity)) {
            0 => 0,
            more => match u128::from(self.borrowed_ticks(tick_ms)) {
                0 => u128::MAX,
                ticks => more.div_ceil(ticks),
            },
        };
        sustained.max(borrowed).max(1)
    }

    pub(super) fn borrowed_ticks(&self, tick_ms: u64) -> u64 {
        // A year at most.
        self.borrow_limit.as_millis() as u64 / tick_ms
    }

    /// The most years of `ticks` ticks of this length.
    pub(super) fn years_of(&self, ticks: u128, tick_ms: u64) -> u128 {
        ticks * u128::from(tick_ms) / YEAR_MS
    }

    /// The restarts a day for which so many numbers do, up to the most that may be asked.
    pub(super) fn restarts_of(&self, numbers: u128) -> f64 {
        let nodes = self.nodes as f64;
        let spare = numbers as f64 / nodes - 1.0;
        let restarts = if self.disposable {
            spare / (DAYS_A_YEAR * f64::from(self.years))
        } else {
            spare.floor() * DAY.as_secs_f64() / self.lease_duration.as_secs_f64()
        };
        // A lease of no time makes it no number.
        restarts.min(MAX_RESTARTS)
    }
}
