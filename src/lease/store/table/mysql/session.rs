//! A connection: a read in one round trip, a commit in one or two.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mysql::prelude::{FromValue, Queryable};
use mysql::{Conn, Error, Row};

use super::errno::{is_denial, is_duplicate, is_there, verdict};
use super::flavour::Flavour;
use super::server::Server;
use super::socket;
use super::statements::{self as sql, Expected, Several, Statements};
use crate::lease::store::connect::deadline::Deadline;
use crate::lease::store::connect::durability::DurabilityGate;
use crate::lease::store::connect::url::Endpoint;
use crate::lease::store::options::{OpenError, OpenOptions};
use crate::lease::store::record::Incarnation;
use crate::lease::store::table::failure::{Failure, Stage};
use crate::lease::store::table::session::{Applied, Session, one_of};
use crate::lease::store::table::sql::{EntryRow, has_view_as_table, snapshot_of, store_time};
use crate::lease::store::table::{Key, Query, Snapshot, StoreTime, Txn};

/// A connection that is logged in.
#[allow(
    missing_debug_implementations,
    reason = "a driver's connection knows the password"
)]
pub struct MySession {
    connection: Conn,
    statements: Statements,
    in_transaction: bool,
    patience: Duration,
    deadline: Deadline,
    gate: DurabilityGate,
}

/// The result of one statement.
#[derive(Debug)]
struct ResultSet {
    affected: u64,
    rows: Vec<Row>,
}

impl MySession {
    fn at(server: &Server, endpoint: &Endpoint, deadline: Deadline) -> Result<Self, Failure> {
        let connection = server.connect(endpoint).map_err(no_connection)?;
        let mut session = Self {
            connection,
            // Until it is known which it is.
            statements: Statements::new(Flavour::MySql, server.accepts_best_effort),
            in_transaction: false,
            patience: server.patience,
            deadline,
            // Until its version is known.
            gate: DurabilityGate::new(String::new(), server.accepts_best_effort),
        };
        let lock_wait = server.patience.as_secs().clamp(1, 1 << 20);
        for statement in sql::set_up(lock_wait as u32) {
            session.run(&statement)?;
        }
        let version: String = column(session.row(sql::VERSION)?, 0)?;
        let flavour = Flavour::of(&version).map_err(|old| Failure::NotDone(old.into()))?;
        session.statements = Statements::new(flavour, server.accepts_best_effort);
        let name = format!(
            "{} {version} ({} at {endpoint})",
            flavour.name(),
            server.database
        );
        session.gate = DurabilityGate::new(name, server.accepts_best_effort);
        session.inspect()?;
        Ok(session)
    }

    /// Reads what [`Statements::state`] returns, if the server may be used.
    fn server_state(&mut self, row: &Row) -> Result<(StoreTime, Incarnation), Failure> {
        let setting = |index| column::<String>(row, index).map(|text| text.to_uppercase());
        let is_on = |value: &str| !matches!(value, "0" | "OFF");
        if is_on(&setting(6)?) {
            return Err(Failure::not_done(
                "the server is read-only, as replicas are: connect to the primary",
            ));
        }
        let mut reasons = Vec::new();
        let flush = setting(2)?;
        if flush != "1" {
            reasons.push(format!(
                "innodb_flush_log_at_trx_commit is {flush}, and must be 1"
            ));
        }
        let sync = setting(4)?;
        if is_on(&setting(3)?) && sync != "1" {
            reasons.push(format!(
                "sync_binlog is {sync}, and must be 1 where log_bin is on"
            ));
        }
        let doublewrite = setting(5)?;
        if matches!(doublewrite.as_str(), "0" | "OFF" | "DETECT_ONLY") {
            reasons.push(format!(
                "innodb_doublewrite is {doublewrite}, and must be on"
            ));
        }
        if setting(7)? == "NOSYNC" {
            reasons.push("innodb_flush_method is nosync, and must be another one".to_owned());
        }
        Failure::admit(&mut self.gate, &reasons)?;
        let time = store_time(column(row, 0)?)?;
        Ok((time, Incarnation::new(column::<String>(row, 1)?)))
    }

