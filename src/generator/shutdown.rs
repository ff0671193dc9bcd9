//! The outcome of a shutdown for the leases of a generator.

/// The outcome for the leases of a generator that was shut down. This process issues no more IDs
/// from them, except for [`InUse`](Self::InUse).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a release that did not come in time may matter"]
#[non_exhaustive]
pub enum Shutdown {
    /// Each was released, or there was none from a store: others can have the nodes at
    /// once.
    Released,
    /// The time was over first, or the store failed. It is tried for as long as the
    /// process runs and the store has not failed; if that fails, too, others can have the
    /// nodes when the leases have ended.
    Unreleased,
    /// A clone or a handle is still there, and goes on with the leases.
    InUse,
}
