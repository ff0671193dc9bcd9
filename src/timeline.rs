//! Claims raws from the leases that are held, as the clock allows.
//!
//! A timeline has a fixed number of *lanes*. Each is closed, or open for one grant.
//! [`lane`] explains how raws are claimed from a lane, and proves that none is
//! claimed twice. A lease that is given once and for all takes one lane. Where a
//! store leases blocks, lanes are opened, extended and closed while claims go on.
//!
//! # Which lane
//!
//! Claims go to the lane in use until it has given a whole tick, and then to the
//! one whose next tick is the earliest. So all lanes of a tick are used before
//! the next tick, as all nodes of a lane are. Which lane is in use is a hint:
//! two threads that disagree about it claim different raws all the same.

mod cursor;
mod lane;
mod line;
#[cfg(feature = "loom")]
pub(crate) mod model;
mod policy;
mod refusal_counts;
mod refused;
mod status;

use std::fmt;
use std::sync::Arc;

use self::cursor::Cursor;
use self::lane::{Lane, View};
pub(crate) use self::line::Run;
pub(crate) use self::policy::ClaimPolicy;
use self::policy::Now;
pub(crate) use self::refusal_counts::RefusalCounters;
pub use self::refusal_counts::RefusalCounts;
pub use self::refused::Refused;
use crate::clock::Clock;
use crate::fork::WipeOnFork;
use crate::layout::Layout;
use crate::lease::{Lease, Position, StoreHealth};
use crate::sync;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::atomic::{AtomicU64, AtomicUsize};

/// A page: one word for the mark of a fork, and one for each lane's cursor. In a model
/// few.
const WORDS: usize = sync::size(512, 4);

/// Claims runs of raws from the leases that are held, each raw at most once.
pub(crate) struct Timeline {
    layout: Layout,
    lanes: Box<[Lane]>,
    /// The mark, which is 1, and the cursors. In a forked child all of them read 0.
    words: WipeOnFork<[AtomicU64; WORDS]>,
    /// The lane in use; a hint.
    active: AtomicUsize,
    /// The lane that was opened last.
    opened: AtomicUsize,
    clock: Arc<dyn Clock>,
    policy: ClaimPolicy,
    /// The state of the store that the leases come from, if they come from one.
    health: Option<Arc<StoreHealth>>,
}

/// The end of a timeline over one lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    /// One past the last position that was claimed or skipped.
    pub(crate) next: Position,
    /// Whether the lease had not been closed before.
    pub(crate) was_open: bool,
}

/// The place of a grant on a timeline, until it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneIndex(usize);

#[cfg(feature = "loom")]
impl LaneIndex {
    /// The lane of a timeline over one lease.
    pub(crate) const FIRST: Self = Self(0);
}

impl Timeline {
    /// The most lanes that a timeline can have.
    pub(crate) const MAX_LANES: usize = WORDS - 1;

    /// A timeline over one lease. The first `offset` raws of its first tick were
    /// claimed before.
    pub(crate) fn new(
        lease: &Lease,
        offset: u64,
        clock: Arc<dyn Clock>,
        policy: ClaimPolicy,
    ) -> std::io::Result<Self> {
        let timeline = Self::with_lanes(*lease.layout(), 1, clock, policy)?;
        timeline.lanes[0].open(timeline.cursor(0), &lease.nodes(), &lease.ticks());
        timeline.cursor(0).start_at(offset);
        Ok(timeline)
    }

    /// Ends a timeline over one lease: nothing more is claimed, and everything claimed so far lies
    /// before `next`. Not for a forked child's copy.
    pub(crate) fn finish(&self) -> Finished {
        // Close before reading the cursor: a claim that stands has moved it.
        let was_open = self.lanes[0].is_open();
        self.close_all();
        let line = self.lanes[0].line(&self.layout);
        let next = self.cursor(0).next().unwrap_or_default();
        let tick = line.tick_of(next);
        Finished {
            next: Position {
                tick,
                offset: next - line.position_of(tick),
            },
            was_open,
        }
    }

    /// A timeline for leases that a store will grant, up to `lanes` of them at a
    /// time, and no more than [`MAX_LANES`](Self::MAX_LANES).
    pub(crate) fn for_leases(
        layout: Layout,
        lanes: usize,
        clock: Arc<dyn Clock>,
        policy: ClaimPolicy,
        health: Arc<StoreHealth>,
    ) -> std::io::Result<Self> {
        let mut timeline = Self::with_lanes(layout, lanes.min(Self::MAX_LANES), clock, policy)?;
        timeline.health = Some(health);
        Ok(timeline)
    }

    fn with_lanes(
        layout: Layout,
        lanes: usize,
        clock: Arc<dyn Clock>,
        policy: ClaimPolicy,
    ) -> std::io::Result<Self> {
        // The first word is the mark of this process: a forked child reads 0.
        let words = WipeOnFork::new(std::array::from_fn(|_| AtomicU64::new(cursor::FIRST)))?;
        Ok(Self {
            layout,
            lanes: (0..lanes).map(|_| Lane::closed()).collect(),
            words,
            active: AtomicUsize::new(0),
            opened: AtomicUsize::new(0),
            clock,
            policy,
            health: None,
        })
    }

