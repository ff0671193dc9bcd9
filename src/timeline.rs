//! Where raws are claimed from: the leases that are held, and the clock.
//!
//! A timeline has room for a number of *lanes*, each open for one grant or
//! closed; how a lane is claimed from, and why no raw is claimed twice, stands
//! in [`lane`]. A lease that is given once and for all is one lane. Where a
//! store leases blocks, lanes are opened, extended and closed while claims go
//! on.
//!
//! # Which lane
//!
//! Claims go to the lane in use until it has given a whole tick, and then to the
//! one whose next tick is the earliest. So all lanes of a tick are used before
//! the next tick, as all nodes of a lane are. Which lane is in use is a hint:
//! two threads that disagree about it claim different raws all the same.

mod lane;
mod line;
#[cfg(feature = "loom")]
pub(crate) mod model;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::lane::{Lane, View};
pub(crate) use self::line::Run;
use crate::clock::Clock;
use crate::fork::WipeOnFork;
use crate::layout::Layout;
use crate::lease::{Lease, Outage, Position, Trouble};
use crate::sync;
use crate::sync::atomic::Ordering::{Acquire, Relaxed};
use crate::sync::atomic::{AtomicU64, AtomicUsize};

/// One word for the mark, and one for each lane's cursor: a page.
const WORDS: usize = sync::size(512, 4);

/// Claims runs of raws from the leases that are held, each raw at most once.
pub(crate) struct Timeline {
    layout: Layout,
    lanes: Box<[Lane]>,
    /// In a forked child all of these read 0.
    words: WipeOnFork<[AtomicU64; WORDS]>,
    /// The lane in use; a hint.
    active: AtomicUsize,
    /// The lane that was opened last.
    opened: AtomicUsize,
    clock: Arc<dyn Clock>,
    policy: ClaimPolicy,
    /// How the store of the leases fares, if they come from one.
    outage: Option<Arc<Outage>>,
}

/// How the timeline follows the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClaimPolicy {
    /// How many ticks after the clock's may be claimed from.
    pub(crate) borrow_limit: u64,
    /// Whether claims skip forward to the clock, up to the end of a grant.
    pub(crate) follows_clock: bool,
    /// Whether what is left of a grant is used up when the clock has passed its
    /// end.
    pub(crate) serves_the_past: bool,
}

/// How far a timeline over one lease has come.
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

impl Timeline {
    /// The most lanes that a timeline can have.
    pub(crate) const MAX_LANES: usize = WORDS - 1;

    /// A timeline over one lease, of whose first tick `offset` raws were claimed
    /// before.
    pub(crate) fn new(
        lease: &Lease,
        offset: u64,
        clock: Arc<dyn Clock>,
        policy: ClaimPolicy,
    ) -> std::io::Result<Self> {
        let timeline = Self::with_lanes(*lease.layout(), 1, clock, policy)?;
        timeline.lanes[0].open(timeline.cursor(0), &lease.nodes(), &lease.ticks());
        // Relaxed: nobody else has the timeline yet. The word is one past the
        // next position.
        timeline.cursor(0).store(offset.saturating_add(1), Relaxed);
        Ok(timeline)
    }

    /// Ends a timeline over one lease: nothing more is claimed, and everything
    /// that was lies before `next`. Not for a forked child's copy.
    pub(crate) fn finish(&self) -> Finished {
        // Close before reading the cursor: a claim that stands has moved it.
        let was_open = self.lanes[0].is_open();
        self.close_all();
        let line = self.lanes[0].line(&self.layout);
        // Acquire: as in a claim.
        let next = self.cursor(0).load(Acquire).saturating_sub(1);
        let tick = line.tick_of(next);
        Finished {
            next: Position {
                tick,
                offset: next - line.position_of(tick),
            },
            was_open,
        }
    }

    /// A timeline with leases to come from a store, up to
    /// [`MAX_LANES`](Self::MAX_LANES) at a time.
    pub(crate) fn for_leases(
        layout: Layout,
        lanes: usize,
        clock: Arc<dyn Clock>,
        policy: ClaimPolicy,
        outage: Arc<Outage>,
    ) -> std::io::Result<Self> {
        let mut timeline = Self::with_lanes(layout, lanes.min(Self::MAX_LANES), clock, policy)?;
        timeline.outage = Some(outage);
        Ok(timeline)
    }

    fn with_lanes(
        layout: Layout,
        lanes: usize,
        clock: Arc<dyn Clock>,
        policy: ClaimPolicy,
    ) -> std::io::Result<Self> {
        let words = WipeOnFork::new(std::array::from_fn(|_| AtomicU64::new(0)))?;
        // Relaxed: nobody else has the timeline yet.
        words[0].store(1, Relaxed);
        Ok(Self {
            layout,
            lanes: (0..lanes).map(|_| Lane::closed()).collect(),
            words,
            active: AtomicUsize::new(0),
            opened: AtomicUsize::new(0),
            clock,
            policy,
            outage: None,
        })
    }

