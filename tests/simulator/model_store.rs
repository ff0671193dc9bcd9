//! A store that can be told to leave a rule out.
//!
//! Without a mutation it does what `MemoryStore` does; the test
//! `a_seed_makes_the_same_schedule_however_it_is_run` holds it to that.

use std::collections::BTreeMap;
use std::time::Duration;

use ringflake::lease::{
    Acquire, Block, BlockState, Confirmed, Durability, Epoch, Fence, Floor, Grant, Incarnation,
    Init, LeaseStore, Listing, LowestMarks, Namespace, Quarantined, Renew, StoreError, StoreLimits,
    StoreRecord, StoreReport,
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
    pub(crate) state: State,
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

    fn damaged(&self) -> impl Iterator<Item = &BlockState> {
        let blocks = self.state.blocks.iter();
        blocks.filter(|known| !self.is_sound(known))
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

    /// The record as an operation sees it that may lack the rules of the floor and the horizon.
    fn rules(&self, no_floor: Mutation, no_horizon: Mutation) -> StoreRecord {
        let mut rules = self.state.record.clone();
        if self.lacks(no_floor) {
            rules.floor = 0;
        }
        if self.lacks(no_horizon) {
            rules.limits = rules.limits.with_horizon(StoreLimits::MAX);
        }
        rules
    }

    /// The record as an operation sees it that raises something over lost grants, and may do
    /// so without H.
    fn rules_of_loss(&self, no_horizon: Mutation) -> StoreRecord {
        let mut rules = self.state.record.clone();
        if self.lacks(no_horizon) {
            rules.limits = rules.limits.with_horizon(Duration::ZERO);
        }
        rules
    }

    /// Takes note of the incarnation.
    fn observe(&mut self, now: u64) {
        let record = &mut self.state.record;
        let limits = record.limits;
        match self.mutation {
            Some(Mutation::AcquireIgnoresIncarnation) => {
                record.incarnation.clone_from(&self.incarnation);
            }
            Some(Mutation::FloorIgnoresFailover) => {
                record.limits = limits.with_failover(Duration::ZERO);
            }
            Some(Mutation::FloorIgnoresHorizon) => {
                record.limits = limits.with_horizon(Duration::ZERO);
            }
            _ => {}
        }
        record.observe(&self.incarnation, now);
        record.limits = limits;
    }

    /// Looks whether what was confirmed is on record.
    fn check_history(&mut self, now: u64, evidence: &[Confirmed]) -> Result<(), StoreError> {
        for confirmed in evidence {
            // Of one that is quarantined nothing is forgotten.
            let Ok(mut known) = self.subject(confirmed.block) else {
                continue;
            };
            let mut rules = self.state.record.clone();
            match (self.mutation, &mut known) {
                (Some(Mutation::UnknownBlockIsNoLoss), None) => continue,
                (Some(Mutation::LowerEndIsNoLoss), Some(known)) => known.hwm_end = confirmed.end,
                (Some(Mutation::SettledLossIsOne), _) => rules.floor = 0,
                _ => {}
            }
            let Err(lost) = rules.check_history(now, known.as_ref(), confirmed) else {
                continue;
            };
            let mut raised = self.rules_of_loss(Mutation::LossIgnoresHorizon);
            raised.raise_floor(Floor::OverLostGrants, now)?;
            if !self.lacks(Mutation::LossIsNotKept) {
                self.state.record.floor = raised.floor;
            }
            return Err(lost);
        }
        Ok(())
    }

    /// The marks of what can be granted, the best first.
    fn candidates(&self, now: u64, acquire: &Acquire) -> Vec<BlockState> {
        let State {
            record,
            blocks,
            times_up,
            ..
        } = &self.state;
        let fresh = |block| BlockState::new(block, Epoch::new(0), 0);
        let mut candidates: Vec<_> = (blocks.len() as u64..record.namespace.blocks())
            .map(|index| fresh(Block::new(index)))
            .take(acquire.blocks as usize)
            .collect();
        if self.lacks(Mutation::QuarantineIgnored) {
            candidates.extend(self.damaged().map(|known| fresh(known.block)));
        }
        let start = match &acquire.past {
            Some(past) => past.start,
            None => record.earliest_start(now),
        };
        let ignores_mark = acquire.past.is_some() && self.lacks(Mutation::PastIgnoresMark);
        let mut idle: Vec<_> = self
            .sound()
            .filter(|known| match self.mutation {
                _ if ignores_mark => true,
                Some(Mutation::TimeToLive) => {
                    times_up[known.block.index() as usize] <= self.uptime_ms
                }
                _ => known.hwm_end <= start || known.released,
            })
            .cloned()
            .collect();
        idle.sort_unstable_by_key(|block| (block.hwm_end, block.block));
        let ignores_mark = ignores_mark || self.lacks(Mutation::AcquireIgnoresMark);
        if ignores_mark || self.lacks(Mutation::TimeToLive) {
            idle.iter_mut().for_each(|block| block.hwm_end = 0);
        }
        candidates.extend(idle);
        candidates
    }

    fn put(&mut self, block: BlockState) {
        match self.state.blocks.get_mut(block.block.index() as usize) {
            Some(known) => *known = block,
            None => self.state.blocks.push(block),
        }
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

        let no_floor = match acquire.past {
            Some(_) => Mutation::PastIgnoresFloor,
            None => Mutation::AcquireIgnoresFloor,
        };
        let rules = self.rules(no_floor, Mutation::AcquireIgnoresHorizon);
        let granted: Vec<_> = self
            .candidates(now, acquire)
            .iter()
            .filter_map(|block| rules.granted(now, self.now_unix_ms, block, acquire))
            .take(acquire.blocks as usize)
            .collect();
        let mut grants = Vec::new();
        for (grant, mut block) in granted {
            self.start_timer(block.block, now, block.hwm_end);
            if acquire.past.is_some() && self.lacks(Mutation::PastKeepsMark) {
                let known = self.state.blocks.get(block.block.index() as usize);
                block.hwm_end = known.map_or(0, |known| known.hwm_end);
            }
            self.put(block);
            grants.push(grant);
        }
        if grants.is_empty() {
            let record = &self.state.record;
            let lowest = LowestMarks::of(self.sound());
            let refusal = record.refusal(self.now_unix_ms, now, acquire, lowest);
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
        let mut rules = self.rules(
            Mutation::RenewalIgnoresFloor,
            Mutation::RenewalIgnoresHorizon,
        );
        if self.lacks(Mutation::RenewalIgnoresIncarnation) {
            rules.incarnation.clone_from(&self.incarnation);
        }
        let mut known = self.subject(renew.block)?;
        if let (Some(block), Some(mutation)) = (&mut known, self.mutation) {
            let (ignores_epoch, ignores_end) = match mutation {
                Mutation::RenewalIgnoresEpoch => (true, false),
                Mutation::RenewalIgnoresEpochAndEnd => (true, true),
                // Where the mark stays behind, the end is not what to compare with.
                Mutation::RenewalIgnoresEnd | Mutation::RenewalKeepsMark => (false, true),
                _ => (false, false),
            };
            if ignores_epoch {
                block.epoch = renew.epoch;
            }
            if ignores_end {
                block.hwm_end = renew.known_end;
            }
        }
        let mut renewed = rules.renewed(&self.incarnation, now, known, renew)?;
        let end = renewed.hwm_end;
        self.start_timer(renew.block, now, end);
        let recorded = &self.state.blocks[renew.block.index() as usize];
        renewed.epoch = recorded.epoch;
        match self.mutation {
            Some(Mutation::RenewalKeepsMark) => renewed.hwm_end = recorded.hwm_end,
            Some(Mutation::RenewalCutsMark) => renewed.hwm_end = end.min(rules.horizon_end(now)),
            _ => {}
        }
        self.put(renewed);
        if self.lacks(Mutation::Tokens) {
            self.state.renewed.insert(self.token, end);
        }
        Ok(end)
    }

    fn release(&mut self, space: &Namespace, block: Block, epoch: Epoch) -> Result<(), StoreError> {
        self.verify(space)?;
        let lowers = self.lacks(Mutation::ReleaseLowersMark);
        let lowest = if lowers { self.now()? } else { u64::MAX };
        let mut released = StoreRecord::released(block, epoch, self.subject(block)?)?;
        released.hwm_end = released.hwm_end.min(lowest);
        self.state.times_up[block.index() as usize] = 0;
        self.put(released);
        Ok(())
    }

    fn list(&mut self, space: &Namespace) -> Result<Listing, StoreError> {
        self.verify(space)?;
        let blocks = self.sound().cloned().collect();
        let mut listing = Listing::new(self.state.record.clone(), blocks);
        let damaged = self.damaged();
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
        self.state.record.check_skew(self.now_unix_ms, now_ms)?;
        let now = self.now()?;
        if !self.damaged().any(|known| known.block == block) {
            return Err(StoreError::NotQuarantined { block });
        }
        let rules = self.rules_of_loss(Mutation::RepairIgnoresHorizon);
        let repaired = rules.repaired(now, block, None);
        self.state.times_up[block.index() as usize] = 0;
        self.put(repaired.clone());
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
            Durability::Volatile,
            now_ms,
        ))
    }
}
