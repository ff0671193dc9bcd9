//! All grants and issued IDs, which only the simulation can know.
//!
//! A server that is put back to an earlier state has forgotten what was given since.
//! That alone it may give once more, and only until a process asks it for blocks that
//! knows more than it does: rule S8 promises no more, and no less.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use ringflake::lease::protocol::{Answer, Request};
use ringflake::lease::{Block, Confirmed, Grant, Listing, StoreError};

use crate::mutations::Promise;

/// Cells of one tick and block.
pub(crate) const CELLS: u64 = 4;

#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) promise: Promise,
    pub(crate) detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is broken: {}", self.promise, self.detail)
    }
}

pub(crate) fn broken<T>(promise: Promise, detail: impl fmt::Display) -> Result<T, Violation> {
    let detail = detail.to_string();
    Err(Violation { promise, detail })
}

/// The ends that a positive reply has moved.
pub(crate) fn moved_ends(request: &Request, answer: &Answer) -> Vec<u64> {
    match (request, answer) {
        (_, Answer::Acquired(Ok(grants))) => grants.iter().map(|grant| grant.ticks.end).collect(),
        (Request::Renew(renew), Answer::Renewed(Ok(end))) if *end > renew.known_end => vec![*end],
        _ => Vec::new(),
    }
}

/// That an end lies no later than this.
pub(crate) fn bounded(end: u64, latest: u64, promise: Promise) -> Result<(), Violation> {
    if end <= latest {
        return Ok(());
    }
    let detail = format!("an end was moved to tick {end}, after {latest}");
    broken(promise, detail)
}

/// Disjoint intervals in order, neighbours of one owner joined.
#[derive(Clone, Debug, Default)]
struct Intervals(Vec<(Range<u64>, usize)>);

impl Intervals {
    fn first_after(&self, from: u64) -> usize {
        // New intervals usually lie near the end.
        let behind = self.0.iter().rev();
        self.0.len() - behind.take_while(|(known, _)| known.end > from).count()
    }

    fn overlap(&self, range: &Range<u64>) -> Option<(Range<u64>, usize)> {
        let (known, owner) = self.0.get(self.first_after(range.start))?;
        let common = known.start.max(range.start)..known.end.min(range.end);
        (!common.is_empty()).then_some((common, *owner))
    }

    /// Adds a range that overlaps with none.
    fn add(&mut self, range: Range<u64>, owner: usize) {
        let at = self.first_after(range.start);
        if let Some((before, who)) = at.checked_sub(1).and_then(|i| self.0.get_mut(i))
            && before.end == range.start
            && *who == owner
        {
            before.end = range.end;
            return;
        }
        self.0.insert(at, (range, owner));
    }
}

/// The interval of a positive reply, and how far the process has issued.
#[derive(Clone, Debug)]
struct Held {
    block: Block,
    ticks: Range<u64>,
    /// In cells.
    cursor: u64,
}

/// Whether a server with this listing knows less than was confirmed, of what is not settled
/// yet: above the floor, and within what it can have granted.
pub(crate) fn is_forgotten(confirmed: &Confirmed, now: u64, listing: &Listing) -> bool {
    let Confirmed {
        block, epoch, end, ..
    } = *confirmed;
    let record = &listing.record;
    // A repair will go above all that was granted of a block in quarantine.
    if is_quarantined(listing, block)
        || end <= record.floor
        || end > record.floor_over_lost_grants(now)
    {
        return false;
    }
    let known = listing.blocks.iter().find(|known| known.block == block);
    known.is_none_or(|known| known.epoch < epoch || known.hwm_end < end)
}

fn is_quarantined(listing: &Listing, block: Block) -> bool {
    let mut quarantined = listing.quarantined.iter();
    quarantined.any(|found| found.block == Some(block))
}

/// What a run ends at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// The first promise that is broken.
    Promises,
    /// The first cell that is issued twice: what the promises are for.
    Duplicates,
}

