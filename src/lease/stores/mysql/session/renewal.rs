//! Renewals: guarded updates, one that commits by itself or several in a transaction.
//!
//! Several lock the records of their namespaces first, by name, and then those of their
//! blocks that nobody else has locked. So an update in the midst of them waits for nobody,
//! and a transaction that changes a record does not wait for a block of theirs while
//! they wait for the record. (An acquisition that reads the index of marks can meet them there. The
//! server sees that, and takes one of the two back.)

use std::collections::{BTreeMap, BTreeSet};

use mysql::Value;
use mysql::prelude::Queryable;

use super::super::columns::{column, guard};
use super::super::failure::before;
use super::super::statements as sql;
use super::MySession;
use crate::lease::namespace::Namespace;
use crate::lease::request::Renew;
use crate::lease::stores::row::{corrupt, to_column};
use crate::lease::stores::sql::Failure;

impl MySession {
    pub(super) fn extend_one(
        &mut self,
        namespace: &Namespace,
        renew: &Renew,
    ) -> Result<Option<u64>, Failure> {
        let parameters = self.extension(namespace, renew);
        let statement = std::mem::take(&mut self.statements.extend);
        let found = self.guarded(&statement, parameters);
        self.statements.extend = statement;
        Ok(found?.then(|| self.connection.last_insert_id()))
    }

    pub(super) fn extend_many(
        &mut self,
        renewals: &[(&Namespace, &Renew)],
    ) -> Result<Vec<Option<u64>>, Failure> {
        self.begin_transaction()?;
        let free = self.lock_free(renewals)?;
        let statement = std::mem::take(&mut self.statements.extend);
        let ends = self.extend_each(&statement, renewals, &free);
        self.statements.extend = statement;
        let ends = ends?;
        self.end_transaction()?;
        Ok(ends)
    }

    fn extend_each(
        &mut self,
        statement: &str,
        renewals: &[(&Namespace, &Renew)],
        free: &BTreeSet<(String, i64)>,
    ) -> Result<Vec<Option<u64>>, Failure> {
        self.in_time()?;
        let statement = self.connection.prep(statement).map_err(before)?;
        let mut ends = Vec::with_capacity(renewals.len());
        for (namespace, renew) in renewals {
            let key = (namespace.name().to_owned(), to_column(renew.block.index()));
            if !free.contains(&key) {
                ends.push(None);
                continue;
            }
            self.in_time()?;
            let parameters = self.extension(namespace, renew);
            let done = self.connection.exec_drop(&statement, parameters);
            done.map_err(before)?;
            ends.push(match self.connection.affected_rows() {
                0 => None,
                1 => Some(self.connection.last_insert_id()),
                more => return Err(corrupt(format!("{more} rows have the same key")).into()),
            });
        }
        Ok(ends)
    }

    /// Locks the records, and those blocks that nobody has locked.
    fn lock_free(
        &mut self,
        renewals: &[(&Namespace, &Renew)],
    ) -> Result<BTreeSet<(String, i64)>, Failure> {
        let mut blocks: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for (namespace, renew) in renewals {
            let of_space = blocks.entry(namespace.name()).or_default();
            of_space.push(to_column(renew.block.index()));
        }
        let names: Vec<Value> = blocks.keys().map(Value::from).collect();
        self.rows(&sql::records_shared(names.len()), names)?;
        let mut free = BTreeSet::new();
        for (name, blocks) in blocks {
            let mut parameters: Vec<Value> = vec![name.into()];
            parameters.extend(blocks.iter().map(Value::from));
            for row in self.rows(&sql::free(blocks.len()), parameters)? {
                free.insert((name.to_owned(), column(&row, 0)?));
            }
        }
        Ok(free)
    }

    /// The parameters of [`Statements::extend`](sql::Statements).
    fn extension(&self, namespace: &Namespace, renew: &Renew) -> Vec<Value> {
        let layout = namespace.layout();
        let known_end = to_column(renew.known_end);
        let epoch_unix_ms = to_column(layout.epoch_unix_ms());
        let tick_ms = to_column(layout.tick_ms());
        let mut parameters: Vec<Value> = vec![
            known_end.into(),
            to_column(renew.new_end).into(),
            to_column(layout.ticks()).into(),
            epoch_unix_ms.into(),
            tick_ms.into(),
            tick_ms.into(),
        ];
        parameters.extend(guard(namespace, renew.block, renew.epoch));
        parameters.extend([
            known_end.into(),
            known_end.into(),
            epoch_unix_ms.into(),
            self.gate.accepts_best_effort().into(),
        ]);
        parameters
    }
}
