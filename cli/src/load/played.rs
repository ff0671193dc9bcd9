//! What was found out by playing a load.

use std::time::Duration;

use ringflake::TakeError;

use super::Histogram;

/// What came of a load.
#[derive(Debug)]
pub(crate) struct Played {
    /// IDs that were asked for until the end.
    pub(crate) demanded: u64,
    pub(crate) taken: u64,
    /// IDs that the generator refused. They are not asked for again.
    pub(crate) refused: u64,
    /// Why the last of them was.
    pub(crate) refusal: Option<TakeError>,
    /// IDs that were due, and that the consumers did not come to.
    pub(crate) missed: u64,
    /// Takes that found the ring empty, whatever came of them.
    pub(crate) empties: u64,
    /// IDs that consumers had to make themselves.
    pub(crate) in_place: u64,
    /// Threshold fills that filled the ring.
    pub(crate) fills: u64,
    /// From the moment at which an ID was due until it was there. IDs of one
    /// group are there when its last one is.
    pub(crate) latency: Histogram,
    /// The ring over time, some milliseconds apart.
    pub(crate) samples: Vec<Sample>,
    /// How long it was played: less than asked for if it was stopped.
    pub(crate) took: Duration,
}

impl Played {
    /// The most seconds that were seen to be borrowed.
    pub(crate) fn most_borrowed(&self) -> f64 {
        let borrowed = self.samples.iter().map(|sample| sample.borrowed);
        borrowed.fold(0.0, f64::max)
    }

    /// The lowest level that was seen; lower ones may have come and gone.
    pub(crate) fn lowest_level(&self) -> Option<usize> {
        self.samples.iter().map(|sample| sample.level).min()
    }
}

/// The ring at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Since the first moment of the load.
    pub(crate) seconds: f64,
    pub(crate) level: usize,
    pub(crate) threshold: usize,
    /// Seconds that were borrowed.
    pub(crate) borrowed: f64,
    /// Threshold fills so far.
    pub(crate) fills: u64,
    /// Takes so far that found the ring empty.
    pub(crate) empties: u64,
}
