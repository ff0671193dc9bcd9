//! A store for a whole fleet: the rules of the reference, and an index.

use std::collections::BTreeSet;

use ringflake::lease::protocol::{Answer, Request};
use ringflake::lease::{
    Block, BlockState, Epoch, Fence, Grant, History, Incarnation, Init, Namespace, StoreError,
    StoreRecord,
};

use crate::scenario::{LAYOUT, START_MS};

/// One namespace on one server.
pub(super) struct Depot {
    record: StoreRecord,
    incarnation: Incarnation,
    blocks: Vec<BlockState>,
    /// The same by mark, so that the idle ones come first.
    by_mark: BTreeSet<(u64, u64)>,
    /// How much was given away: block times ticks.
    pub(super) given: u64,
}

impl Depot {
    pub(super) fn new(namespace: &Namespace) -> Self {
        let incarnation = Incarnation::new("depot");
        let init = Init::new(History::New, START_MS);
        let record = StoreRecord::create(namespace, &init, &incarnation, START_MS);
        Self {
            record: record.expect("the limits are valid"),
            incarnation,
            blocks: Vec::new(),
            by_mark: BTreeSet::new(),
            given: 0,
        }
    }

    pub(super) fn answer(&mut self, request: &Request, unix_ms: u64) -> Answer {
        match request {
            Request::Acquire(acquire) => {
                Answer::Acquired(self.acquire(acquire.blocks, acquire.length, unix_ms))
            }
            Request::Renew(renew) => {
                let known = self.blocks.get(renew.block.index() as usize);
                let refused = self.record.check_renewal(&self.incarnation, known, renew);
                Answer::Renewed(refused.map(|()| {
                    let now = tick(unix_ms);
                    let end = self.record.renewed_end(now, renew.known_end, renew.new_end);
                    self.set_mark(renew.block, end, now);
                    end
                }))
            }
            Request::Release { block, .. } => Answer::Released(Err(StoreError::Fenced {
                block: *block,
                fence: Fence::NeverGranted,
            })),
            _ => Answer::Checked(Ok(())),
        }
    }

    fn acquire(
        &mut self,
        wanted: u32,
        length: u64,
        unix_ms: u64,
    ) -> Result<Vec<Grant>, StoreError> {
        let now = tick(unix_ms);
        let mut grants = Vec::new();
        while grants.len() < wanted as usize {
            let fresh = self.blocks.len() as u64;
            let index = if fresh < self.record.namespace.blocks() {
                let block = BlockState::new(Block::new(fresh), Epoch::new(0), 0);
                self.by_mark.insert((0, fresh));
                self.blocks.push(block);
                fresh
            } else {
                match self.by_mark.first() {
                    Some((mark, index)) if *mark <= now => *index,
                    _ => break,
                }
            };
            let state = &mut self.blocks[index as usize];
            let (block, mark) = (state.block, state.hwm_end);
            let Some(ticks) = self.record.grant(now, mark, length) else {
                break;
            };
            state.epoch = state.epoch.next();
            grants.push(Grant::new(block, state.epoch, ticks.clone()));
            // S1: what is given starts where all that was given before ends.
            assert!(ticks.start >= mark, "block {block} starts below its mark");
            self.given += ticks.end - ticks.start;
            self.move_mark(block, ticks.end, now);
        }
        if grants.is_empty() {
            let free_from = self.by_mark.first().map_or(now, |(mark, _)| *mark);
            return Err(self.record.refusal(unix_ms, now, wanted, free_from));
        }
        Ok(grants)
    }

    fn set_mark(&mut self, block: Block, end: u64, now: u64) {
        let mark = self.blocks[block.index() as usize].hwm_end;
        assert!(end >= mark, "the mark of block {block} went back");
        self.given += end - mark;
        self.move_mark(block, end, now);
    }

    fn move_mark(&mut self, block: Block, end: u64, now: u64) {
        // S7.
        assert!(
            end <= self.record.horizon_end(now),
            "an end past the horizon"
        );
        let state = &mut self.blocks[block.index() as usize];
        self.by_mark.remove(&(state.hwm_end, block.index()));
        self.by_mark.insert((end, block.index()));
        state.hwm_end = end;
    }

    /// What a process believes to hold must be what is on record, or less.
    pub(super) fn backs(&self, grant: &Grant) -> bool {
        let state = &self.blocks[grant.block.index() as usize];
        state.epoch > grant.epoch
            || (state.epoch == grant.epoch && grant.ticks.end <= state.hwm_end)
    }
}

fn tick(unix_ms: u64) -> u64 {
    LAYOUT.tick_at(unix_ms).expect("after the epoch")
}
