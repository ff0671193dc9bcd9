//! One statement on the connection, or a commit, and what its answer means.

use futures_util::future::join;
use tokio_postgres::{Error, Row};

use super::super::columns::{Parameter, first};
use super::super::failure::{ends, in_doubt, silent, was_spoken};
use super::super::sqlstate::verdict;
use super::super::statements as sql;
use super::PgSession;
use crate::lease::stores::sql::{Failure, Stage};

impl PgSession {
    /// Asks for rows, alone and before anything is decided.
    pub(super) fn query(
        &mut self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let answer = self
            .wire
            .call(async |client| client.query_typed(sql, parameters).await);
        self.answered(answer.map_err(silent)?, Stage::Before)
    }

    /// The one row that a statement always answers with.
    pub(super) fn query_one(&mut self, sql: &str) -> Result<Row, Failure> {
        first(self.query(sql, &[])?)
    }

    pub(super) fn batch(&mut self, sql: &str) -> Result<(), Failure> {
        let answer = self
            .wire
            .call(async |client| client.batch_execute(sql).await);
        self.answered(answer.map_err(silent)?, Stage::Before)
    }

    /// Changes rows of a transaction that is not committed yet, and answers how
    /// many.
    pub(super) fn change(
        &mut self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<u64, Failure> {
        let answer = self
            .wire
            .call(async |client| client.execute_typed(sql, parameters).await);
        self.answered(answer.map_err(silent)?, Stage::Before)
    }

    pub(super) fn end_transaction(&mut self) -> Result<(), Failure> {
        let answers = self.wire.call(async |client| {
            join(
                client.batch_execute(sql::ENABLE_WARNINGS),
                client.batch_execute(sql::COMMIT),
            )
            .await
        });
        let (sound, committed) = answers.map_err(in_doubt)?;
        self.in_transaction = false;
        self.answered_along(sound)?;
        self.answered(committed, Stage::Commit)?;
        self.confirmed()
    }

    /// Checks that the commit that was just confirmed is durable. When somebody cancels
    /// its wait for a standby, the server confirms it all the same, with a mere warning.
    pub(super) fn confirmed(&mut self) -> Result<(), Failure> {
        match self.wire.take_warning() {
            None => Ok(()),
            Some(warning) => Err(Failure::Unknown(warning.into())),
        }
    }

    pub(super) fn answered<T>(
        &mut self,
        answer: Result<T, Error>,
        stage: Stage,
    ) -> Result<T, Failure> {
        answer.map_err(|error| self.failure(error, stage))
    }

    /// Takes the answer to a statement that a commit was pipelined behind. If the server
    /// says that the statement failed, the commit found nothing to commit: the failure
    /// counts as one before the commit. Any other failure leaves the commit in doubt.
    pub(super) fn answered_along<T>(&mut self, answer: Result<T, Error>) -> Result<T, Failure> {
        let stage = match &answer {
            Err(error) if was_spoken(error) => Stage::Before,
            _ => Stage::Commit,
        };
        self.answered(answer, stage)
    }

    pub(super) fn failure(&mut self, error: Error, stage: Stage) -> Failure {
        match error.as_db_error() {
            Some(reply) => {
                let verdict = verdict(reply.code().code(), ends(reply), stage);
                Failure::of(verdict, error.into())
            }
            None => Failure::silence(stage, self.wire.explain(error)),
        }
    }
}
