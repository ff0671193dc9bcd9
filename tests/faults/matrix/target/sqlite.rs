//! A file, and no server: what stops it is a lock that another process holds, and
//! the workers' clocks are its clock.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ringflake::lease::Block;
use ringflake::lease::table::Key;
use rusqlite::{Connection, TransactionBehavior};
use tempfile::TempDir;

use super::{PutBack, Target};
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
        keep_rows(&self.path(), namespace, false)
    }

    fn damage(&self, namespace: &str, block: u64) {
        let connection = patient(&self.path()).unwrap();
        let update = "UPDATE ringflake SET value = json_set(value, '$.hwm_end', \
                      '09000000000000000000') WHERE key = ?1";
        let key = Key::block(namespace, Block::new(block));
        assert_eq!(connection.execute(update, [key.as_str()]).unwrap(), 1);
    }

    fn writers(&self, workers: &[i32]) -> Vec<i32> {
        workers.to_vec()
    }

    /// A process that is stopped within a transaction locks all others out until it continues,
    /// as the guide says.
    fn stop_between_operations(&self, processes: &[i32]) {
        let stop = || {
            super::stop(processes);
            Ok(())
        };
        between_operations(&self.path(), stop).unwrap();
    }
}

/// Saves a namespace's rows in one transaction: its blocks, and on request its record. The
/// file's own note of its writes stays.
pub(crate) fn keep_rows(path: &Path, namespace: &str, with_record: bool) -> PutBack {
    type Row = (String, String, Option<i64>);

    let (path, namespace) = (path.to_owned(), namespace.to_owned());
    let condition = match with_record {
        true => format!("(key GLOB '{namespace}/block/*' OR key = '{namespace}/record')"),
        false => format!("key GLOB '{namespace}/block/*'"),
    };
    let sql = format!("SELECT key, value, rank FROM ringflake WHERE {condition}");
    let keep = || -> rusqlite::Result<Vec<Row>> {
        let connection = patient(&path)?;
        let mut statement = connection.prepare(&sql)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        rows.collect()
    };
    let kept = keep().unwrap();
    let put_back = move || -> rusqlite::Result<()> {
        let mut connection = patient(&path)?;
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let trigger = "ringflake_keeps_entries";
        let create: String = step.query_row(
            "SELECT sql FROM sqlite_schema WHERE name = ?1",
            [trigger],
            |row| row.get(0),
        )?;
        step.execute_batch(&format!("DROP TRIGGER {trigger}"))?;
        step.execute(&format!("DELETE FROM ringflake WHERE {condition}"), [])?;
        for row in &kept {
            step.execute(
                "INSERT INTO ringflake (key, value, rank) VALUES (?1, ?2, ?3)",
                (&row.0, &row.1, row.2),
            )?;
        }
        step.execute_batch(&create)?;
        step.commit()
    };
    Box::new(move || put_back().map_err(text))
}
