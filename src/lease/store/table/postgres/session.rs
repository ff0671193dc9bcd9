//! A connection: a read and a commit, each in one round trip. Statements that need no answer to
//! the one before are pipelined.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use futures_util::future::join4;
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use super::server::Server;
use super::sqlstate::verdict;
use super::wire::{Wire, off_runtime};
use super::{lock, statements as sql};
use crate::lease::store::connect::deadline::Deadline;
use crate::lease::store::connect::durability::DurabilityGate;
use crate::lease::store::options::{OpenError, OpenOptions};
use crate::lease::store::record::Incarnation;
use crate::lease::store::table::failure::{Failure, Stage};
use crate::lease::store::table::session::{Applied, Session};
use crate::lease::store::table::sql::{
    EntryRow, Single, has_view_as_table, snapshot_of, store_time, to_bigint,
};
use crate::lease::store::table::{Blocks, Key, Put, Query, Snapshot, StoreTime, Txn};

/// The first version with generated columns and `AS MATERIALIZED`, as `server_version_num`
/// has it.
const OLDEST: i32 = 12_00_00;

/// A value, and its type for the server.
type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A connection that is logged in.
#[allow(
    missing_debug_implementations,
    reason = "a driver's connection knows the password"
)]
pub struct PgSession {
    wire: Wire,
    /// [`sql::BEGIN`] and [`sql::BEGIN_READ`] with the limits on time.
    begin: String,
    begin_read: String,
    in_transaction: bool,
    gate: DurabilityGate,
}

/// The conditions and writes of a commit, as arrays.
struct Rows<'a> {
    keys: Vec<&'a str>,
    before: Vec<Option<&'a str>>,
    after: Vec<Option<&'a str>>,
    ranks: Vec<Option<i64>>,
    compared: Vec<bool>,
}

impl<'a> Rows<'a> {
    fn of(txn: &'a Txn) -> Self {
        let mut puts: BTreeMap<&Key, &Put> = txn.puts.iter().map(|put| (&put.key, put)).collect();
        let mut rows = Self {
            keys: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            ranks: Vec::new(),
            compared: Vec::new(),
        };
        for (key, expected) in &txn.compare {
            rows.add(key, Some(expected.as_deref()), puts.remove(key));
        }
        for (key, put) in puts {
            rows.add(key, None, Some(put));
        }
        rows
    }

    fn add(&mut self, key: &'a Key, expected: Option<Option<&'a str>>, put: Option<&'a Put>) {
        self.keys.push(key.as_str());
        self.before.push(expected.flatten());
        self.after.push(put.map(|put| put.value.as_str()));
        self.ranks.push(put.and_then(|put| put.rank).map(to_bigint));
        self.compared.push(expected.is_some());
    }

    fn kind(&self, txn: &Txn) -> sql::CommitKind {
        let written = || {
            self.before
                .iter()
                .zip(&self.after)
                .filter(|it| it.1.is_some())
        };
        let updates = written().filter(|it| it.0.is_some()).count();
        sql::CommitKind {
            // One lock can't be part of a circle.
            holds_rows: updates > 1 || updates == 1 && txn.not_after_unix_ms < u64::MAX,
            inserts: written().count() > updates,
        }
    }
}

impl PgSession {
    /// Reads what [`sql::SERVER_STATE`] returns, if the server may be used.
    fn server_state(&mut self, rows: &[Row]) -> Result<(StoreTime, Incarnation), Failure> {
        let row = first(rows)?;
        let Some(incarnation) = column::<Option<String>>(row, 1)? else {
            return Err(Failure::not_done(
                "the server is a standby in recovery: connect to the primary, \
                 for instance with several hosts and target_session_attrs=read-write",
            ));
        };
        let mut reasons = Vec::new();
        for (index, setting) in [(2, "fsync"), (3, "full_page_writes")] {
            let value: String = column(row, index)?;
            if value != "on" {
                reasons.push(format!("{setting} is {value}, and must be on"));
            }
        }
        if let Some(tables) = column::<Option<String>>(row, 4)? {
            reasons.push(format!(
                "not permanent, but unlogged or temporary: {tables}"
            ));
        }
        Failure::admit(&mut self.gate, &reasons)?;
        Ok((store_time(column(row, 0)?)?, Incarnation::new(incarnation)))
    }

