//! Panics of other people's code.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`, which may call a user's clock, hook, store or subscriber, and
/// gives `None` if it panics. What it panicked with is leaked: its drop is the
/// user's too, and could panic again.
///
/// The caller sees to it that nothing is half done where `work` can panic.
pub(crate) fn catching<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(std::mem::forget)
        .ok()
}
