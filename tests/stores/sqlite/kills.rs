//! Processes that are killed, and disks that are full.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use ringflake::Layout;
use ringflake::lease::conformance::Given;
use ringflake::lease::{
    Acquire, Block, Epoch, Fingerprint, Grant, History, Init, LeaseStore, Namespace, Renew,
    StoreError,
};

use crate::kit::exhausted;

use super::{Place, acquire, ask, child, job, now, space, store};

/// Ends this process at once.
fn kill_self() -> ! {
    // SAFETY: a signal to the thread's own process.
    unsafe { libc::raise(libc::SIGKILL) };
    unreachable!("nobody survives that");
}

/// Runs a job in a process of its own to its end.
#[track_caller]
fn run_killed(test: &str, job: &str, path: &Path) {
    let output = child(test, job, path).output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{output:?}");
}

/// Sixteen blocks, which come back all the time with ticks of a millisecond.
fn busy_space() -> Namespace {
    Namespace::new("busy", &Layout::TWITTER, Fingerprint::PLAIN)
        .and_then(|space| space.with_block_bits(6))
        .unwrap()
}

/// Acquires, renews and releases until it is killed, and prints each reply.
fn grant_for_ever(path: &Path) -> ! {
    let (mut store, space) = (store(path), busy_space());
    let jitter = RandomState::new();
    for round in 0_u64.. {
        let grants = match store.acquire(&space, &Acquire::new(2, 40, now())) {
            Ok(grants) => grants,
            Err(StoreError::Exhausted { .. }) => {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            Err(error) => panic!("acquire: {error:?}"),
        };
        for grant in grants {
            let (block, epoch, end) = (grant.block, grant.epoch, grant.ticks.end);
            println!("\ngrant {block} {epoch} {} {end}", grant.ticks.start);
            let random = jitter.hash_one((round, block));
            if random % 2 == 0 {
                let renew = Renew::new(&grant, end + 20, now());
                match store.renew(&space, &renew) {
                    Ok(renewed) => println!("\nrenew {block} {epoch} {end} {renewed}"),
                    // It has passed in the meantime.
                    Err(StoreError::Fenced { .. }) => continue,
                    Err(error) => panic!("renew: {error:?}"),
                }
            }
            if random % 3 == 0 {
                match store.release(&space, block, epoch) {
                    Ok(()) | Err(StoreError::Fenced { .. }) => {}
                    Err(error) => panic!("release: {error:?}"),
                }
            }
        }
    }
    unreachable!("rounds don't end");
}

/// A worker, and the thread that reads what it prints.
struct Worker(Child);

impl Worker {
    fn start(path: &Path, replies: &Sender<String>) -> Self {
        let mut worker = child(KILLS, "grant", path).spawn().unwrap();
        let printed = BufReader::new(worker.stdout.take().unwrap());
        let replies = replies.clone();
        thread::spawn(move || {
            for line in printed.lines().map_while(Result::ok) {
                // The test may have failed, and be gone.
                let _ = replies.send(line);
            }
        });
        Self(worker)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Takes down a line that a worker printed.
fn take_down(given: &mut Given, line: &str) {
    let words: Vec<_> = line.split(' ').collect();
    let [what @ ("grant" | "renew"), numbers @ ..] = words.as_slice() else {
        assert!(!line.contains("panicked"), "{line}");
        return;
    };
    let numbers: Vec<u64> = numbers.iter().map(|word| word.parse().unwrap()).collect();
    let [block, epoch, first, last] = numbers[..] else {
        panic!("{line}");
    };
    let (block, epoch) = (Block::new(block), Epoch::new(epoch));
    match *what {
        "grant" => given.add(&Grant::new(block, epoch, first..last)),
        _ => given.extend(&Grant::new(block, epoch, 0..first), last),
    }
}

const KILLS: &str = "sqlite::kills::no_grants_overlap_when_processes_are_killed";

#[test]
fn no_grants_overlap_when_processes_are_killed() {
    let rounds = ringflake_kit::short_or_long(30, 100);
    if let Some(path) = job("grant") {
        grant_for_ever(&path);
    }
    let place = Place::new();
    let init = Init::new(History::New, now());
    place.store().init(&busy_space(), &init).unwrap();

    let (replies, printed): (_, Receiver<String>) = channel();
    let mut workers: Vec<_> = (0..8)
        .map(|_| Worker::start(&place.path, &replies))
        .collect();
    let random = RandomState::new();
    for round in 0..rounds {
        // The moment is what is random here; no outcome hangs on it.
        thread::sleep(Duration::from_micros(random.hash_one(round) % 20_000));
        let victim = (random.hash_one((round, "victim")) % 8) as usize;
        // Killed when it is dropped.
        workers[victim] = Worker::start(&place.path, &replies);
    }
    // Those that are left have had time to come across what the killed ones left.
    let mut given = Given::default();
    while given.intervals() < 1000 {
        let line = printed.recv_timeout(Duration::from_secs(60)).unwrap();
        take_down(&mut given, &line);
    }
    drop((workers, replies));
    printed.iter().for_each(|line| take_down(&mut given, &line));

    let mut store = place.store();
    store.check(&busy_space(), now()).unwrap();
    let listing = store.list(&busy_space()).unwrap();
    assert_eq!(listing.blocks.len(), 16);
    for block in listing.blocks {
        let (mark, printed) = (block.hwm_end, given.mark(block.block));
        assert!(mark >= printed, "{mark} is before {printed}");
    }
}

#[test]
fn a_change_cut_short_by_a_kill_is_undone_by_the_next() {
    const THIS: &str = "sqlite::kills::a_change_cut_short_by_a_kill_is_undone_by_the_next";
    if let Some(path) = job("hot") {
        let raw = rusqlite::Connection::open(path).unwrap();
        // More than fits into the cache: pages reach the file before the commit.
        raw.execute_batch(
            "PRAGMA cache_size = 2;
             BEGIN IMMEDIATE;
             UPDATE ringflake_block SET epoch = epoch + 7, hwm_end = hwm_end + 7;",
        )
        .unwrap();
        kill_self();
    }
    let place = Place::initialised();
    for _ in 0..10 {
        place.store().acquire(&space(), &ask(127, 10)).unwrap();
    }
    let (known, bytes) = (place.list(), fs::read(&place.path).unwrap());

    run_killed(THIS, "hot", &place.path);
    assert!(fs::read(&place.path).unwrap() != bytes);
    let journal = || place.journal().metadata().map_or(0, |found| found.len());
    assert!(journal() > 0);

    assert_eq!(place.list(), known);
    assert!(fs::read(&place.path).unwrap() == bytes);
    let grant = acquire(&mut place.store(), 10).unwrap();
    assert_eq!(grant.block.index(), 1270);
    assert_eq!(journal(), 0);
}

#[test]
fn what_was_granted_without_a_reply_is_never_granted_again() {
    const THIS: &str = "sqlite::kills::what_was_granted_without_a_reply_is_never_granted_again";
    let all = || {
        Namespace::new("all", &Layout::RANDFLAKE, Fingerprint::PLAIN)
            .and_then(|space| space.with_block_bits(17))
            .unwrap()
    };
    if let Some(path) = job("lose") {
        store(&path).acquire(&all(), &ask(1, 100)).unwrap();
        kill_self();
    }
    let place = Place::new();
    let mut store = place.store();
    store.init(&all(), &Init::new(History::New, now())).unwrap();
    run_killed(THIS, "lose", &place.path);

    let lost = store.list(&all()).unwrap().blocks.remove(0);
    exhausted(store.acquire(&all(), &ask(1, 10)));
    store.release(&all(), lost.block, lost.epoch).unwrap();
    let grant = store.acquire(&all(), &ask(1, 10)).unwrap().remove(0);
    assert_eq!(grant.ticks.start, lost.hwm_end);
}

/// Lets no file of this process grow beyond `bytes`: every write there fails.
fn limit_files(bytes: u64) {
    // SAFETY: writes beyond the limit then fail instead of killing.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: room for what the call writes.
    let got = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    assert_eq!(got, 0);
    limit.rlim_cur = bytes.min(limit.rlim_max);
    // SAFETY: a limit that is no greater than the hard one.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    assert_eq!(set, 0);
}

#[test]
fn a_disk_that_takes_no_more_costs_no_rectangle() {
    const THIS: &str = "sqlite::kills::a_disk_that_takes_no_more_costs_no_rectangle";
    if let Some(path) = job("full") {
        let mut store = store(&path);
        let known = store.list(&space()).unwrap();
        let length = path.metadata().unwrap().len();
        assert!(length > 120_000, "{length}");

        // Not even the journal: nothing was done.
        limit_files(600);
        match acquire(&mut store, 10).unwrap_err() {
            StoreError::Unavailable { source } => {
                assert!(source.to_string().contains("I/O error"), "{source}");
            }
            other => panic!("{other}"),
        }
        limit_files(u64::MAX);
        assert_eq!(store.list(&space()).unwrap(), known);

        // The journal, but not the end of the database: found out by the commit.
        limit_files(60_000);
        match acquire(&mut store, 10).unwrap_err() {
            StoreError::Ambiguous { operation, .. } => assert_eq!(operation, "acquire"),
            other => panic!("{other}"),
        }
        limit_files(u64::MAX);
        assert_eq!(store.list(&space()).unwrap(), known);
        acquire(&mut store, 10).unwrap();
        return;
    }
    let place = Place::initialised();
    let mut given = Given::default();
    for _ in 0..20 {
        let grants = place.store().acquire(&space(), &ask(127, 10)).unwrap();
        grants.iter().for_each(|grant| given.add(grant));
    }
    let output = child(THIS, "full", &place.path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    given.add(&acquire(&mut place.store(), 10).unwrap());
    assert_eq!(place.list().blocks.len(), 20 * 127 + 2);
}
