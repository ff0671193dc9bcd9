//! A timeline without the rest of a generator, for the models in `loom-tests`.
//!
//! Exists only with the feature `loom`, and is not part of the crate's interface.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::{ClaimPolicy, LaneIndex, Run, Timeline};
use crate::clock::ManualClock;
use crate::layout::Layout;
use crate::lease::Lease;

/// The timeline of a generator whose leases a store grants.
#[derive(Debug)]
pub struct LeaseTimeline(Timeline);

/// A grant's place on it.
#[derive(Clone, Copy, Debug)]
pub struct ModelLane(LaneIndex);

impl LeaseTimeline {
    /// A timeline of `lanes` lanes. Claims may borrow as much as the grants allow.
    ///
    /// # Errors
    ///
    /// If the memory can't be had.
    pub fn new(layout: Layout, lanes: usize, clock: ManualClock) -> io::Result<Self> {
        let policy = ClaimPolicy {
            borrow_limit: u64::MAX,
            follows_clock: true,
            serves_the_past: false,
        };
        Timeline::for_leases(layout, lanes, Arc::new(clock), policy, Arc::default()).map(Self)
    }

    /// Opens a lane, if there is room.
    pub fn open(&self, lease: &Lease) -> Option<ModelLane> {
        self.0.open(lease).map(ModelLane)
    }

    /// Lets a lane reach up to `end_tick`.
    pub fn extend(&self, lane: ModelLane, end_tick: u64) {
        self.0.extend(lane.0, end_tick);
    }

    /// Closes a lane.
    pub fn close(&self, lane: ModelLane) {
        self.0.close(lane.0);
    }

    /// Claims up to `want` raws, if there are any.
    pub fn claim(&self, want: usize) -> Option<Range<u64>> {
        self.0.claim(want).ok().map(raws)
    }

    /// The same from this lane only, for whichever grant it is open.
    pub fn claim_from(&self, lane: ModelLane, want: usize) -> Option<Range<u64>> {
        let LaneIndex(at) = lane.0;
        let Timeline { layout, policy, .. } = &self.0;
        let (lane, cursor) = (&self.0.lanes[at], self.0.cursor(at));
        let claimed = lane.claim(cursor, layout, want, self.0.now(), *policy)?;
        Some(raws(claimed.run))
    }
}

fn raws(run: Run) -> Range<u64> {
    run.first..run.first + run.len as u64
}