#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    pub(crate) watch: Watch,
    /// Per block: what any server ever gave away, in ticks.
    given: Vec<Intervals>,
    /// Per block: what was issued, in cells.
    issued: Vec<Intervals>,
    processes: Vec<Memory>,
    /// Grants that a server has forgotten, until a process with evidence asks.
    forgotten: Vec<(usize, Block, Range<u64>)>,
    /// Cells that clones have in common and may both issue.
    common: Vec<(Block, Range<u64>)>,
    /// How many cells were issued, and how many of them twice.
    pub(crate) cells: u64,
    pub(crate) doubles: u64,
    pub(crate) grants: u64,
    /// How many ticks were given a second time by a server that had forgotten them.
    pub(crate) again: u64,
}

/// The confirmations of a process.
#[derive(Clone, Debug, Default)]
struct Memory {
    held: Vec<Held>,
    /// The last of each block, and for good: what it can bring before a server that has
    /// forgotten.
    known: Vec<Confirmed>,
}

impl Oracle {
    pub(crate) fn new(blocks: u64, watch: Watch) -> Self {
        Self {
            watch,
            given: vec![Intervals::default(); blocks as usize],
            issued: vec![Intervals::default(); blocks as usize],
            processes: Vec::new(),
            forgotten: Vec::new(),
            common: Vec::new(),
            cells: 0,
            doubles: 0,
            grants: 0,
            again: 0,
        }
    }

    /// S1: a server gave these ticks away, whether anybody learns of it or not. What it
    /// had forgotten it may give once more.
    pub(crate) fn give(
        &mut self,
        block: Block,
        mut ticks: Range<u64>,
        server: usize,
    ) -> Result<(), Violation> {
        self.grants += u64::from(!ticks.is_empty());
        while let Some((common, by)) = self.given[block.index() as usize].overlap(&ticks) {
            let forgiven = self.forgive(server, block, &common);
            if forgiven.is_none() && self.watch == Watch::Promises {
                let gave = format!("server {server} gave ticks {ticks:?} of block {block}");
                let detail = format!("{gave}, of which server {by} had given {common:?}");
                return broken(Promise::S1, detail);
            }
            let given = &mut self.given[block.index() as usize];
            if ticks.start < common.start {
                given.add(ticks.start..common.start, server);
            }
            ticks.start = forgiven.unwrap_or(common.end);
        }
        if !ticks.is_empty() {
            self.given[block.index() as usize].add(ticks, server);
        }
        Ok(())
    }

    /// Up to where the server had forgotten these ticks, from the first on: both who have
    /// them may issue them.
    fn forgive(&mut self, server: usize, block: Block, ticks: &Range<u64>) -> Option<u64> {
        let mut forgotten = self.forgotten.iter_mut();
        let (.., range) = forgotten.find(|(who, which, range)| {
            (*who, *which) == (server, block) && range.contains(&ticks.start)
        })?;
        let end = ticks.end.min(range.end);
        let rest = end..range.end;
        range.end = ticks.start;
        self.forgotten.push((server, block, rest));
        self.again += end - ticks.start;
        self.allow(block, ticks.start..end);
        Some(end)
    }

    /// A server was put back to what this listing holds. It gives for new what any
    /// server gave since.
    pub(crate) fn roll_back(&mut self, server: usize, listing: &Listing) {
        for (index, given) in self.given.iter().enumerate() {
            let block = Block::new(index as u64);
            if is_quarantined(listing, block) {
                continue;
            }
            let known = listing.blocks.iter().find(|known| known.block == block);
            let mark = known.map_or(0, |known| known.hwm_end);
            let lost = given.0.iter().filter(|(range, _)| range.end > mark);
            self.forgotten
                .extend(lost.map(|(range, _)| (server, block, range.start.max(mark)..range.end)));
        }
    }

    /// Whether the server was put back, and nobody who knows better has asked it since.
    pub(crate) fn has_forgotten(&self, server: usize) -> bool {
        self.forgotten.iter().any(|(who, ..)| *who == server)
    }

    /// A server that held this listing replied to somebody who knew so much; without a listing, it
    /// has forgotten nothing.
    pub(crate) fn reply(
        &mut self,
        server: usize,
        now: u64,
        listing: Option<&Listing>,
        known: &[Confirmed],
        (request, answer): (&Request, &Answer),
    ) -> Result<(), Violation> {
        match (request, answer) {
            (_, Answer::Acquired(reply)) => self.acquired(server, now, listing, known, reply),
            (Request::Renew(renew), Answer::Renewed(Ok(end))) if *end > renew.known_end => {
                self.give(renew.block, renew.known_end..*end, server)
            }
            _ => Ok(()),
        }
    }

