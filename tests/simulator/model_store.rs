//! A store that can be told to leave a rule out.
//!
//! Without a mutation it does what `MemoryStore` does; the test
//! `the_model_store_is_the_reference` holds it to that.

use std::collections::BTreeMap;
use std::time::Duration;

use ringflake::lease::{
    Acquire, Block, BlockState, Confirmed, Epoch, Fence, Floor, Grant, Incarnation, Init,
    LeaseStore, Listing, Namespace, Quarantined, Renew, StoreError, StoreLimits, StoreRecord,
    StoreReport,
};

use crate::mutations::Mutation;

/// One server with one namespace.
#[derive(Clone, Debug)]
pub(crate) struct ModelStore {
    pub(crate) incarnation: Incarnation,
    pub(crate) now_unix_ms: u64,
    /// The time that passes whatever the clock shows, for TTLs.
    pub(crate) uptime_ms: u64,
    /// What a client would send along to mark a repetition.
    pub(crate) token: u64,
    mutation: Option<Mutation>,
    state: State,
}

/// What a server keeps.
#[derive(Clone, Debug)]
pub(crate) struct State {
    record: StoreRecord,
    blocks: Vec<BlockState>,
    /// When the holder's time is up, by block.
    times_up: Vec<u64>,
    acquired: BTreeMap<u64, Vec<Grant>>,
    renewed: BTreeMap<u64, u64>,
}

impl ModelStore {
    pub(crate) fn new(
        namespace: &Namespace,
        init: &Init,
        mutation: Option<Mutation>,
    ) -> Result<Self, StoreError> {
        let incarnation = Incarnation::new("0");
        let record = StoreRecord::create(namespace, init, &incarnation, init.now_unix_ms)?;
        Ok(Self {
            incarnation,
            now_unix_ms: init.now_unix_ms,
            uptime_ms: 0,
            token: 0,
            mutation,
            state: State {
                record,
                blocks: Vec::new(),
                times_up: vec![0; namespace.blocks() as usize],
                acquired: BTreeMap::new(),
                renewed: BTreeMap::new(),
            },
        })
    }

    pub(crate) fn state(&self) -> State {
        self.state.clone()
    }

    pub(crate) fn put_back(&mut self, state: &State) {
        self.state.clone_from(state);
    }

    /// Leaves a mark in the record of a block that no rule writes.
    pub(crate) fn damage(&mut self, block: Block) -> bool {
        let known = self.state.blocks.get_mut(block.index() as usize);
        known.map(|known| known.hwm_end = u64::MAX).is_some()
    }

    fn is_sound(&self, known: &BlockState) -> bool {
        known.hwm_end <= self.state.record.namespace.layout().ticks()
    }

    fn sound(&self) -> impl Iterator<Item = &BlockState> {
        let blocks = self.state.blocks.iter();
        blocks.filter(|known| self.is_sound(known))
    }

    /// What is known of a block whose grant is to be changed.
    fn subject(&self, block: Block) -> Result<Option<BlockState>, StoreError> {
        let known = self.state.blocks.get(block.index() as usize);
        if known.is_some_and(|known| !self.is_sound(known)) {
            let reason = "its mark is none".to_owned();
            let fence = Fence::Quarantined { reason };
            return Err(StoreError::Fenced { block, fence });
        }
        Ok(known.cloned())
    }

    fn lacks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    fn verify(&self, namespace: &Namespace) -> Result<(), StoreError> {
        match self.state.record.verify(namespace) {
            Err(StoreError::FingerprintMismatch { .. })
                if self.lacks(Mutation::FingerprintIgnored) =>
            {
                Ok(())
            }
            verdict => verdict,
        }
    }

    fn now(&self) -> Result<u64, StoreError> {
        self.state.record.tick_at(self.now_unix_ms)
    }

    /// The record as the rules of an acquisition see it.
    fn rules_of_acquire(&self) -> StoreRecord {
        let mut rules = self.state.record.clone();
        if self.lacks(Mutation::AcquireIgnoresFloor) {
            rules.floor = 0;
        }
        if self.lacks(Mutation::AcquireIgnoresHorizon) {
            rules.limits = rules.limits.with_horizon(StoreLimits::MAX);
        }
        rules
    }

    /// Takes note of the incarnation.
    fn observe(&mut self, now: u64) {
        let (incarnation, limits) = (self.incarnation.clone(), self.state.record.limits);
        let record = &mut self.state.record;
        match self.mutation {
            Some(Mutation::AcquireIgnoresIncarnation) => record.incarnation = incarnation,
            Some(Mutation::FloorIgnoresFailover) => {
                record.limits = limits.with_failover(Duration::ZERO);
                record.observe(&incarnation, now);
            }
            Some(Mutation::FloorIgnoresHorizon) => {
                record.limits = limits.with_horizon(Duration::ZERO);
                record.observe(&incarnation, now);
            }
            _ => {
                record.observe(&incarnation, now);
            }
        }
        record.limits = limits;
    }

