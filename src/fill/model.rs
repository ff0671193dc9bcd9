//! The waiting of consumers without the rest of a generator, for the models in
//! `loom-tests`.
//!
//! Only with the feature `loom`, which is no part of the crate's interface.

use std::time::Duration;

use super::waiters::Waiters;

/// The consumers of a generator that wait for a publication.
#[derive(Debug)]
pub struct WaitingRoom(Waiters);

impl WaitingRoom {
    /// Without a waiting consumer.
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
