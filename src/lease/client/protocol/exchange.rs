//! The manager's inputs and outputs.

use std::time::Duration;

use crate::lease::{Acquire, Block, Epoch, Grant, LeaseStore, Namespace, Renew, StoreError};

/// When something happens, on two clocks.
///
/// The wall clock says how far leases reach, and may jump. The monotonic clock
/// says when to try again, and only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The monotonic clock: the time since any start that never changes.
    pub elapsed: Duration,
}

/// The generator's demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// How far the last ID that was made lies ahead of the clock at the moment:
    /// more than the limit once the clock was set back.
    pub borrowed: Duration,
    /// How far the next one may.
    pub borrow_limit: Duration,
    /// How many more grants it can take in. No request asks for more.
    pub room: usize,
}

/// The driver's next step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Send this to the store, and hand its answer to
    /// [`Manager::answer`](super::Manager::answer).
    Ask(Request),
    /// Nothing is due for this long, at least a millisecond, unless the wall
    /// clock is set or the demand rises. To notice those, come back every second
    /// or so; coming back early is harmless.
    Wait(Duration),
    /// Everything is released. Nothing will be due any more.
    Done,
}

/// One request to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// See [`LeaseStore::acquire`].
    Acquire(Acquire),
    /// See [`LeaseStore::renew`].
    Renew(Renew),
    /// See [`LeaseStore::release`].
    Release {
        /// The block.
        block: Block,
        /// The epoch of the grant that its holder is done with.
        epoch: Epoch,
    },
    /// See [`LeaseStore::check`]. It changes nothing, so nothing is lost with
    /// its reply.
    Check {
        /// The caller's time, in milliseconds since 1970.
        now_unix_ms: u64,
    },
}

impl Request {
    /// Sends the request, once, and waits for as long as the store takes.
    pub fn send(&self, store: &mut dyn LeaseStore, namespace: &Namespace) -> Answer {
        match self {
            Self::Acquire(acquire) => Answer::Acquired(store.acquire(namespace, acquire)),
            Self::Renew(renew) => Answer::Renewed(store.renew(namespace, renew)),
            Self::Release { block, epoch } => {
                Answer::Released(store.release(namespace, *block, *epoch))
            }
            Self::Check { now_unix_ms } => {
                Answer::Checked(store.check(namespace, *now_unix_ms).map(drop))
            }
        }
    }

    /// The answer to this request if it fails.
    pub fn failed(&self, error: StoreError) -> Answer {
        match self {
            Self::Acquire(_) => Answer::Acquired(Err(error)),
            Self::Renew(_) => Answer::Renewed(Err(error)),
            Self::Release { .. } => Answer::Released(Err(error)),
            Self::Check { .. } => Answer::Checked(Err(error)),
        }
    }
}

/// The store's answer to one [`Request`].
///
/// A driver that gives up waiting for a reply, or whose store panics, answers
/// [`StoreError::Ambiguous`], and never hands in a reply that comes later.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// To [`Request::Acquire`].
    Acquired(Result<Vec<Grant>, StoreError>),
    /// To [`Request::Renew`]: where the grant ends now, in ticks.
    Renewed(Result<u64, StoreError>),
    /// To [`Request::Release`].
    Released(Result<(), StoreError>),
    /// To [`Request::Check`].
    Checked(Result<(), StoreError>),
}

impl Answer {
    /// The error, if it is one.
    pub fn error(&self) -> Option<&StoreError> {
        match self {
            Self::Acquired(Err(error))
            | Self::Renewed(Err(error))
            | Self::Released(Err(error))
            | Self::Checked(Err(error)) => Some(error),
            _ => None,
        }
    }
}

/// A change for the generator.
///
/// A change carries the whole grant, as it is now. Among those of one process
/// its block and `ticks.start` identify it; the epoch does not, since a store
/// that lost its history can use one twice. Two grants of one block can be open
/// at a time, an abandoned one and its successor: their ticks are disjoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A positive reply arrived: IDs may be issued from this grant.
    Opened(Grant),
    /// The grant now ends later.
    Extended(Grant),
    /// The clock has passed the end of the grant and it will not be extended, or it
    /// is about to be released since it is no longer needed, or the clock was set
    /// back so far that another grant has taken its place.
    Closed(Grant),
    /// The grant was given up by
    /// [`invalidate`](super::Manager::invalidate): no ID of it may be issued any
    /// more, those made already included.
    Revoked(Grant),
    /// The clock has passed the end of every grant.
    Expired {
        /// Since when, by that clock, in milliseconds since 1970.
        since_unix_ms: u64,
    },
    /// A grant is in force again.
    Revived,
}
