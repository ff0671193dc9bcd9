//! A file, and no server: what stops it is a lock that another process holds, and
//! the workers' clocks are its clock.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;

use super::rows::text;
use super::{Kind, PutBack, Target, damage, rows};
use crate::matrix::Outcome;
use ringflake_kit::server;

/// A connection that waits for the lock.
pub(super) fn patient(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(20))?;
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

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("leases.db")
    }
}

impl Target for Sqlite {
    fn kind(&self) -> Kind {
        Kind::Sqlite
    }

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

    fn set_clock(&self, _: i64) {
        unreachable!("the file has no clock of its own")
    }

    fn keep_rows(&self, namespace: &str) -> PutBack {
        rows::of_sqlite(&self.path(), namespace)
    }

    fn damage(&self, namespace: &str, block: u64) -> Outcome<()> {
        damage::in_sqlite(&self.path(), namespace, block)
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
