//! Catches panics of other people's code, and undoes what they leave half done.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`, which may call a user's clock, hook, store or subscriber, and
/// returns `None` if it panics. The panic's payload is leaked: its drop is the
/// user's code too, and could panic again.
///
/// The caller ensures that nothing is half done where `work` can panic.
pub(crate) fn catching<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(std::mem::forget)
        .ok()
}

/// Undoes something when it is dropped, at a panic or an early return, unless it is kept.
pub(crate) struct Undo<F: Fn()>(pub(crate) F);

impl<F: Fn()> Undo<F> {
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

impl<F: Fn()> Drop for Undo<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
