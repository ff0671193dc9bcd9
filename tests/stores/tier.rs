//! A tier in a file, between processes and an upstream store.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use ringflake::SystemClock;
use ringflake::lease::conformance::{GrantedTicks, Suite};
use ringflake::lease::table::Key;
use ringflake::lease::{
    Acquire, Fence, Grant, History, Init, LeaseStore, MemoryStore, Namespace, SqliteStore,
    StoreError, StoreLimits, TierStore,
};
use ringflake_kit::server::{self, data_directory};
use ringflake_kit::{printed, words};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::kit::{self, copied, corrupt, fenced, format, now};
use crate::sqlite::options;

const REACH: u64 = 3600;

/// A machine, and the store of the cluster.
struct Machine {
    directory: TempDir,
    upstream: MemoryStore,
    given: GrantedTicks,
}

impl Machine {
    fn new() -> Self {
        let mut upstream = MemoryStore::new(Arc::new(SystemClock));
        let limits = StoreLimits::default().with_horizon(Duration::from_secs(REACH));
        let init = Init::new(History::New, now()).with_limits(limits);
        upstream.init(&space(), &init).unwrap();
        Self {
            directory: data_directory(),
            upstream,
            given: GrantedTicks::default(),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn path(&self) -> PathBuf {
        self.at("tier.db")
    }

    fn process(&self) -> TierStore {
        self.process_at(self.path())
    }

    fn process_at(&self, path: PathBuf) -> TierStore {
        TierStore::new(path, Box::new(self.upstream.clone()), &options()).unwrap()
    }

    fn acquire(&mut self, process: &mut TierStore) -> Grant {
        let grant = process.acquire(&space(), &ask()).unwrap().remove(0);
        self.given.add(&grant);
        grant
    }
}

fn space() -> Namespace {
    kit::space("orders")
}

/// As a generator asks: for ten minutes.
fn ask() -> Acquire {
    Acquire::new(1, 600, now())
}

#[test]
fn s9_a_tier_in_a_file_conforms() {
    let machine = Machine::new();
    let suite =
        || -> Box<dyn LeaseStore> { Box::new(machine.process().with_sub_grants(Duration::MAX)) };
    Suite::new(&suite, &now)
        .with_damage(&|space, block| {
            let sql = "UPDATE ringflake SET value = json_set(value, '$.epoch', 0) WHERE key = ?1";
            let raw = Connection::open(machine.path()).unwrap();
            let key = Key::block(space.name(), block);
            assert_eq!(raw.execute(sql, [key.as_str()]).unwrap(), 1);
        })
        .run();
}

#[test]
fn a_tier_in_a_later_format_is_refused() {
    let mut machine = Machine::new();
    machine.acquire(&mut machine.process());
    let raw = Connection::open(machine.path()).unwrap();
    let sql = "UPDATE ringflake SET value = json_set(value, '$.format', 9) WHERE key = ?1";
    let key = Key::record("orders");
    assert_eq!(raw.execute(sql, [key.as_str()]).unwrap(), 1);
    format(machine.process().acquire(&space(), &ask())).says("format 9");
}

#[test]
fn s9_a_copied_file_gives_up_what_the_original_has() {
    let mut machine = Machine::new();
    let mut process = machine.process();
    let grant = machine.acquire(&mut process);
    fs::copy(machine.path(), machine.at("copy.db")).unwrap();
    let mut elsewhere = machine.process_at(machine.at("copy.db"));
    let renewed = kit::renew(&mut elsewhere, &space(), &grant);
    assert_eq!(fenced(renewed), Fence::Upstream);
    // Although the step failed.
    let raw = Connection::open(machine.at("copy.db")).unwrap();
    let sql = "SELECT group_concat(DISTINCT value ->> 'standing') FROM ringflake
        WHERE key LIKE '%/upstream/%'";
    let standing: String = raw.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(standing, "closed");
    drop(raw);
    for _ in 0..5 {
        machine.acquire(&mut elsewhere);
        machine.acquire(&mut process);
    }
    let end = kit::renew(&mut process, &space(), &grant).unwrap();
    machine.given.extend(&grant, end);
}

#[cfg(target_os = "linux")]
#[test]
fn s9_a_file_put_back_in_place_begins_above_its_sub_grants() {
    // Good tools bring back everything that is in a file or on its inode.
    for words in ["cp", "cp -a", "rsync -aX --inplace --checksum"] {
        let (program, options) = words.split_once(' ').unwrap_or((words, ""));
        if program == "cp" || server::find(program, program).is_some() {
            a_file_put_back_by(program, options);
        }
    }
}

#[cfg(target_os = "linux")]
fn a_file_put_back_by(program: &str, options: &str) {
    let mut machine = Machine::new();
    let mut process = machine.process();
    machine.acquire(&mut process);
    let backup = machine.at("backup.db");
    let copy = |from: &Path, to: &Path| {
        printed(Command::new(program).args(words(options)).args([from, to]));
    };
    copy(&machine.path(), &backup);
    let last = (0..3)
        .map(|_| machine.acquire(&mut process))
        .last()
        .unwrap();
    copy(&backup, &machine.path());
    let renewed = kit::renew(&mut process, &space(), &last);
    assert_eq!(
        fenced(renewed),
        Fence::Floor {
            known: last.ticks.end,
            floor: floor(&mut process)
        }
    );
    match process.acquire(&space(), &ask()).unwrap_err() {
        StoreError::FloorAhead { floor, .. } => assert!(floor > last.ticks.end),
        other => panic!("{other}"),
    }
}

fn floor(process: &mut TierStore) -> u64 {
    process.list(&space()).unwrap().record.floor
}

#[test]
fn s9_a_tier_is_no_store_and_a_store_is_no_tier() {
    let mut machine = Machine::new();
    machine.acquire(&mut machine.process());
    let mut store = SqliteStore::new(machine.path(), &options()).unwrap();
    let said = corrupt(store.acquire(&space(), &ask()));
    assert!(said.contains("tier:PATH?upstream=URL"), "{said}");
    let said = corrupt(store.list(&space()));
    assert!(said.contains("the file of a tier"), "{said}");

    let path = machine.at("leases.db");
    let mut store = SqliteStore::new(&path, &options()).unwrap();
    kit::init(&mut store, &space());
    let said = corrupt(machine.process_at(path).acquire(&space(), &ask()));
    assert!(said.contains("a file of its own"), "{said}");
    assert!(store.list(&space()).unwrap().blocks.is_empty());
}

/// Containers that have no machine ID in common share a file. Each would give up what the
/// other has, and take more blocks, for ever.
#[test]
fn s9_two_machines_that_share_a_file_are_told() {
    let mut machine = Machine::new();
    let mut process = machine.process();
    let grant = machine.acquire(&mut process);
    // Another process, which lives.
    let sign = File::create_new(machine.at("tier.db.alive").join("1-1")).unwrap();
    sign.lock().unwrap();
    let raw = Connection::open(machine.path()).unwrap();
    raw.execute_batch(
        "UPDATE ringflake_file SET identity = 'machine x' || substr(identity, instr(identity, ','));
         UPDATE ringflake SET value = json_set(value, '$.incarnation',
             'machine x' || substr(value ->> 'incarnation', instr(value ->> 'incarnation', ',')))
         WHERE key = 'orders/record'",
    )
    .unwrap();
    drop(raw);
    let said = copied(process.acquire(&space(), &ask()));
    assert!(said.contains("/etc/machine-id"), "{said}");
    // Without it this is a file that has moved with its disk. Closing alone would not do while a
    // child that another test has forked has the same open file.
    sign.unlock().unwrap();
    let renewed = kit::renew(&mut process, &space(), &grant);
    assert_eq!(fenced(renewed), Fence::Upstream);
    machine.acquire(&mut process);
}

#[test]
fn a_write_test_writes_to_the_file() {
    let mut machine = Machine::new();
    let mut process = machine.process();
    // Without a file to the upstream store.
    process.write_test(&space(), now()).unwrap();
    machine.acquire(&mut process);
    process.write_test(&space(), now()).unwrap();
    let raw = Connection::open(machine.path()).unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON ringflake
        BEGIN SELECT RAISE(ABORT, 'no write'); END;
        CREATE TRIGGER refuse_too BEFORE UPDATE ON ringflake
        BEGIN SELECT RAISE(ABORT, 'no write'); END";
    raw.execute_batch(refuse).unwrap();
    drop(raw);
    process.check(&space(), now()).unwrap();
    corrupt(process.write_test(&space(), now()));
}
