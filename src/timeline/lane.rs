//! One grant on a timeline: its rectangle, and the cursor that walks it.
//!
//! # State
//!
//! A lane is closed, or open for a grant. It can be closed while claims are
//! under way, and opened for another grant after that, so that a timeline
//! changes its leases and no thread has to wait. `generation` counts these
//! changes, and its lowest bit is 1 while the lane is closed.
//!
//! ```text
//!            open: rectangle, cursor, then generation + 1
//!   closed -----------------------------------------------> open
//!   (odd)  <----------------------------------------------- (even)
//!            close: generation + 1
//! ```
//!
//! A grant of N nodes over T ticks is a line of N x T x 2^sequence_bits
//! positions ([`Line`]). The [`Cursor`] is the next position to be claimed.
//!
//! ```text
//!  claimed       skipped by the clock        claimable            borrow limit
//! ---------|...............................|----------------------|------------>
//!       cursor                     start of now's tick   tick now + limit + 1
//! ```
//!
//! A claim of up to n positions starts at `max(cursor, position_of(now))` and ends at the first of:
//! n positions on, the end of its run, the borrow limit, the end of the grant. It reads the
//! generation, reads the rectangle, moves the cursor by a compare-exchange, and reads the
//! generation again. If the generation has changed, the claim is thrown away.
//!
//! # Why it is right
//!
//! *U1, S3.* While a lane is open for one grant the cursor only grows, and each
//! claim's interval lies between the old and the new value of one successful
//! exchange. The intervals are therefore disjoint, whatever the clock said: it
//! can only choose how much is skipped, and where claims are refused.
//!
//! *U2, S2.* A claim that stands has read one and the same even generation
//! before it read the rectangle and after it moved the cursor. Had it read a
//! part of a later grant's rectangle, or moved a later grant's cursor, it would
//! have acquired what `open` released with that value. Before that `open` had
//! read the generation that `close` left, so the claim could not have read an
//! older one after it. So cursor and rectangle are those of one grant, and every
//! position of its line is a cell of it. The end only moves outwards while the
//! lane is open; a claim that reads an older one stays further inside.
//!
//! *U3.* Every claim is held against the end of the line, which is the grant's,
//! and a grant lies inside its layout.
//!
//! A claim that is thrown away may have moved the cursor of a later grant, by up
//! to the length of its own line. The positions that it skipped there are never issued.
//! That costs service, not uniqueness, and it takes a thread that stops between two
//! instructions until every lane has been opened once, see `Timeline::open`.
//! Nothing else is thrown away: positions that are not asked for stay on the line, and
//! those that the clock skips lie in the past, where the next claim would not look.

use std::ops::Range;

use super::cursor::Cursor;
use super::line::{Line, Run};
use super::policy::{ClaimPolicy, Now};
use crate::layout::Layout;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Claims end on multiples of this where they can, so that the next runs start aligned
/// and fill whole vectors.
const ALIGNMENT: u64 = 64;

/// The rectangle of a lane. The timeline holds its cursor.
#[derive(Debug)]
pub(super) struct Lane {
    generation: AtomicU64,
    first_node: AtomicU64,
    nodes: AtomicU64,
    first_tick: AtomicU64,
    end_tick: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Claimed {
    pub(super) run: Run,
    /// Whether another lane may be next: this one has given a whole tick, or is
    /// used up after its end.
    pub(super) may_pass_on: bool,
}

/// The grant that a lane was open for at some moment.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) line: Line<'a>,
    generation: u64,
}

impl Lane {
    pub(super) fn closed() -> Self {
        Self {
            generation: AtomicU64::new(1),
            first_node: AtomicU64::new(0),
            nodes: AtomicU64::new(1),
            first_tick: AtomicU64::new(0),
            end_tick: AtomicU64::new(0),
        }
    }

    /// Opens the lane for a grant that nobody has claimed from. The lane must be
    /// closed, and no two threads may open one at the same time.
    pub(super) fn open(&self, cursor: Cursor<'_>, nodes: &Range<u64>, ticks: &Range<u64>) {
        // Relaxed: no other thread opens it, and the generation that `close` left is
        // all there is to see.
        let generation = self.generation.load(Relaxed);
        debug_assert!(generation & 1 == 1, "only a closed lane can be opened");
        // Release, here and below: a claim that reads one of these values acquires
        // the closed generation that came before it.
        self.first_node.store(nodes.start, Release);
        self.nodes.store(nodes.end - nodes.start, Release);
        self.first_tick.store(ticks.start, Release);
        self.end_tick.store(ticks.end, Release);
        cursor.reset();
        // Release: pairs with the Acquire in `view`.
        self.generation.store(generation + 1, Release);
    }

