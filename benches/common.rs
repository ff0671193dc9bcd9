//! What the benchmarks share.

#![allow(dead_code, reason = "each benchmark uses its own part of it")]

// The drivers are the command line's own files: there is one copy of each.
#[path = "../cli/src/drive/open_loop.rs"]
pub(crate) mod open_loop;
#[path = "../cli/src/drive/pacer.rs"]
mod pacer;
#[path = "../cli/src/bench/stock.rs"]
pub(crate) mod stock;

pub(crate) mod flags;
pub(crate) mod latency;
pub(crate) mod reference;
pub(crate) mod unique;
