//! A file, and no server: what stops it is a lock that another process holds, and
//! the workers' clocks are its clock.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, TransactionBehavior, params_from_iter};
use tempfile::TempDir;

use super::{PutBack, Target, with_impossible_mark};
use crate::matrix::{Outcome, text};
use ringflake_kit::server;

/// A connection that waits for the lock, for long: the workers, who stand in line for it, are
/// many, and this one asks now and then.
fn patient(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(120))?;
    Ok(connection)
}

/// Does it while nobody is within a transaction of the file.
pub(crate) fn between_operations(path: &Path, act: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
    let connection = patient(path).map_err(text)?;
    connection.execute_batch("BEGIN EXCLUSIVE").map_err(text)?;
    act()?;
    connection.execute_batch("ROLLBACK").map_err(text)
}

pub(super) struct Sqlite {
    directory: TempDir,
    /// Holds the file's lock while the store is stopped.
    lock: Option<Connection>,
}

impl Sqlite {
    pub(super) fn new() -> Self {
        Self {
            directory: server::directory(),
            lock: None,
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("leases.db")
    }
}

impl Target for Sqlite {
    fn direct_url(&self) -> String {
        format!("sqlite:{}", self.path().display())
    }

    fn stop(&mut self) {
        let connection = patient(&self.path()).unwrap();
        connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
        self.lock = Some(connection);
    }

    fn start(&mut self) {
        self.lock = None;
    }

    /// The blocks alone: the record's count of writes would show it.
    fn keep_rows(&self, namespace: &str) -> PutBack {
        keep_tables(&self.path(), namespace, &[BLOCKS])
    }

    fn damage(&self, namespace: &str, block: u64) {
        let connection = patient(&self.path()).unwrap();
        let update = with_impossible_mark(namespace, block);
        connection.execute_batch(&update).unwrap();
    }

    fn writers(&self, workers: &[i32]) -> Vec<i32> {
        workers.to_vec()
    }

    /// Who is stopped within a transaction locks all others out until it goes on,
    /// as the guide says.
    fn stop_between_operations(&self, processes: &[i32]) {
        let stop = || {
            super::stop(processes);
            Ok(())
        };
        between_operations(&self.path(), stop).unwrap();
    }
}

/// A table, and the column that names the namespace. Rows of each refer to those of the
/// ones before it.
pub(crate) type Table = (&'static str, &'static str);
pub(crate) const RECORD: Table = ("ringflake_namespace", "name");
pub(crate) const BLOCKS: Table = ("ringflake_block", "namespace");

/// What these tables have of a namespace, in one transaction. The note that the file
/// itself bears of the record's writes stays.
pub(crate) fn keep_tables(path: &Path, namespace: &str, tables: &'static [Table]) -> PutBack {
    let (path, namespace) = (path.to_owned(), namespace.to_owned());
    let read = |connection: &Connection, (table, name): Table| {
        let sql = format!("SELECT * FROM {table} WHERE {name} = ?1");
        let mut statement = connection.prepare(&sql)?;
        let columns = statement.column_count();
        let row = |row: &Row<'_>| (0..columns).map(|at| row.get(at)).collect();
        let rows = statement.query_map([&namespace], row)?;
        rows.collect::<rusqlite::Result<Vec<Vec<Value>>>>()
    };
    let keep = || -> rusqlite::Result<Vec<_>> {
        let mut connection = patient(&path)?;
        // All as of one moment.
        let step = connection.transaction()?;
        tables.iter().map(|&table| read(&step, table)).collect()
    };
    let kept = keep().unwrap();
    let put_back = move || -> rusqlite::Result<()> {
        let mut connection = patient(&path)?;
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // They forbid just this to all but the one who knows how.
        let triggers: Vec<(String, String)> = step
            .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        for (name, _) in &triggers {
            step.execute_batch(&format!("DROP TRIGGER {name}"))?;
        }
        for (table, name) in tables.iter().rev() {
            let delete = format!("DELETE FROM {table} WHERE {name} = ?1");
            step.execute(&delete, [&namespace])?;
        }
        for ((table, _), rows) in tables.iter().zip(&kept) {
            for row in rows {
                let places = vec!["?"; row.len()].join(", ");
                let insert = format!("INSERT INTO {table} VALUES ({places})");
                step.execute(&insert, params_from_iter(row))?;
            }
        }
        for (_, sql) in &triggers {
            step.execute_batch(sql)?;
        }
        step.commit()
    };
    Box::new(move || put_back().map_err(text))
}
