//! A machine's upstream grants of a namespace, and the rules for sub-grants of them.
//!
//! The methods are pure. A storage reads a grant log inside a transaction, calls
//! them, and writes the changes. `now` is the machine's time in ticks.

mod upkeep;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use super::requests::{Failing, UpstreamState};
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::confirmed::Confirmed;
use crate::lease::error::{Fence, StoreError};
use crate::lease::grant::Grant;
use crate::lease::store::quarantine::Quarantined;
use crate::lease::store::record::{Incarnation, LowestMarks, StoreRecord};
use crate::lease::store::request::{Acquire, Floor, Renew};

/// The upstream grants of the machine, and the sub-grants of its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrantLog {
    /// The rules for sub-grants. Its incarnation is that of the place where the grant log
    /// is kept.
    pub(crate) record: StoreRecord,
    /// Epochs begin here: above all epochs of a lost grant log and of upstream grants given up, so
    /// that evidence of those is recognised. It is the tick in which the grant log began, since an
    /// epoch is never above its mark.
    pub(crate) first_epoch: Epoch,
    /// How far the upstream store grants ahead of its clock, in ticks.
    pub(crate) reach: u64,
    /// The last grant of each block that the machine ever had.
    pub(crate) upstream: BTreeMap<Block, UpstreamGrant>,
    /// The blocks of which a process has or had a sub-grant.
    pub(crate) blocks: BTreeMap<Block, BlockState>,
    pub(crate) upstream_state: UpstreamState,
    /// Blocks whose records can't be true. They are passed over until they are repaired.
    pub(crate) quarantined: BTreeMap<Block, Quarantined>,
}

/// A positive reply of the upstream store, as it stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamGrant {
    pub(crate) epoch: Epoch,
    /// The end is the last that was confirmed.
    pub(crate) ticks: Range<u64>,
    /// The sign of life of the process that has, or had, a sub-grant of it; none if that
    /// does not end with a process.
    pub(crate) used_by: Option<String>,
    pub(crate) standing: Standing,
}

/// The uses that an upstream grant still has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Passed on and renewed.
    Held,
    /// Passed on up to its end.
    Draining,
    /// Neither.
    Closed,
}

/// When a step happens, and where.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The sign of life of the process whose step it is; none if it has none, or grants for
    /// others.
    pub(crate) user: Option<String>,
    /// The machine's clock before the grant log was waited for, in milliseconds since
    /// 1970.
    pub(crate) arrived_unix_ms: u64,
    /// The machine's clock now, in milliseconds since 1970.
    pub(crate) unix_ms: u64,
}

/// How a request for sub-grants stands.
#[derive(Debug)]
pub(crate) enum AcquireStep {
    Granted(Vec<Grant>),
    /// The upstream store is to be asked for this first.
    Ask {
        request: Acquire,
        /// The store failed the last time: a check comes first, since a request whose
        /// answer is lost costs its blocks. It then counts as the requests under way.
        is_probe: bool,
    },
}

/// The outcome of a renewal.
#[derive(Debug)]
pub(super) struct Renewal {
    end: u64,
    /// The upstream grant ends there, too; and why that is so, if it is known.
    pub(super) cut_off: Option<Option<Failing>>,
}

impl Renewal {
    /// Where the sub-grant ends now.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] where the upstream store keeps it from growing.
    pub(super) fn end(self) -> Result<u64, StoreError> {
        match self.cut_off.flatten() {
            None => Ok(self.end),
            Some(failing) => Err(StoreError::unavailable(failing.to_string())),
        }
    }
}

/// A sub-grant that could be made.
#[derive(Debug)]
struct Offer {
    block: Block,
    ticks: Range<u64>,
    is_fresh: bool,
    upstream_end: u64,
}

impl GrantLog {
    /// The grant log of a machine that has nothing yet.
    pub(super) fn new(record: StoreRecord, first_epoch: Epoch, reach: u64) -> Self {
        Self {
            record,
            first_epoch,
            reach,
            upstream: BTreeMap::new(),
            blocks: BTreeMap::new(),
            upstream_state: UpstreamState::default(),
            quarantined: BTreeMap::new(),
        }
    }

