//! A tier in a file, between processes and an upstream store.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ringflake::lease::conformance::{Given, Suite};
use ringflake::lease::{
    Acquire, Fence, Fingerprint, Floor, Grant, History, Init, LeaseStore, MemoryStore, Namespace,
    OpenOptions, Renew, SqliteStore, StoreError, StoreLimits, TierStore, open,
};
use ringflake::{Clock, Layout, SystemClock};

use crate::kit::{exhausted, not_initialised};
use ringflake_kit::server::data_directory;
use tempfile::TempDir;

/// How far the upstream store grants.
const REACH: u64 = 3600;
/// How far sub-grants reach.
const SUB: u64 = 120;

/// A machine, and the store of the cluster.
struct Machine {
    directory: TempDir,
    upstream: MemoryStore,
    given: Given,
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
            given: Given::default(),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("tier.db")
    }

    fn process(&self) -> TierStore {
        self.process_at(self.path())
    }

    fn process_at(&self, path: PathBuf) -> TierStore {
        TierStore::new(path, Box::new(self.upstream.clone()), &options()).unwrap()
    }

    fn acquire(&mut self, process: &mut TierStore) -> Grant {
        let grants = process.acquire(&space(), &Acquire::new(1, 600, now()));
        let grant = grants.unwrap().remove(0);
        self.given.add(&grant);
        grant
    }
}

fn options() -> OpenOptions {
    OpenOptions::new()
        .accept_best_effort(true)
        .timeout(Duration::from_secs(60))
}

fn space() -> Namespace {
    Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap()
}

fn now() -> u64 {
    SystemClock.unix_ms()
}

#[track_caller]
fn fence<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Fence {
    match result {
        Err(StoreError::Fenced { fence, .. }) => fence,
        other => panic!("{other:?}, not a fence"),
    }
}

#[test]
fn s9_a_tier_in_a_file_conforms() {
    let machine = Machine::new();
    let suite =
        || -> Box<dyn LeaseStore> { Box::new(machine.process().with_sub_grants(Duration::MAX)) };
    Suite::new(&suite, &now).run();
}

#[test]
fn s9_a_tier_over_a_file_of_sqlite_conforms() {
    let directory = data_directory();
    let url = format!(
        "tier:{0}/tier.db?upstream=sqlite:{0}/leases.db",
        directory.path().display()
    );
    let suite = || -> Box<dyn LeaseStore> {
        let tier = TierStore::from_url(&url, &options()).unwrap();
        Box::new(tier.with_sub_grants(Duration::MAX))
    };
    Suite::new(&suite, &now).run();
}

#[test]
fn s9_a_copied_file_gives_up_what_the_original_has() {
    let mut machine = Machine::new();
    let mut process = machine.process();
    let grant = machine.acquire(&mut process);
    let copy = machine.directory.path().join("copy.db");
    fs::copy(machine.path(), &copy).unwrap();
    let mut elsewhere = machine.process_at(copy);
    let renew = Renew::new(&grant, grant.ticks.end + 1, now());
    assert_eq!(fence(elsewhere.renew(&space(), &renew)), Fence::Upstream);
    for _ in 0..5 {
        machine.acquire(&mut elsewhere);
        machine.acquire(&mut process);
    }
    let end = process.renew(&space(), &renew).unwrap();
    machine.given.extend(&grant, end);
}

#[test]
fn s9_a_file_put_back_by_name_or_in_place_gives_up_what_it_had() {
    for in_place in [false, true] {
        let mut machine = Machine::new();
        machine.acquire(&mut machine.process());
        let backup = machine.directory.path().join("backup.db");
        fs::copy(machine.path(), &backup).unwrap();
        for _ in 0..3 {
            machine.acquire(&mut machine.process());
        }
        if in_place {
            fs::copy(&backup, machine.path()).unwrap();
        } else {
            fs::rename(&backup, machine.path()).unwrap();
        }
        for _ in 0..3 {
            machine.acquire(&mut machine.process());
        }
    }
}