    /// The same of an acquisition: once somebody who knows more than the server holds has asked
    /// it for blocks, it gives nothing for new any more.
    pub(crate) fn acquired(
        &mut self,
        server: usize,
        now: u64,
        listing: Option<&Listing>,
        known: &[Confirmed],
        reply: &Result<Vec<Grant>, StoreError>,
    ) -> Result<(), Violation> {
        // Before anything was looked at, or not carried out yet.
        if let Err(
            StoreError::ClockSkew { .. }
            | StoreError::BeforeEpoch { .. }
            | StoreError::Ambiguous { .. },
        ) = reply
        {
            return Ok(());
        }
        if listing.is_some_and(|held| known.iter().any(|it| is_forgotten(it, now, held))) {
            self.remind_of_all(server);
        }
        for grant in reply.iter().flatten() {
            self.give(grant.block, grant.ticks.clone(), server)?;
        }
        Ok(())
    }

    /// A server gives nothing for new any more that it had forgotten.
    pub(crate) fn remind_of_all(&mut self, server: usize) {
        self.forgotten.retain(|(who, ..)| *who != server);
    }

    fn given_end(&self, block: usize) -> u64 {
        let last = self.given[block].0.last();
        last.map_or(0, |(range, _)| range.end)
    }

    /// From now on asks for more than S1: that nothing is given below the end of what was
    /// given before.
    pub(crate) fn fill(&mut self, server: usize) {
        for index in 0..self.given.len() {
            let end = self.given_end(index);
            self.given[index] = Intervals(vec![(0..end, server)]);
        }
    }

    /// Hashes its state: the [grants](Self::fill) and the forgotten ones. The blocks are
    /// renamed.
    pub(crate) fn hash_state(&self, name: impl Fn(Block) -> u64, state: &mut impl Hasher) {
        let given = 0..self.given.len();
        let mut given: Vec<_> = given
            .map(|index| (name(Block::new(index as u64)), self.given_end(index)))
            .collect();
        let forgotten = self.forgotten.iter();
        let mut forgotten: Vec<_> = forgotten
            .filter(|(.., range)| !range.is_empty())
            .map(|(_, block, range)| (name(*block), range.start, range.end))
            .collect();
        given.sort_unstable();
        forgotten.sort_unstable();
        (given, forgotten).hash(state);
    }

    pub(crate) fn hash_process(
        &self,
        process: usize,
        name: impl Fn(Block) -> u64,
        state: &mut impl Hasher,
    ) {
        let known = self.processes[process].known.iter();
        let mut known: Vec<_> = known
            .map(|known| (name(known.block), known.epoch, known.end))
            .collect();
        known.sort_unstable();
        known.hash(state);
    }

    pub(crate) fn known(&self, process: usize) -> Vec<Confirmed> {
        self.processes[process].known.clone()
    }

    pub(crate) fn known_to_any(&self, which: u64) -> Vec<Confirmed> {
        let process = which.checked_rem(self.processes.len() as u64);
        process.map_or_else(Vec::new, |process| self.known(process as usize))
    }

    fn learn(&mut self, process: usize, confirmed: Confirmed) {
        let grants = &mut self.processes[process].known;
        match grants
            .iter_mut()
            .find(|known| known.block == confirmed.block)
        {
            // A late grant of a server that has forgotten says nothing new.
            Some(known) if known.end > confirmed.end => {}
            Some(known) => *known = confirmed,
            None => grants.push(confirmed),
        }
    }

    /// A server gave these ticks to an import, which issues all of them.
    pub(crate) fn import(&mut self, grant: &Grant, server: usize) -> Result<(), Violation> {
        const IMPORT: usize = usize::MAX;
        self.give(grant.block, grant.ticks.clone(), server)?;
        let cells = grant.ticks.start * CELLS..grant.ticks.end * CELLS;
        self.cells += cells.end - cells.start;
        self.mark(IMPORT, grant.block, cells)
    }

    pub(crate) fn enter(&mut self) -> usize {
        self.processes.push(Memory::default());
        self.processes.len() - 1
    }

