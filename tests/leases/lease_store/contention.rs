//! Many stores that ask for blocks of one namespace at the same moment.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::conformance::Given;
use ringflake::lease::table::MemoryTable;
use ringflake::lease::{
    Acquire, Fingerprint, Grant, History, Init, LeaseStore, Leases, MAX_ACQUIRE, MemoryStore,
    Namespace,
};
use ringflake::{Clock, Layout, ManualClock};

use super::watched::WatchedTable;

const BLOCKS: u64 = 4096;

/// Of a request, and of its reply: so that all read before the first one commits, or not.
const LATENCIES: [Duration; 2] = [Duration::ZERO, Duration::from_millis(20)];

/// A namespace of which every block was granted.
struct Rig {
    clock: ManualClock,
    server: MemoryStore,
    space: Namespace,
    given: Given,
}

impl Rig {
    fn new(length: u64) -> (Self, Vec<Grant>) {
        let clock = ManualClock::new(1_760_000_000_000);
        let space = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        assert_eq!(space.blocks(), BLOCKS);
        let mut rig = Self {
            server: MemoryStore::new(Arc::new(clock.clone())),
            clock,
            space,
            given: Given::default(),
        };
        let init = Init::new(History::New, rig.clock.unix_ms());
        rig.server.init(&rig.space, &init).unwrap();
        let ask = Acquire::new(MAX_ACQUIRE, length, rig.clock.unix_ms());
        let mut grants = Vec::new();
        while grants.len() < BLOCKS as usize {
            grants.extend(rig.server.acquire(&rig.space, &ask).unwrap());
        }
        grants.iter().for_each(|grant| rig.given.add(grant));
        (rig, grants)
    }

    /// Acquires one block in each of so many threads, each with a store of its own. Returns the
    /// grants.
    fn acquire_at_once(&mut self, threads: usize, latency: Duration, what: &str) -> Vec<Grant> {
        let table: &MemoryTable = self.server.table();
        let watched = WatchedTable::new(table.clone()).with_latency(latency);
        let start = &Barrier::new(threads);
        let (space, now) = (&self.space, self.clock.unix_ms());
        let acquire = || {
            let mut store = Leases::over(watched.clone());
            start.wait();
            let started = Instant::now();
            let granted = store.acquire(space, &Acquire::new(1, 60, now));
            (granted, started.elapsed())
        };
        let answers = thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(acquire)).collect();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap());
            joined.collect::<Vec<_>>()
        });
        let slowest = answers.iter().map(|(_, elapsed)| *elapsed).max();
        let conflicts = watched.watch().conflicts;
        println!(
            "{threads} threads, {what}, latency {latency:?}: {conflicts} conflicts, the slowest took {:?}",
            slowest.unwrap_or(Duration::ZERO)
        );
        let granted = answers
            .into_iter()
            .flat_map(|(granted, _)| granted.unwrap());
        let granted: Vec<_> = granted.collect();
        assert_eq!(granted.len(), threads);
        granted.iter().for_each(|grant| self.given.add(grant));
        granted
    }
}

#[test]
fn a_hundred_acquire_idle_blocks_at_once() {
    for latency in LATENCIES {
        let (mut rig, _) = Rig::new(1);
        rig.clock.advance(Duration::from_secs(2));
        rig.acquire_at_once(100, latency, "idle blocks");
    }
}

#[test]
fn forty_acquire_released_blocks_at_once() {
    for latency in LATENCIES {
        let (mut rig, grants) = Rig::new(60);
        for grant in &grants {
            let Grant { block, epoch, .. } = *grant;
            rig.server.release(&rig.space, block, epoch).unwrap();
        }
        let again = rig.acquire_at_once(40, latency, "released blocks");
        let is_after = |grant: &Grant| grant.ticks.start >= grants[0].ticks.end;
        assert!(again.iter().all(is_after), "{again:?}");
    }
}
