//! The requests that are due upstream: the grants to renew, and the spare blocks that
//! are missing.

use std::cmp::Reverse;

use super::{Caller, GrantLog, Standing, UpstreamGrant};
use crate::lease::block::Block;
use crate::lease::confirmed::Confirmed;
use crate::lease::grant::Grant;
use crate::lease::store::backends::tier::requests::DueRequests;
use crate::lease::store::request::{Acquire, MAX_ACQUIRE, Renew};

/// The most upstream grants that are renewed in one go.
const RENEWALS: usize = 8;

/// The longest time between two renewals of one, in milliseconds.
const RENEWED_EVERY_MS: u64 = 5 * 60 * 1000;

impl GrantLog {
    /// The requests that are due, if there are any and no other process sends them.
    pub(in crate::lease::store::backends::tier) fn due_requests(
        &mut self,
        at: &Caller,
    ) -> Option<DueRequests> {
        let now = self.record.tick_at(at.unix_ms).ok()?;
        let renewals = self.renewals(at, now);
        let spare = self.missing_spares(now, 0);
        let is_due = !renewals.is_empty() || spare > 0;
        (is_due && self.upstream_state.begin(at.unix_ms)).then(|| DueRequests {
            is_probe: self.upstream_state.failing.is_some(),
            renewals,
            spares: (spare > 0).then(|| self.request(at, spare)),
        })
    }

    /// The grants that are in use, and as many spare ones as are wanted, are renewed
    /// once a tenth of the reach has passed, or five minutes. The rest lapses.
    fn renewals(&self, at: &Caller, now: u64) -> Vec<Renew> {
        let held = |(block, upstream): &(&Block, &UpstreamGrant)| {
            upstream.standing == Standing::Held && !self.quarantined.contains_key(block)
        };
        let (in_use, mut idle): (Vec<_>, Vec<_>) = (self.upstream.iter())
            .filter(held)
            .partition(|(block, _)| self.is_in_use(**block, now));
        idle.sort_by_key(|(block, upstream)| (Reverse(upstream.ticks.end), **block));
        idle.truncate(spares_for(in_use.len()));

        let wish = now.saturating_add(self.reach);
        let passed = RENEWED_EVERY_MS / self.record.namespace.layout().tick_ms();
        let due_below = wish.saturating_sub(passed.min(self.reach / 10));
        let is_due = |upstream: &UpstreamGrant| upstream.ticks.end < due_below;
        let mut due: Vec<_> = (in_use.into_iter().chain(idle))
            .filter(|(_, upstream)| is_due(upstream))
            .collect();
        due.sort_by_key(|(block, upstream)| (upstream.ticks.end, **block));
        due.truncate(RENEWALS);
        let renewal = |(&block, upstream): (&Block, &UpstreamGrant)| {
            let grant = Grant::new(block, upstream.epoch, upstream.ticks.clone());
            Renew::new(&grant, wish.max(upstream.ticks.end), at.unix_ms)
        };
        due.into_iter().map(renewal).collect()
    }

    fn is_in_use(&self, block: Block, now: u64) -> bool {
        let known = self.blocks.get(&block);
        known.is_some_and(|known| known.is_held(now))
    }

    /// How many blocks to ask for so that, with `coming` more in use, there are as many
    /// spare ones as there should be, and one for each that won't be renewed.
    pub(super) fn missing_spares(&self, now: u64, coming: usize) -> usize {
        let starts_by = self.record.horizon_end(now);
        let lasts = |upstream: &UpstreamGrant| {
            let ticks = &upstream.ticks;
            upstream.standing == Standing::Held && ticks.end > now && ticks.start < starts_by
        };
        let (in_use, idle): (Vec<_>, Vec<_>) =
            (self.upstream.iter()).partition(|(block, _)| self.is_in_use(**block, now));
        let ending = in_use
            .iter()
            .filter(|(_, upstream)| !lasts(upstream))
            .count();
        let serves = |(block, upstream): &&(&Block, &UpstreamGrant)| {
            lasts(upstream) && !self.quarantined.contains_key(block)
        };
        let idle = idle.iter().filter(serves).count();
        let missing = (ending + spares_for(in_use.len() + coming))
            .saturating_sub(idle.saturating_sub(coming));
        missing.saturating_sub(self.ahead(now).count())
    }

    /// The starts of upstream grants that begin further ahead than sub-grants reach, as all new
    /// ones do after the upstream store has lost its history. Others would begin no earlier.
    pub(super) fn ahead(&self, now: u64) -> impl Iterator<Item = u64> {
        let starts_by = self.record.horizon_end(now);
        let held = (self.upstream.values()).filter(|it| it.standing == Standing::Held);
        held.map(|it| it.ticks.start)
            .filter(move |&start| start >= starts_by)
    }

    /// For as long as the upstream store grants, with what it must know.
    pub(super) fn request(&self, at: &Caller, blocks: usize) -> Acquire {
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX).min(MAX_ACQUIRE);
        Acquire::new(blocks, self.reach, at.unix_ms).with_evidence(self.evidence(at))
    }

    /// The confirmed ends of upstream grants whose time is still to come, or that
    /// may be by its clock.
    fn evidence(&self, at: &Caller) -> Vec<Confirmed> {
        let oldest = at.unix_ms.saturating_sub(self.record.limits.failover_ms());
        let layout = self.record.namespace.layout();
        let oldest = layout.tick_at(oldest).unwrap_or(0);
        (self.upstream.iter())
            .filter(|(_, upstream)| upstream.ticks.end > oldest)
            .map(|(&block, upstream)| Confirmed::new(block, upstream.epoch, upstream.ticks.end))
            .collect()
    }
}

/// How many spare blocks there are to be beside so many in use: a process that starts
/// before the one that it replaces has ended needs one.
fn spares_for(in_use: usize) -> usize {
    1 + in_use / 2
}
