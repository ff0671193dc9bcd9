//! When to fill: the three policies.

use std::fmt;
use std::time::Duration;

/// Fills the ring to the brim when a generator is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PaddingFill {
    /// `build` returns once the ring is brimful, so that the first take finds
    /// it so. About a nanosecond a slot with AVX-512, some six without vector
    /// instructions; the first touch of the memory can cost as much again.
    #[default]
    BeforeFirstTake,
    /// The producers fill while the first takes may already run.
    InBackground,
    /// The ring starts empty.
    Off,
}

/// Wakes a producer when a take leaves fewer IDs than a threshold.
///
/// # Examples
///
/// ```
/// use ringflake::ThresholdFill;
///
/// assert_eq!(ThresholdFill::percent(25).in_slots(1 << 16), Ok(1 << 14));
/// assert!(ThresholdFill::slots(0).in_slots(1 << 16).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThresholdFill(Threshold);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Threshold {
    Percent(u32),
    Slots(usize),
}

impl ThresholdFill {
    /// The threshold as a share of the capacity, 1 to 100 percent, rounded up.
    ///
    /// At 100 every take asks for a fill, unless one is under way.
    pub const fn percent(percent: u32) -> Self {
        Self(Threshold::Percent(percent))
    }

    /// The threshold as a number of slots, from 1 to the capacity.
    pub const fn slots(slots: usize) -> Self {
        Self(Threshold::Slots(slots))
    }

    /// The threshold for a ring of `capacity` slots: a take that leaves fewer
    /// than this many asks for a fill.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] if it is not between 1 and the capacity.
    pub fn in_slots(self, capacity: usize) -> Result<usize, PolicyError> {
        match self.0 {
            Threshold::Percent(percent @ 1..=100) => {
                // 128 bits: the product of a capacity and 100 fits whatever the capacity.
                let slots = (capacity as u128 * u128::from(percent)).div_ceil(100);
                Ok(slots as usize)
            }
            Threshold::Percent(percent) => Err(PolicyError::Percent { percent }),
            Threshold::Slots(slots) if (1..=capacity).contains(&slots) => Ok(slots),
            Threshold::Slots(slots) => Err(PolicyError::Slots { slots, capacity }),
        }
    }
}

impl Default for ThresholdFill {
    /// Half of the capacity.
    fn default() -> Self {
        Self::percent(50)
    }
}

/// Fills at a fixed period, and retires IDs that have grown old in the ring.
///
/// Useful where IDs should be recent: after an idle hour a ring holds IDs that
/// are an hour old, and only a scheduled fill with an age limit replaces them.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use ringflake::ScheduledFill;
///
/// let fill = ScheduledFill::every(Duration::from_secs(10)).max_age(Duration::from_secs(60));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScheduledFill {
    period: Duration,
    max_age: Option<Duration>,
}

impl ScheduledFill {
    /// The shortest period.
    pub const MIN_PERIOD: Duration = Duration::from_millis(1);

    /// A fill every `period`, at least [`MIN_PERIOD`](Self::MIN_PERIOD).
    pub const fn every(period: Duration) -> Self {
        Self {
            period,
            max_age: None,
        }
    }

    /// Retires IDs whose tick began longer ago than this, at each period.
    ///
    /// At least one tick of the layout, because age counts from its start. They
    /// are dropped and counted, never issued; their raws are not used again. An
    /// ID can reach `max_age` plus one period before it is retired, plus another
    /// if a dropped [`Handle`](crate::Handle) gave it back.
    pub const fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = Some(max_age);
        self
    }

    pub(crate) fn period(&self) -> Duration {
        self.period
    }

    pub(crate) fn age_limit(&self) -> Option<Duration> {
        self.max_age
    }

    pub(crate) fn validate(&self, tick_ms: u64) -> Result<(), PolicyError> {
        if self.period < Self::MIN_PERIOD {
            return Err(PolicyError::Period {
                period: self.period,
            });
        }
        let tick = Duration::from_millis(tick_ms);
        match self.max_age {
            Some(max_age) if max_age < tick => Err(PolicyError::MaxAge { max_age, tick }),
            _ => Ok(()),
        }
    }
}

/// What led to a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FillCause {
    /// The start: [`PaddingFill`].
    Padding,
    /// A take left too few: [`ThresholdFill`].
    Threshold,
    /// The period was over: [`ScheduledFill`].
    Scheduled,
}

impl FillCause {
    pub(crate) const ALL: [Self; 3] = [Self::Padding, Self::Threshold, Self::Scheduled];

    /// The name in events: `padding`, `threshold` or `scheduled`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Padding => "padding",
            Self::Threshold => "threshold",
            Self::Scheduled => "scheduled",
        }
    }
}

impl fmt::Display for FillCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What the hook on a full ring is told: a scheduled fill found nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingFull {
    /// The ring's capacity, in slots.
    pub capacity: usize,
}

/// A policy that can't work with its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// A threshold in percent is not between 1 and 100.
    Percent {
        /// The percentage that was given.
        percent: u32,
    },
    /// A threshold in slots is not between 1 and the capacity.
    Slots {
        /// The threshold that was given.
        slots: usize,
        /// The ring's capacity.
        capacity: usize,
    },
    /// An age limit is shorter than one tick, within which IDs are of one age.
    MaxAge {
        /// The limit that was given.
        max_age: Duration,
        /// The layout's tick.
        tick: Duration,
    },
    /// A period is shorter than [`ScheduledFill::MIN_PERIOD`].
    Period {
        /// The period that was given.
        period: Duration,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent { percent } => write!(
                f,
                "a threshold of {percent} % can't be kept: choose 1 to 100 %"
            ),
            Self::Slots { slots, capacity } => write!(
                f,
                "a threshold of {slots} slots can't be kept in a ring of {capacity}: \
                 choose 1 to {capacity}"
            ),
            Self::MaxAge { max_age, tick } => write!(
                f,
                "an age limit of {max_age:?} is shorter than the layout's tick: \
                 choose at least {tick:?}"
            ),
            Self::Period { period } => write!(
                f,
                "a scheduled fill every {period:?} is too often: choose at least {:?}",
                ScheduledFill::MIN_PERIOD
            ),
        }
    }
}

impl std::error::Error for PolicyError {}
