//! One simulated process: a manager, a generator, and a clock of its own.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::time::Duration;

use ringflake::lease::protocol::{Answer, Change, Demand, Manager, Moment, Request, Step};
use ringflake::lease::{Block, Fence, Grant, Listing, StoreError};
use ringflake_kit::split_mix::SplitMix64;

use crate::mutations::Mutation;
use crate::oracle::{CELLS, Oracle, Violation};
use crate::scenario::{START_MS, tick};

#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) number: u64,
    pub(crate) request: Request,
    /// Asked before an invalidation.
    pub(crate) void: bool,
    /// Sent a second time.
    pub(crate) again: bool,
}

/// The cursor over one grant.
#[derive(Clone, Debug)]
struct Lane {
    block: Block,
    ticks: Range<u64>,
    /// In cells.
    cursor: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) index: usize,
    manager: Manager,
    lanes: Vec<Lane>,
    mutation: Option<Mutation>,
    /// How far its clock is ahead of the true time.
    pub(crate) ahead_ms: i64,
    follows_clock: bool,
    /// What its clock showed last.
    seen_tick: u64,
    /// In ticks.
    borrow: u64,
    pub(crate) busy_until_ms: u64,
    pub(crate) paused_until_ms: u64,
    /// For how long its monotonic clock stood still.
    pub(crate) suspended_ms: u64,
    pub(crate) cut_off_until_ms: u64,
    /// Whether to make a copy when it asks for blocks next, and if a hook runs.
    pub(crate) copy_at_acquire: Option<bool>,
    pub(crate) dead: bool,
    pub(crate) stopping: bool,
    pub(crate) flight: Option<Flight>,
    /// Counts the requests; a copy counts on from the same number.
    pub(crate) number: u64,
    pub(crate) lineage: u64,
    /// Of the wake-up that counts.
    pub(crate) alarm: u64,
    pub(crate) server: usize,
    pub(crate) reroute_at_ms: u64,
}

impl Process {
    pub(crate) fn new(
        index: usize,
        manager: Manager,
        mutation: Option<Mutation>,
        server: usize,
        random: &mut SplitMix64,
    ) -> Self {
        Self {
            index,
            manager,
            lanes: Vec::new(),
            mutation,
            ahead_ms: random.around(400),
            follows_clock: random.chance(70),
            seen_tick: 0,
            borrow: random.pick(&[1, 4, 1000]),
            busy_until_ms: 0,
            paused_until_ms: 0,
            suspended_ms: 0,
            cut_off_until_ms: 0,
            copy_at_acquire: None,
            dead: false,
            stopping: false,
            flight: None,
            number: 0,
            lineage: random.roll(),
            alarm: 0,
            server,
            reroute_at_ms: 0,
        }
    }

    /// One whose generator borrows as far as it likes, and makes nothing of its clock.
    pub(crate) fn steady(index: usize, manager: Manager, mutation: Option<Mutation>) -> Self {
        let follows_clock = mutation == Some(Mutation::CursorFollowsClockBack);
        Self {
            ahead_ms: 0,
            follows_clock,
            borrow: 1_000,
            lineage: 0,
            ..Self::new(index, manager, mutation, 0, &mut SplitMix64::new(0))
        }
    }

    fn lacks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub(crate) fn unix_ms(&self, now_ms: u64) -> u64 {
        (START_MS + now_ms).saturating_add_signed(self.ahead_ms)
    }

    fn at(&self, now_ms: u64) -> Moment {
        Moment {
            unix_ms: self.unix_ms(now_ms),
            elapsed: Duration::from_millis(now_ms - self.suspended_ms),
        }
    }

    fn tick(&self, now_ms: u64) -> u64 {
        tick(self.unix_ms(now_ms))
    }

    /// What distinguishes this request from all others.
    pub(crate) fn token(&self) -> u64 {
        self.lineage.wrapping_add(self.number)
    }

    pub(crate) fn next(&mut self, now_ms: u64) -> Step {
        let busy = now_ms < self.busy_until_ms;
        let demand = Demand {
            borrowed: Duration::from_secs(if busy { 50 } else { 0 }),
            borrow_limit: Duration::from_secs(60),
            room: 6usize.saturating_sub(self.lanes.len()),
        };
        let (changes, mut step) = self.manager.next(self.at(now_ms), demand);
        self.apply(changes);
        if let Step::Ask(Request::Acquire(acquire)) = &mut step
            && self.lacks(Mutation::BringsNoEvidence)
        {
            acquire.evidence.clear();
        }
        step
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.dead && !self.stopping
    }

    pub(crate) fn awaits(&self, number: u64) -> bool {
        self.flight
            .as_ref()
            .is_some_and(|flight| flight.number == number)
    }

    pub(crate) fn is_served(&self, now_ms: u64) -> bool {
        let now = self.tick(now_ms);
        self.lanes.iter().any(|lane| lane.ticks.end > now)
    }

    pub(crate) fn open_grants(&self) -> Vec<(Block, u64)> {
        let lanes = self.lanes.iter();
        lanes.map(|lane| (lane.block, lane.ticks.start)).collect()
    }

    /// Whether the clock has passed the end of a grant that it has.
    pub(crate) fn overslept(&self, now_ms: u64) -> bool {
        let now = self.tick(now_ms);
        self.lanes.iter().any(|lane| lane.ticks.end <= now)
    }

