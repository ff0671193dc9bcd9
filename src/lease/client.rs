//! The side of a process: what it asks of a store, and when.

pub(in crate::lease) mod failure;
pub mod protocol;
pub(in crate::lease) mod renewal;