    /// Reads entries in one transaction.
    fn entries(
        &mut self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<((StoreTime, Incarnation), Vec<Row>), Failure> {
        let begin = self.begin_read.as_str();
        let answers = self.wire.call(async |client| {
            join4(
                client.batch_execute(begin),
                client.query_typed(sql::SERVER_STATE, &[]),
                client.query_typed(statement, parameters),
                client.batch_execute(sql::COMMIT),
            )
            .await
        });
        let (begun, state, entries, ended) = answers.map_err(silent)?;
        self.answered(begun, Stage::Before)?;
        let state = self.answered(state, Stage::Before)?;
        let ended = self.answered(ended, Stage::Before);
        let entries = self.answered(entries, Stage::Before);
        let shown = self.server_state(&state)?;
        let entries = match entries {
            // A missing table is empty. The transaction has ended.
            Err(Failure::NoTable(_)) => Vec::new(),
            entries => entries?,
        };
        ended?;
        Ok((shown, entries))
    }

    /// Runs the one statement of a commit, with its transaction and locks in one round trip.
    fn run_and_commit<T>(
        &mut self,
        txn: &Txn,
        statement: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let mut begin = self.begin.clone();
        for lock in lock::statements(txn) {
            begin = begin + "; " + &lock;
        }
        let answers = self.wire.call(async |client| {
            join4(
                client.batch_execute(&begin),
                statement(client),
                client.batch_execute(sql::ENABLE_WARNINGS),
                client.batch_execute(sql::COMMIT),
            )
            .await
        });
        let (begun, applied, enabled, committed) =
            answers.map_err(|late| Failure::silence(Stage::Commit, late.into()))?;
        let (begun, applied) = match (begun, applied) {
            // Refused for the lock, which was not to be had.
            (Err(first), Err(then)) if is_rejection(&first) && is_rejection(&then) => {
                (Ok(()), Err(first))
            }
            other => other,
        };
        let applied = self.answered_before_commit(applied)?;
        // Without a transaction the statement has committed by itself.
        self.answered(begun, Stage::Commit)?;
        self.answered_before_commit(enabled)?;
        self.answered(committed, Stage::Commit)?;
        // When somebody cancels the wait for a standby, the server confirms the commit all the
        // same.
        match self.wire.take_warning() {
            None => Ok(applied),
            Some(warning) => Err(Failure::Unknown(warning.into())),
        }
    }

    /// Runs statements without parameters, before anything is decided.
    fn batch(&mut self, sql: &str) -> Result<(), Failure> {
        let answer = self
            .wire
            .call(async |client| client.batch_execute(sql).await);
        self.answered(answer.map_err(silent)?, Stage::Before)
    }

    fn query(&mut self, sql: &str) -> Result<Vec<Row>, Failure> {
        let answer = self
            .wire
            .call(async |client| client.query_typed(sql, &[]).await);
        self.answered(answer.map_err(silent)?, Stage::Before)
    }

    /// Whether all tables are there.
    fn has_tables(&mut self) -> Result<bool, Failure> {
        let rows = self.query(sql::HAS_TABLES)?;
        let row = first(&rows)?;
        if column(row, 1)? {
            return Err(has_view_as_table("schema"));
        }
        column(row, 0)
    }

    fn answered<T>(&mut self, answer: Result<T, Error>, stage: Stage) -> Result<T, Failure> {
        answer.map_err(|error| match error.as_db_error() {
            Some(reply) => {
                let verdict = verdict(reply.code().code(), is_fatal(reply), stage);
                verdict(error.into())
            }
            None => Failure::silence(stage, self.wire.explain(error)),
        })
    }

    /// Takes the answer to a statement that a commit was pipelined behind. If the server
    /// rejected the statement, the commit had nothing to commit. Any other failure leaves the
    /// commit in doubt.
    fn answered_before_commit<T>(&mut self, answer: Result<T, Error>) -> Result<T, Failure> {
        let stage = match &answer {
            Err(error) if is_rejection(error) => Stage::Before,
            _ => Stage::Commit,
        };
        self.answered(answer, stage)
    }
}

impl Session for PgSession {
    type Server = Server;

