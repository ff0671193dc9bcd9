//! Planning: what a load asks of a ring.
//!
//! Everything here is arithmetic: no thread, no clock, no file.
//!
//! - [`Load`]: IDs asked for over time, from a [`Rate`], a [`Burst`] or a [`Trace`].
//! - [`borrowing`]: how far ahead of the clock it drives a lease.
//! - [`simulate()`]: the level of a ring over time, on a [`Machine`], as a [`Config`]
//!   has it.
//! - [`capacity_for`]: the smallest ring that does not run dry.
//!
//! ```
//! use std::time::Duration;
//! use ringflake::plan::{self, Load, Machine};
//!
//! let load = Load::steady("1M".parse()?).with_burst("20M:100ms/1s".parse()?);
//! // A wake-up takes up to 4 ms here, but takes make up for that. Two stripes have room.
//! let machine = Machine::new("400M".parse()?, Duration::from_millis(4));
//! let config = plan::capacity_for(&load, &machine)?;
//! assert_eq!(config.capacity(), 2048);
//!
//! let simulation = plan::simulate(&load, &machine, &config, Duration::from_secs(10));
//! assert_eq!(simulation.empties, 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Of two definitions of a picture the first one counts: here the picture itself, since
// rustdoc copies no files. Who reads the page in the repository has those.
#[doc = include_str!("plan/guide/pictures.md")]
#[doc = include_str!("plan/guide.md")]
pub mod guide {}

mod borrow;
mod burst;
mod capacity;
mod load;
mod machine;
mod piece;
mod rate;
mod simulation;
mod span;
mod trace;

pub use self::borrow::{Borrowing, borrowing, sustained};
pub use self::burst::{Burst, BurstError};
pub use self::capacity::{SizingError, capacity_for};
pub use self::load::Load;
pub use self::machine::{Config, ConfigError, Machine};
pub use self::piece::Piece;
pub use self::rate::{Rate, RateError};
pub use self::simulation::{Point, Simulation, simulate};
pub use self::trace::{Trace, TraceError};

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Config, Load, Machine, Rate, Trace};
    use crate::fill::ThresholdFill;

    /// A rate, a rate and a burst, as in `1M 20M:100ms/1s`, or a trace.
    pub(super) fn load(text: &str) -> Load {
        match text.split_once(' ') {
            Some((rate, burst)) => load(rate).with_burst(burst.parse().unwrap()),
            None => match text.parse() {
                Ok(rate) => Load::steady(rate),
                Err(_) => text.parse::<Trace>().unwrap().into(),
            },
        }
    }

    /// Without assists, and with one stripe.
    pub(super) fn machine(fill_rate: u64, wake_micros: u64) -> Machine {
        let wake = Duration::from_micros(wake_micros);
        let machine = Machine::new(Rate::new(fill_rate).unwrap(), wake);
        machine.with_assist_fill(None).with_stripes(1)
    }

    pub(super) fn config(capacity: usize, percent: u32) -> Config {
        Config::new(capacity, ThresholdFill::percent(percent)).unwrap()
    }
}