    /// Lets the grant reach up to `end_tick`; it is never shortened.
    pub(super) fn extend(&self, end_tick: u64) {
        // Relaxed: the value stands for itself, and both ends are confirmed. As a
        // read-modify-write it goes on releasing what `open` released with the end
        // that it replaces.
        self.end_tick.fetch_max(end_tick, Relaxed);
    }

    /// No claim that begins after this stands. Any thread may close a lane.
    pub(super) fn close(&self) {
        // Relaxed: `open` has read this before it releases anything, so a claim that
        // acquires that reads this, or a later generation.
        let before = self.generation.fetch_or(1, Relaxed);
        debug_assert!(before < u64::MAX - 1);
    }

    pub(super) fn is_open(&self) -> bool {
        // Relaxed: see `close`.
        self.generation.load(Relaxed) & 1 == 0
    }

    /// The line of a lane that was opened once and never again.
    pub(super) fn line<'a>(&self, layout: &'a Layout) -> Line<'a> {
        // Relaxed: written before the timeline was shared, and never after.
        let ticks = self.first_tick.load(Relaxed)..self.end_tick.load(Relaxed);
        let nodes = self.nodes.load(Relaxed);
        Line::new(layout, self.first_node.load(Relaxed), nodes, ticks)
    }

    /// The grant that the lane is open for, if it is open.
    #[inline]
    pub(super) fn view<'a>(&self, layout: &'a Layout) -> Option<View<'a>> {
        // Acquire: pairs with the Release at the end of `open`.
        let generation = self.generation.load(Acquire);
        if generation & 1 == 1 {
            return None;
        }
        // Acquire: a value that a later `open` wrote brings the changed
        // generation with it, and `still` sees that.
        let first_node = self.first_node.load(Acquire);
        let nodes = self.nodes.load(Acquire);
        let ticks = self.first_tick.load(Acquire)..self.end_tick.load(Acquire);
        Some(View {
            line: Line::new(layout, first_node, nodes, ticks),
            generation,
        })
    }

    /// Whether the lane is still open for the grant of `view`.
    #[inline]
    pub(super) fn still(&self, view: &View<'_>) -> bool {
        // Relaxed: a generation that must be seen was acquired before.
        self.generation.load(Relaxed) == view.generation
    }

    /// Claims up to `want` raws of one tick and node; `None` at a limit, when the
    /// grant is used up, and when the lane is closed.
    #[inline]
    pub(super) fn claim(
        &self,
        cursor: Cursor<'_>,
        layout: &Layout,
        want: usize,
        now: Now,
        policy: ClaimPolicy,
    ) -> Option<Claimed> {
        let view = self.view(layout)?;
        let line = &view.line;
        let floor = view.floor(now, policy);
        let limit = line.position_of(now.limit);
        let mut next = cursor.next()?;
        loop {
            let start = next.max(floor);
            if start >= limit {
                return None;
            }
            let end = end_of(line, start, want as u64).min(limit);
            match cursor.advance(next, end) {
                Ok(()) if self.still(&view) => {
                    return Some(Claimed {
                        run: line.run(start, end),
                        may_pass_on: line.begins_tick(end) || view.is_passed(now),
                    });
                }
                Ok(()) => return None,
                Err(current) => next = current?,
            }
        }
    }
}

impl View<'_> {
    /// The first position that may still be claimed at `now`.
    #[inline]
    pub(super) fn floor(&self, now: Now, policy: ClaimPolicy) -> u64 {
        let skips = if self.is_passed(now) {
            !policy.serves_the_past
        } else {
            policy.follows_clock
        };
        if skips {
            self.line.position_of(now.tick)
        } else {
            0
        }
    }

    /// Whether the clock has passed the end of the grant.
    #[inline]
    pub(super) fn is_passed(&self, now: Now) -> bool {
        now.tick >= self.line.ticks().end
    }

    /// The tick of the next claim, which starts no earlier than the position `next`;
    /// `None` if the grant is used up.
    pub(super) fn next_tick(&self, next: u64, now: Now, policy: ClaimPolicy) -> Option<u64> {
        let start = next.max(self.floor(now, policy));
        (start < self.line.len()).then(|| self.line.tick_of(start))
    }
}

/// Where a claim of `want` from `start` ends, limits apart.
#[inline]
fn end_of(line: &Line<'_>, start: u64, want: u64) -> u64 {
    let end = start.saturating_add(want).min(line.run_end(start));
    let aligned = end & !(ALIGNMENT - 1);
    if aligned > start { aligned } else { end }
}