#[test]
fn s9_a_file_that_was_removed_is_made_anew_with_other_blocks() {
    let mut machine = Machine::new();
    let first = machine.acquire(&mut machine.process());
    for name in ["tier.db", "tier.db-journal"] {
        fs::remove_file(machine.directory.path().join(name)).unwrap();
    }
    assert_ne!(machine.acquire(&mut machine.process()).block, first.block);
}

#[test]
fn s9_the_floor_of_a_file_closes_what_it_has() {
    let mut machine = Machine::new();
    let mut process = machine.process();
    let grant = machine.acquire(&mut process);
    let floor = process.raise_floor(&space(), Floor::OverLostGrants, now());
    let over = grant.ticks.start + SUB + 60 + 1;
    assert!((over..over + 5).contains(&floor.unwrap()));
    let known = process.list(&space()).unwrap();
    assert_eq!(known.record.limits.horizon(), Duration::from_secs(SUB));
    let error = process.acquire(&space(), &Acquire::new(1, 60, now()));
    assert!(matches!(error, Err(StoreError::FloorAhead { .. })));
}

#[test]
fn s9_a_tier_is_no_store_and_a_store_is_no_tier() {
    let mut machine = Machine::new();
    machine.acquire(&mut machine.process());
    let mut store = SqliteStore::new(machine.path(), &options()).unwrap();
    let ask = Acquire::new(1, 60, now());
    let error = store.acquire(&space(), &ask).unwrap_err().to_string();
    assert!(error.contains("tier:PATH?upstream=URL"), "{error}");
    let error = store.list(&space()).unwrap_err().to_string();
    assert!(error.contains("the file of a tier"), "{error}");

    let path = machine.directory.path().join("leases.db");
    let mut store = SqliteStore::new(&path, &options()).unwrap();
    store
        .init(&space(), &Init::new(History::New, now()))
        .unwrap();
    let mut tier = machine.process_at(path);
    let error = tier.acquire(&space(), &ask).unwrap_err().to_string();
    assert!(error.contains("a file of its own"), "{error}");
    assert!(store.list(&space()).unwrap().blocks.is_empty());
}

/// What was written down for the machine's processes outlives them all.
#[test]
fn s9_processes_start_while_the_upstream_store_is_away() {
    let directory = data_directory();
    let at = |name: &str| directory.path().join(name);
    let url = format!(
        "tier:{}?upstream=sqlite:{}",
        at("tier.db").display(),
        at("leases.db").display()
    );
    let mut given = Given::default();
    let mut start = || -> Result<Grant, StoreError> {
        let mut process = open(&url, &options()).unwrap();
        let grant = (process.acquire(&space(), &Acquire::new(1, 600, now()))?).remove(0);
        given.add(&grant);
        // A clean end.
        process.release(&space(), grant.block, grant.epoch).unwrap();
        Ok(grant)
    };
    let mut upstream = open(&format!("sqlite:{}", at("leases.db").display()), &options()).unwrap();
    upstream
        .init(&space(), &Init::new(History::New, now()))
        .unwrap();
    start().unwrap();
    fs::rename(at("leases.db"), at("away.db")).unwrap();
    for _ in 0..6 {
        let grant = loop {
            match start() {
                Ok(grant) => break grant,
                // Two blocks, and a tick a second of each that is far ahead.
                Err(StoreError::Exhausted { retry_after, .. }) => thread::sleep(retry_after),
                Err(error) => panic!("{error}"),
            }
        };
        let now = Layout::RANDFLAKE.tick_at(now()).unwrap();
        assert!(grant.ticks.start < now + SUB);
    }
    // A machine that has nothing yet needs the upstream store once.
    fs::remove_file(at("tier.db")).unwrap();
    not_initialised(start());
    fs::rename(at("away.db"), at("leases.db")).unwrap();
    start().unwrap();
}

