//! Renewals and releases: guarded statements, each with its transaction in one round trip.

use std::collections::BTreeSet;

use futures_util::future::join4;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::super::columns::{Parameter, column, guard_parameters};
use super::super::failure::{in_doubt, was_spoken};
use super::super::lock::RecordLock;
use super::super::statements as sql;
use super::PgSession;
use crate::lease::block::{Block, Epoch};
use crate::lease::namespace::Namespace;
use crate::lease::request::Renew;
use crate::lease::stores::row::{FORMAT, from_column, to_column};
use crate::lease::stores::sql::{Failure, Guard, Stage};

impl PgSession {
    pub(super) fn extend_one(
        &mut self,
        namespace: &Namespace,
        renew: &Renew,
    ) -> Result<Option<u64>, Failure> {
        let guard = Guard::new(namespace, renew.block, renew.epoch);
        let layout = namespace.layout();
        let known_end = to_column(renew.known_end);
        let new_end = to_column(renew.new_end);
        let epoch_unix_ms = to_column(layout.epoch_unix_ms());
        let tick_ms = to_column(layout.tick_ms());
        let ticks = to_column(layout.ticks());
        let accepts = self.gate.accepts_best_effort();
        let mut parameters = guard_parameters(&guard).to_vec();
        let more: [Parameter<'_>; 6] = [
            (&known_end, Type::INT8),
            (&new_end, Type::INT8),
            (&epoch_unix_ms, Type::INT8),
            (&tick_ms, Type::INT8),
            (&ticks, Type::INT8),
            (&accepts, Type::BOOL),
        ];
        parameters.extend(more);
        let locks = BTreeSet::from([RecordLock::of(namespace.name())]);
        let rows = self.guarded(&locks, sql::EXTEND, &parameters)?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        Ok(Some(from_column("hwm_end", column(row, 0)?)?))
    }

    pub(super) fn extend_many(
        &mut self,
        renewals: &[(&Namespace, &Renew)],
    ) -> Result<Vec<Option<u64>>, Failure> {
        let numbers = |of: fn(&Namespace, &Renew) -> u64| -> Vec<i64> {
            let number = |&(namespace, renew): &(_, _)| to_column(of(namespace, renew));
            renewals.iter().map(number).collect()
        };
        let spaces = || renewals.iter().map(|(namespace, _)| *namespace);
        let names: Vec<&str> = spaces().map(Namespace::name).collect();
        let layouts: Vec<String> = spaces().map(|space| space.layout().to_string()).collect();
        let block_bits = numbers(|space, _| u64::from(space.block_bits()));
        let fingerprints: Vec<String> = spaces().map(|s| s.fingerprint().to_string()).collect();
        let accepts = self.gate.accepts_best_effort();
        let rows = self.guarded(
            &names.iter().copied().map(RecordLock::of).collect(),
            sql::EXTEND_MANY,
            &[
                (&FORMAT, Type::INT8),
                (&accepts, Type::BOOL),
                (&names, Type::TEXT_ARRAY),
                (&layouts, Type::TEXT_ARRAY),
                (&block_bits, Type::INT8_ARRAY),
                (&fingerprints, Type::TEXT_ARRAY),
                (&numbers(|_, renew| renew.block.index()), Type::INT8_ARRAY),
                (&numbers(|_, renew| renew.epoch.get()), Type::INT8_ARRAY),
                (&numbers(|_, renew| renew.known_end), Type::INT8_ARRAY),
                (&numbers(|_, renew| renew.new_end), Type::INT8_ARRAY),
                (
                    &numbers(|space, _| space.layout().epoch_unix_ms()),
                    Type::INT8_ARRAY,
                ),
                (
                    &numbers(|space, _| space.layout().tick_ms()),
                    Type::INT8_ARRAY,
                ),
                (
                    &numbers(|space, _| space.layout().ticks()),
                    Type::INT8_ARRAY,
                ),
            ],
        )?;
        let mut ends = vec![None; renewals.len()];
        for row in rows {
            let (place, end) = moved(&row)?;
            *ends.get_mut(place).ok_or_else(unreadable)? = Some(end);
        }
        Ok(ends)
    }

    pub(super) fn release_one(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<bool, Failure> {
        let guard = Guard::new(namespace, block, epoch);
        let ticks = to_column(namespace.layout().ticks());
        let mut parameters = guard_parameters(&guard).to_vec();
        parameters.push((&ticks, Type::INT8));
        let locks = BTreeSet::from([RecordLock::of(namespace.name())]);
        let rows = self.guarded(&locks, sql::RELEASE, &parameters)?;
        Ok(!rows.is_empty())
    }

    /// Runs one guarded statement, as a transaction of its own in which the records
    /// stand still.
    fn guarded(
        &mut self,
        locks: &BTreeSet<RecordLock>,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let mut begin = self.begin.clone();
        for lock in locks {
            begin = begin + "; " + &lock.shared();
        }
        let answers = self.wire.call(async |client| {
            join4(
                client.batch_execute(&begin),
                client.query_typed(sql, parameters),
                client.batch_execute(sql::ENABLE_WARNINGS),
                client.batch_execute(sql::COMMIT),
            )
            .await
        });
        let (begun, rows, sound, committed) = answers.map_err(in_doubt)?;
        let (begun, rows) = match (begun, rows) {
            // Refused for the lock, which was not to be had.
            (Err(first), Err(then)) if was_spoken(&first) && was_spoken(&then) => {
                (Ok(()), Err(first))
            }
            other => other,
        };
        let rows = self.answered_along(rows)?;
        // Without a transaction the statement has committed by itself.
        self.answered(begun, Stage::Commit)?;
        self.answered_along(sound)?;
        self.answered(committed, Stage::Commit)?;
        self.confirmed()?;
        Ok(rows)
    }
}

/// Which renewal of a list was done, and where its end is now.
fn moved(row: &Row) -> Result<(usize, u64), Failure> {
    let number = |index| column::<i64>(row, index).map_err(|_| unreadable());
    let place = number(0)?.checked_sub(1).map(usize::try_from);
    let end = u64::try_from(number(1)?);
    match (place, end) {
        (Some(Ok(place)), Ok(end)) => Ok((place, end)),
        _ => Err(unreadable()),
    }
}

/// It is committed by then, so that nothing else may be tried.
fn unreadable() -> Failure {
    Failure::Unknown("the answer to a renewal can't be read".into())
}
