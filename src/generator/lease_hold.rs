//! A generator's hold on its leases: a given one, or those that a renewal thread has
//! from a store.

#[cfg(test)]
mod tests;

use std::task::Waker;
use std::time::{Duration, Instant};

use super::backing::{Kept, LeaseBacking};
use super::error::BuildError;
use super::grant_lanes::{GrantLanes, LeaseUser};
use crate::lease::protocol::{LeaseStatus, Manager};
use crate::lease::{
    Claimed, FirstLease, Position, RenewalStartError, RenewalThread, may_succeed_later,
};
use crate::source::Source;
use crate::timeline::Timeline;
use crate::wakers::Ticket;

/// The outcome for the leases of a generator that was shut down. This process issues no more IDs
/// from them, except for [`InUse`](Self::InUse).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a release that did not come in time may matter"]
#[non_exhaustive]
pub enum Shutdown {
    /// Each was released, or there was none from a store. Other processes can be granted the nodes.
    Released,
    /// The time was over first, or the store failed. The release is retried for as long as the
    /// process runs and the store has not failed. Otherwise others can have the nodes when the
    /// leases have ended.
    Unreleased,
    /// A clone or a handle is still there, and goes on with the leases.
    InUse,
}

/// A generator's hold on its leases. Dropping it lets go of them, when its
/// threads are joined and no take can be under way.
#[derive(Debug)]
pub(super) enum LeaseHold {
    Given(GivenLease),
    /// A thread keeps leases from a store.
    Kept(RenewalThread),
}

/// A lease that was given, and the generator that has it.
pub(super) struct GivenLease {
    /// There until it is dropped.
    claimed: Option<Box<Claimed>>,
    user: Box<dyn LeaseUser>,
    /// Whether IDs may have been issued.
    begun: bool,
}

impl GivenLease {
    /// Closes the timelines and returns their position, and whether the lease
    /// was given up before.
    fn finish(&self) -> (Position, bool) {
        let timelines = self.user.sources().iter().map(Source::timeline);
        let lines: Vec<_> = timelines.map(Timeline::finish).collect();
        let given_up = lines.iter().any(|line| !line.was_open);
        let next = match lines.as_slice() {
            [line] => line.next,
            // The next generator may divide the nodes in another way.
            lines => {
                let ticks = lines.iter().map(|line| line.next.whole_tick());
                Position::start_of(ticks.max().unwrap_or_default())
            }
        };
        (next, given_up)
    }
}

impl Drop for GivenLease {
    fn drop(&mut self) {
        // Without IDs, the claim leaves the lease as it was. So it does in a
        // forked child, which finds no position to note.
        if let Some(claimed) = self.claimed.take()
            && self.begun
        {
            let (next, given_up) = self.finish();
            claimed.finish(next, given_up);
        }
    }
}

impl std::fmt::Debug for GivenLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GivenLease")
            .field("claimed", &self.claimed)
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}

impl LeaseHold {
    /// Takes possession: `user` has its first leases when this returns, unless they are
    /// to come later.
    pub(super) fn of(backing: LeaseBacking, user: impl LeaseUser) -> Result<Self, BuildError> {
        match backing {
            LeaseBacking::Given { claimed, .. } => Ok(Self::Given(GivenLease {
                claimed: Some(claimed),
                user: Box::new(user),
                begun: false,
            })),
            LeaseBacking::Kept(kept) => {
                let Kept {
                    store,
                    namespace,
                    same_secret,
                    plan,
                    health,
                    options,
                    patience,
                } = *kept;
                let manager =
                    Manager::new(namespace.clone(), plan, seed()).map_err(BuildError::Plan)?;
                let lanes = Box::new(GrantLanes::new(user, namespace));
                let started = Instant::now();
                // A build that does not wait here asks again in the background.
                let mut first = FirstLease::new(options.init_if_new, patience.unwrap_or_default());
                first.same_secret = same_secret;
                first.duration = options.first_lease_duration;
                first.hook = options.wait_hook;
                RenewalThread::start(store, manager, lanes, health, first, patience.is_some())
                    .map(Self::Kept)
                    .map_err(|error| match error {
                        RenewalStartError::Store(error) if may_succeed_later(&error) => {
                            BuildError::NoLeaseYet {
                                waited: started.elapsed(),
                                error,
                            }
                        }
                        RenewalStartError::Store(error) => BuildError::Store(error),
                        RenewalStartError::System(error) => BuildError::System(error),
                    })
            }
        }
    }

    /// From now on IDs are issued: no later failure gives the lease back as
    /// unused.
    pub(super) fn begin(mut self) -> Self {
        if let Self::Given(given) = &mut self {
            given.begun = true;
        }
        self
    }

    /// Lets go of the leases; those from a store are released, if that takes no longer
    /// than `patience`.
    pub(super) fn shut_down(self, patience: Duration) -> Shutdown {
        let released = match self {
            Self::Given(_) => true,
            Self::Kept(renewal) => renewal.shut_down(patience),
        };
        if released {
            Shutdown::Released
        } else {
            Shutdown::Unreleased
        }
    }

    pub(super) fn status(&self) -> Option<LeaseStatus> {
        match self {
            Self::Given(_) => None,
            Self::Kept(renewal) => Some(renewal.status()),
        }
    }

    /// Waits until a lease is in force, for no longer than `patience`, and answers
    /// whether one is.
    pub(super) fn wait_ready(&self, patience: Duration) -> bool {
        match self {
            Self::Given(_) => true,
            Self::Kept(renewal) => renewal.wait_ready(patience),
        }
    }

    /// Whether a lease is in force. None if none is yet: `waker` is woken when that may have
    /// changed.
    pub(super) fn poll_ready(&self, ticket: &mut Ticket, waker: &Waker) -> Option<bool> {
        match self {
            Self::Given(_) => Some(true),
            Self::Kept(renewal) => renewal.poll_ready(ticket, waker),
        }
    }

    /// Forgets a waker of [`poll_ready`](Self::poll_ready).
    pub(super) fn leave(&self, ticket: &mut Ticket) {
        if let Self::Kept(renewal) = self {
            renewal.forget_waker(ticket);
        }
    }

    /// Gives up the leases of `user`, its own, with all IDs made from them. The
    /// renewal thread then acquires others.
    pub(super) fn invalidate(&self, user: &impl LeaseUser) {
        match self {
            Self::Given(_) => {
                let timelines = user.sources().iter().map(Source::timeline);
                timelines.for_each(Timeline::close_all);
                while user.stop_serving() {}
            }
            Self::Kept(renewal) => renewal.invalidate(),
        }
    }
}

/// Spreads the requests of processes that start together. Nothing else depends
/// on it, so the keys that the standard library draws for its maps will do.
fn seed() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id())
}
