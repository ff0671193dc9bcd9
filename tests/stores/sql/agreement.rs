//! A store that decides on the server decides as the rules say: random schedules
//! on it and on the reference, step by step.

use std::sync::Arc;
use std::time::Duration;

use ringflake::lease::{
    Acquire, Fingerprint, Floor, Grant, History, Incarnation, Init, LeaseStore, Listing,
    MemoryStore, Namespace, Renew, StoreError, StoreLimits,
};
use ringflake::{Clock, Layout, SystemClock};

use super::Database;
use crate::kit::{all_of, now};

const DAY: Duration = Duration::from_secs(24 * 3600);
const DAY_MS: u64 = DAY.as_millis() as u64;
const HORIZON: u64 = 40;

/// Ticks of a day, with noon now: both servers' clocks then show the same tick
/// for as long as a test lasts.
fn layout() -> Layout {
    Layout::builder()
        .bits(20, 5, 10)
        .tick(DAY)
        .epoch_unix_ms(now() - 1000 * DAY_MS - DAY_MS / 2)
        .build()
        .unwrap()
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

/// An answer without what depends on the moment.
fn essence<T: std::fmt::Debug>(answer: &Result<T, StoreError>) -> String {
    match answer {
        Err(StoreError::Exhausted { wanted, blocks, .. }) => {
            format!("exhausted: {wanted} of {blocks}")
        }
        Err(StoreError::FloorAhead {
            floor, horizon_end, ..
        }) => format!("floor ahead: {floor} {horizon_end}"),
        Err(
            error @ (StoreError::Unavailable { .. }
            | StoreError::Ambiguous { .. }
            | StoreError::Corrupt { .. }),
        ) => panic!("{}", all_of(error)),
        other => format!("{other:?}"),
    }
}

/// A listing without what depends on the moment or the server.
fn state(listing: Listing) -> String {
    let blocks: Vec<_> = listing
        .blocks
        .into_iter()
        .map(|mut block| {
            block.granted_unix_ms = None;
            block.start = None;
            block
        })
        .collect();
    format!("floor {} {blocks:?}", listing.record.floor)
}

struct Pair<'a> {
    server: &'a dyn Database,
    store: Box<dyn LeaseStore>,
    reference: MemoryStore,
    space: Namespace,
    /// All that was ever granted, with the ends as their holders know them.
    grants: Vec<Grant>,
}

