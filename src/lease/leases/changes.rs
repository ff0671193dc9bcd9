//! Renewals and releases, one or many in a commit.
//!
//! ```text
//! seen last ----decide----> commit --Done--> answered
//!     | not all, or refused   ^  | Conflict
//!     v                       |  v
//!    read ----------------> decide --> refused
//! ```
//! Each change succeeds or fails alone. A commit has all changes that are allowed by the
//! values at hand; after a conflict, those that are still allowed. A commit that the server
//! refuses for one of them is split into single ones.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

use super::{ATTEMPTS, Leases, Snapshot, overtaken, time_of};
use crate::lease::batch::{Answers, Asking, Renewals};
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::format::{decode_record, judge_block};
use crate::lease::namespace::Namespace;
use crate::lease::record::{Incarnation, StoreRecord};
use crate::lease::request::Renew;
use crate::lease::table::{Key, Query, Table, Txn};

/// Changes in one commit, at most: two compared keys each, and etcd takes 128 operations.
const MAX: usize = 60;

/// A change of a grant by its holder.
#[derive(Clone, Copy, Debug)]
enum Wish<'a> {
    Renew(&'a Renew),
    Release(Block, Epoch),
}

/// One change, of one namespace.
#[derive(Clone, Copy, Debug)]
struct Change<'a> {
    namespace: &'a Namespace,
    wish: Wish<'a>,
}

/// What a change is decided from.
struct Basis<'a> {
    record: &'a StoreRecord,
    record_value: &'a str,
    incarnation: &'a Incarnation,
    block_value: Option<&'a str>,
}

impl Change<'_> {
    fn block(&self) -> Block {
        match self.wish {
            Wish::Renew(renew) => renew.block,
            Wish::Release(block, _) => block,
        }
    }

    fn key(&self) -> Key {
        Key::block(self.namespace.name(), self.block())
    }

    /// The block after this change, where `known` is its state before. The time, in
    /// milliseconds since 1970, matters to a renewal alone.
    fn decide(
        &self,
        basis: &Basis<'_>,
        known: Option<BlockState>,
        unix_ms: Result<u64, StoreError>,
    ) -> Result<BlockState, StoreError> {
        match self.wish {
            Wish::Release(block, epoch) => StoreRecord::released(block, epoch, known),
            Wish::Renew(renew) => {
                let now = basis.record.tick_at(unix_ms?)?;
                basis.record.renewed(basis.incarnation, now, known, renew)
            }
        }
    }

    /// Adds this change to a commit.
    fn add(&self, txn: &mut Txn, basis: &Basis<'_>, after: &BlockState) {
        let record = (
            Key::record(self.namespace.name()),
            Some(basis.record_value.to_owned()),
        );
        if !txn.compare.contains(&record) {
            txn.compare.push(record);
        }
        if let Wish::Renew(renew) = self.wish {
            txn.incarnation = Some(basis.incarnation.clone());
            // An end that does not move needs no time but one that the layout has.
            let earliest = match after.hwm_end > renew.known_end {
                true => basis.record.earliest_for_end(after.hwm_end),
                false => self.namespace.layout().epoch_unix_ms(),
            };
            txn.not_before_unix_ms = txn.not_before_unix_ms.max(earliest);
        }
        let before = basis.block_value.map(str::to_owned);
        txn.put_block(self.namespace, before, after);
    }
}

impl<T: Table> Leases<T> {
    pub(super) fn renew_one(
        &mut self,
        namespace: &Namespace,
        renew: &Renew,
    ) -> Result<u64, StoreError> {
        let wish = Wish::Renew(renew);
        let renewed = self.change_one(Change { namespace, wish })?;
        Ok(renewed.hwm_end)
    }

    pub(super) fn release_one(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        let wish = Wish::Release(block, epoch);
        self.change_one(Change { namespace, wish }).map(drop)
    }

