//! What keeps leases: threads that drive [`Manager`]s against stores.
//!
//! The manager decides; a courier, a thread with a store of its own, asks the store what
//! the manager says, hands it the answers, and lets the sink know what it has from then
//! on. A [`Keeper`] is how a generator reaches all that.
//!
//! Generators of one process whose stores have equal [keys](super::StoreKey) share one
//! courier, and with it one connection. A hundred of them cost the server no more than
//! one.
//!
//! # What stands where
//! | file | |
//! |---|---|
//! | `desk.rs` | manager and sink together, behind one lock |
//! | `seat.rs` | what a courier does for one desk, from the first lease to the farewell |
//! | `first_lease.rs` | what is different until a store has given the first lease |
//! | `courier.rs` | the thread: its rounds, and what one failure says to all |
//! | `line.rs` | which courier a keeper comes to, and when one ends |
//! | `events.rs` | what it reports to `tracing` |
//! | `farewell.rs` | how long a generator that goes waits |
//!
//! # Locks
//! The desk's lock is never held while the store is asked, so
//! [`invalidate`](Keeper::invalidate) finds the lanes of every grant that ever was,
//! whatever the store is doing; nor while `tracing` is told, so a subscriber may ask how
//! the leases stand. The lock of the lines is held while a thread is started, and never
//! together with a desk's.
//!
//! # Pace
//! A courier looks at each desk's clock and demand four times a second, but not while it
//! waits for the store. It takes no part in issuing IDs: should it stand still, leases are
//! used up to their confirmed ends and no further.
//!
//! # Other people's code
//! It may panic. A store that does has left its answer open, a clock says what it said
//! before, and a subscriber's panic is dropped. None of them comes between the manager and
//! the sink: what the manager has changed, the sink is told.
//!
//! # Forks
//! A child has neither the threads nor the leases. Its keepers do nothing from then on,
//! and those that it starts come to couriers of its own.

mod courier;
mod desk;
mod events;
mod farewell;
mod first_lease;
mod line;
mod seat;

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

pub(crate) use self::desk::GrantSink;
use self::desk::{Desk, Shared};
use self::farewell::Ending;
pub(crate) use self::first_lease::{FirstLease, WaitHook, may_come};
use self::line::Line;
use self::seat::Seat;
use super::protocol::{LeaseStatus, Manager};
use super::{LeaseStore, Outage, StoreError};
use crate::fork::WipeOnFork;

/// Keeps the leases of one sink; letting it go releases them, see [`farewell`].
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    /// Taken when it goes.
    line: Option<Line>,
    /// Reads false in a forked child, which has neither the thread nor the leases.
    at_home: WipeOnFork<bool>,
}

/// Why there is no keeper.
pub(crate) enum KeeperError {
    /// The store gave no lease.
    Store(StoreError),
    /// The operating system refused memory or a thread.
    System(std::io::Error),
}

impl Keeper {
    /// Has a courier serve the sink, and waits until it has acquired the first leases
    /// if they are `awaited`. The store is dropped where another one has its key.
    ///
    /// # Errors
    /// The system's refusal, or the store's last one where leases are awaited. Nothing is
    /// kept then.
    pub(crate) fn start(
        store: Box<dyn LeaseStore>,
        manager: Manager,
        sink: Box<dyn GrantSink>,
        outage: Arc<Outage>,
        first: FirstLease,
        awaited: bool,
    ) -> Result<Self, KeeperError> {
        let at_home = WipeOnFork::new(true).map_err(KeeperError::System)?;
        let shared = Arc::new(Shared::new(Desk::new(manager, sink, outage)));
        let (outcome, answer) = mpsc::channel();
        let outcome = awaited.then_some(outcome);
        let seat = Seat::new(Arc::clone(&shared), first, outcome);
        let line = Line::of(store, seat).map_err(KeeperError::System)?;
        // From here on an error lets go of what the courier has of it.
        let keeper = Self {
            shared,
            line: Some(line),
            at_home,
        };
        if !awaited {
            return Ok(keeper);
        }
        match answer.recv() {
            Ok(first) => first.map(|()| keeper).map_err(KeeperError::Store),
            Err(gone) => Err(KeeperError::System(std::io::Error::other(gone))),
        }
    }

    /// How the leases stand.
    pub(crate) fn status(&self) -> LeaseStatus {
        self.shared.desk().status()
    }

    /// Gives up every lease at once, with all that was made from them, and lets
    /// the courier acquire others.
    pub(crate) fn invalidate(&self) {
        let news = self.shared.desk().invalidate();
        if let Some(line) = &self.line {
            line.wake();
        }
        news.tell();
    }

    /// Waits until a lease is in force, for no longer than `patience`, and answers whether
    /// one is. Not for a forked child, where nobody unlocks the desk.
    pub(crate) fn wait_ready(&self, patience: Duration) -> bool {
        self.shared.wait(patience, Desk::is_in_force)
    }

    /// Releases every lease, and waits for that as long as `patience`. Answers whether
    /// all were released by then.
    pub(crate) fn shut_down(mut self, patience: Duration) -> bool {
        self.leave(|ending| ending.wait(patience))
    }

    /// Lets the courier release everything, and `wait` for that.
    fn leave(&mut self, wait: impl FnOnce(&Ending) -> Option<bool>) -> bool {
        let Some(line) = self.line.take() else {
            return false;
        };
        if !*self.at_home {
            // The parent's; there is nothing to release.
            std::mem::forget(line);
            return false;
        }
        // Relaxed: the courier looks again after each round.
        self.shared.stop.store(true, Relaxed);
        line.wake();
        // A hook may own the last generator, and a store may call it.
        if line.thread() == thread::current().id() {
            return false;
        }
        // Where it takes longer, it goes on by itself.
        wait(&self.shared.ending).unwrap_or(false)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.leave(Ending::wait_in_a_drop);
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}
