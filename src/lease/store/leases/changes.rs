//! Renewals and releases, one or many in a commit.
//!
//! ```text
//! cached -------decide----> commit --Done--> answered
//!     | not all, or refused   ^  | Conflict
//!     v                       |  v
//!    read ----------------> decide --> refused
//! ```
//! Each change succeeds or fails alone. A commit has all changes that are allowed by the
//! values at hand; after a conflict, those that are still allowed. A commit that the server
//! refuses for one of them is split into single ones.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;

use super::cache::CachedRecord;
use super::{Leases, Snapshot};
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::store::batch::{Answers, Asking, Renewals};
use crate::lease::store::format::judge_block;
use crate::lease::store::record::StoreRecord;
use crate::lease::store::request::Renew;
use crate::lease::store::table::{Key, Query, Table, Txn};

/// Changes in one commit, at most: two compared keys each, and etcd takes 128 operations.
const MAX: usize = 60;

/// A change of a grant by its holder.
#[derive(Clone, Copy, Debug)]
enum ChangeKind<'a> {
    Renew(&'a Renew),
    Release(Block, Epoch),
}

/// One change, of one namespace.
#[derive(Clone, Copy, Debug)]
struct Change<'a> {
    namespace: &'a Namespace,
    kind: ChangeKind<'a>,
}

/// The state of a block after a change, or why it is refused.
type Decided = Result<BlockState, StoreError>;

/// The values that a decision uses.
struct Observed<'a> {
    seen: &'a CachedRecord,
    block_value: Option<&'a str>,
}

impl Change<'_> {
    fn block(&self) -> Block {
        match self.kind {
            ChangeKind::Renew(renew) => renew.block,
            ChangeKind::Release(block, _) => block,
        }
    }

    fn key(&self) -> Key {
        Key::block(self.namespace.name(), self.block())
    }

    /// The block after this change, where `known` is its state before. The time, in
    /// milliseconds since 1970, matters to a renewal alone.
    fn decide(
        &self,
        observed: &Observed<'_>,
        known: Option<BlockState>,
        unix_ms: Result<u64, StoreError>,
    ) -> Decided {
        match self.kind {
            ChangeKind::Release(block, epoch) => StoreRecord::released(block, epoch, known),
            ChangeKind::Renew(renew) => {
                let CachedRecord {
                    record,
                    incarnation,
                    ..
                } = observed.seen;
                let now = record.tick_at(unix_ms?)?;
                record.renewed(incarnation, now, known, renew)
            }
        }
    }

    /// Adds this change to a commit.
    fn add(&self, txn: &mut Txn, observed: &Observed<'_>, after: &BlockState) {
        let record = (
            Key::record(self.namespace.name()),
            Some(observed.seen.value.clone()),
        );
        if !txn.compare.contains(&record) {
            txn.compare.push(record);
        }
        if let ChangeKind::Renew(renew) = self.kind {
            txn.incarnation = Some(observed.seen.incarnation.clone());
            // If the end does not move, the clock only has to be past the epoch.
            let earliest = match after.hwm_end > renew.known_end {
                true => observed.seen.record.earliest_for_end(after.hwm_end),
                false => self.namespace.layout().epoch_unix_ms(),
            };
            txn.not_before_unix_ms = txn.not_before_unix_ms.max(earliest);
        }
        let before = observed.block_value.map(str::to_owned);
        txn.put_block(self.namespace, before, after);
    }
}

impl<T: Table> Leases<T> {
    pub(super) fn renew_one(
        &mut self,
        namespace: &Namespace,
        renew: &Renew,
    ) -> Result<u64, StoreError> {
        renew.validate()?;
        let kind = ChangeKind::Renew(renew);
        let renewed = self.change_one(Change { namespace, kind })?;
        Ok(renewed.hwm_end)
    }

    pub(super) fn release_one(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        let kind = ChangeKind::Release(block, epoch);
        self.change_one(Change { namespace, kind }).map(drop)
    }

