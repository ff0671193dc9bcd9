//! Playing a load against a live generator.
//!
//! ```text
//! command line -> LoadArgs -> Load, what is asked for over time
//! Load -> Pacer: which consumer takes how many IDs, and when they are due
//!      -> Driver: consumers that take then, and a thread that samples the ring
//!      -> Played: what was found out
//! ```

mod args;
mod driver;
mod histogram;
mod pacer;
mod played;
mod sampler;
mod threshold;

pub(crate) use self::args::LoadArgs;
pub(crate) use self::driver::{Driver, Keeper};
pub(crate) use self::histogram::Histogram;
pub(crate) use self::played::{Played, Sample};
pub(crate) use self::threshold::Threshold;
