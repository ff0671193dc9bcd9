//! The open loop: takes at fixed moments, and what came of them.
//!
//! The benchmarks of the library include `open_loop.rs` and `pacer.rs` by their paths, and the
//! race and the stocks in `bench`, so that there is one copy of each. A crate of their own would
//! have to be published with the command line; and a library in this package would turn on its
//! features of `ringflake` wherever the library's own tests run. So none of these files uses the
//! rest of the command line, and their tests lie in files of their own.

pub(crate) mod measurement;
pub(crate) mod open_loop;
mod pacer;

#[cfg(test)]
mod measurement_tests;
#[cfg(test)]
mod pacer_tests;
