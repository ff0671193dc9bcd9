//! The store in a file.

mod clocks;
mod copies;
mod damage;
mod files;
mod forks;
mod kills;
mod locks;
mod model;
mod renewals;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ringflake::lease::conformance::Suite;
use ringflake::lease::{
    Acquire, Block, Fingerprint, Grant, History, Init, LeaseStore, Listing, Namespace, OpenOptions,
    SqliteStore, StoreError,
};
use ringflake::{Clock, Layout, ManualClock, SystemClock};
use rusqlite::Connection;
use tempfile::TempDir;

/// A directory with the file of a store in it.
struct Place {
    directory: TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("leases.db");
        Self { directory, path }
    }

    /// The same in memory, for what is long and not about disks.
    fn in_memory() -> Self {
        let directory = ringflake_kit::server::data_directory();
        let path = directory.path().join("leases.db");
        Self { directory, path }
    }

    /// A place where [`space`] was initialised.
    fn initialised() -> Self {
        let place = Self::new();
        place.init();
        place
    }

    fn init(&self) {
        let init = Init::new(History::New, now());
        self.store().init(&space(), &init).unwrap();
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn journal(&self) -> PathBuf {
        self.beside("leases.db-journal")
    }

    fn store(&self) -> SqliteStore {
        store(&self.path)
    }

    fn store_at(&self, clock: &ManualClock) -> SqliteStore {
        self.store().with_clock(Arc::new(clock.clone()))
    }

    /// A connection that knows nothing of leases.
    fn raw(&self) -> Connection {
        Connection::open(&self.path).unwrap()
    }

    /// A mark that no layout has, or an epoch that no mark has.
    fn damage(&self, namespace: &Namespace, block: Block) {
        let change = match block.index() % 2 {
            0 => "hwm_end = 9000000000000000000",
            _ => "epoch = hwm_end + 7",
        };
        self.without_triggers(&format!(
            "UPDATE ringflake_block SET {change} WHERE namespace = '{}' AND block = {block};",
            namespace.name()
        ));
    }

    /// Runs what the tables forbid.
    fn without_triggers(&self, sql: &str) {
        let mut raw = self.raw();
        let step = raw.transaction().unwrap();
        let triggers: Vec<(String, String)> = {
            let sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'";
            let mut statement = step.prepare(sql).unwrap();
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
            rows.unwrap().collect::<Result<_, _>>().unwrap()
        };
        for (name, _) in &triggers {
            step.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
        }
        step.execute_batch(sql).unwrap();
        for (_, sql) in &triggers {
            step.execute_batch(sql).unwrap();
        }
        step.commit().unwrap();
    }

    /// Runs what the types of the table of blocks forbid as well.
    fn without_types(&self, sql: &str) {
        let change_schema = |from, to| {
            let raw = self.raw();
            raw.execute_batch(&format!(
                "PRAGMA writable_schema = ON;
                 UPDATE sqlite_schema SET sql = replace(sql, '{from}', '{to}')
                     WHERE name = 'ringflake_block';"
            ))
            .unwrap();
        };
        change_schema(") STRICT, WITHOUT", ") WITHOUT");
        self.without_triggers(sql);
        change_schema(") WITHOUT", ") STRICT, WITHOUT");
    }

    fn list(&self) -> Listing {
        self.store().list(&space()).unwrap()
    }
}

/// On whatever file system the tests run, and however slow it is.
fn options() -> OpenOptions {
    OpenOptions::new()
        .accept_best_effort(true)
        .timeout(Duration::from_secs(60))
}

fn store(path: &Path) -> SqliteStore {
    SqliteStore::new(path, &options()).unwrap()
}

/// Blocks of 32 nodes, 4,096 of them.
fn space() -> Namespace {
    Namespace::new("test", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap()
}

fn now() -> u64 {
    SystemClock.unix_ms()
}

fn ask(blocks: u32, length: u64) -> Acquire {
    Acquire::new(blocks, length, now())
}

fn acquire(store: &mut SqliteStore, length: u64) -> Result<Grant, StoreError> {
    let mut grants = store.acquire(&space(), &ask(1, length))?;
    assert_eq!(grants.len(), 1);
    Ok(grants.remove(0))
}

/// The text of the driver's error, where that says what happened.
#[track_caller]
fn unavailable<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Unavailable { source }) => source.to_string(),
        other => panic!("{other:?}, not unavailable"),
    }
}

/// Names the job that this process has as the child of a test.
const JOB: &str = "RINGFLAKE_STORES_JOB";

/// The path that a child was given, if this process is the child for `job`.
fn job(job: &str) -> Option<PathBuf> {
    let (name, path) = std::env::var_os(JOB)?
        .into_string()
        .ok()?
        .split_once('=')
        .map(|(name, path)| (name.to_owned(), PathBuf::from(path)))?;
    (name == job).then_some(path)
}

/// This program again, to run the test `test` alone and there the job `job`, on
/// the store at `path`. What it prints comes through a pipe.
fn child(test: &str, job: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture"])
        .env(JOB, format!("{job}={}", path.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

#[test]
fn the_sqlite_store_conforms() {
    let place = Place::in_memory();
    Suite::new(&|| Box::new(place.store()), &now)
        .with_damage(&|space, block| place.damage(space, block))
        .run();
}

#[test]
fn a_file_in_wal_mode_conforms_and_stays_in_it() {
    let place = Place::in_memory();
    place.init();
    let mode = |sql: &str| -> String {
        let raw = place.raw();
        raw.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(mode("PRAGMA journal_mode = WAL"), "wal");
    Suite::new(&|| Box::new(place.store()), &now)
        .with_damage(&|space, block| place.damage(space, block))
        .run();
    assert_eq!(mode("PRAGMA journal_mode"), "wal");
}