    /// Runs statements together, and returns their results up to the first error.
    fn all(&mut self, sql: &str) -> Result<Vec<Result<ResultSet, Error>>, Failure> {
        self.in_time()?;
        let mut results = Vec::new();
        let mut sets = match self.connection.query_iter(sql) {
            Ok(sets) => sets,
            Err(error) => return Ok(vec![Err(error)]),
        };
        while let Some(set) = sets.iter() {
            let affected = set.affected_rows();
            let rows = set.collect::<Result<Vec<_>, _>>();
            let is_error = rows.is_err();
            results.push(rows.map(|rows| ResultSet { affected, rows }));
            if is_error {
                break;
            }
        }
        Ok(results)
    }

    /// Runs statements that commit nothing.
    fn rows(&mut self, sql: &str) -> Result<Vec<Row>, Failure> {
        self.in_time()?;
        self.connection.query(sql).map_err(before)
    }

    /// Runs a statement that always returns one row.
    fn row(&mut self, sql: &str) -> Result<Row, Failure> {
        let row = self.rows(sql)?.into_iter().next();
        row.ok_or_else(|| Failure::corrupt("a statement returned no row", None))
    }

    fn run(&mut self, sql: &str) -> Result<(), Failure> {
        self.rows(sql).map(drop)
    }

    /// Refuses to send what might be answered too late.
    fn in_time(&self) -> Result<(), Failure> {
        if Instant::now() + self.patience <= self.deadline.end() {
            return Ok(());
        }
        Err(Failure::not_done(format!(
            "of {:?} for an operation too little is left to wait for another answer",
            2 * self.patience
        )))
    }

    /// Runs the statements of a commit, and returns whether every result is as expected.
    fn all_hold(&mut self, several: &Several, txn: &Txn) -> Result<bool, Failure> {
        let results = self.all(&several.sql)?;
        let mut all_hold = results.len() == several.expected.len();
        for (result, expected) in results.into_iter().zip(&several.expected) {
            let result = match result {
                // A key that must be absent.
                Err(Error::MySqlError(reply)) if is_duplicate(reply.code) => return Ok(false),
                result => result.map_err(before)?,
            };
            all_hold &= match expected {
                Expected::Nothing => true,
                Expected::Rows(rows) => result.affected == *rows,
                Expected::Truth => match result.rows.first() {
                    Some(row) => column::<Option<i64>>(row, 0)? == Some(1),
                    None => false,
                },
                Expected::Entries => {
                    let entry = |row: &Row| -> Result<_, Failure> {
                        Ok((Key::from(column::<String>(row, 0)?), column(row, 1)?))
                    };
                    let entries = result.rows.iter().map(entry);
                    let entries: BTreeMap<Key, String> = entries.collect::<Result<_, _>>()?;
                    let is_written = |key: &Key| txn.puts.iter().any(|put| put.key == *key);
                    let mut compared = txn.compare.iter().filter(|it| !is_written(&it.0));
                    compared.all(|(key, expected)| entries.get(key) == expected.as_ref())
                }
            };
        }
        Ok(all_hold)
    }
}

impl Session for MySession {
    type Server = Server;

    fn server(url: &str, options: &OpenOptions) -> Result<Server, OpenError> {
        Server::from_url(url, options)
    }

    fn connect(server: &Server, deadline: Deadline) -> Result<Self, Failure> {
        // No host is tried in the second half of the time: a login may take that long.
        let half = deadline.share(2).map_err(Failure::not_done)?;
        one_of(&server.endpoints, half, |endpoint, _| {
            Self::at(server, endpoint, deadline)
        })
    }

    fn start(&mut self, deadline: Deadline) {
        self.deadline = deadline;
    }

    fn ping(&mut self, patience: Duration) -> Result<(), Failure> {
        self.in_time()?;
        let silent = |error: std::io::Error| Failure::NotDone(error.into());
        socket::wait_for(&self.connection, patience.min(self.patience)).map_err(silent)?;
        self.connection.ping().map_err(before)?;
        socket::wait_for(&self.connection, self.patience).map_err(silent)
    }

