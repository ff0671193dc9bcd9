//! The grants from a store, and the timelines that claim from them.

use super::backing::Share;
use crate::lease::protocol::{Change, Demand};
use crate::lease::{Grant, GrantSink, Namespace};
use crate::source::Source;
use crate::timeline::{LaneIndex, Timeline};

/// A generator, as the user of leases.
pub(super) trait LeaseUser: Send + Sync + 'static {
    /// The sources that claim from the leases; each has an equal share of every
    /// grant.
    fn sources(&self) -> &[Source];

    /// There is more to claim than before.
    fn has_more(&self);

    /// Stops serving IDs that were made and not yet taken. Returns whether this
    /// must be called again for IDs that are still being made.
    fn stop_serving(&self) -> bool;
}

/// The grants that a generator has, and the lanes that they are claimed from.
pub(super) struct GrantLanes<U> {
    user: U,
    namespace: Namespace,
    held: Vec<Held>,
}

struct Held {
    grant: Grant,
    /// One for each source; none where its share of the nodes is empty.
    lanes: Vec<Option<LaneIndex>>,
}

impl<U: LeaseUser> GrantLanes<U> {
    /// None yet.
    pub(super) fn new(user: U, namespace: Namespace) -> Self {
        Self {
            user,
            namespace,
            held: Vec::new(),
        }
    }

    fn open(&mut self, grant: &Grant) {
        let Ok(lease) = grant.to_lease(&self.namespace) else {
            // Not of this namespace: nothing may be issued from it.
            debug_assert!(false, "{grant} is none of {}", self.namespace);
            return;
        };
        let sources = self.user.sources();
        let count = sources.len() as u64;
        let lanes = (0..count).zip(sources).map(|(index, source)| {
            let part = Share { index, count }.of(&lease).ok()?;
            source.timeline().open(&part)
        });
        self.held.push(Held {
            grant: grant.clone(),
            lanes: lanes.collect(),
        });
        self.user.has_more();
    }

    fn extend(&self, grant: &Grant) {
        for held in self.held.iter().filter(|held| held.is(grant)) {
            for (timeline, lane) in held.lanes(&self.user) {
                timeline.extend(lane, grant.ticks.end);
            }
        }
        self.user.has_more();
    }

    fn close(&mut self, grant: &Grant) {
        let user = &self.user;
        self.held.retain(|held| {
            if held.is(grant) {
                held.lanes(user)
                    .for_each(|(timeline, lane)| timeline.close(lane));
            }
            !held.is(grant)
        });
    }
}

impl Held {
    /// A block's epoch does not identify a grant: a store whose history was lost
    /// can use a number again. Its beginning does, among those of one process.
    fn is(&self, grant: &Grant) -> bool {
        (self.grant.block, self.grant.ticks.start) == (grant.block, grant.ticks.start)
    }

    fn lanes<'a>(
        &'a self,
        user: &'a impl LeaseUser,
    ) -> impl Iterator<Item = (&'a Timeline, LaneIndex)> {
        let lanes = self.lanes.iter().zip(user.sources());
        lanes.filter_map(|(lane, source)| Some((source.timeline(), (*lane)?)))
    }
}

impl<U: LeaseUser> GrantSink for GrantLanes<U> {
    fn unix_ms(&self) -> u64 {
        // There is at least one source.
        let source = self.user.sources().first();
        source.map_or(0, |source| source.timeline().clock().unix_ms())
    }

    fn demand(&self) -> Demand {
        let timelines = || self.user.sources().iter().map(Source::timeline);
        let borrow_limit = timelines().map(Timeline::borrow_limit).max();
        let borrow_limit = borrow_limit.unwrap_or_default();
        // A generator with several sources borrows nothing. They are ahead of
        // the clock only after it was set back, and as long as one is not, IDs
        // flow.
        let borrowed = timelines().filter_map(Timeline::ahead).min();
        Demand {
            borrowed: borrowed.unwrap_or_default(),
            borrow_limit,
            room: timelines().map(Timeline::room).min().unwrap_or(0),
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Opened(grant) => self.open(grant),
            Change::Extended(grant) => self.extend(grant),
            Change::Closed(grant) | Change::Revoked(grant) => self.close(grant),
            // Without a new grant, if the clock was set back.
            Change::Revived => self.user.has_more(),
            Change::Expired { .. } => {}
        }
    }

    fn stop_serving(&self) -> bool {
        self.user.stop_serving()
    }
}

impl<U> std::fmt::Debug for GrantLanes<U> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrantLanes")
            .field("namespace", &self.namespace)
            .field("held", &self.held.len())
            .finish_non_exhaustive()
    }
}
