//! Acquisitions: which blocks, and from when on.

use super::attempts::Attempts;
use super::selection::{Candidate, Reading, View};
use super::{Leases, Opened, latest};
use crate::lease::confirmed::Confirmed;
use crate::lease::error::StoreError;
use crate::lease::grant::Grant;
use crate::lease::namespace::Namespace;
use crate::lease::store::request::{Acquire, Floor};
use crate::lease::store::table::{Key, Query, Table};

impl<T: Table> Leases<T> {
    pub(super) fn acquire_many(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        acquire.validate()?;
        let mut attempts = self.attempts();
        let mut reading = self.selection.first_reading();
        let mut query = self.acquire_query(namespace, acquire, reading, &attempts);
        let mut snapshot = self.table.read(&query)?;
        loop {
            self.selection.note(attempts.conflicts() > 0);
            let mut opened = self.open(namespace, snapshot)?;
            let time = attempts.time(&opened.snapshot)?;
            let now = opened.now_near(time, acquire.now_unix_ms)?;
            let mut txn = opened.txn();

            let incarnation = opened.snapshot.incarnation.clone();
            if opened.is_copy() {
                return Err(StoreError::Copied {
                    store: self.table.describe()?.store,
                    recorded: opened.record.incarnation.to_string(),
                    found: incarnation.to_string(),
                });
            }
            let mut raised = opened.record.observe(&incarnation, now);
            let lost = opened.history_lost(now, &acquire.evidence);
            if lost.is_some() {
                opened.record.raise_floor(Floor::OverLostGrants, now)?;
                raised = true;
            }
            if raised {
                // A commit of its own: the floor stays, whatever becomes of the rest.
                txn.puts.push(opened.put());
                txn.not_after_unix_ms = latest(&opened.record, time);
                query = self.acquire_query(namespace, acquire, reading, &attempts);
                snapshot = match (self.commit("acquire", &txn, &query)?, lost) {
                    (Some(next), _) => next,
                    (None, Some(lost)) => return Err(lost),
                    (None, None) => self.table.read(&query)?,
                };
                attempts.again(&txn, &snapshot)?;
                continue;
            }

            let read = query.blocks.as_ref();
            let view = View::new(namespace, &opened.snapshot, read);
            let record = &opened.record;
            let is_possible = record.mark_window(now, acquire).is_some();
            let chosen = view.candidates(record, now, acquire, &mut self.selection);
            let is_sample = reading == Reading::Sample && !opened.snapshot.complete;
            if is_possible && chosen.len() < acquire.blocks as usize && is_sample {
                reading = Reading::Full;
                query = self.acquire_query(namespace, acquire, reading, &attempts);
                snapshot = self.table.read(&query)?;
                continue;
            }
            if chosen.is_empty() {
                let (blocks, lowest) = (namespace.blocks(), view.lowest_marks());
                return Err(record.refusal(time.unix_ms, now, acquire, blocks, lowest));
            }
            let mut granted = Vec::with_capacity(chosen.len());
            for Candidate { state, value } in chosen {
                let Some((grant, after)) = record.granted(now, time.unix_ms, &state, acquire)
                else {
                    continue;
                };
                let earliest = record.earliest_for_end(grant.ticks.end);
                txn.not_before_unix_ms = txn.not_before_unix_ms.max(earliest);
                txn.put_block(namespace, value, &after);
                granted.push((grant, after));
            }
            self.selection.note(true);
            query = self.acquire_query(namespace, acquire, reading, &attempts);
            match self.commit("acquire", &txn, &query)? {
                None => {
                    let (grants, states): (Vec<_>, Vec<_>) = granted.into_iter().unzip();
                    states
                        .iter()
                        .for_each(|after| self.cache.block(namespace, after));
                    return Ok(grants);
                }
                Some(next) => snapshot = next,
            }
            attempts.again(&txn, &snapshot)?;
        }
    }

    /// What an acquisition reads: the record, the blocks of the evidence, and blocks to choose
    /// from.
    fn acquire_query(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
        reading: Reading,
        attempts: &Attempts,
    ) -> Query {
        let name = namespace.name();
        let evidence = acquire.evidence.iter().map(|it| Key::block(name, it.block));
        let conflicts = attempts.conflicts();
        let blocks = (self.selection).query(namespace, reading, acquire.blocks, conflicts);
        Query {
            keys: std::iter::once(Key::record(name)).chain(evidence).collect(),
            blocks: Some(blocks),
        }
    }
}

impl Opened {
    /// The error for a store that knows less than it has confirmed.
    fn history_lost(&self, now: u64, evidence: &[Confirmed]) -> Option<StoreError> {
        evidence.iter().find_map(|confirmed| {
            // Of a block that is quarantined nothing is forgotten: a repair goes above all.
            let known = self.judge(confirmed.block).transpose().ok()?;
            let checked = self.record.check_history(now, known.as_ref(), confirmed);
            checked.err()
        })
    }
}