    /// Grants blocks of those that the machine has, or says what to ask the upstream
    /// store for first.
    pub(super) fn acquire(
        &mut self,
        at: &Caller,
        acquire: &Acquire,
    ) -> Result<AcquireStep, StoreError> {
        // When it was asked, not after it has waited.
        self.record
            .check_skew(at.arrived_unix_ms, acquire.now_unix_ms)?;
        let now = self.look_at(at, acquire)?;
        let wanted = acquire.blocks as usize;
        let (long, _) = self.offers(now, acquire.length);
        let missing = wanted.saturating_sub(long.len());
        let floor_is_ahead = self.record.earliest_start(now) >= self.record.horizon_end(now);
        let has_asked = self.ahead(now).count() >= missing;
        if missing == 0 || floor_is_ahead || has_asked {
            return self.grant(at, acquire).map(AcquireStep::Granted);
        }
        let is_probe = self.upstream_state.failing.is_some();
        if is_probe && !self.upstream_state.begin(at.unix_ms) {
            return match self.grant(at, acquire) {
                Err(StoreError::Exhausted { .. }) if self.is_spent(at) => {
                    Err(self.upstream_state.left_alone())
                }
                granted => granted.map(AcquireStep::Granted),
            };
        }
        let spares = self.missing_spares(now, wanted);
        Ok(AcquireStep::Ask {
            request: self.request(at, missing + spares),
            is_probe,
        })
    }

    /// Grants blocks of those that the machine has, to a request whose clock was seen.
    pub(super) fn grant(
        &mut self,
        at: &Caller,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        let now = self.look_at(at, acquire)?;
        let (mut offers, short) = self.offers(now, acquire.length);
        offers.extend(short);
        if offers.is_empty() {
            let record = &self.record;
            let lowest = LowestMarks::of(self.blocks.values());
            let blocks = record.namespace.blocks();
            let refusal = record.refusal(at.unix_ms, now, acquire, blocks, lowest);
            return Err(match (refusal, self.ahead(now).min()) {
                // All that the machine has begins there or later.
                (StoreError::Exhausted { .. }, Some(start)) => StoreError::FloorAhead {
                    floor: start,
                    floor_unix_ms: record.namespace.layout().tick_start_unix_ms(start),
                    now_unix_ms: at.unix_ms,
                    retry_after: record.until(record.reached_from(start), at.unix_ms),
                },
                (refusal, _) => refusal,
            });
        }
        offers.truncate(acquire.blocks as usize);
        let grants = offers.into_iter().map(|offer| {
            let before = self.blocks.get(&offer.block);
            let next = before.map_or(Epoch::FIRST, |before| before.epoch.next());
            // Below it only while the clock is behind where it was then.
            let epoch = next.max(self.first_epoch.min(Epoch::new(offer.ticks.start)));
            let mut block = BlockState::new(offer.block, epoch, offer.ticks.end);
            block.granted_unix_ms = Some(at.unix_ms);
            block.holder.clone_from(&acquire.holder);
            self.blocks.insert(offer.block, block);
            if let Some(upstream) = self.upstream.get_mut(&offer.block) {
                upstream.used_by.clone_from(&at.user);
            }
            Grant::new(offer.block, epoch, offer.ticks)
        });
        Ok(grants.collect())
    }

    /// Refuses a grant log that knows less than it has said; answers the tick.
    fn look_at(&mut self, at: &Caller, acquire: &Acquire) -> Result<u64, StoreError> {
        let now = self.record.tick_at(at.unix_ms)?;
        // Earlier evidence is of upstream grants of which no sub-grants are made any more.
        let of_now = |it: &&Confirmed| {
            it.epoch >= self.first_epoch && !self.quarantined.contains_key(&it.block)
        };
        for confirmed in acquire.evidence.iter().filter(of_now) {
            let known = self.blocks.get(&confirmed.block);
            if let Err(lost) = self.record.check_history(now, known, confirmed) {
                self.record.raise_floor(Floor::OverLostGrants, now)?;
                return Err(lost);
            }
        }
        Ok(now)
    }

