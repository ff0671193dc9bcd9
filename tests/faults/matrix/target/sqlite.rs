//! A file, and no server: what stops it is a lock that another process holds, and
//! the workers' clocks are its clock.

use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;

use super::{Kind, PutBack, Target, damage, rows};
use crate::matrix::Outcome;
use ringflake_kit::server;

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
        let connection = Connection::open(self.path()).unwrap();
        connection.busy_timeout(Duration::from_secs(20)).unwrap();
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
        let connection = Connection::open(self.path()).unwrap();
        connection.busy_timeout(Duration::from_secs(20)).unwrap();
        // Nobody else is in a transaction within this one.
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        for &process in processes {
            // SAFETY: numbers only, of a child that was not waited for.
            unsafe { libc::kill(process, libc::SIGSTOP) };
        }
        connection.execute_batch("ROLLBACK").unwrap();
    }
}