    /// A reply reached the process that asked.
    pub(crate) fn confirm(&mut self, process: usize, request: &Request, answer: &Answer) {
        match (request, answer) {
            (_, Answer::Acquired(Ok(grants))) => {
                for grant in grants {
                    self.processes[process].held.push(Held {
                        block: grant.block,
                        ticks: grant.ticks.clone(),
                        cursor: 0,
                    });
                    let confirmed = Confirmed::new(grant.block, grant.epoch, grant.ticks.end);
                    self.learn(process, confirmed);
                }
            }
            (Request::Renew(renew), Answer::Renewed(Ok(end))) => {
                let mut held = self.processes[process].held.iter_mut();
                let known = (renew.block, renew.known_end);
                if let Some(held) = held.find(|held| (held.block, held.ticks.end) == known) {
                    held.ticks.end = *end;
                }
                self.learn(process, Confirmed::new(renew.block, renew.epoch, *end));
            }
            _ => {}
        }
    }

    /// A process takes its grants to be gone.
    pub(crate) fn forget(&mut self, process: usize) {
        self.processes[process].held.clear();
    }

    /// One more process has a copy of the memory of `process`.
    pub(crate) fn copy(&mut self, process: usize) -> usize {
        self.processes.push(self.processes[process].clone());
        self.processes.len() - 1
    }

    /// Allows both copies to issue what the process has left of these grants.
    pub(crate) fn allow_common(&mut self, process: usize, open: &[(Block, u64)]) {
        for held in &self.processes[process].held {
            if open.contains(&(held.block, held.ticks.start)) {
                let left = held.cursor.max(held.ticks.start * CELLS)..held.ticks.end * CELLS;
                self.common.push((held.block, left));
            }
        }
    }

    /// Allows both copies to issue what a reply to both brought.
    pub(crate) fn allow(&mut self, block: Block, ticks: Range<u64>) {
        let cells = ticks.start * CELLS..ticks.end * CELLS;
        self.common.push((block, cells));
    }

    /// S2, S3 and S4: a process issued these cells from the grant of `block` that
    /// starts at tick `start`.
    pub(crate) fn issue(
        &mut self,
        process: usize,
        block: Block,
        start: u64,
        cells: Range<u64>,
    ) -> Result<(), Violation> {
        let mut held = self.processes[process].held.iter_mut();
        let held = held.find(|held| (held.block, held.ticks.start) == (block, start));
        let (ticks, cursor) = held.map_or((0..0, 0), |held| {
            let before = std::mem::replace(&mut held.cursor, cells.end);
            (held.ticks.clone(), before)
        });
        if self.watch == Watch::Promises {
            let issued = format_args!("process {process} issued cells {cells:?} of block {block}");
            if cells.start < ticks.start * CELLS || cells.end > ticks.end * CELLS {
                return broken(
                    Promise::S2,
                    format_args!("{issued}, and has ticks {ticks:?}"),
                );
            }
            if cells.start < cursor {
                return broken(
                    Promise::S3,
                    format_args!("{issued} after all up to {cursor}"),
                );
            }
        }
        self.cells += cells.end - cells.start;
        self.mark(process, block, cells)
    }

    /// S4: enters cells as issued.
    fn mark(
        &mut self,
        process: usize,
        block: Block,
        mut cells: Range<u64>,
    ) -> Result<(), Violation> {
        let issued = &mut self.issued[block.index() as usize];
        while let Some((mut twice, by)) = issued.overlap(&cells) {
            let mut common = self.common.iter();
            let shared =
                common.find(|(other, cells)| *other == block && cells.contains(&twice.start));
            let Some((_, shared)) = shared else {
                let issued = format!("process {process} issued cells {twice:?} of block {block}");
                return broken(
                    Promise::S4,
                    format!("{issued}, which process {by} had issued"),
                );
            };
            twice.end = twice.end.min(shared.end);
            self.doubles += twice.end - twice.start;
            if cells.start < twice.start {
                issued.add(cells.start..twice.start, process);
            }
            cells.start = twice.end;
        }
        if !cells.is_empty() {
            issued.add(cells, process);
        }
        Ok(())
    }
}
