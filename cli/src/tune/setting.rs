//! What can be chosen: the capacity of a ring, and when it is filled.

use std::fmt;

use anyhow::{Result, bail};
use ringflake::{CachedGeneratorBuilder, RingBuffer};

pub(super) use crate::load::Threshold;
use crate::units::grouped;

impl Threshold {
    /// The highest share of the capacity, in percent, at which it can lie.
    pub(super) fn percent_at_most(self) -> u32 {
        match self {
            Self::Percent(percent) => percent,
            // In a hundred slots each is a percent.
            Self::Adaptive => self.fill().in_slots(100).unwrap_or(100) as u32,
        }
    }

    /// The share of the capacity, in percent, below which it never lies.
    pub(super) fn percent_that_stays(self) -> u32 {
        match self {
            Self::Percent(percent) => percent,
            Self::Adaptive => 0,
        }
    }
}

/// The number of slots of a ring: a power of two.
pub(super) fn capacity(text: &str) -> Result<usize> {
    match text.parse::<usize>() {
        Ok(slots) if slots.is_power_of_two() && slots <= RingBuffer::MAX_CAPACITY => Ok(slots),
        Ok(slots) if (2..RingBuffer::MAX_CAPACITY).contains(&slots) => {
            let above = slots.next_power_of_two();
            bail!(
                "a ring has a power of two of slots: give {} or {above}",
                above / 2
            )
        }
        _ => bail!(
            "give a power of two from 1 to {}, such as 65536",
            RingBuffer::MAX_CAPACITY
        ),
    }
}

/// One configuration of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Setting {
    pub(super) capacity: usize,
    pub(super) threshold: Threshold,
}

impl Setting {
    pub(super) fn apply(self, builder: CachedGeneratorBuilder) -> CachedGeneratorBuilder {
        builder
            .capacity(self.capacity)
            .threshold_fill(self.threshold.fill())
    }

    /// IDs that are left when a producer is woken; of an adaptive threshold the
    /// most.
    pub(super) fn slots_below(self) -> usize {
        // A capacity that the ring accepts has such a threshold.
        self.threshold.fill().in_slots(self.capacity).unwrap_or(0)
    }

    /// How much can be taken from it while a producer is away, to be compared with
    /// others; of an adaptive threshold the most.
    pub(super) fn bears(self) -> u64 {
        self.capacity as u64 * u64::from(self.threshold.percent_at_most())
    }

    /// Bytes of its slots.
    pub(super) fn bytes(self) -> usize {
        self.capacity * size_of::<u64>()
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = grouped(self.capacity as u64);
        match self.threshold {
            Threshold::Percent(percent) => write!(f, "{slots} slots, threshold {percent} %"),
            Threshold::Adaptive => write!(f, "{slots} slots, adaptive threshold"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_is_a_power_of_two() {
        assert_eq!(capacity("65536").unwrap(), 65_536);
        assert_eq!(capacity("1").unwrap(), 1);
        let near = capacity("1000").unwrap_err().to_string();
        assert!(near.contains("512 or 1024"), "{near}");
        for wrong in ["", "0", "-1", "64k", "18446744073709551615"] {
            assert!(capacity(wrong).is_err(), "{wrong}");
        }
    }
}