impl Pair<'_> {
    /// The same on both.
    #[track_caller]
    fn both<T: std::fmt::Debug>(
        &mut self,
        what: &str,
        operation: impl Fn(&mut dyn LeaseStore, &Namespace) -> Result<T, StoreError>,
    ) -> Option<T> {
        let ours = operation(&mut *self.store, &self.space);
        let theirs = operation(&mut self.reference, &self.space);
        assert_eq!(essence(&ours), essence(&theirs), "{what}");
        ours.ok()
    }

    /// `early`: all blocks may still be fresh, so that there is a past to grant.
    fn step(&mut self, random: &mut Random, early: bool) -> &'static str {
        match if early { 12 } else { random.below(15) } {
            0..=3 => {
                let blocks = random.pick(&[1, 1, 2, 5]);
                let length = random.pick(&[1, 7, 30, HORIZON, 100, u64::MAX]);
                let ask = Acquire::new(blocks, length, now());
                let granted = self.both("acquire", |store, space| store.acquire(space, &ask));
                self.grants.extend(granted.into_iter().flatten());
                "acquire"
            }
            4..=8 if !self.grants.is_empty() => {
                // Those of the past are below the floor as a rule.
                let mut held = random.below(self.grants.len() as u64) as usize;
                let is_late = |grant: &Grant| grant.ticks.end > 1000;
                if !is_late(&self.grants[held]) && random.below(4) > 0 {
                    held = self.grants.iter().rposition(is_late).unwrap_or(held);
                }
                let mut grant = self.grants[held].clone();
                match random.below(10) {
                    0 => grant.epoch = grant.epoch.next(),
                    1 => grant.ticks.end += 1,
                    2 => grant.block = random.pick(&self.grants).block,
                    _ => {}
                }
                let end = grant.ticks.end;
                let new_end = random.pick(&[end, end + 1, end + 9, end + 200, u64::MAX]);
                let renew = Renew::new(&grant, new_end, now());
                let moved = self.both("renew", |store, space| store.renew(space, &renew));
                if let Some(end) = moved {
                    self.grants[held].ticks.end = end;
                }
                "renew"
            }
            9 if !self.grants.is_empty() => {
                let mut grant = random.pick(&self.grants);
                if random.below(4) == 0 {
                    grant.epoch = grant.epoch.next();
                }
                self.both("release", |store, space| {
                    store.release(space, grant.block, grant.epoch)
                });
                "release"
            }
            10 if random.below(3) == 0 => {
                let floor = Floor::Tick(990 + random.below(HORIZON));
                self.both("raise_floor", |store, space| {
                    store.raise_floor(space, floor, now())
                });
                "raise_floor"
            }
            11 if random.below(20) == 0 => {
                let lost = "UPDATE ringflake_namespace SET incarnation = 'another' WHERE name = ";
                self.server
                    .execute(&format!("{lost}'{}'", self.space.name()));
                let other = format!("server {}", random.below(u64::MAX));
                self.reference.set_incarnation(Incarnation::new(other));
                "lose history"
            }
            12..=14 => {
                let start = random.pick(&[0, 0, 1, 300, 700, 985, 995]) + random.below(5);
                let length = random.pick(&[1, 2, 5, 300, u64::MAX]);
                let past = start..start.saturating_add(length);
                let ask = Acquire::past(random.pick(&[1, 2, 5]), past, now());
                let granted = self.both("past", |store, space| store.acquire(space, &ask));
                let known = self.grants.len();
                self.grants.extend(granted.into_iter().flatten());
                if self.grants.len() > known {
                    "past"
                } else {
                    "no past"
                }
            }
            _ => "nothing",
        }
    }
}

pub(crate) fn agrees_with_the_reference(server: &dyn Database) {
    let layout = layout();
    let limits = StoreLimits::default()
        .with_horizon(DAY * HORIZON as u32)
        .with_failover(DAY * 2)
        // What a busy machine may take between the client's clock and the store's.
        .with_skew(Duration::from_secs(60));
    let (mut renewed, mut past) = (0, 0);
    let seeds = ringflake_kit::short_or_long(6, 12);
    for seed in 1..=seeds {
        let name = format!("agreement-{seed}");
        let space = Namespace::new(name, &layout, Fingerprint::PLAIN)
            .and_then(|space| space.with_block_bits(2))
            .unwrap();
        let mut pair = Pair {
            server,
            store: server.store(),
            reference: MemoryStore::new(Arc::new(SystemClock) as Arc<dyn Clock>),
            space,
            grants: Vec::new(),
        };
        let history = match seed % 3 {
            0 => History::New,
            _ => History::Unused,
        };
        let init = Init::new(history, now()).with_limits(limits);
        pair.store.init(&pair.space, &init).unwrap();
        pair.reference.init(&pair.space, &init).unwrap();

        let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ seed);
        for step in 0..150 {
            let ends = |pair: &Pair<'_>| -> u64 { pair.grants.iter().map(|g| g.ticks.end).sum() };
            let before = ends(&pair);
            let did = pair.step(&mut random, step < 8);
            renewed += u32::from(did == "renew" && ends(&pair) > before);
            past += u32::from(did == "past");
            let ours = state(pair.store.list(&pair.space).unwrap());
            let theirs = state(pair.reference.list(&pair.space).unwrap());
            assert_eq!(ours, theirs, "seed {seed}, step {step}: {did}");
        }
    }
    assert!(
        renewed >= 2 * seeds as u32,
        "only {renewed} renewals moved an end"
    );
    assert!(past > 2 * seeds as u32, "only {past} grants of the past");
}