    fn server(url: &str, options: &OpenOptions) -> Result<Server, OpenError> {
        Server::from_url(url, options)
    }

    fn connect(server: &Server, deadline: Deadline) -> Result<Self, Failure> {
        let wire = Wire::connect(server, deadline)?;
        let ms = server.timeout_ms();
        let limits = format!(
            " SET LOCAL lock_timeout = {ms}; SET LOCAL statement_timeout = {ms}; \
             SET LOCAL idle_in_transaction_session_timeout = {ms}"
        );
        let mut session = Self {
            wire,
            begin: format!("{}{limits}", sql::BEGIN),
            begin_read: format!("{}{limits}", sql::BEGIN_READ),
            in_transaction: false,
            // Until its version is known.
            gate: DurabilityGate::new(String::new(), server.accepts_best_effort),
        };
        let version: i32 = column(first(&session.query(sql::VERSION)?)?, 0)?;
        if version < OLDEST {
            let oldest = OLDEST / 1_00_00;
            return Err(Failure::not_done(format!(
                "the server has version number {version}: PostgreSQL {oldest} is needed"
            )));
        }
        let (major, minor) = (version / 1_00_00, version % 1_00_00);
        let name = format!("PostgreSQL {major}.{minor} ({server})");
        session.gate = DurabilityGate::new(name, server.accepts_best_effort);
        session.inspect()?;
        Ok(session)
    }

    fn start(&mut self, deadline: Deadline) {
        self.wire.start(deadline);
    }

    fn ping(&mut self, patience: Duration) -> Result<(), Failure> {
        self.wire.start(Deadline::after(patience));
        self.batch("")
    }

    fn roll_back(&mut self) -> Result<(), Failure> {
        if self.in_transaction {
            self.batch(sql::ROLLBACK)?;
            self.in_transaction = false;
        }
        Ok(())
    }

    fn inspect(&mut self) -> Result<(), Failure> {
        let state = self.query(sql::SERVER_STATE)?;
        self.server_state(&state).map(drop)
    }

    fn gate(&self) -> &DurabilityGate {
        &self.gate
    }

    fn create(&mut self) -> Result<(), Failure> {
        if self.has_tables()? {
            return Ok(());
        }
        self.in_transaction = true;
        self.batch(&format!("{}; {}", self.begin, sql::CREATE_LOCK))?;
        if !self.has_tables()? {
            self.batch(sql::CREATE_TABLES)?;
        }
        // In doubt, the tables are there or not: no entry depends on it.
        self.batch(sql::COMMIT)?;
        self.in_transaction = false;
        Ok(())
    }

    fn read(&mut self, query: &Query) -> Result<Snapshot, Failure> {
        let keys: Vec<&str> = query.keys.iter().map(Key::as_str).collect();
        let mut parameters: Vec<Parameter<'_>> = vec![(&keys, Type::TEXT_ARRAY)];
        let (range, limit);
        let statement = match &query.blocks {
            None => sql::ENTRIES,
            Some(blocks) => {
                range = blocks.keys();
                parameters.extend([
                    (&range.start as _, Type::TEXT),
                    (&range.end as _, Type::TEXT),
                ]);
                match blocks {
                    Blocks::All { .. } => sql::ENTRIES_AND_ALL,
                    Blocks::Lowest {
                        namespace,
                        limit: most,
                        ..
                    } => {
                        limit = i64::from(*most) + 1;
                        parameters
                            .extend([(namespace as _, Type::TEXT), (&limit as _, Type::INT8)]);
                        sql::ENTRIES_AND_LOWEST
                    }
                }
            }
        };
        let (shown, rows) = self.entries(statement, &parameters)?;
        let rows = rows.iter().map(|row| {
            Ok(EntryRow {
                is_lowest: column(row, 0)?,
                key: column(row, 1)?,
                value: column(row, 2)?,
                rank: column(row, 3)?,
            })
        });
        snapshot_of(query, rows, shown)
    }

