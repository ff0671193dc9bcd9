//! The one forward-only cursor over a lease.
//!
//! # State
//!
//! A lease of N nodes over T ticks is a line of N x T x 2^sequence_bits
//! positions ([`Line`]). One atomic word holds the next position to be
//! claimed, plus one: the word lies in memory that a forked child reads as
//! zero, and 0 says so.
//!
//! ```text
//!  claimed       skipped by the clock        claimable            borrow limit
//! ---------|...............................|----------------------|------------>
//!        word - 1                     start of now's tick   tick now + limit + 1
//! ```
//!
//! A claim of up to n positions starts at `max(word - 1, position_of(now))`
//! and ends at the first of: n positions on, the end of its run, the borrow
//! limit, the end of the lease. A compare-exchange from the old word to the
//! new end makes it.
//!
//! # Why it is right
//!
//! *U1.* The word only grows, and each claim's interval lies between the old
//! and the new value of one successful exchange. The intervals are therefore
//! disjoint, whatever the clock said: it can only choose how much is skipped,
//! and where claims are refused.
//!
//! *U2.* Every position of the line is a cell of the lease, and no claim ends
//! after the line.
//!
//! *U3.* Every claim is held against the end of the line, which is the lease's,
//! and a lease lies inside its layout.
//!
//! Nothing is thrown away: what is not asked for stays on the line, and what
//! the clock skips lies in the past, where the next claim would not look.

mod line;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::line::Line;
pub(crate) use self::line::Run;
use crate::clock::Clock;
use crate::fork::WipeOnFork;
use crate::layout::Layout;
use crate::lease::Lease;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;

/// Claims end on multiples of this where they can, so that the runs that
/// follow start aligned and fill whole vectors.
const ALIGNMENT: u64 = 64;

/// Claims runs of raws from one lease, each raw at most once.
pub(crate) struct Timeline {
    line: Line,
    /// The next position, plus one; 0 in a forked child.
    next: WipeOnFork<AtomicU64>,
    clock: Arc<dyn Clock>,
    pace: Pace,
    lease: Lease,
}

/// How the timeline follows the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// How many ticks after the clock's may be claimed from.
    pub(crate) borrow_limit: u64,
    /// Whether claims skip forward to the clock.
    pub(crate) follows_clock: bool,
}

impl Timeline {
    pub(crate) fn new(
        layout: Layout,
        lease: Lease,
        clock: Arc<dyn Clock>,
        pace: Pace,
    ) -> std::io::Result<Self> {
        Ok(Self {
            line: Line::new(layout, &lease),
            next: WipeOnFork::new(AtomicU64::new(1))?,
            clock,
            pace,
            lease,
        })
    }

    /// Claims up to `want` raws of one tick and node; `want` is at least 1.
    ///
    /// Lock-free; costs one look at the clock and one exchange.
    #[inline]
    pub(crate) fn claim(&self, want: usize) -> Result<Run, Refused> {
        let now = self.now();
        let floor = self.floor(now);
        let limit = self.line.position_of(now.limit);
        // Relaxed throughout: that intervals are disjoint rests on the
        // exchange alone, and the word orders no other memory.
        let mut word = self.next.load(Relaxed);
        loop {
            if word == 0 {
                return Err(Refused::Forked);
            }
            let start = (word - 1).max(floor);
            if start >= limit {
                return Err(self.refusal(start, now));
            }
            let end = self.end_of(start, want as u64).min(limit);
            match self
                .next
                .compare_exchange_weak(word, end + 1, Relaxed, Relaxed)
            {
                Ok(_) => return Ok(self.line.run(start, end)),
                Err(current) => word = current,
            }
        }
    }

    /// The first position that may still be claimed at `now`.
    #[inline]
    fn floor(&self, now: Now) -> u64 {
        if self.pace.follows_clock {
            self.line.position_of(now.tick)
        } else {
            0
        }
    }

    /// Where a claim of `want` from `start` ends, limits apart.
    #[inline]
    fn end_of(&self, start: u64, want: u64) -> u64 {
        let end = start.saturating_add(want).min(self.line.run_end(start));
        let aligned = end & !(ALIGNMENT - 1);
        if aligned > start { aligned } else { end }
    }

    /// What a claim would be refused with at this moment, if it would be.
    pub(crate) fn refused_now(&self) -> Option<Refused> {
        let now = self.now();
        match self.next.load(Relaxed) {
            0 => Some(Refused::Forked),
            word => {
                let start = (word - 1).max(self.floor(now));
                (start >= self.line.position_of(now.limit)).then(|| self.refusal(start, now))
            }
        }
    }

    /// How far the last claimed raw lies ahead of the clock.
    pub(crate) fn borrowed(&self) -> Duration {
        // The word is one past the next position, which is one past the last.
        let Some(last) = self.next.load(Relaxed).checked_sub(2) else {
            return Duration::ZERO;
        };
        let tick = self.line.tick_of(last);
        let ticks = tick.saturating_sub(self.now().tick);
        self.ticks_to_duration(ticks)
    }

    /// Whether the next raw is the first of a tick that the clock has not
    /// reached, right after one that it has: the tick is used up, rather than
    /// the clock set back.
    pub(crate) fn used_up_the_tick(&self) -> bool {
        let next = self.next.load(Relaxed).saturating_sub(1);
        let tick = self.line.tick_of(next);
        self.line.position_of(tick) == next && tick.checked_sub(1) == Some(self.now().tick)
    }

    /// The most that may be borrowed.
    pub(crate) fn borrow_limit(&self) -> Duration {
        self.ticks_to_duration(self.pace.borrow_limit)
    }

    pub(crate) fn layout(&self) -> &Layout {
        self.line.layout()
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Whether this is a forked child's copy.
    pub(crate) fn is_forked(&self) -> bool {
        self.next.load(Relaxed) == 0
    }

    #[inline]
    fn now(&self) -> Now {
        let unix_ms = self.clock.unix_ms();
        match self.layout().tick_at(unix_ms) {
            Some(tick) => Now {
                unix_ms,
                tick,
                limit: tick
                    .saturating_add(self.pace.borrow_limit)
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
            limit: (self.pace.borrow_limit.saturating_add(1)).saturating_sub(missing),
        }
    }

    #[cold]
    fn refusal(&self, start: u64, now: Now) -> Refused {
        if start >= self.line.len() {
            return Refused::LeaseEnded {
                end_unix_ms: self.layout().tick_start_unix_ms(self.lease.ticks().end),
                now_unix_ms: now.unix_ms,
            };
        }
        let tick = self.line.tick_of(start);
        // The first tick of the clock at which `tick` comes within the limit.
        let open_at = i128::from(tick) - i128::from(self.pace.borrow_limit);
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
            .field("lease", &self.lease)
            .field("pace", &self.pace)
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
