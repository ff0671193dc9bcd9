//! What a plan has to know of the machine and of the ring.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use super::rate::Rate;
use crate::fill::{AssistFill, PolicyError, Stripe, ThresholdFill};
use crate::ring::RingBuffer;

/// How fast a machine is, as measured or as assumed, and what a plan does not choose of
/// the generators on it: assists, which are as by default, and stripes, of which there are
/// two, as on two cores.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use ringflake::plan::Machine;
///
/// let machine = Machine::new("500M".parse()?, Duration::from_micros(80))
///     .with_take_rate("150M".parse()?);
/// # Ok::<(), ringflake::plan::RateError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    fill_rate: Rate,
    wake_latency: Duration,
    take_rate: Rate,
    assist: Option<AssistFill>,
    assist_rate: Rate,
    stripes: usize,
}

impl Machine {
    /// A machine whose producers together make `fill_rate` IDs a second while
    /// IDs are taken, and begin to `wake_latency` after they are asked.
    ///
    /// For a plan that holds, take the longest wake-up that is met, not the
    /// usual one. It decides only where takes do not assist.
    pub const fn new(fill_rate: Rate, wake_latency: Duration) -> Self {
        Self {
            fill_rate,
            wake_latency,
            take_rate: Rate::MAX,
            assist: Some(AssistFill::DEFAULT),
            assist_rate: fill_rate,
            stripes: 2,
        }
    }

    /// The same with generators of that [`assist_fill`]; `None` for one whose takes make
    /// nothing. A share of more than 100 percent counts as 100.
    ///
    /// [`assist_fill`]: crate::CachedGeneratorBuilder::assist_fill
    #[must_use]
    pub fn with_assist_fill(mut self, fill: impl Into<Option<AssistFill>>) -> Self {
        self.assist = fill.into();
        self
    }

    /// The same with takes that together make `rate` IDs a second while they assist.
    /// Without it they make as many as the producers.
    #[must_use]
    pub const fn with_assist_rate(mut self, rate: Rate) -> Self {
        self.assist_rate = rate;
        self
    }

    /// The same with generators of so many [`stripes`], rounded up to a power of two, from 1
    /// to 64. By default a generator has as many as cores, but no more than one for each
    /// 1,024 slots: so give the number of cores, and
    /// [`capacity_for`](super::capacity_for) leaves room for a stripe on each.
    ///
    /// [`stripes`]: crate::CachedGeneratorBuilder::stripes
    #[must_use]
    pub const fn with_stripes(mut self, count: usize) -> Self {
        self.stripes = count;
        self
    }

    /// The same with consumers that together take no more than `take_rate`: what
    /// is asked for beyond that waits. Without it they take whatever is asked for.
    #[must_use]
    pub const fn with_take_rate(mut self, take_rate: Rate) -> Self {
        self.take_rate = take_rate;
        self
    }

    /// The same with wake-ups that last `factor` times as long, at the most
    /// [`Duration::MAX`].
    #[must_use]
    pub const fn with_margin(mut self, factor: u32) -> Self {
        self.wake_latency = self.wake_latency.saturating_mul(factor);
        self
    }

    /// IDs a second that the producers make together.
    pub const fn fill_rate(&self) -> Rate {
        self.fill_rate
    }

    /// From the request to the first ID of the fill.
    pub const fn wake_latency(&self) -> Duration {
        self.wake_latency
    }

    /// IDs a second that the consumers take at the most.
    pub const fn take_rate(&self) -> Rate {
        self.take_rate
    }

    /// IDs a second that takes make while they assist; 0 if none does.
    pub(super) fn assisted(&self) -> f64 {
        let rate = self.assist.map(|_| self.assist_rate.per_second() as f64);
        rate.unwrap_or(0.0)
    }

    /// The stripes of a ring.
    pub(super) fn stripes(&self, config: &Config) -> usize {
        let room = config.capacity / Stripe::MIN_SLOTS;
        self.wanted_stripes().min(room).max(1)
    }

    /// The stripes of a ring that has room for all.
    fn wanted_stripes(&self) -> usize {
        (self.stripes.clamp(1, Stripe::MOST)).next_power_of_two()
    }

    /// The slots of the smallest ring that has room for all stripes.
    pub(super) fn room_for_stripes(&self) -> usize {
        match self.wanted_stripes() {
            1 => 1,
            count => count * Stripe::MIN_SLOTS,
        }
    }