/// A process that was killed has let go of its sign of life.
#[test]
fn a_block_of_a_process_that_was_killed_is_free_where_it_ends() {
    const JOB: &str = "RINGFLAKE_TIER_JOB";
    const TEST: &str = "tier::a_block_of_a_process_that_was_killed_is_free_where_it_ends";
    let url = |directory: &std::path::Path| {
        let directory = directory.display();
        format!("tier:{directory}/tier.db?upstream=sqlite:{directory}/leases.db")
    };
    // One block is all there is.
    let whole = space().with_block_bits(17).unwrap();
    let ask = || Acquire::new(1, 60, now());
    if let Some(directory) = std::env::var_os(JOB) {
        let url = url(directory.as_ref());
        let mut process = open(&url, &options()).unwrap();
        process.acquire(&whole, &ask()).unwrap();
        // Without a word to the store.
        std::process::abort();
    }
    let directory = data_directory();
    let mut process = open(&url(directory.path()), &options()).unwrap();
    process
        .init(&whole, &Init::new(History::New, now()))
        .unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact", "--nocapture"])
        .env(JOB, directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(!status.unwrap().success());
    let known = process.list(&whole).unwrap().blocks;
    assert!(!known[0].released && known[0].hwm_end > 0);
    let next = process.acquire(&whole, &ask()).unwrap().remove(0);
    assert_eq!(next.ticks.start, known[0].hwm_end);
    // It is held by this process now, which is alive.
    exhausted(process.acquire(&whole, &ask()));
}

/// A record that can't be true costs its block, and a repair begins above all.
#[test]
fn s9_a_damaged_block_is_passed_over_until_it_is_repaired() {
    let mut machine = Machine::new();
    let mut process = machine.process();
    let grant = machine.acquire(&mut process);
    let raw = rusqlite::Connection::open(machine.path()).unwrap();
    // Only a hand that takes them away first gets past the triggers.
    let triggers = "SELECT name FROM sqlite_schema WHERE type = 'trigger' \
                    AND tbl_name = 'ringflake_block'";
    let names: Vec<String> = (raw.prepare(triggers).unwrap())
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for name in names {
        raw.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    raw.execute_batch("UPDATE ringflake_block SET epoch = 0")
        .unwrap();
    drop(raw);
    let renew = Renew::new(&grant, grant.ticks.end + 1, now());
    let fence = fence(process.renew(&space(), &renew));
    assert!(matches!(fence, Fence::Quarantined { .. }), "{fence:?}");
    for _ in 0..3 {
        assert_ne!(machine.acquire(&mut process).block, grant.block);
    }
    let listing = process.list(&space()).unwrap();
    assert_eq!(listing.quarantined.len(), 1);

    let repaired = process.repair(&space(), grant.block, now()).unwrap();
    assert!(repaired.hwm_end > grant.ticks.end && repaired.released);
    assert!(process.list(&space()).unwrap().quarantined.is_empty());
}

/// Containers that have no machine ID in common share a file. Each would give up what the
/// other has, and take more blocks, for ever.
#[test]
fn s9_two_machines_that_share_a_file_are_told() {
    let mut machine = Machine::new();
    let mut process = machine.process();
    let grant = machine.acquire(&mut process);
    let elsewhere = || {
        let raw = rusqlite::Connection::open(machine.path()).unwrap();
        let change = "UPDATE ringflake_namespace \
                      SET incarnation = 'machine x' || substr(incarnation, instr(incarnation, ','))";
        assert_eq!(raw.execute(change, []).unwrap(), 1);
    };
    // Another process, which lives.
    let signs = machine.directory.path().join("tier.db.alive");
    let sign = fs::File::create_new(signs.join("1-1")).unwrap();
    sign.lock().unwrap();
    elsewhere();
    let ask = || Acquire::new(1, 600, now());
    let error = process.acquire(&space(), &ask()).unwrap_err();
    let StoreError::Copied { found, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(found.contains("/etc/machine-id"), "{found}");
    // Without it this is a file that has moved with its disk.
    drop(sign);
    let renew = Renew::new(&grant, grant.ticks.end + 1, now());
    assert_eq!(fence(process.renew(&space(), &renew)), Fence::Upstream);
    machine.acquire(&mut process);
}
