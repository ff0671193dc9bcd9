//! Who takes how many IDs at which moment.
//!
//! A consumer takes one ID at a time up to a rate of a million a second. Above it reading
//! the timer would take longer than the takes, so IDs are due in small groups, and the groups
//! come at that rate: 20 IDs every microsecond stand for 20 M/s. The consumers take turns.
//!
//! All moments are fixed by the load alone. A consumer that is behind finds the
//! groups that were due meanwhile waiting for it.

use ringflake::plan::{Load, Piece};

/// The most groups of one consumer in a second.
const GROUPS_PER_SECOND: f64 = 1e6;

/// The most IDs in a group.
const LARGEST: u64 = 64;

/// IDs that one consumer takes one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Group {
    /// When the last of them is asked for, in seconds.
    pub(super) due: f64,
    pub(super) ids: u64,
}

/// The groups of one consumer, in order.
pub(super) struct Pacer<'a> {
    pieces: Box<dyn Iterator<Item = Piece> + 'a>,
    piece: Piece,
    /// IDs asked for before `piece`.
    before: f64,
    /// IDs in the groups so far, those of all consumers.
    handed: u64,
    /// Where `piece` ends, in whole IDs.
    last: u64,
    consumers: usize,
    /// Groups until the next one of this consumer.
    others: usize,
}

impl<'a> Pacer<'a> {
    /// The groups of consumer `index` of `consumers` in the first `seconds`.
    pub(super) fn new(load: &'a Load, seconds: f64, index: usize, consumers: usize) -> Self {
        Self {
            pieces: Box::new(load.pieces_until(seconds)),
            piece: Piece::default(),
            before: 0.0,
            handed: 0,
            last: 0,
            consumers,
            others: index,
        }
    }

    /// IDs in a group at the rate of the piece.
    fn size(&self) -> u64 {
        let of_one = self.piece.rate / self.consumers as f64;
        let size = (of_one / GROUPS_PER_SECOND).ceil() as u64;
        size.clamp(1, LARGEST)
    }
}

/// Whole IDs; one that is short of it by no more than sums are off is whole.
pub(super) fn whole(ids: f64) -> u64 {
    (ids + 1e-3) as u64
}

impl Iterator for Pacer<'_> {
    type Item = Group;

    fn next(&mut self) -> Option<Group> {
        loop {
            while self.handed >= self.last {
                self.before += self.piece.ids();
                self.piece = self.pieces.next()?;
                // Fractions of an ID are left to the next piece.
                self.last = whole(self.before + self.piece.ids());
            }
            let ids = self.size().min(self.last - self.handed);
            self.handed += ids;
            if self.others > 0 {
                self.others -= 1;
                continue;
            }
            self.others = self.consumers - 1;
            let into = (self.handed as f64 - self.before) / self.piece.rate;
            return Some(Group {
                // An ID that is only nearly whole when the piece ends is due then.
                due: (self.piece.from + into.max(0.0)).min(self.piece.until),
                ids,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use ringflake::plan::{Burst, Rate};

    use super::*;

    fn load(steady: u64, high: u64) -> Load {
        let rate = |rate| Rate::new(rate).unwrap();
        let millis = Duration::from_millis;
        let burst = Burst::new(rate(high), millis(3), millis(10)).unwrap();
        Load::steady(rate(steady)).with_burst(burst)
    }

    #[test]
    fn a_slow_load_is_taken_one_by_one_and_a_fast_one_in_groups() {
        let slow = Load::steady("1M".parse().unwrap());
        let groups: Vec<_> = Pacer::new(&slow, 0.001, 0, 1).collect();
        assert_eq!(groups.len(), 1000);
        assert!(groups.iter().all(|group| group.ids == 1));
        assert!((groups[9].due - 10e-6).abs() < 1e-12);
        let fast = Load::steady("20M".parse().unwrap());
        let groups: Vec<_> = Pacer::new(&fast, 0.001, 1, 2).collect();
        assert_eq!(groups.len(), 1000);
        assert!(groups.iter().all(|group| group.ids == 10));
        assert!((groups[0].due - 1e-6).abs() < 1e-12);
    }

    #[test]
    fn an_id_that_is_nearly_whole_at_the_end_is_due_then() {
        // 25,862.999 IDs in 5 ms: the last is 0.001 short of a whole one.
        let load = load(288_271, 8_428_819);
        let ids = load.demanded_by(0.005);
        assert!(ids.fract() > 0.999 && ids.fract() < 1.0, "{ids}");
        let last = Pacer::new(&load, 0.005, 0, 1).last().unwrap();
        assert_eq!(last.due, 0.005);
    }

    proptest! {
        #[test]
        fn every_id_is_due_once(
            steady in 1..5_000_000_u64,
            high in 1..50_000_000_u64,
            millis in 1..30_u32,
            consumers in 1..5_usize,
        ) {
            let load = load(steady, high);
            let seconds = f64::from(millis) / 1000.0;
            let mut ids = 0;
            for index in 0..consumers {
                let mut before = 0.0;
                for group in Pacer::new(&load, seconds, index, consumers) {
                    prop_assert!(before <= group.due && group.due <= seconds);
                    prop_assert!((1..=LARGEST).contains(&group.ids));
                    before = group.due;
                    ids += group.ids;
                }
            }
            let demanded = load.demanded_by(seconds);
            prop_assert!(demanded - 1.0 < ids as f64 && ids as f64 <= demanded + 0.01, "{ids} {demanded}");
        }

        #[test]
        fn no_id_is_due_before_it_is_asked_for(steady in 1..50_000_000_u64, high in 1..50_000_000_u64) {
            let load = load(steady, high);
            let mut taken = 0.0;
            for group in Pacer::new(&load, 0.02, 0, 1) {
                taken += group.ids as f64;
                prop_assert!(taken <= load.demanded_by(group.due) + 0.01);
            }
        }
    }
}
