//! One statement on the connection, within the time of the operation.

use std::time::Instant;

use mysql::prelude::Queryable;
use mysql::{Error, Params, Row, Value};

use super::super::errno::is_there;
use super::super::failure::{before, failure};
use super::super::statements as sql;
use super::MySession;
use crate::lease::stores::row::corrupt;
use crate::lease::stores::sql::{Cause, Failure, Stage};

impl MySession {
    /// Asks for rows before anything is decided.
    pub(super) fn rows(
        &mut self,
        sql: &str,
        parameters: impl Into<Params>,
    ) -> Result<Vec<Row>, Failure> {
        self.in_time()?;
        self.connection.exec(sql, parameters).map_err(before)
    }

    /// The one row that a statement always answers with.
    pub(super) fn row(&mut self, sql: &str, parameters: impl Into<Params>) -> Result<Row, Failure> {
        let nothing = || corrupt("a statement answered with no row".to_owned()).into();
        let rows = self.rows(sql, parameters)?;
        rows.into_iter().next().ok_or_else(nothing)
    }

    /// Changes rows within a transaction, and answers how many it found.
    pub(super) fn change(
        &mut self,
        sql: &str,
        parameters: impl Into<Params>,
    ) -> Result<u64, Failure> {
        self.in_time()?;
        self.connection.exec_drop(sql, parameters).map_err(before)?;
        Ok(self.connection.affected_rows())
    }

    /// Runs a statement that has no parameters and decides nothing.
    pub(super) fn run(&mut self, sql: &str) -> Result<(), Failure> {
        self.in_time()?;
        self.connection.query_drop(sql).map_err(before)
    }

    /// Adds a column or an index that the table may have already.
    pub(super) fn add(&mut self, sql: &str) -> Result<(), Failure> {
        self.in_time()?;
        match self.connection.query_drop(sql) {
            Err(Error::MySqlError(reply)) if is_there(reply.code) => Ok(()),
            added => added.map_err(before),
        }
    }

    pub(super) fn begin_transaction(&mut self) -> Result<(), Failure> {
        self.run(sql::BEGIN)?;
        self.in_transaction = true;
        Ok(())
    }

    pub(super) fn end_transaction(&mut self) -> Result<(), Failure> {
        self.in_time()?;
        let committed = self.connection.query_drop(sql::COMMIT);
        committed.map_err(|error| failure(error, Stage::Commit))?;
        self.in_transaction = false;
        Ok(())
    }

    /// Runs one guarded statement, which commits by itself, and answers whether
    /// it found its row.
    pub(super) fn guarded(&mut self, sql: &str, parameters: Vec<Value>) -> Result<bool, Failure> {
        self.in_time()?;
        let statement = self.connection.prep(sql).map_err(before)?;
        self.in_time()?;
        let done = self.connection.exec_drop(statement, parameters);
        done.map_err(|error| failure(error, Stage::Commit))?;
        match self.connection.affected_rows() {
            0 => Ok(false),
            1 => Ok(true),
            more => Err(corrupt(format!("{more} rows have the same key")).into()),
        }
    }

    /// Refuses to send what might be answered too late.
    pub(super) fn in_time(&self) -> Result<(), Failure> {
        if Instant::now() <= self.latest {
            return Ok(());
        }
        Err(Failure::NotDone(self.too_late()))
    }

    pub(super) fn too_late(&self) -> Cause {
        format!(
            "of {:?} for an operation too little is left to wait for another answer",
            self.timeout
        )
        .into()
    }
}