    fn roll_back(&mut self) -> Result<(), Failure> {
        if self.in_transaction {
            self.run(sql::ROLLBACK)?;
            self.in_transaction = false;
        }
        Ok(())
    }

    fn inspect(&mut self) -> Result<(), Failure> {
        let state = self.row(&self.statements.state())?;
        self.server_state(&state)?;
        let rows = self.rows(sql::OTHER_ENGINES)?;
        let names: Result<Vec<String>, Failure> = rows.iter().map(|row| column(row, 0)).collect();
        let names = names?.into_iter();
        let reasons: Vec<_> = names
            .map(|name| format!("{name} must be a table of InnoDB"))
            .collect();
        Failure::admit(&mut self.gate, &reasons)
    }

    fn gate(&self) -> &DurabilityGate {
        &self.gate
    }

    fn create(&mut self) -> Result<(), Failure> {
        let row = self.row(sql::HAS_TABLES)?;
        if column(&row, 2)? {
            return Err(has_view_as_table("database"));
        }
        if !column::<bool>(&row, 0)? {
            // Each commits by itself. Another process may create them at the same time.
            let [table, index] = sql::CREATE;
            self.run(table)?;
            self.in_time()?;
            match self.connection.query_drop(index) {
                Err(Error::MySqlError(reply)) if is_there(reply.code) => {}
                created => created.map_err(before)?,
            }
            self.inspect()?;
        }
        if column(&row, 1)? {
            return Ok(());
        }
        self.in_time()?;
        match self.connection.query_drop(sql::CREATE_VIEW) {
            Ok(()) | Err(Error::MySqlError(_)) => Ok(()),
            Err(silent) => Err(before(silent)),
        }
    }

    fn read(&mut self, query: &Query) -> Result<Snapshot, Failure> {
        self.roll_back()?;
        let entries = sql::entries(query);
        let state = self.statements.state();
        let sql = [Some(state), entries].into_iter().flatten();
        let mut results = self.all(&sql.collect::<Vec<_>>().join("; "))?.into_iter();
        let state = results.next().transpose().map_err(before)?;
        let state = state.and_then(|mut state| state.rows.pop());
        let nothing = || Failure::corrupt("a statement returned no row", None);
        let shown = self.server_state(&state.ok_or_else(nothing)?)?;
        let rows = match results.next().transpose().map_err(before) {
            // A missing table is empty.
            Err(Failure::NoTable(_)) => Vec::new(),
            result => result?.map_or_else(Vec::new, |result| result.rows),
        };
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
        if let Some(statement) = self.statements.single(txn) {
            self.in_time()?;
            let done = self.connection.query_drop(statement);
            done.map_err(|error| failure(error, Stage::Commit))?;
            return match self.connection.affected_rows() {
                0 => Ok(Applied::Rejected),
                1 => Ok(Applied::Done),
                more => Err(Failure::Unknown(
                    format!("{more} rows have the same key").into(),
                )),
            };
        }
        let several = self.statements.several(txn);
        self.in_transaction = true;
        if !self.all_hold(&several, txn)? {
            return Ok(Applied::Rejected);
        }
        self.in_time()?;
        let committed = self.connection.query_drop(sql::COMMIT);
        committed.map_err(|error| failure(error, Stage::Commit))?;
        self.in_transaction = false;
        Ok(Applied::Done)
    }
}

fn column<T: FromValue>(row: impl std::borrow::Borrow<Row>, index: usize) -> Result<T, Failure> {
    match row.borrow().get_opt(index) {
        Some(Ok(value)) => Ok(value),
        Some(Err(_)) | None => Err(Failure::corrupt("a column has another type", None)),
    }
}

/// A server that was reached may have refused the login.
fn no_connection(error: Error) -> Failure {
    match error {
        Error::MySqlError(reply) if is_denial(reply.code) => {
            Failure::Denied(Error::MySqlError(reply).into())
        }
        error => before(error),
    }
}

fn before(error: Error) -> Failure {
    failure(error, Stage::Before)
}

fn failure(error: Error, stage: Stage) -> Failure {
    let verdict = match &error {
        Error::MySqlError(reply) => verdict(reply.code, stage),
        _ => stage.verdict(),
    };
    verdict(error.into())
}