    /// Looks whether what was confirmed is on record.
    fn check_history(&mut self, now: u64, evidence: &[Confirmed]) -> Result<(), StoreError> {
        for confirmed in evidence {
            let record = &self.state.record;
            let known = self.state.blocks.get(confirmed.block.index() as usize);
            // Of one that is quarantined nothing is forgotten.
            if known.is_some_and(|known| !self.is_sound(known)) {
                continue;
            }
            let found = match self.mutation {
                Some(Mutation::UnknownBlockIsNoLoss) if known.is_none() => Ok(()),
                Some(Mutation::LowerEndIsNoLoss) => {
                    let mut known = known.cloned();
                    let end = confirmed.end;
                    known.iter_mut().for_each(|known| known.hwm_end = end);
                    record.check_history(now, known.as_ref(), confirmed)
                }
                Some(Mutation::SettledLossIsOne) => {
                    let mut record = record.clone();
                    record.floor = 0;
                    record.check_history(now, known, confirmed)
                }
                _ => record.check_history(now, known, confirmed),
            };
            let Err(lost) = found else { continue };
            let mut raised = record.clone();
            if self.lacks(Mutation::LossIgnoresHorizon) {
                raised.limits = raised.limits.with_horizon(Duration::ZERO);
            }
            raised.raise_floor(Floor::OverLostGrants, now)?;
            if !self.lacks(Mutation::LossIsNotKept) {
                self.state.record.floor = raised.floor;
            }
            return Err(lost);
        }
        Ok(())
    }

    /// The marks of what can be granted, the best first.
    fn candidates(&self, now: u64, wanted: u32) -> Vec<BlockState> {
        let (record, blocks) = (&self.state.record, &self.state.blocks);
        let fresh = (blocks.len() as u64..record.namespace.blocks())
            .map(|index| BlockState::new(Block::new(index), Epoch::new(0), 0))
            .take(wanted as usize);
        let idle_until = now.max(record.floor);
        let damaged = blocks
            .iter()
            .filter(|_| self.lacks(Mutation::QuarantineIgnored));
        let damaged = damaged.filter(|block| !self.is_sound(block));
        let damaged = damaged.map(|block| BlockState::new(block.block, Epoch::new(0), 0));
        let mut idle: Vec<_> = self
            .sound()
            .filter(|block| {
                if self.lacks(Mutation::TimeToLive) {
                    self.state.times_up[block.block.index() as usize] <= self.uptime_ms
                } else {
                    block.hwm_end <= idle_until || block.released
                }
            })
            .cloned()
            .collect();
        idle.sort_unstable_by_key(|block| (block.hwm_end, block.block));
        if self.lacks(Mutation::AcquireIgnoresMark) || self.lacks(Mutation::TimeToLive) {
            idle.iter_mut().for_each(|block| block.hwm_end = 0);
        }
        fresh.chain(damaged).chain(idle).collect()
    }

    fn start_timer(&mut self, block: Block, now: u64, end: u64) {
        let tick_ms = self.state.record.namespace.layout().tick_ms();
        let left_ms = end.saturating_sub(now).saturating_mul(tick_ms);
        self.state.times_up[block.index() as usize] = self.uptime_ms + left_ms;
    }
}

impl LeaseStore for ModelStore {
    fn init(&mut self, space: &Namespace, _: &Init) -> Result<StoreRecord, StoreError> {
        Err(StoreError::AlreadyInitialised {
            namespace: space.name().to_owned(),
        })
    }

    fn acquire(&mut self, space: &Namespace, acquire: &Acquire) -> Result<Vec<Grant>, StoreError> {
        acquire.validate()?;
        self.verify(space)?;
        if self.lacks(Mutation::Tokens)
            && let Some(grants) = self.state.acquired.get(&self.token)
        {
            return Ok(grants.clone());
        }
        let now = self.now()?;
        if !self.lacks(Mutation::SkewIgnored) {
            let record = &self.state.record;
            record.check_skew(self.now_unix_ms, acquire.now_unix_ms)?;
        }
        let before = self.state.record.clone();
        self.observe(now);
        self.check_history(now, &acquire.evidence)?;

        let rules = self.rules_of_acquire();
        let mut grants = Vec::new();
        for mut block in self.candidates(now, acquire.blocks) {
            if grants.len() == acquire.blocks as usize {
                break;
            }
            let Some(ticks) = rules.grant(now, block.hwm_end, acquire.length) else {
                continue;
            };
            block.epoch = block.epoch.next();
            block.hwm_end = ticks.end;
            block.released = false;
            block.granted_unix_ms = Some(self.now_unix_ms);
            block.holder.clone_from(&acquire.holder);
            self.start_timer(block.block, now, ticks.end);
            grants.push(Grant::new(block.block, block.epoch, ticks));
            match self.state.blocks.get_mut(block.block.index() as usize) {
                Some(known) => *known = block,
                None => self.state.blocks.push(block),
            }
        }
        if grants.is_empty() {
            let record = &self.state.record;
            let free_from = self.sound().map(|block| record.free_from(block)).min();
            let free_from = free_from.unwrap_or(now);
            let refusal = record.refusal(self.now_unix_ms, now, acquire.blocks, free_from);
            if self.lacks(Mutation::FloorNotKept) {
                self.state.record = before;
            }
            return Err(refusal);
        }
        if self.lacks(Mutation::Tokens) {
            self.state.acquired.insert(self.token, grants.clone());
        }
        Ok(grants)
    }