    fn apply(&mut self, txn: &Txn, _instead: &Query) -> Result<Applied, Failure> {
        let [not_before, not_after] =
            [txn.not_before_unix_ms, txn.not_after_unix_ms].map(to_bigint);
        let incarnation = txn.incarnation.as_ref().map(Incarnation::as_str);
        let accepts = self.gate.accepts_best_effort();
        let conditions: [Parameter<'_>; 4] = [
            (&not_before, Type::INT8),
            (&not_after, Type::INT8),
            (&incarnation, Type::TEXT),
            (&accepts, Type::BOOL),
        ];
        if let Some(single) = Single::of(txn) {
            let (key, rank) = (single.put.key.as_str(), single.put.rank.map(to_bigint));
            let mut parameters: Vec<Parameter<'_>> = vec![
                (&key, Type::TEXT),
                (&single.before, Type::TEXT),
                (&single.put.value, Type::TEXT),
                (&rank, Type::INT8),
            ];
            parameters.extend(conditions);
            for (key, value) in &single.compared {
                parameters.extend([(key as _, Type::TEXT), (value as _, Type::TEXT)]);
            }
            let statement = sql::single(single.compared.len());
            let updated = self.run_and_commit(txn, async |client| {
                client.execute_typed(&statement, &parameters).await
            })?;
            return Ok(match updated {
                0 => Applied::Rejected,
                _ => Applied::Done,
            });
        }
        let rows = Rows::of(txn);
        let writes = to_bigint(txn.puts.len() as u64);
        let mut parameters: Vec<Parameter<'_>> = vec![
            (&rows.keys, Type::TEXT_ARRAY),
            (&rows.before, Type::TEXT_ARRAY),
            (&rows.after, Type::TEXT_ARRAY),
            (&rows.ranks, Type::INT8_ARRAY),
            (&rows.compared, Type::BOOL_ARRAY),
        ];
        parameters.extend(conditions);
        parameters.push((&writes, Type::INT8));
        let statement = sql::guarded(rows.kind(txn));
        let applied = self.run_and_commit(txn, async |client| {
            client.query_typed(&statement, &parameters).await
        })?;
        let unreadable = |_| Failure::Unknown("the reply to a commit can't be read".into());
        let outcome = first(&applied).and_then(|row| column::<i32>(row, 0));
        match outcome.map_err(unreadable)? {
            1 => Ok(Applied::Done),
            0 => Err(Failure::Short("the database kept no row".into())),
            _ => Ok(Applied::Rejected),
        }
    }

    fn blocking<T: Send>(operation: impl FnOnce() -> T + Send) -> T {
        off_runtime(operation)
    }
}

/// The one row that a statement always returns.
fn first(rows: &[Row]) -> Result<&Row, Failure> {
    rows.first()
        .ok_or_else(|| Failure::corrupt("a statement returned no row", None))
}

fn column<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, Failure> {
    let column = row.try_get(index);
    column.map_err(|error| Failure::corrupt("a column has another type", Some(error.into())))
}

/// Whether the server rejected a statement, and goes on.
fn is_rejection(error: &Error) -> bool {
    error.as_db_error().is_some_and(|reply| !is_fatal(reply))
}

/// Whether an error ends the connection. It may be unrelated to the statement that it answers.
fn is_fatal(error: &DbError) -> bool {
    error.parsed_severity() != Some(Severity::Error)
}

fn silent(late: io::Error) -> Failure {
    Failure::silence(Stage::Before, late.into())
}
