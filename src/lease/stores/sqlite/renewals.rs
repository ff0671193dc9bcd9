//! Renewals, one or several in a transaction.

use super::session::{Access, StepError};
use super::steps::subject;
use super::txn::Txn;
use super::{SqliteStore, tables};
use crate::lease::batch::{Outcome, Renewals, Steps};
use crate::lease::block::BlockState;
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::request::Renew;

impl SqliteStore {
    pub(super) fn renew_one(
        &mut self,
        namespace: &Namespace,
        renew: &Renew,
    ) -> Result<u64, StoreError> {
        renew.validate()?;
        self.run("renew", namespace, Access::Write, |txn| {
            txn.refuse_copies()?;
            if let Some(stepped) = txn.doubt_clock()? {
                return Ok(Err(stepped));
            }
            let renewed = renewed(txn, namespace, renew)?;
            let end = renewed.hwm_end;
            tables::write_blocks(txn.connection, namespace, &[renewed])?;
            txn.save()?;
            Ok(Ok(end))
        })
    }
}

impl Steps for SqliteStore {
    /// A step reads one record, and notes one write to its namespace.
    fn go_together(a: &Namespace, b: &Namespace) -> bool {
        a == b
    }

    fn step(&mut self, renewals: &Renewals<'_>) -> Outcome {
        let Some((namespace, _)) = renewals.first() else {
            return Ok(Vec::new());
        };
        self.run("renew", namespace, Access::Write, |txn| {
            txn.refuse_copies()?;
            if let Some(stepped) = txn.doubt_clock()? {
                return Ok(Err(stepped));
            }
            let mut moved = Vec::with_capacity(renewals.len());
            let mut answers = Vec::with_capacity(renewals.len());
            for (_, renew) in renewals {
                let answer = match renewed(txn, namespace, renew) {
                    Ok(renewed) => {
                        let end = renewed.hwm_end;
                        moved.push(renewed);
                        Ok(end)
                    }
                    Err(StepError::Store(refusal)) => Err(refusal),
                    Err(error) => return Err(error),
                };
                answers.push(Some(answer));
            }
            if !moved.is_empty() {
                tables::write_blocks(txn.connection, namespace, &moved)?;
                txn.save()?;
            }
            Ok(Ok(answers))
        })
    }

    fn alone(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        self.renew_one(namespace, renew)
    }
}

/// How the block stands once it is renewed.
fn renewed(txn: &Txn<'_>, namespace: &Namespace, renew: &Renew) -> Result<BlockState, StepError> {
    let record = &txn.space.record;
    let now = record.tick_at(txn.unix_ms)?;
    let known = subject(txn, namespace, renew.block)?;
    Ok(record.renewed(&txn.incarnation, now, known, renew)?)
}