    /// Opens a lane for a grant that nobody has claimed from; none if there is
    /// no room. Lanes are opened, extended and closed by one thread at a time.
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
        // Each round that fails has met another claim that succeeded, or a lane
        // that was just closed.
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
                let (view, word) = self.look(at)?;
                let tick = view.next_tick(word, now, self.policy)?;
                Some((at, tick, view.is_passed(now)))
            })
            .min_by_key(|&(_, tick, is_passed)| (is_passed, tick))
            .map(|(at, tick, _)| (at, tick))
    }

    /// What lane `at` is open for, and its cursor's word at that time, which is
    /// not 0: a forked child has no leases.
    fn look(&self, at: usize) -> Option<(View<'_>, u64)> {
        let lane = &self.lanes[at];
        let view = lane.view(&self.layout)?;
        // Acquire: as in a claim, so that `still` sees a lane that was reopened.
        let word = self.cursor(at).load(Acquire);
        (word > 0 && lane.still(&view)).then_some((view, word))
    }

    #[inline]
    fn cursor(&self, lane: usize) -> &AtomicU64 {
        &self.words[lane + 1]
    }

    /// What a claim would be refused with at this moment, if it would be.
    pub(crate) fn refused_now(&self) -> Option<Refused> {
        if self.is_forked() {
            return Some(Refused::Forked);
        }
        let now = self.now();
        let next = self.earliest(0, now);
        next.is_none_or(|(_, tick)| tick >= now.limit)
            .then(|| self.refusal(now))
    }

    /// How far the last raw that was claimed from the lane in use lies ahead of
    /// the clock.
    pub(crate) fn borrowed(&self) -> Duration {
        let Some((view, word)) = self.look(self.active.load(Relaxed)) else {
            return Duration::ZERO;
        };
        // The word is one past the next position, which is one past the last.
        let Some(last) = word.checked_sub(2) else {
            return Duration::ZERO;
        };
        let ticks = view.line.tick_of(last).saturating_sub(self.now().tick);
        self.ticks_to_duration(ticks)
    }

    /// How far ahead of the clock the last raw lies: counted as no more than may be
    /// borrowed while there is another to claim, and in full where only the clock
    /// can bring one. None where nothing was claimed from what is to come: it waits
    /// for its beginning, and no clock was set back.
    pub(crate) fn ahead(&self) -> Option<Duration> {
        let now = self.now();
        let open = || (0..self.lanes.len()).filter_map(|at| self.look(at));
        let next = |(view, word): (View<'_>, u64)| view.next_tick(word, now, self.policy);
        if open().filter_map(next).any(|tick| tick < now.limit) {
            return Some(self.borrowed().min(self.borrow_limit()));
        }
        // The word is one past the next position. A lane may be used up.
        let last = |(view, word): (View<'_>, u64)| Some(view.line.tick_of(word.checked_sub(2)?));
        let ahead = open().filter_map(last).filter(|&tick| tick > now.tick);
        Some(self.ticks_to_duration(ahead.min()? - now.tick))
    }

    /// Whether the next raw is the first of a tick that the clock has not
    /// reached, right after one that it has: the tick is used up, rather than
    /// the clock set back. Grants that the clock has passed, and those that it
    /// has not come to and nobody has claimed from, don't count.
    pub(crate) fn used_up_the_tick(&self) -> bool {
        let now = self.now();
        let open = (0..self.lanes.len()).filter_map(|at| self.look(at));
        let in_use = open.filter(|(view, word)| {
            let is_to_come = now.tick < view.line.ticks().start && *word == 1;
            !view.is_passed(now) && !is_to_come
        });
        let used_up = in_use.map(|(view, word)| {
            let next = word.saturating_sub(1);
            let line = &view.line;
            line.begins_tick(next) && line.tick_of(next).checked_sub(1) == Some(now.tick)
        });
        used_up.reduce(|all, this| all && this).unwrap_or(false)
    }

    /// The most that may be borrowed.
    pub(crate) fn borrow_limit(&self) -> Duration {
        self.ticks_to_duration(self.policy.borrow_limit)
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The leases that lanes are open for. Those that are opened or closed at
    /// this moment may be missing.
    pub(crate) fn leases(&self) -> Vec<Lease> {
        (0..self.lanes.len())
            .filter_map(|at| self.look(at))
            .filter_map(|(view, _)| {
                Lease::new(self.layout, view.line.nodes(), view.line.ticks()).ok()
            })
            .collect()
    }

    /// When the last of the leases ends, in Unix milliseconds; 0 if there is none.
    pub(crate) fn end_unix_ms(&self) -> u64 {
        let open = (0..self.lanes.len()).filter_map(|at| self.look(at));
        let ends = open.map(|(view, _)| view.line.ticks().end);
        ends.max()
            .map_or(0, |end| self.layout.tick_start_unix_ms(end))
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Whether this is a forked child's copy.
    pub(crate) fn is_forked(&self) -> bool {
        self.words[0].load(Relaxed) == 0
    }

    #[inline]
    fn now(&self) -> Now {
        let unix_ms = self.clock.unix_ms();
        match self.layout().tick_at(unix_ms) {
            Some(tick) => Now {
                unix_ms,
                tick,
                limit: tick
                    .saturating_add(self.policy.borrow_limit)
                    .saturating_add(1),
            },
            None => self.before_the_epoch(unix_ms),
        }
    }

    /// A clock that is before the epoch borrows from tick 0 on, as far as the
    /// limit still reaches.
    #[cold]
    fn before_the_epoch(&self, unix_ms: u64) -> Now {
        let missing = (self.layout().epoch_unix_ms() - unix_ms).div_ceil(self.layout().tick_ms());
        Now {
            unix_ms,
            tick: 0,
            limit: (self.policy.borrow_limit.saturating_add(1)).saturating_sub(missing),
        }
    }

    #[cold]
    fn refusal(&self, now: Now) -> Refused {
        if self.is_forked() {
            return Refused::Forked;
        }
        match (self.earliest(0, now), &self.outage) {
            (Some((_, tick)), _) => self.behind(tick, now),
            (None, Some(outage)) => {
                let trouble = outage.trouble();
                Refused::NoLease {
                    end_unix_ms: outage.end_unix_ms(),
                    now_unix_ms: now.unix_ms,
                    trouble,
                }
            }
            (None, None) if self.lanes.iter().any(Lane::is_open) => Refused::LeaseEnded {
                end_unix_ms: self.end_unix_ms(),
                now_unix_ms: now.unix_ms,
            },
            (None, None) => Refused::Invalidated,
        }
    }

    /// The refusal of a clock that is too far behind `tick`.
    fn behind(&self, tick: u64, now: Now) -> Refused {
        // The first tick of the clock at which `tick` comes within the limit.
        let open_at = i128::from(tick) - i128::from(self.policy.borrow_limit);
        let open_unix_ms = i128::from(self.layout().epoch_unix_ms())
            + open_at * i128::from(self.layout().tick_ms());
        let missing_ms = (open_unix_ms - i128::from(now.unix_ms)).max(1);
        Refused::BorrowLimit {
            retry_after: Duration::from_millis(u64::try_from(missing_ms).unwrap_or(u64::MAX)),
            limit: self.borrow_limit(),
        }
    }

    fn ticks_to_duration(&self, ticks: u64) -> Duration {
        Duration::from_millis(ticks.saturating_mul(self.layout().tick_ms()))
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

/// What the clock says, in the line's terms.
#[derive(Clone, Copy)]
struct Now {
    unix_ms: u64,
    tick: u64,
    /// The first tick that may not be claimed.
    limit: u64,
}

/// Why no ID can be made at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The next raw lies further in the future than may be borrowed, because
    /// IDs were taken faster than the lease is wide, or because the clock was
    /// set back.
    BorrowLimit {
        /// How long until the clock lets the next ID through.
        retry_after: Duration,
        /// The limit that was hit.
        limit: Duration,
    },
    /// Every ID of the lease is used up, or the clock has passed its end. What a
    /// producer is just putting into the ring can still be taken afterwards.
    LeaseEnded {
        /// When the lease ends, in Unix milliseconds.
        end_unix_ms: u64,
        /// What the clock says, in Unix milliseconds.
        now_unix_ms: u64,
    },
    /// The leases that were held are used up or have ended, and their store has
    /// given no other yet. It is asked again and again; IDs flow once it answers.
    NoLease {
        /// When the last lease ended or will end, in Unix milliseconds; 0 if
        /// none was held since the generator was built or invalidated.
        end_unix_ms: u64,
        /// What the clock says, in Unix milliseconds.
        now_unix_ms: u64,
        /// What keeps the store from granting one, and since when; none if
        /// nothing does, and it will be asked in a moment.
        trouble: Option<Trouble>,
    },
    /// The generator was told that its leases may be in use by a copy of this
    /// process, and it has no store to get others from.
    Invalidated,
    /// This process is a forked child; the IDs belong to its parent.
    Forked,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BorrowLimit { retry_after, limit } => write!(
                f,
                "the next ID lies more than {limit:?} ahead of the clock: retry in \
                 {retry_after:?}, widen the lease or raise the borrow limit"
            ),
            Self::LeaseEnded {
                end_unix_ms,
                now_unix_ms,
            } => write!(
                f,
                "the lease, which ends at Unix time {end_unix_ms} ms, is used up \
                 (the clock says {now_unix_ms} ms): build a generator with a new lease"
            ),
            Self::NoLease {
                end_unix_ms,
                now_unix_ms,
                trouble,
            } => {
                f.write_str("no lease is in force")?;
                if *end_unix_ms > 0 {
                    write!(
                        f,
                        ": the last one, which ends at Unix time {end_unix_ms} ms, is used up \
                         (the clock says {now_unix_ms} ms)"
                    )?;
                }
                match trouble {
                    Some(trouble) => write!(f, "; {trouble}"),
                    None => f.write_str("; the store is being asked for another"),
                }
            }
            Self::Invalidated => f.write_str(
                "the generator was invalidated and its lease given up: \
                 build a generator with a new lease",
            ),
            Self::Forked => f.write_str(
                "this process was forked and its IDs belong to the parent: \
                 build a generator with a lease of its own in the child",
            ),
        }
    }
}

impl std::error::Error for Refused {}

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;
