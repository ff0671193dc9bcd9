//! Planning: which lease and which ring a load needs.
//!
//! Everything here is arithmetic: no thread, no clock, no file.
//!
//! - [`Load`]: IDs asked for over time, from a [`Rate`], a [`Burst`] or a trace.
//! - [`nodes_for`]: how many nodes to lease; [`borrowing`]: how far ahead of the clock the
//!   load drives them.
//! - [`capacity_for`]: which ring it needs on a [`Machine`]; [`lowest_level`]: how low the
//!   load drives a given one.
//!
//! [`guide::tuning`](crate::guide::tuning) explains the formulas.
//!
//! There is one margin, [`MARGIN`]: the lease sustains, and the ring holds, twice the load.
//!
//! ```
//! use std::time::Duration;
//! use ringflake::plan::{self, Load, Machine};
//! use ringflake::{Layout, ThresholdFill};
//!
//! // 1 M IDs/s, and 20 M IDs/s in the first 100 ms of every second.
//! let load = Load::steady("1M".parse()?).with_burst("20M:100ms/1s".parse()?);
//! // Without a store up to 60 s may be borrowed.
//! let nodes = plan::nodes_for(&load, &Layout::RANDFLAKE, Duration::from_secs(60));
//! assert_eq!(nodes, 45);
//! let capacity = plan::capacity_for(&load, &Machine::default(), ThresholdFill::default())?;
//! assert_eq!(capacity, 65_536, "the default is enough");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod borrow;
mod burst;
mod load;
mod rate;
mod ring;
mod trace;

use std::error::Error;
use std::fmt;

pub use self::borrow::{Borrowing, borrowing, nodes_for, sustained};
pub use self::burst::Burst;
pub use self::load::Load;
pub use self::rate::{Piece, Rate};
pub use self::ring::{Level, Machine, SizingError, capacity_for, is_enough, lowest_level};

/// How much more than the load an answer holds: twice what is needed.
pub const MARGIN: f64 = 2.0;

/// Why a text or a number is no load: which part is wrong, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError(String);

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for LoadError {}

#[cfg(test)]
mod tests {
    use super::Load;

    /// A rate, a rate and a burst, as in `1M 20M:100ms/1s`, or a trace.
    pub(super) fn load(text: &str) -> Load {
        match text.split_once(' ') {
            Some((rate, burst)) => load(rate).with_burst(burst.parse().unwrap()),
            None => match text.parse() {
                Ok(rate) => Load::steady(rate),
                Err(_) => Load::trace(text).unwrap(),
            },
        }
    }
}
