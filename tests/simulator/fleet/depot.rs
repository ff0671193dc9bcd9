//! A store for a whole fleet: the rules of the reference, and an index.

use std::collections::BTreeSet;

use ringflake::lease::protocol::{Answer, Request};
use ringflake::lease::{
    Acquire, Block, BlockState, Epoch, Grant, History, Incarnation, Init, LowestMarks, Namespace,
    StoreError, StoreRecord,
};

use crate::scenario::{LAYOUT, START_MS};

/// One namespace on one server.
pub(super) struct Depot {
    record: StoreRecord,
    incarnation: Incarnation,
    blocks: Vec<BlockState>,
    /// The same by mark, so that the idle ones come first.
    by_mark: BTreeSet<(u64, u64)>,
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
        }
    }

    pub(super) fn answer(&mut self, request: &Request, unix_ms: u64) -> Answer {
        let now = LAYOUT.tick_at(unix_ms).expect("after the epoch");
        match request {
            Request::Acquire(acquire) => Answer::Acquired(self.acquire(acquire, now, unix_ms)),
            Request::Renew(renew) => {
                let known = self.blocks.get(renew.block.index() as usize).cloned();
                let renewed = self.record.renewed(&self.incarnation, now, known, renew);
                Answer::Renewed(renewed.map(|block| {
                    let end = block.hwm_end;
                    self.put(block, now);
                    end
                }))
            }
            // Whatever is released waits until its mark has passed.
            Request::Release { .. } => Answer::Released(Ok(())),
            _ => Answer::Checked(Ok(None)),
        }
    }

    fn acquire(
        &mut self,
        acquire: &Acquire,
        now: u64,
        unix_ms: u64,
    ) -> Result<Vec<Grant>, StoreError> {
        let mut grants = Vec::new();
        while grants.len() < acquire.blocks as usize {
            let fresh = self.blocks.len() as u64;
            let before = if fresh < self.record.namespace.blocks() {
                BlockState::new(Block::new(fresh), Epoch::new(0), 0)
            } else {
                match self.by_mark.first() {
                    Some((mark, index)) if *mark <= now => self.blocks[*index as usize].clone(),
                    _ => break,
                }
            };
            let Some((grant, after)) = self.record.granted(now, unix_ms, &before, acquire) else {
                break;
            };
            let mark = before.hwm_end;
            assert!(grant.ticks.start >= mark, "S1: {grant} starts below {mark}");
            grants.push(grant);
            self.put(after, now);
        }
        if grants.is_empty() {
            let lowest = LowestMarks {
                held: self.by_mark.first().map(|(mark, _)| *mark),
                released: None,
            };
            return Err(self.record.refusal(unix_ms, now, acquire, lowest));
        }
        Ok(grants)
    }

    fn put(&mut self, block: BlockState, now: u64) {
        let (index, mark) = (block.block.index(), block.hwm_end);
        let horizon = self.record.horizon_end(now);
        assert!(mark <= horizon, "S7: block {index} ends at {mark}");
        match self.blocks.get_mut(index as usize) {
            Some(known) => {
                assert!(known.hwm_end <= mark, "S1: block {index} went back");
                self.by_mark.remove(&(known.hwm_end, index));
                *known = block;
            }
            None => self.blocks.push(block),
        }
        self.by_mark.insert((mark, index));
    }

    /// A process may hold at most the recorded grant.
    pub(super) fn backs(&self, grant: &Grant) -> bool {
        let known = &self.blocks[grant.block.index() as usize];
        known.epoch > grant.epoch
            || (known.epoch == grant.epoch && grant.ticks.end <= known.hwm_end)
    }
}