    /// As [`release`](crate::lease::LeaseStore::release) for each of these grants, up to 60 of
    /// them in one commit. Those that are not their block's last are passed over.
    ///
    /// # Errors
    /// Those of every method of [`LeaseStore`](crate::lease::LeaseStore). Some may have been
    /// released then.
    pub fn release_all(
        &mut self,
        namespace: &Namespace,
        grants: &[(Block, Epoch)],
    ) -> Result<(), StoreError> {
        let mut last = BTreeMap::new();
        for &(block, epoch) in grants {
            let known = last.entry(block).or_insert(epoch);
            *known = epoch.max(*known);
        }
        let change = |(block, epoch)| Change {
            namespace,
            kind: ChangeKind::Release(block, epoch),
        };
        let changes: Vec<_> = last.into_iter().map(change).collect();
        for step in changes.chunks(MAX) {
            for outcome in self.step(step)? {
                match outcome {
                    Ok(_) | Err(StoreError::Fenced { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn change_one(&mut self, change: Change<'_>) -> Decided {
        let mut answers = self.step(&[change])?;
        let none = || StoreError::unavailable("one change has one answer");
        answers.pop().unwrap_or_else(|| Err(none()))
    }

    pub(super) fn renew_many(&mut self, renewals: &Renewals<'_>) -> Answers {
        let out_of_range = |(_, renew): &(_, &Renew)| renew.validate().err().map(Err);
        let mut answers: Vec<_> = renewals.iter().map(out_of_range).collect();
        // The second renewal of a block is decided from the outcome of the first.
        let mut blocks = BTreeSet::new();
        let mut together: Vec<usize> = (0..renewals.len()).collect();
        together.retain(|&index| {
            let (namespace, renew) = renewals[index];
            answers[index].is_none() && blocks.insert((namespace.name(), renew.block))
        });
        let mut asking = Asking::default();
        for step in together.chunks(MAX).filter(|step| step.len() > 1) {
            let change = |&index: &usize| {
                let (namespace, renew) = renewals[index];
                let kind = ChangeKind::Renew(renew);
                Change { namespace, kind }
            };
            let changes: Vec<_> = step.iter().map(change).collect();
            match self.step(&changes) {
                Ok(outcomes) => {
                    for (index, outcome) in step.iter().zip(outcomes) {
                        let outcome = outcome.map(|renewed| renewed.hwm_end);
                        outcome.as_ref().err().map(|error| asking.heed(error));
                        answers[*index] = Some(outcome);
                    }
                    if asking.has_ended() {
                        break;
                    }
                }
                Err(error) if asking.heed(&error) => {
                    for (index, error) in step.iter().zip(repeated(error)) {
                        answers[*index] = Some(Err(error));
                    }
                    break;
                }
                // Nothing was done. Sent alone, each gets an error of its own.
                Err(_) => {}
            }
        }
        let finish = |(answer, &(namespace, renew)): (Option<_>, &(&Namespace, &Renew))| {
            answer.unwrap_or_else(|| asking.ask(|| self.renew_one(namespace, renew)))
        };
        answers.into_iter().zip(renewals).map(finish).collect()
    }

    /// Makes these changes in one commit, no two of one block, as far as they are allowed. On
    /// an error none was made, unless it is [`StoreError::Ambiguous`].
    fn step(&mut self, changes: &[Change<'_>]) -> Result<Vec<Decided>, StoreError> {
        let operation = match changes.first().map(|change| change.kind) {
            Some(ChangeKind::Release(..)) => "release",
            _ => "renew",
        };
        let query = query_of(changes);
        let mut answers: Vec<_> = changes.iter().map(|_| None).collect();
        let mut snapshot = match self.decide_from_cache(changes) {
            Some((txn, decided)) => match self.commit(operation, &txn, &query)? {
                None => return Ok(self.done(changes, decided)),
                Some(next) => next,
            },
            None => self.table.read(&query)?,
        };
        let mut attempts = self.attempts();
        loop {
            let mut txn = Txn::default();
            for (answer, change) in answers.iter_mut().zip(changes) {
                if matches!(answer, Some(Err(_))) {
                    continue;
                }
                *answer = Some(self.decide_from_snapshot(change, &snapshot, &mut txn));
            }
            let conflict = match txn.puts.is_empty() {
                true => None,
                false => self.commit(operation, &txn, &query)?,
            };
            match conflict {
                None => return Ok(self.done(changes, answers.into_iter().flatten())),
                Some(next) => snapshot = next,
            }
            attempts.again(&txn, &snapshot)?;
        }
    }

    /// Updates the cache after a step.
    fn done(
        &mut self,
        changes: &[Change<'_>],
        answers: impl IntoIterator<Item = Decided>,
    ) -> Vec<Decided> {
        let noted = changes.iter().zip(answers).map(|(change, answer)| {
            match &answer {
                Ok(after) => self.cache.block(change.namespace, after),
                Err(_) => self.cache.forget(&change.key()),
            }
            answer
        });
        noted.collect()
    }

    /// Decides all changes from cached values. Returns `None` if a value is not cached, or a
    /// change would be refused or shortened.
    fn decide_from_cache(&self, changes: &[Change<'_>]) -> Option<(Txn, Vec<Decided>)> {
        let mut txn = Txn::default();
        let mut decided = Vec::with_capacity(changes.len());
        for change in changes {
            let seen = self.cache.record_of(change.namespace)?;
            let (known, value) = self.cache.block_of(&change.key())?;
            let unix_ms = match change.kind {
                ChangeKind::Renew(renew) => renew.now_unix_ms,
                ChangeKind::Release(..) => 0,
            };
            let observed = Observed {
                seen,
                block_value: Some(value),
            };
            let after = change.decide(&observed, Some(known.clone()), Ok(unix_ms));
            let after = after.ok()?;
            if let ChangeKind::Renew(renew) = change.kind
                && after.hwm_end < renew.new_end
            {
                return None;
            }
            let earlier = txn.incarnation.as_ref();
            if earlier.is_some_and(|it| *it != seen.incarnation) {
                return None;
            }
            change.add(&mut txn, &observed, &after);
            decided.push(Ok(after));
        }
        Some((txn, decided))
    }

    /// Decides a change from what was read, and adds it to the commit if it is allowed.
    fn decide_from_snapshot(
        &mut self,
        change: &Change<'_>,
        snapshot: &Snapshot,
        txn: &mut Txn,
    ) -> Decided {
        let (namespace, block) = (change.namespace, change.block());
        let seen = self.cache.read(namespace, snapshot)?;
        let block_value = snapshot.entries.get(&change.key()).map(String::as_str);
        let known = block_value.map(|value| judge_block(namespace, block, value));
        let known = known.transpose();
        let known = known.map_err(|found| found.fence(namespace, block))?;
        let observed = Observed {
            seen: &seen,
            block_value,
        };
        let time = snapshot.time.clone().map_err(StoreError::unavailable);
        let unix_ms = time.map(|time| time.unix_ms);
        let after = change.decide(&observed, known, unix_ms)?;
        change.add(txn, &observed, &after);
        Ok(after)
    }
}

fn query_of(changes: &[Change<'_>]) -> Query {
    let records = changes.iter().map(|change| change.namespace.name());
    let records: BTreeSet<_> = records.map(Key::record).collect();
    let blocks = changes.iter().map(Change::key);
    Query {
        keys: records.into_iter().chain(blocks).collect(),
        blocks: None,
    }
}

/// The same error for one change after the other.
fn repeated(error: StoreError) -> impl Iterator<Item = StoreError> {
    type Again = fn(Box<dyn Error + Send + Sync>) -> StoreError;
    let (source, again): (Arc<dyn Error + Send + Sync>, Again) = match error {
        StoreError::Denied { source } => (source.into(), |source| StoreError::Denied { source }),
        StoreError::Ambiguous { source, .. } => (source.into(), |source| StoreError::Ambiguous {
            operation: "renew",
            source,
        }),
        StoreError::Unavailable { source } => (source.into(), StoreError::unavailable),
        other => (Arc::new(other), StoreError::unavailable),
    };
    std::iter::repeat_with(move || again(Box::new(Arc::clone(&source))))
}
