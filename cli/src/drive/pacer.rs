//! Who takes how many IDs at which moment.
//!
//! A consumer takes one ID at a time up to a rate that the loop names, a million a
//! second as a rule. Above it reading the timer would take longer than the takes, so
//! IDs are due in small groups, and the groups come at that rate: 20 IDs every
//! microsecond stand for 20 M/s. The consumers take turns.
//!
//! All moments are fixed by the load alone. A consumer that is behind finds the
//! groups that were due meanwhile waiting for it.

use ringflake::plan::{Load, Piece};

/// The most IDs in a group.
pub(super) const LARGEST: usize = 64;

/// IDs that one consumer takes one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Group {
    /// When the last of them is asked for, in seconds.
    pub(super) due: f64,
    pub(super) ids: usize,
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
    groups_per_second: f64,
    /// Groups until the next one of this consumer.
    others: usize,
}

impl<'a> Pacer<'a> {
    /// The groups of consumer `index` of `consumers` in the first `seconds`, as many as
    /// `groups_per_second` at the most.
    pub(super) fn new(
        load: &'a Load,
        seconds: f64,
        (index, consumers): (usize, usize),
        groups_per_second: f64,
    ) -> Self {
        Self {
            pieces: Box::new(load.pieces_until(seconds)),
            piece: Piece::default(),
            before: 0.0,
            handed: 0,
            last: 0,
            consumers,
            groups_per_second,
            others: index,
        }
    }

    /// IDs in a group at the rate of the piece.
    fn size(&self) -> u64 {
        let of_one = self.piece.rate / self.consumers as f64;
        let size = (of_one / self.groups_per_second).ceil() as u64;
        size.clamp(1, LARGEST as u64)
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
                ids: ids as usize,
            });
        }
    }
}
