//! Processes that are killed, and disks that are full.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, PipeReader, Write};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ringflake::Layout;
use ringflake::lease::conformance::Given;
use ringflake::lease::{
    Acquire, Block, Epoch, Fingerprint, Grant, LeaseStore, MAX_ACQUIRE, Namespace, Renew,
    StoreError,
};
use ringflake_kit::eventually;

use super::{Place, acquire, ask, child, given_path, now, space, store};
use crate::kit::{self, ambiguous, unavailable};

/// Sixteen blocks, which come back all the time with ticks of a millisecond.
fn busy_space() -> Namespace {
    Namespace::new("busy", &Layout::TWITTER, Fingerprint::PLAIN)
        .and_then(|space| space.with_block_bits(6))
        .unwrap()
}

/// Acquires, renews and releases until it is killed, and prints what it was given.
fn grant_for_ever(path: &Path) -> ! {
    let (mut store, space) = (store(path), busy_space());
    let jitter = RandomState::new();
    let print = |block, ticks: Range<u64>| {
        // In one write, so that it is a line whatever others print.
        let line = format!("\ngiven {block} {} {}\n", ticks.start, ticks.end);
        io::stdout().write_all(line.as_bytes()).unwrap();
    };
    loop {
        let grants = match store.acquire(&space, &Acquire::new(2, 40, now())) {
            Err(StoreError::Exhausted { .. }) => {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            granted => granted.unwrap(),
        };
        for grant in grants {
            let (block, end) = (grant.block, grant.ticks.end);
            print(block, grant.ticks.clone());
            let random = jitter.hash_one((block, grant.epoch));
            if random % 2 == 0 {
                match store.renew(&space, &Renew::new(&grant, end + 20, now())) {
                    // It has passed in the meantime.
                    Err(StoreError::Fenced { .. }) => continue,
                    renewed => print(block, end..renewed.unwrap()),
                }
            }
            if random % 3 == 0 {
                match store.release(&space, block, grant.epoch) {
                    Err(StoreError::Fenced { .. }) => {}
                    released => released.unwrap(),
                }
            }
        }
    }
}

/// Takes down all that workers print, until the last of them is gone.
fn take_down(printed: PipeReader, given: &Mutex<Given>) {
    for line in BufReader::new(printed).lines() {
        if let Some(numbers) = line.unwrap().strip_prefix("given ") {
            let numbers: Vec<_> = numbers.split(' ').map(|it| it.parse().unwrap()).collect();
            let [block, start, end] = numbers[..] else {
                panic!("{numbers:?}");
            };
            let grant = Grant::new(Block::new(block), Epoch::FIRST, start..end);
            given.lock().unwrap().add(&grant);
        }
    }
}

#[test]
fn no_grants_overlap_when_processes_are_killed() {
    if let Some(path) = given_path() {
        grant_for_ever(&path);
    }
    // So that blocks come back before their ends, which no disk lets them.
    let place = Place::in_memory();
    let mut store = place.store();
    kit::init(&mut store, &busy_space());

    let (printed, output) = io::pipe().unwrap();
    let given = Arc::new(Mutex::new(Given::default()));
    let reader = thread::spawn({
        let given = Arc::clone(&given);
        move || take_down(printed, &given)
    });
    let start = || {
        let mut worker = child(&place.path);
        worker.stdout(output.try_clone().unwrap()).spawn().unwrap()
    };
    let kill = |mut worker: Child| {
        worker.kill().unwrap();
        let status = worker.wait().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGKILL), "it had ended");
    };
    let mut workers: Vec<_> = (0..8).map(|_| start()).collect();
    let random = RandomState::new();
    for round in 0..ringflake_kit::short_or_long(30, 100) {
        // The moment is what is random here; no outcome hangs on it.
        thread::sleep(Duration::from_micros(random.hash_one(round) % 20_000));
        let victim = (random.hash_one((round, "victim")) % 8) as usize;
        kill(std::mem::replace(&mut workers[victim], start()));
    }
    // The survivors have time to meet the leftovers of the killed workers.
    eventually("a thousand intervals were given", || {
        given.lock().unwrap().intervals() >= 1000
    });
    workers.into_iter().for_each(kill);
    drop(output);
    reader.join().unwrap();

    store.check(&busy_space(), now()).unwrap();
    let listing = store.list(&busy_space()).unwrap();
    assert_eq!(listing.blocks.len(), 16);
    let given = given.lock().unwrap();
    for block in listing.blocks {
        let (mark, printed) = (block.hwm_end, given.mark(block.block));
        assert!(mark >= printed && printed > 0, "{mark}, {printed}");
    }
}

#[test]
fn a_change_cut_short_by_a_kill_is_undone_by_the_next() {
    if let Some(path) = given_path() {
        let raw = rusqlite::Connection::open(path).unwrap();
        // More than fits into the cache: pages reach the file before the commit.
        raw.execute_batch(
            "PRAGMA cache_size = 2;
             BEGIN IMMEDIATE;
             UPDATE ringflake SET value = value || ' ', rank = rank + 7;",
        )
        .unwrap();
        // SAFETY: a signal to the thread's own process.
        unsafe { libc::raise(libc::SIGKILL) };
    }
    let place = Place::initialised();
    for _ in 0..10 {
        place.store().acquire(&space(), &ask(MAX_ACQUIRE)).unwrap();
    }
    let (known, bytes) = (place.list(), fs::read(&place.path).unwrap());

    let output = child(&place.path).output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{output:?}");
    assert!(fs::read(&place.path).unwrap() != bytes);
    let journal = || place.journal().metadata().map_or(0, |found| found.len());
    assert!(journal() > 0);

    assert_eq!(place.list(), known);
    assert!(fs::read(&place.path).unwrap() == bytes);
    acquire(&mut place.store()).unwrap();
    assert_eq!(journal(), 0);
}

/// Lets no file of this process grow beyond `bytes`: every write there fails.
fn limit_files(bytes: u64) {
    // SAFETY: writes beyond the limit then fail instead of killing.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: reads the limit, and changes what this process may do.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    assert_eq!(set, 0);
}

#[test]
fn a_disk_that_takes_no_more_costs_no_rectangle() {
    if let Some(path) = given_path() {
        let mut store = store(&path);
        let known = store.list(&space()).unwrap();
        let length = path.metadata().unwrap().len();
        assert!(length > 120_000, "{length}");

        // Not even the journal: nothing was done.
        limit_files(600);
        let said = unavailable(acquire(&mut store));
        assert!(said.contains("I/O error"), "{said}");
        limit_files(libc::RLIM_INFINITY);
        assert_eq!(store.list(&space()).unwrap(), known);

        // The journal, but not the end of the database: found out by the commit.
        limit_files(60_000);
        let said = ambiguous(acquire(&mut store));
        assert!(said.contains("acquire"), "{said}");
        limit_files(libc::RLIM_INFINITY);
        assert_eq!(store.list(&space()).unwrap(), known);
        acquire(&mut store).unwrap();
        return;
    }
    let place = Place::initialised();
    for _ in 0..20 {
        place.store().acquire(&space(), &ask(MAX_ACQUIRE)).unwrap();
    }
    let output = child(&place.path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    acquire(&mut place.store()).unwrap();
    // All of them apart.
    assert_eq!(place.list().blocks.len(), 20 * MAX_ACQUIRE as usize + 2);
}
