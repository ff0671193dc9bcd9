//! Spans of a load over which its rate stays the same.

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
    /// Its length, in seconds.
    pub fn seconds(&self) -> f64 {
        self.until - self.from
    }

    /// How many IDs are asked for in it.
    pub fn ids(&self) -> f64 {
        self.rate * self.seconds()
    }
}

/// A piece, and what comes before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) piece: Piece,
    /// IDs asked for before it.
    pub(super) before: f64,
}

impl Step {
    /// IDs asked for by its end.
    pub(super) fn after(&self) -> f64 {
        self.before + self.piece.ids()
    }

    /// Steps without a gap, of which each has its end, in seconds, and its rate.
    pub(super) fn sequence<const N: usize>(ends: [(f64, Rate); N]) -> Box<[Self]> {
        let (mut from, mut before) = (0.0, 0.0);
        let step = |(until, rate): (f64, Rate)| {
            let rate = rate.per_second() as f64;
            let piece = Piece { from, until, rate };
            let step = Self { piece, before };
            (from, before) = (until, step.after());
            step
        };
        ends.into_iter().map(step).collect()
    }
}
