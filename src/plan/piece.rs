//! A part of a load.

use super::rate::Rate;

/// A span of a load over which its rate stays the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Piece {
    /// Its beginning, in seconds.
    pub from: f64,
    /// Its end, in seconds; infinite for a steady load.
    pub until: f64,
    /// IDs a second.
    pub rate: f64,
}

impl Piece {
    pub(super) fn new(from: f64, until: f64, rate: Rate) -> Self {
        let rate = rate.per_second() as f64;
        Self { from, until, rate }
    }

    /// Its length, in seconds.
    pub fn seconds(&self) -> f64 {
        self.until - self.from
    }

    /// How many IDs are asked for in it.
    pub fn ids(&self) -> f64 {
        self.rate * self.seconds()
    }
}
