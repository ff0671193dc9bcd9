//! Consumers that wait, by themselves, for the models in `loom-tests`.
//!
//! Only with the feature `loom`, which is no part of the crate's interface.

use std::time::Duration;

use super::waiters::Waiters;

/// Where the consumers of a generator wait, without the rest of it.
#[derive(Debug)]
pub struct WaitingRoom(Waiters);

impl WaitingRoom {
    /// With nobody in it.
    #[allow(
        clippy::new_without_default,
        reason = "loom's objects are made in a model"
    )]
    pub fn new() -> Self {
        Self(Waiters::new())
    }

    /// To be called after a publication.
    pub fn notify(&self) {
        self.0.notify();
    }

    /// Waits until `attempt` gives something; `more` says whether there is
    /// something for another.
    pub fn wait<T>(&self, attempt: impl FnMut() -> Option<T>, more: impl Fn() -> bool) -> T {
        let given = self.0.wait(Duration::MAX, attempt, more);
        given.expect("the time is never over")
    }
}
