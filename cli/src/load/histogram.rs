//! Counts of times, in classes that are as fine as a time is short.
//!
//! Below 32 ns a class is a nanosecond; above it each doubling has 32 classes,
//! so a time is known to 1 part in 32. That covers everything a `u64` holds in
//! 1,920 counts, and counting is a few instructions.

/// Classes in each doubling, and its logarithm.
const FINE: usize = 1 << FINE_BITS;
const FINE_BITS: u32 = 5;
const CLASSES: usize = (u64::BITS - FINE_BITS + 1) as usize * FINE;

/// How often which time was met, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    max: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self {
            counts: vec![0; CLASSES].into(),
            count: 0,
            max: 0,
        }
    }

    /// Counts a time, `times` over.
    pub(crate) fn record(&mut self, nanos: u64, times: u64) {
        self.counts[class(nanos)] += times;
        self.count += times;
        if times > 0 {
            self.max = self.max.max(nanos);
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// How many times were counted.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The longest time.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// The time that a share of `quantile` does not exceed, to 1 part in 32 and
    /// never too short; 0 if none was counted.
    pub(crate) fn quantile(&self, quantile: f64) -> u64 {
        let rank = (quantile * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        for (upper, count) in self.classes() {
            below += count;
            if below >= rank {
                return upper.min(self.max);
            }
        }
        self.max
    }

    /// The classes in which times were met: the longest time of each, and how
    /// many there were.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = self.counts.iter().enumerate();
        all.filter(|&(_, &count)| count > 0)
            .map(|(class, &count)| (longest(class), count))
    }
}

/// The class of a time.
fn class(nanos: u64) -> usize {
    if nanos < FINE as u64 {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - FINE_BITS;
    let within = (nanos >> shift) as usize - FINE;
    (shift as usize + 1) * FINE + within
}

/// The longest time of a class.
fn longest(class: usize) -> u64 {
    if class < FINE {
        return class as u64;
    }
    let shift = class / FINE - 1;
    let first = ((FINE + class % FINE) as u64) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_those_of_the_times() {
        let mut histogram = Histogram::new();
        assert_eq!((histogram.quantile(0.5), histogram.max()), (0, 0));
        for nanos in 1..=10 {
            histogram.record(nanos, 10);
        }
        histogram.record(1_000_000, 1);
        assert_eq!(histogram.count(), 101);
        assert_eq!(histogram.quantile(0.0), 1);
        assert_eq!(histogram.quantile(0.5), 6);
        assert_eq!(histogram.quantile(0.99), 10);
        assert_eq!(histogram.quantile(1.0), 1_000_000);
    }

    proptest! {
        #[test]
        fn a_class_is_one_part_in_32(nanos: u64, shift in 0..64_u32) {
            let nanos = nanos >> shift;
            let longest = longest(class(nanos));
            prop_assert!(class(nanos) < CLASSES);
            prop_assert!(longest >= nanos);
            prop_assert!(longest - nanos <= nanos / 32);
        }

        #[test]
        fn two_added_up_are_one(
            first in prop::collection::vec(0..1_000_000_u64, 0..50),
            second in prop::collection::vec(0..1_000_000_u64, 0..50),
        ) {
            let of = |times: &[u64]| {
                let mut histogram = Histogram::new();
                times.iter().for_each(|&nanos| histogram.record(nanos, 1));
                histogram
            };
            let mut sum = of(&first);
            sum.add(&of(&second));
            let all = of(&[first, second].concat());
            prop_assert_eq!(sum.classes().collect::<Vec<_>>(), all.classes().collect::<Vec<_>>());
            prop_assert_eq!((sum.count(), sum.max()), (all.count(), all.max()));
        }
    }
}