    /// Opens a lane for a grant that nobody has claimed from; `None` if no lane is
    /// closed. Lanes are opened, extended and closed by one thread at a time.
    pub(crate) fn open(&self, lease: &Lease) -> Option<LaneIndex> {
        // In turn, so that a claim that was under way when a lane was closed
        // does not soon meet another grant there.
        let count = self.lanes.len();
        // Relaxed: one thread at a time.
        let last = self.opened.load(Relaxed);
        let free = (1..=count)
            .map(|step| (last + step) % count)
            .find(|&at| !self.lanes[at].is_open())?;
        self.opened.store(free, Relaxed);
        self.lanes[free].open(self.cursor(free), &lease.nodes(), &lease.ticks());
        Some(LaneIndex(free))
    }

    /// Lets a lane's grant reach up to `end_tick`.
    pub(crate) fn extend(&self, lane: LaneIndex, end_tick: u64) {
        self.lanes[lane.0].extend(end_tick);
    }

    /// Lets no new claim be made from a lane.
    pub(crate) fn close(&self, lane: LaneIndex) {
        self.lanes[lane.0].close();
    }

    /// Lets no new claim be made from any lane.
    pub(crate) fn close_all(&self) {
        self.lanes.iter().for_each(Lane::close);
    }

    /// How many lanes are closed.
    pub(crate) fn room(&self) -> usize {
        self.lanes.iter().filter(|lane| !lane.is_open()).count()
    }

    /// Claims up to `want` raws of one tick and node; `want` is at least 1.
    ///
    /// Lock-free; costs one look at the clock and one exchange.
    #[inline]
    pub(crate) fn claim(&self, want: usize) -> Result<Run, Refused> {
        let now = self.now();
        // Relaxed: a hint, in range because nothing else is ever stored.
        let at = self.active.load(Relaxed);
        match self.lanes[at].claim(self.cursor(at), &self.layout, want, now, self.policy) {
            Some(claimed) => {
                if claimed.may_pass_on && self.lanes.len() > 1 {
                    self.choose(at, now);
                }
                Ok(claimed.run)
            }
            None => self.claim_elsewhere(at, want, now),
        }
    }

    /// Makes the lane whose next tick is the earliest the one in use.
    #[cold]
    fn choose(&self, at: usize, now: Now) {
        if let Some((next, _)) = self.earliest(at, now) {
            self.active.store(next, Relaxed);
        }
    }

    #[cold]
    fn claim_elsewhere(&self, at: usize, want: usize, now: Now) -> Result<Run, Refused> {
        // Each round that fails has met another claim that succeeded, or a lane just closed.
        while let Some((at, tick)) = self.earliest(at, now)
            && tick < now.limit
        {
            let lane = &self.lanes[at];
            if let Some(claimed) = lane.claim(self.cursor(at), &self.layout, want, now, self.policy)
            {
                self.active.store(at, Relaxed);
                return Ok(claimed.run);
            }
        }
        Err(self.refusal(now))
    }

    /// The open lane with the earliest next tick, and that tick. Of several the
    /// first after `at`, so that they take turns. A lane that the clock has
    /// passed, if it is to be used up at all, comes after all others.
    fn earliest(&self, at: usize, now: Now) -> Option<(usize, u64)> {
        let count = self.lanes.len();
        (1..=count)
            .map(|step| (at + step) % count)
            .filter_map(|at| {
                let (view, next) = self.look(at)?;
                let tick = view.next_tick(next, now, self.policy)?;
                Some((at, tick, view.is_passed(now)))
            })
            .min_by_key(|&(_, tick, is_passed)| (is_passed, tick))
            .map(|(at, tick, _)| (at, tick))
    }

    /// The grant that lane `at` is open for, and its next position at that time;
    /// `None` in a forked child, which has no leases.
    fn look(&self, at: usize) -> Option<(View<'_>, u64)> {
        let lane = &self.lanes[at];
        let view = lane.view(&self.layout)?;
        let next = self.cursor(at).next()?;
        lane.still(&view).then_some((view, next))
    }

    #[inline]
    fn cursor(&self, lane: usize) -> Cursor<'_> {
        Cursor::new(&self.words[lane + 1])
    }

    #[inline]
    fn now(&self) -> Now {
        self.policy.at(self.clock.unix_ms(), &self.layout)
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Whether this is a forked child's copy.
    pub(crate) fn is_forked(&self) -> bool {
        // Relaxed: changed by the fork alone.
        self.words[0].load(Relaxed) == 0
    }
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeline")
            .field("leases", &self.leases())
            .field("policy", &self.policy)
            .field("borrowed", &self.borrowed())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;