    /// Whether the machine's upstream grants allow no sub-grant any more.
    pub(super) fn is_spent(&self, at: &Caller) -> bool {
        let now = self.record.tick_at(at.unix_ms).unwrap_or(0);
        !self.blocks.values().any(|known| {
            let upstream = self.upstream.get(&known.block);
            upstream.is_some_and(|upstream| {
                upstream.standing != Standing::Closed && known.hwm_end.max(now) < upstream.ticks.end
            })
        })
    }

    /// The possible sub-grants, the earliest first: those of at least half of the possible
    /// length, and the rest.
    fn offers(&self, now: u64, length: u64) -> (Vec<Offer>, Vec<Offer>) {
        let start = self.record.earliest_start(now);
        let mut offers: Vec<_> = (self.upstream.iter())
            .filter(|(block, _)| !self.quarantined.contains_key(block))
            .filter(|(_, upstream)| upstream.standing != Standing::Closed)
            .filter_map(|(&block, upstream)| {
                let known = self.blocks.get(&block);
                let is_free = known.is_none_or(|known| !known.is_held(start));
                let mark = known.map_or(0, |known| known.hwm_end);
                let ticks = self
                    .record
                    .grant(now, mark.max(upstream.ticks.start), length)?;
                let ticks = ticks.start..ticks.end.min(upstream.ticks.end);
                (is_free && !ticks.is_empty()).then_some(Offer {
                    block,
                    ticks,
                    is_fresh: known.is_none(),
                    upstream_end: upstream.ticks.end,
                })
            })
            .collect();
        offers.sort_by_key(|offer| {
            (
                offer.ticks.start,
                !offer.is_fresh,
                Reverse(offer.upstream_end),
                offer.block,
            )
        });
        let most = length.min(self.record.horizon_end(now).saturating_sub(start));
        let is_long = |offer: &Offer| offer.ticks.end - offer.ticks.start >= most.div_ceil(2);
        offers.into_iter().partition(is_long)
    }

    /// Moves the end of a sub-grant, within the upstream grant that it lies in.
    pub(super) fn renew(&mut self, at: &Caller, renew: &Renew) -> Result<Renewal, StoreError> {
        let now = self.record.tick_at(at.unix_ms)?;
        self.refuse_quarantined(renew.block)?;
        let known = self.blocks.get(&renew.block).cloned();
        // The place was looked at before; it is the recorded one by now.
        let here = &self.record.incarnation;
        let mut renewed = self.record.renewed(here, now, known, renew)?;
        let Some(limit) = self.limit_of(renew) else {
            return Err(StoreError::Fenced {
                block: renew.block,
                fence: Fence::Upstream,
            });
        };
        let end = renewed.hwm_end.min(limit);
        renewed.hwm_end = end;
        self.blocks.insert(renew.block, renewed);
        if let Some(upstream) = self.upstream.get_mut(&renew.block) {
            upstream.used_by.clone_from(&at.user);
        }
        let is_cut_off = end == renew.known_end && end == limit && renew.new_end > end;
        Ok(Renewal {
            end,
            cut_off: is_cut_off.then(|| self.upstream_state.failing.clone()),
        })
    }

    /// How far a sub-grant can be moved at most; none if it will never move again.
    pub(super) fn limit_of(&self, renew: &Renew) -> Option<u64> {
        let upstream = self.upstream.get(&renew.block)?;
        let (known, end) = (renew.known_end, upstream.ticks.end);
        let lies_inside = (upstream.ticks.start..=end).contains(&known);
        let grows = match upstream.standing {
            Standing::Held => true,
            Standing::Draining => known < end,
            Standing::Closed => false,
        };
        (lies_inside && grows).then_some(end)
    }

    pub(super) fn release(&mut self, block: Block, epoch: Epoch) -> Result<(), StoreError> {
        self.refuse_quarantined(block)?;
        let known = self.blocks.get(&block).cloned();
        let released = StoreRecord::released(block, epoch, known)?;
        self.blocks.insert(block, released);
        Ok(())
    }

    fn refuse_quarantined(&self, block: Block) -> Result<(), StoreError> {
        let damage = self.quarantined.get(&block).cloned();
        damage.map_or(Ok(()), |damage| {
            Err(damage.fence(&self.record.namespace, block))
        })
    }