    /// A take that leaves fewer IDs in its stripe assists; 0 if none does.
    pub(super) fn low_mark(&self, config: &Config) -> u64 {
        let stripes = self.stripes(config);
        let share = config.capacity / stripes;
        let threshold = config.threshold_in_slots().div_ceil(stripes as u64);
        let mark = self
            .assist
            .map_or(0, |assist| assist.in_slots(share).min(share));
        threshold.min(mark as u64)
    }
}

/// A ring and its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    capacity: usize,
    threshold: ThresholdFill,
}

impl Config {
    /// A ring of `capacity` slots that is filled at `threshold`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if a generator can't be built so.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::ThresholdFill;
    /// use ringflake::plan::Config;
    ///
    /// assert!(Config::new(1 << 16, ThresholdFill::percent(50)).is_ok());
    /// assert!(Config::new(1000, ThresholdFill::percent(50)).is_err());
    /// ```
    pub fn new(capacity: usize, threshold: ThresholdFill) -> Result<Self, ConfigError> {
        if !capacity.is_power_of_two() || capacity > RingBuffer::MAX_CAPACITY {
            return Err(ConfigError::Capacity { capacity });
        }
        threshold.in_slots(capacity).map_err(ConfigError::Policy)?;
        Ok(Self {
            capacity,
            threshold,
        })
    }

    /// Slots of the ring.
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The threshold.
    pub const fn threshold(&self) -> ThresholdFill {
        self.threshold
    }

    /// The threshold in slots, to begin with; checked when this was made.
    pub(super) fn threshold_in_slots(&self) -> u64 {
        let slots = self.threshold.in_slots(self.capacity);
        slots.unwrap_or(self.capacity) as u64
    }
}

/// Why there is no ring like this.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The capacity is no power of two between 1 and [`RingBuffer::MAX_CAPACITY`].
    Capacity {
        /// The capacity that was given.
        capacity: usize,
    },
    /// The threshold is out of its range.
    Policy(PolicyError),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity { capacity } => write!(
                f,
                "a ring of {capacity} slots can't be had: choose a power of two from 1 to {}",
                RingBuffer::MAX_CAPACITY
            ),
            Self::Policy(error) => error.fmt(f),
        }
    }
}

impl Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_as_it_was_described() {
        let rate = |text: &str| text.parse::<Rate>().unwrap();
        let figures = |it: Machine| (it.fill_rate(), it.wake_latency(), it.take_rate());
        let micros = Duration::from_micros;
        let machine = Machine::new(rate("500M"), micros(80));
        assert_eq!(figures(machine), (rate("500M"), micros(80), Rate::MAX));
        let other = machine.with_take_rate(rate("150M")).with_margin(3);
        assert_eq!(figures(other), (rate("500M"), micros(240), rate("150M")));
    }

    #[test]
    fn stripes_are_as_many_as_a_generator_has() {
        let machine = Machine::new("500M".parse().unwrap(), Duration::ZERO);
        let config = |capacity| Config::new(capacity, ThresholdFill::percent(50)).unwrap();
        for (count, slots, found) in [
            (0, 1 << 16, 1),
            (1, 1 << 16, 1),
            (3, 1 << 16, 4),
            (3, 2048, 2),
            (3, 512, 1),
            (192, 1 << 16, 64),
            (192, 1 << 20, 64),
        ] {
            let machine = machine.with_stripes(count);
            assert_eq!(machine.stripes(&config(slots)), found, "{count}, {slots}");
        }
        let room = |count| machine.with_stripes(count).room_for_stripes();
        assert_eq!([1, 2, 3, 192].map(room), [1, 2048, 4096, 1 << 16]);
    }

    #[test]
    fn a_config_is_one_that_a_generator_can_have() {
        let fill = ThresholdFill::percent(25);
        for (capacity, slots) in [(1, 1), (64, 16), (RingBuffer::MAX_CAPACITY, 1 << 28)] {
            let config = Config::new(capacity, fill).unwrap();
            assert_eq!((config.capacity(), config.threshold()), (capacity, fill));
            assert_eq!(config.threshold_in_slots(), slots);
        }
        for capacity in [0, 1000, 2 * RingBuffer::MAX_CAPACITY] {
            let error = Config::new(capacity, fill).unwrap_err();
            assert_eq!(error, ConfigError::Capacity { capacity });
            let begin = format!("a ring of {capacity} slots can't be had: choose a power of two");
            assert!(error.to_string().starts_with(&begin), "{error}");
        }
        let policy = PolicyError::Percent { percent: 101 };
        let error = Config::new(64, ThresholdFill::percent(101)).unwrap_err();
        assert_eq!(error.to_string(), policy.to_string());
        assert_eq!(error, ConfigError::Policy(policy));
    }
}