    fn change_one(&mut self, change: Change<'_>) -> Result<BlockState, StoreError> {
        let mut answers = self.step(&[change])?;
        answers.pop().unwrap_or_else(|| Err(overtaken()))
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
                let wish = Wish::Renew(renew);
                Change { namespace, wish }
            };
            let changes: Vec<_> = step.iter().map(change).collect();
            match self.step(&changes) {
                Ok(outcomes) => {
                    for (index, outcome) in step.iter().zip(outcomes) {
                        answers[*index] = Some(outcome.map(|renewed| renewed.hwm_end));
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
    fn step(
        &mut self,
        changes: &[Change<'_>],
    ) -> Result<Vec<Result<BlockState, StoreError>>, StoreError> {
        let operation = match changes.first().map(|change| change.wish) {
            Some(Wish::Release(..)) => "release",
            _ => "renew",
        };
        let query = query_of(changes);
        let mut answers: Vec<_> = changes.iter().map(|_| None).collect();
        let mut snapshot = match self.decide_from_seen(changes) {
            Some((txn, decided)) => match self.commit(operation, &txn, &query)? {
                None => return Ok(self.done(changes, decided)),
                Some(next) => next,
            },
            None => self.table.read(&query)?,
        };
        for _ in 0..ATTEMPTS {
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
        }
        Err(overtaken())
    }

    /// Notes what became of changes that were carried out, or refused.
    fn done(
        &mut self,
        changes: &[Change<'_>],
        answers: impl IntoIterator<Item = Result<BlockState, StoreError>>,
    ) -> Vec<Result<BlockState, StoreError>> {
        let noted = changes.iter().zip(answers).map(|(change, answer)| {
            match &answer {
                Ok(after) => self.seen.block(change.namespace, after),
                Err(_) => self.seen.forget(&change.key()),
            }
            answer
        });
        noted.collect()
    }

    /// Decides all changes from what was seen last; none if something was not seen, or one of
    /// them would be refused or cut short.
    #[allow(
        clippy::type_complexity,
        reason = "the changes that go with the commit"
    )]
    fn decide_from_seen(
        &self,
        changes: &[Change<'_>],
    ) -> Option<(Txn, Vec<Result<BlockState, StoreError>>)> {
        let mut txn = Txn::default();
        let mut decided = Vec::with_capacity(changes.len());
        for change in changes {
            let seen = self.seen.record_of(change.namespace)?;
            let (known, value) = self.seen.block_of(&change.key())?;
            let unix_ms = match change.wish {
                Wish::Renew(renew) => renew.now_unix_ms,
                Wish::Release(..) => 0,
            };
            let basis = Basis {
                record: &seen.record,
                record_value: &seen.value,
                incarnation: &seen.incarnation,
                block_value: Some(value),
            };
            let after = change
                .decide(&basis, Some(known.clone()), Ok(unix_ms))
                .ok()?;
            if let Wish::Renew(renew) = change.wish
                && after.hwm_end < renew.new_end
            {
                return None;
            }
            if txn
                .incarnation
                .as_ref()
                .is_some_and(|it| *it != seen.incarnation)
            {
                return None;
            }
            change.add(&mut txn, &basis, &after);
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
    ) -> Result<BlockState, StoreError> {
        let (namespace, block) = (change.namespace, change.block());
        let value = snapshot.entries.get(&Key::record(namespace.name()));
        let value = value.ok_or_else(|| namespace.not_initialised())?;
        let record = decode_record(namespace.name(), value)?;
        record.verify(namespace)?;
        self.seen.record(&record, value, &snapshot.incarnation);
        let block_value = snapshot.entries.get(&change.key()).map(String::as_str);
        let known = block_value.map(|value| judge_block(namespace, block, value));
        let known = known.transpose();
        let known = known.map_err(|found| found.fence(namespace, block))?;
        let basis = Basis {
            record: &record,
            record_value: value,
            incarnation: &snapshot.incarnation,
            block_value,
        };
        let unix_ms = time_of(snapshot).map(|time| time.unix_ms);
        let after = change.decide(&basis, known, unix_ms)?;
        change.add(txn, &basis, &after);
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
    type Source = Arc<dyn Error + Send + Sync>;
    let (source, again): (Source, fn(Source) -> StoreError) = match error {
        StoreError::Denied { source } => (source.into(), |source| StoreError::Denied {
            source: Box::new(source),
        }),
        StoreError::Ambiguous { source, .. } => (source.into(), |source| StoreError::Ambiguous {
            operation: "renew",
            source: Box::new(source),
        }),
        StoreError::Unavailable { source } => (source.into(), unavailable),
        other => (Arc::new(other), unavailable),
    };
    std::iter::repeat_with(move || again(Arc::clone(&source)))
}

fn unavailable(source: Arc<dyn Error + Send + Sync>) -> StoreError {
    StoreError::Unavailable {
        source: Box::new(source),
    }
}
