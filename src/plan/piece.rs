//! Spans of a load over which its rate stays the same.

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
    /// IDs asked for before it.
    pub(super) before: f64,
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

    /// IDs asked for by its end.
    pub(super) fn after(&self) -> f64 {
        self.before + self.ids()
    }

    /// The one that begins where this one ends.
    pub(super) fn then(&self, until: f64, rate: f64) -> Self {
        Self {
            from: self.until,
            until,
            rate,
            before: self.after(),
        }
    }
}
