//! The two drivers: the race, as fast as it goes, and the open loop, at fixed moments.
//!
//! The benchmarks of the library include these files by their paths, so that there is one
//! copy of each. A crate of their own would have to be published with the command line;
//! and a library in this package would turn on its features of `ringflake` wherever the
//! library's own tests run. So nothing here uses the rest of the command line, and the
//! tests lie in files of their own.

pub(crate) mod measurement;
pub(crate) mod open_loop;
mod pacer;
pub(crate) mod race;
pub(crate) mod stock;

#[cfg(test)]
mod measurement_tests;
#[cfg(test)]
mod pacer_tests;
#[cfg(test)]
mod race_tests;
#[cfg(test)]
mod stock_tests;