    /// Hashes the state that decides its next action if everything it plans is due: times are
    /// left out, and the blocks are renamed.
    pub(crate) fn hash_state(&self, name: impl Fn(Block) -> u64, state: &mut impl Hasher) {
        (self.dead, self.stopping).hash(state);
        for held in self.manager.status().grants {
            let (grant, kind) = (&held.grant, std::mem::discriminant(&held.state));
            (name(grant.block), grant.epoch, &grant.ticks, kind).hash(state);
        }
        for lane in &self.lanes {
            (name(lane.block), &lane.ticks, lane.cursor).hash(state);
        }
    }

    fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Opened(grant) => self.lanes.push(Lane {
                    block: grant.block,
                    cursor: grant.ticks.start * CELLS,
                    ticks: grant.ticks,
                }),
                Change::Extended(grant) => {
                    let lane = self.lanes.iter_mut().find(|lane| is_of(lane, &grant));
                    lane.expect("it was opened").ticks.end = grant.ticks.end;
                }
                Change::Closed(grant) | Change::Revoked(grant) => {
                    self.lanes.retain(|lane| !is_of(lane, &grant));
                }
                _ => {}
            }
        }
    }

    /// The reply to the request under way has come, or the wait for it is over.
    /// Answers a request to be sent once more, which no sound client does.
    pub(crate) fn answer(
        &mut self,
        now_ms: u64,
        mut answer: Answer,
        listing: impl FnOnce() -> Listing,
    ) -> Option<Request> {
        let flight = self.flight.take()?;
        match (self.mutation, &flight.request, &mut answer) {
            (Some(mutation), Request::Renew(renew), Answer::Renewed(result)) => {
                let end = renew.new_end;
                match (mutation, &*result) {
                    (Mutation::AdoptsAmbiguousRenewal, Err(StoreError::Ambiguous { .. }))
                    | (Mutation::IgnoresFence, Err(StoreError::Fenced { .. })) => *result = Ok(end),
                    (Mutation::ResendsAmbiguous, Err(StoreError::Ambiguous { .. }))
                        if !flight.again =>
                    {
                        return Some(flight.request);
                    }
                    (Mutation::ResendsAmbiguous, Err(StoreError::Fenced { fence, .. }))
                        if flight.again
                            && matches!(fence, Fence::End { recorded, .. } if *recorded == end) =>
                    {
                        *result = Ok(end);
                    }
                    _ => {}
                }
            }
            (
                Some(Mutation::AdoptsAmbiguousAcquire),
                Request::Acquire(acquire),
                Answer::Acquired(result @ Err(StoreError::Ambiguous { .. })),
            ) => {
                let now = self.tick(now_ms);
                let blocks = listing().blocks.into_iter();
                let found = blocks
                    .filter(|block| block.holder == acquire.holder && block.hwm_end > now)
                    .map(|block| Grant::new(block.block, block.epoch, now..block.hwm_end));
                *result = Ok(found.collect());
            }
            (Some(Mutation::TakesVoidReplies), _, Answer::Acquired(Ok(grants))) if flight.void => {
                let opened = grants.drain(..).map(Change::Opened).collect();
                self.apply(opened);
            }
            _ => {}
        }
        let changes = self.manager.answer(self.at(now_ms), answer);
        self.apply(changes);
        None
    }

    /// A hook at the resumption of a snapshot.
    pub(crate) fn invalidate(&mut self) {
        if !self.lacks(Mutation::KeepsGrantsAtResume) {
            let changes = self.manager.invalidate();
            self.apply(changes);
            if let Some(flight) = &mut self.flight {
                flight.void = true;
            }
        }
    }

    pub(crate) fn release(&mut self) {
        self.stopping = true;
        self.manager.release();
    }

    /// The generator is built anew, on the same grants.
    pub(crate) fn restart_generator(&mut self) {
        if self.lacks(Mutation::CursorRestarts) {
            for lane in &mut self.lanes {
                lane.cursor = lane.ticks.start * CELLS;
            }
        }
    }

    pub(crate) fn issue(
        &mut self,
        now_ms: u64,
        random: &mut SplitMix64,
        oracle: &mut Oracle,
    ) -> Result<(), Violation> {
        self.issue_up_to(now_ms, || random.below(9), oracle)
    }

    pub(crate) fn issue_all(&mut self, now_ms: u64, oracle: &mut Oracle) -> Result<(), Violation> {
        self.issue_up_to(now_ms, || u64::from(u32::MAX), oracle)
    }

    fn issue_up_to(
        &mut self,
        now_ms: u64,
        mut cells: impl FnMut() -> u64,
        oracle: &mut Oracle,
    ) -> Result<(), Violation> {
        let now = self.tick(now_ms);
        let back = self.lacks(Mutation::CursorFollowsClockBack) && now < self.seen_tick;
        let past = self.lacks(Mutation::IssuesPastTheEnd);
        self.seen_tick = now;
        let limit = now.saturating_add(self.borrow + 1);
        for lane in &mut self.lanes {
            let mut start = lane.cursor;
            if self.follows_clock {
                let clock = now * CELLS;
                start = start.max(clock);
                if back {
                    start = clock.max(lane.ticks.start * CELLS);
                }
            }
            let end = lane.ticks.end + if past { 2 } else { 0 };
            let end = (start + cells()).min(limit.min(end) * CELLS);
            if start < end {
                lane.cursor = end;
                oracle.issue(self.index, lane.block, lane.ticks.start, start..end)?;
            }
        }
        Ok(())
    }
}

fn is_of(lane: &Lane, grant: &Grant) -> bool {
    (lane.block, lane.ticks.start) == (grant.block, grant.ticks.start)
}
