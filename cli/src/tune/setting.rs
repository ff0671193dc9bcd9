//! What can be chosen: the capacity of a ring, and when it is filled.

use std::fmt;

use anyhow::{Result, bail};
use ringflake::RingBuffer;

use crate::count::whole;
use crate::threshold::Threshold;
use crate::units::grouped;

/// The number of slots of a ring: a power of two.
pub(super) fn capacity(text: &str) -> Result<usize> {
    const MOST: usize = RingBuffer::MAX_CAPACITY;
    match whole(text).and_then(|slots| usize::try_from(slots).ok()) {
        Some(slots @ 1..=MOST) if slots.is_power_of_two() => Ok(slots),
        Some(slots @ 1..MOST) => {
            let above = slots.next_power_of_two();
            let below = above / 2;
            bail!("a ring has a power of two of slots: give {below} or {above}")
        }
        _ => bail!("give a power of two from 1 to {MOST}, such as 65536"),
    }
}

/// One configuration of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Setting {
    pub(super) capacity: usize,
    pub(super) threshold: Threshold,
}

impl Setting {
    pub(super) const fn new(capacity: usize, threshold: Threshold) -> Self {
        Self {
            capacity,
            threshold,
        }
    }

    /// IDs below the threshold: how many can be taken while a producer is away. Of an
    /// adaptive threshold the most.
    pub(super) fn carries(self) -> usize {
        // Rounded down, so that a ring of twice the size carries twice as much.
        self.capacity * self.threshold.highest_percent() as usize / 100
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

/// The grid.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    /// In ascending order, not empty.
    pub(super) capacities: Vec<usize>,
    /// In the order in which they are tried, not empty.
    pub(super) thresholds: Vec<Threshold>,
}

impl Choices {
    /// The next smaller ring with the same threshold.
    pub(super) fn next_smaller(&self, setting: Setting) -> Option<Setting> {
        let mut capacities = self.capacities.iter();
        let capacity = capacities.rfind(|&&it| it < setting.capacity)?;
        Some(Setting::new(*capacity, setting.threshold))
    }

    pub(super) fn settings(&self) -> impl Iterator<Item = Setting> {
        self.capacities.iter().flat_map(|&capacity| {
            let thresholds = self.thresholds.iter();
            thresholds.map(move |&threshold| Setting::new(capacity, threshold))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_is_a_power_of_two() {
        for (text, slots) in [("1", 1), ("65536", 65_536)] {
            assert_eq!(capacity(text).unwrap(), slots);
        }
        for wrong in ["", "0", "-1", "64k", "18446744073709551615"] {
            assert!(capacity(wrong).is_err(), "{wrong}");
        }
    }
}
