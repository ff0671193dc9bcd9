//! When to fill: the three policies of producers, and the assists of takes.

use std::fmt;
use std::time::Duration;

use crate::describe::describe;

/// Fills the ring when a generator is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PaddingFill {
    /// `build` returns once the ring is full, so that the first take finds
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
/// A fill ends when the ring is full.
///
/// Each [stripe](crate::CachedGeneratorBuilder::stripes) has its own threshold, an equal
/// share of the one given, rounded up, and asks for a fill of its own. So a fill is asked
/// for where a core has taken much, however full the other stripes are.
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

    /// The threshold as a number of slots of all stripes, from 1 to the capacity.
    pub const fn slots(slots: usize) -> Self {
        Self(Threshold::Slots(slots))
    }

    /// The threshold for a ring of `capacity` slots: a take that leaves fewer IDs than this
    /// asks for a fill.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] if it is not between 1 and the capacity.
    pub fn in_slots(self, capacity: usize) -> Result<usize, PolicyError> {
        match self.0 {
            Threshold::Percent(percent @ 1..=100) => Ok(share(capacity, percent)),
            Threshold::Percent(percent) => Err(PolicyError::Percent { percent }),
            Threshold::Slots(slots) if (1..=capacity).contains(&slots) => Ok(slots),
            Threshold::Slots(slots) => Err(PolicyError::Slots { slots, capacity }),
        }
    }
}

/// Has a take that leaves very few IDs make some more itself: an *assist*.
///
/// Between the request for a fill and its first IDs lies a wake-up, which takes
/// milliseconds where other threads have the cores. A take that leaves its stripe below
/// this mark makes as many IDs as about a microsecond allows, 64 to 512 by the backend of
/// the cipher, and puts them there; one thread at a time for each stripe. So the capacity
/// need not bridge a wake-up.
///
/// The take that assists has its ID before, and returns it whatever the assist meets: a
/// limit, or a panic of the clock. It takes about a microsecond longer, reads the
/// [`Clock`](crate::Clock), and allocates nothing. It never sleeps, and waits for nobody
/// but the clock. Where no take may read a clock, or be a microsecond late, as with
/// [`OnEmpty::Error`](crate::OnEmpty::Error) for that reason, turn assists off:
/// [`assist_fill(None)`](crate::CachedGeneratorBuilder::assist_fill).
///
/// Counted in [`FillCounts::assist`](crate::FillCounts::assist), and not as an empty.
///
/// # Examples
///
/// ```
/// use ringflake::AssistFill;
///
/// assert_eq!(AssistFill::default(), AssistFill::below(10));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AssistFill {
    below: u32,
}

impl AssistFill {
    pub(crate) const DEFAULT: Self = Self::below(10);

    /// Assists takes that leave fewer IDs than this share of a stripe's slots, 1 to 100
    /// percent, rounded up. A mark above the threshold counts as the threshold: without a
    /// request for a fill nothing is assisted.
    #[doc(alias = "percent")]
    pub const fn below(percent: u32) -> Self {
        Self { below: percent }
    }

    pub(crate) fn validate(self) -> Result<(), PolicyError> {
        match self.below {
            1..=100 => Ok(()),
            percent => Err(PolicyError::Assist { percent }),
        }
    }

    pub(crate) fn in_slots(self, capacity: usize) -> usize {
        share(capacity, self.below)
    }
}

impl Default for AssistFill {
    /// Below a tenth.
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A share of the capacity in slots, rounded up.
fn share(capacity: usize, percent: u32) -> usize {
    // 128 bits: the product of a capacity and 100 fits whatever the capacity.
    let slots = (capacity as u128 * u128::from(percent)).div_ceil(100);
    slots as usize
}

impl Default for ThresholdFill {
    /// Half of the capacity.
    fn default() -> Self {
        Self::percent(50)
    }
}

/// Fills once a period, and retires IDs that are too old.
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

    /// Retires IDs whose tick began longer ago than `max_age`, once a period.
    ///
    /// At least one tick of the layout, because age counts from the start of a tick.
    /// Retired IDs are dropped and counted, never issued; their raws are not used again.
    /// An ID can reach `max_age` plus one period before it is retired, plus another
    /// period if a dropped [`Handle`](crate::Handle) gave it back.
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

/// The cause of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FillCause {
    /// The start: [`PaddingFill`].
    Padding,
    /// A take left too few IDs: [`ThresholdFill`].
    Threshold,
    /// A period was over: [`ScheduledFill`].
    Scheduled,
}

impl FillCause {
    pub(crate) const ALL: [Self; 3] = [Self::Padding, Self::Threshold, Self::Scheduled];
}

/// The name in events.
impl fmt::Display for FillCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Padding => "padding",
            Self::Threshold => "threshold",
            Self::Scheduled => "scheduled",
        })
    }
}

/// Passed to the hook on a full ring: a scheduled fill found nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingFull {
    /// The ring's capacity, in slots.
    pub capacity: usize,
}

/// Why a policy can't work with its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// A threshold in percent is not between 1 and 100.
    Percent {
        /// The percentage that was given.
        percent: u32,
    },
    /// The mark of an [`AssistFill`] is not between 1 and 100 percent.
    Assist {
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
    /// An age limit is shorter than one tick, and all IDs of a tick are of one age.
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

describe! {
    PolicyError;

    Self::Percent { percent } => "the threshold must be 1 to 100 %, got {percent} %";
    Self::Assist { percent } =>
        "the level for assists must be 1 to 100 %, or off, got {percent} %";
    Self::Slots { slots, capacity } =>
        "the threshold must be 1 to {capacity} slots, the ring's capacity, got {slots}";
    Self::MaxAge { max_age, tick } =>
        "the maximum age must be at least the layout's tick, {tick:?}, got {max_age:?}";
    Self::Period { period } => (
        "the period of scheduled fills must be at least {:?}, got {period:?}",
        ScheduledFill::MIN_PERIOD);
}

impl std::error::Error for PolicyError {}
