//! What the benchmarks share.

#![allow(dead_code, reason = "each benchmark uses its own part of it")]

pub(crate) mod flags;
pub(crate) mod measure;
pub(crate) mod open_loop;
pub(crate) mod race;
pub(crate) mod reference;
pub(crate) mod stock;
pub(crate) mod timer;
pub(crate) mod unique;
pub(crate) mod yardsticks;
