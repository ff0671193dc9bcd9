//! The store in a file.

mod batches;
mod copies;
mod damage;
mod files;
mod forks;
mod kills;
mod locks;
#[cfg(target_os = "linux")]
mod put_back;
#[cfg(target_os = "linux")]
mod witness;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ringflake::lease::conformance::{Suite, TableSuite};
use ringflake::lease::table::Key;
use ringflake::lease::{
    Acquire, Block, Grant, History, Init, LeaseStore, Listing, Namespace, OpenOptions, SqliteStore,
    StoreError,
};
use ringflake::{Clock, Layout, ManualClock};
use ringflake_kit::child::this_test;
use ringflake_kit::server::data_directory;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::kit::{self, now};

struct Place {
    directory: TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        Self::of(tempfile::tempdir().unwrap())
    }

    /// The same in memory, for what is long and not about disks.
    fn in_memory() -> Self {
        Self::of(data_directory())
    }

    fn of(directory: TempDir) -> Self {
        let path = directory.path().join("leases.db");
        Self { directory, path }
    }

    fn initialised() -> Self {
        let place = Self::new();
        place.init();
        place
    }

    fn init(&self) {
        kit::init(&mut self.store(), &space());
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

    fn list(&self) -> Listing {
        self.store().list(&space()).unwrap()
    }

    fn raw(&self) -> Connection {
        Connection::open(&self.path).unwrap()
    }

    fn run(&self, sql: &str) {
        self.raw().execute_batch(sql).unwrap();
    }

    /// A mark that no layout has, or no text.
    fn damage(&self, namespace: &Namespace, block: Block) {
        let damaged = match block.index() % 2 {
            0 => "json_set(value, '$.hwm_end', '09000000000000000000')",
            _ => "CAST(x'ff' AS TEXT)",
        };
        self.run(&format!(
            "UPDATE ringflake SET value = {damaged} WHERE key = '{}';",
            Key::block(namespace.name(), block)
        ));
    }

    fn conforms(&self) {
        Suite::new(&|| Box::new(self.store()), &now)
            .with_damage(&|space, block| self.damage(space, block))
            .run();
    }
}

/// Files of stores in a directory, on a clock of their own.
struct Site {
    directory: PathBuf,
    clock: ManualClock,
}

impl Site {
    fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            clock: ManualClock::new(Layout::RANDFLAKE.tick_start_unix_ms(1_000_000)),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn store(&self, name: &str) -> SqliteStore {
        store(&self.at(name)).with_clock(Arc::new(self.clock.clone()))
    }

    fn init(&self) -> Init {
        Init::new(History::New, self.clock.unix_ms()).with_limits(kit::limits())
    }

    fn acquire(
        &self,
        store: &mut SqliteStore,
        space: &Namespace,
        length: u64,
    ) -> Result<Grant, StoreError> {
        let ask = Acquire::new(1, length, self.clock.unix_ms());
        Ok(store.acquire(space, &ask)?.remove(0))
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

/// On whatever file system the tests run, and however slow it is.
pub(crate) fn options() -> OpenOptions {
    OpenOptions::new()
        .accept_best_effort(true)
        .timeout(Duration::from_secs(60))
}

fn store(path: &Path) -> SqliteStore {
    SqliteStore::new(path, &options()).unwrap()
}

/// Blocks of 32 nodes, 4,096 of them.
fn space() -> Namespace {
    kit::space("test")
}

/// For leases that end after the test, however slow the machine is.
fn ask(blocks: u32) -> Acquire {
    Acquire::new(blocks, 600, now())
}

fn acquire(store: &mut SqliteStore) -> Result<Grant, StoreError> {
    kit::acquire(store, &space())
}

/// The path that the child of a test was given.
const PATH: &str = "RINGFLAKE_STORES_PATH";

/// In a [`child`], the path that its parent passed.
pub(crate) fn given_path() -> Option<PathBuf> {
    std::env::var_os(PATH).map(PathBuf::from)
}

/// The test that calls this, alone in another process, where [`given_path`] answers
/// `path`. What it prints comes through a pipe.
pub(crate) fn child(path: &Path) -> Command {
    let mut command = this_test();
    command
        .env(PATH, path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

#[test]
fn the_sqlite_store_conforms() {
    let place = Place::in_memory();
    place.conforms();
    TableSuite::new(&|| Box::new(place.store().into_table())).run();
}

#[test]
fn a_write_test_writes() {
    let place = Place::initialised();
    let mut store = place.store();
    store.write_test(&space(), now()).unwrap();
    place.run(
        "CREATE TRIGGER refuse BEFORE UPDATE ON ringflake
        BEGIN SELECT RAISE(ABORT, 'no write'); END",
    );
    store.check(&space(), now()).unwrap();
    store.write_test(&space(), now()).unwrap_err();
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
    place.conforms();
    assert_eq!(mode("PRAGMA journal_mode"), "wal");
}