    fn renew(&mut self, space: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        renew.validate()?;
        self.verify(space)?;
        if self.lacks(Mutation::Tokens)
            && let Some(end) = self.state.renewed.get(&self.token)
        {
            return Ok(*end);
        }
        let now = self.now()?;
        let index = renew.block.index() as usize;
        let mut rules = self.state.record.clone();
        let mut known = self.subject(renew.block)?;
        let mut incarnation = self.incarnation.clone();
        match self.mutation {
            Some(Mutation::RenewalIgnoresFloor) => rules.floor = 0,
            Some(Mutation::RenewalIgnoresHorizon) => {
                rules.limits = rules.limits.with_horizon(StoreLimits::MAX);
            }
            Some(Mutation::RenewalIgnoresIncarnation) => {
                incarnation = rules.incarnation.clone();
            }
            Some(Mutation::RenewalIgnoresEpoch | Mutation::RenewalIgnoresEpochAndEnd) => {
                known.iter_mut().for_each(|block| block.epoch = renew.epoch);
            }
            _ => {}
        }
        if self.lacks(Mutation::RenewalIgnoresEnd)
            || self.lacks(Mutation::RenewalIgnoresEpochAndEnd)
            || self.lacks(Mutation::RenewalKeepsMark)
        {
            // Where the mark stays behind, the end is not what to compare with.
            known
                .iter_mut()
                .for_each(|block| block.hwm_end = renew.known_end);
        }
        rules.check_renewal(&incarnation, known.as_ref(), renew)?;
        let end = rules.renewed_end(now, renew.known_end, renew.new_end);
        self.start_timer(renew.block, now, end);
        let cut = self.lacks(Mutation::RenewalCutsMark);
        let mark = if cut {
            end.min(rules.horizon_end(now))
        } else {
            end
        };
        if let Some(block) = self.state.blocks.get_mut(index) {
            if self.mutation != Some(Mutation::RenewalKeepsMark) {
                block.hwm_end = mark;
            }
            block.released = false;
        }
        if self.lacks(Mutation::Tokens) {
            self.state.renewed.insert(self.token, end);
        }
        Ok(end)
    }

    fn release(&mut self, space: &Namespace, block: Block, epoch: Epoch) -> Result<(), StoreError> {
        self.verify(space)?;
        let lowered = self
            .lacks(Mutation::ReleaseLowersMark)
            .then(|| self.now())
            .transpose()?;
        self.subject(block)?;
        let fence = match self.state.blocks.get_mut(block.index() as usize) {
            Some(known) if known.epoch == epoch => {
                known.released = true;
                if let Some(now) = lowered {
                    known.hwm_end = known.hwm_end.min(now);
                }
                self.state.times_up[block.index() as usize] = 0;
                return Ok(());
            }
            Some(known) => Fence::Epoch {
                held: epoch,
                recorded: known.epoch,
            },
            None => Fence::NeverGranted,
        };
        Err(StoreError::Fenced { block, fence })
    }

    fn list(&mut self, space: &Namespace) -> Result<Listing, StoreError> {
        self.verify(space)?;
        let blocks = self.sound().cloned().collect();
        let mut listing = Listing::new(self.state.record.clone(), blocks);
        let damaged = self
            .state
            .blocks
            .iter()
            .filter(|known| !self.is_sound(known));
        listing.quarantined = damaged
            .map(|known| Quarantined::new(known.block, "its mark is none"))
            .collect();
        Ok(listing)
    }

    fn repair(
        &mut self,
        space: &Namespace,
        block: Block,
        now_ms: u64,
    ) -> Result<BlockState, StoreError> {
        self.verify(space)?;
        let record = &self.state.record;
        record.check_skew(self.now_unix_ms, now_ms)?;
        let now = self.now()?;
        let mut rules = record.clone();
        if self.lacks(Mutation::RepairIgnoresHorizon) {
            rules.limits = rules.limits.with_horizon(Duration::ZERO);
        }
        let index = block.index() as usize;
        let known = self.state.blocks.get(index);
        if known.is_none_or(|known| self.is_sound(known)) {
            return Err(StoreError::NotQuarantined { block });
        }
        let repaired = rules.repaired(now, block, None);
        self.state.blocks[index] = repaired.clone();
        self.state.times_up[index] = 0;
        Ok(repaired)
    }

    fn raise_floor(&mut self, space: &Namespace, floor: Floor, _: u64) -> Result<u64, StoreError> {
        self.verify(space)?;
        let now = self.now()?;
        self.state.record.raise_floor(floor, now)?;
        Ok(self.state.record.floor)
    }

    fn check(&mut self, space: &Namespace, now_ms: u64) -> Result<StoreReport, StoreError> {
        self.verify(space)?;
        self.now()?;
        Ok(StoreReport::new(
            "ledger",
            self.state.record.clone(),
            self.incarnation.clone(),
            ringflake::lease::Durability::Volatile,
            now_ms,
        ))
    }
}