    /// Adds grants of the upstream store.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where all of them meet earlier grants. One that does is
    /// not added.
    pub(crate) fn adopt(&mut self, grants: &[Grant]) -> Result<(), StoreError> {
        let is_sound = |grant: &&Grant| {
            let granted = self.upstream.get(&grant.block).map(|it| it.ticks.end);
            let passed_on = self.blocks.get(&grant.block).map(|it| it.hwm_end);
            grant.to_lease(&self.record.namespace).is_ok()
                && granted.max(passed_on) <= Some(grant.ticks.start)
        };
        let (sound, others): (Vec<_>, Vec<_>) = grants.iter().partition(is_sound);
        if let (true, Some(grant)) = (sound.is_empty(), others.first()) {
            return Err(StoreError::corrupt(format!(
                "the upstream store granted {grant}, which this machine has a part of"
            )));
        }
        for grant in sound {
            let upstream = UpstreamGrant {
                epoch: grant.epoch,
                ticks: grant.ticks.clone(),
                used_by: None,
                standing: Standing::Held,
            };
            self.upstream.insert(grant.block, upstream);
        }
        Ok(())
    }

    /// Applies the upstream store's reply to one renewal. A reply that came after
    /// another process has had one of its own is dropped: a part of the grant that
    /// nobody uses does no harm.
    pub(super) fn renewed(&mut self, renew: &Renew, answer: &Result<u64, StoreError>) {
        let Some(upstream) = self.upstream.get_mut(&renew.block) else {
            return;
        };
        let is_current = upstream.epoch == renew.epoch && upstream.ticks.end == renew.known_end;
        if !is_current || upstream.standing != Standing::Held {
            return;
        }
        match answer {
            Ok(end) if (renew.known_end..=renew.new_end).contains(end) => {
                upstream.ticks.end = *end;
            }
            // Somebody else has had a reply in this machine's name: one of its
            // processes that died before it could write it down, or a copy of the
            // machine, which may be passing on the same blocks.
            Err(StoreError::Fenced { fence, .. }) if is_ahead(fence) => {
                upstream.standing = Standing::Closed;
            }
            // The confirmed end stands, also where the store knows less.
            Ok(_) | Err(StoreError::Fenced { .. } | StoreError::Ambiguous { .. }) => {
                upstream.standing = Standing::Draining;
            }
            Err(_) => {}
        }
    }

    /// Releases the sub-grants of processes that have ended. They may have used all of it, so
    /// what follows begins at the mark, as after any release.
    pub(crate) fn reap(&mut self, is_gone: impl Fn(&str) -> bool) {
        for (block, upstream) in &mut self.upstream {
            let Some(known) = self.blocks.get_mut(block) else {
                continue;
            };
            if !known.released && upstream.used_by.take_if(|user| is_gone(user)).is_some() {
                known.released = true;
            }
        }
    }

    /// Whether a step with this answer is to be written down. A refusal changes nothing,
    /// but for a floor that was raised.
    pub(crate) fn is_to_be_kept<T>(answer: &Result<T, StoreError>) -> bool {
        matches!(answer, Ok(_) | Err(StoreError::HistoryLost { .. }))
    }

    /// Gives up all that the upstream store has granted: this is not the place, or not
    /// the state, in which it was written down last.
    pub(crate) fn forget(&mut self, found: &Incarnation, unix_ms: u64) {
        self.record.incarnation = found.clone();
        let now = self.record.tick_at(unix_ms).unwrap_or(0);
        let epochs = self.blocks.values().map(|block| block.epoch.next());
        let above = epochs.max().unwrap_or(self.first_epoch);
        self.first_epoch = above.max(Epoch::new(now));
        for upstream in self.upstream.values_mut() {
            upstream.standing = Standing::Closed;
        }
    }
}

/// Whether the store knows more of a grant than the grant log.
fn is_ahead(fence: &Fence) -> bool {
    match fence {
        Fence::End { known, recorded } => recorded > known,
        Fence::Epoch { held, recorded } => recorded > held,
        _ => false,
    }
}
