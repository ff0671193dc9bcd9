//! The tests that every store of leases must pass.
//!
//! [`TableSuite`] tests a [`Table`](crate::lease::store::table::Table), the part that a backend
//! implements. [`Suite`] tests a [`LeaseStore`]: [`Leases`](crate::lease::Leases) over that
//! table, or a store with operations of its own. Both need nothing but the trait. Clocks that
//! jump, lost histories and lost replies need control over the server, and are left to each
//! backend's own tests.
//!
//! Like the assertions of a test, a suite panics at the first thing that is wrong.

/// Expects a refusal of this kind.
macro_rules! refused {
    ($answer:expr, $kind:ident) => {
        let error = $answer.unwrap_err();
        assert!(matches!(error, StoreError::$kind { .. }), "{error}");
    };
}

mod batch;
mod damage;
mod floor;
mod granted_ticks;
mod past;
mod renewal;
mod secrets;
mod table;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

pub use self::granted_ticks::GrantedTicks;
pub use self::table::TableSuite;
use crate::describe::opaque_debug;
use crate::layout::Layout;
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::{Fence, StoreError};
use crate::lease::fingerprint::Fingerprint;
use crate::lease::grant::Grant;
use crate::lease::holder::Holder;
use crate::lease::namespace::Namespace;
use crate::lease::store::lease_store::LeaseStore;
use crate::lease::store::limits::StoreLimits;
use crate::lease::store::request::{Acquire, Floor, History, Init, MAX_ACQUIRE, Renew};

/// The node bits of the layout, and so the block bits that make one block.
const NODE_BITS: u32 = 17;

/// A store under test.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use ringflake::lease::{MemoryStore, conformance::Suite};
/// use ringflake::{Clock, SystemClock};
///
/// let server = MemoryStore::new(Arc::new(SystemClock));
/// Suite::new(&|| Box::new(server.clone()), &|| SystemClock.unix_ms())
///     .with_damage(&|namespace, block| assert!(server.damage(namespace, block)))
///     .run();
/// ```
pub struct Suite<'a> {
    open: &'a dyn Fn() -> Box<dyn LeaseStore>,
    now: &'a dyn Fn() -> u64,
    damage: Option<&'a Damage<'a>>,
}

/// Leaves something that no store writes in the record of a block.
type Damage<'a> = dyn Fn(&Namespace, Block) + 'a;

impl<'a> Suite<'a> {
    /// `open` makes one more connection to the same server, on which none of the
    /// namespaces that the suite makes exist yet. `now` is the time of this
    /// machine, in milliseconds since 1970; the server's must be within two
    /// seconds of it.
    pub fn new(open: &'a dyn Fn() -> Box<dyn LeaseStore>, now: &'a dyn Fn() -> u64) -> Self {
        Self {
            open,
            now,
            damage: None,
        }
    }

    /// Also tests how the store treats a block whose record is damaged. `damage`
    /// writes something that no store writes into the record of a block that was
    /// granted, past the store: by a client of the server's own, say.
    #[must_use]
    pub fn with_damage(mut self, damage: &'a (dyn Fn(&Namespace, Block) + 'a)) -> Self {
        self.damage = Some(damage);
        self
    }

    /// Runs every test, each in a namespace of its own; takes a few hundred
    /// operations of the store.
    ///
    /// # Panics
    /// When the store does not conform.
    pub fn run(&self) {
        self.exists_only_once_initialised();
        self.checks_the_limits();
        self.refuses_another_secret_or_layout();
        self.refuses_one_secret_in_two_namespaces();
        self.refuses_one_secret_at_two_widths();
        self.refuses_one_secret_at_two_widths_at_once();
        self.grants_disjoint_rectangles();
        self.grants_no_more_than_there_is();
        self.checks_the_request();
        self.refuses_a_clock_that_is_off();
        self.makes_nothing_by_a_clock_that_is_off();
        self.grants_up_to_the_horizon();
        self.renews_several_at_once();
        self.renews_by_comparison();
        self.renews_up_to_the_horizon();
        self.keeps_the_mark_at_a_release();
        self.starts_at_the_floor();
        self.refuses_a_floor_far_ahead();
        self.fences_below_the_floor();
        self.starts_above_an_unknown_history();
        self.grants_where_it_knows_what_it_confirmed();
        self.refuses_where_it_knows_less();
        self.recovers_what_it_forgot();
        self.keeps_namespaces_apart();
        self.lists_and_reports();
        self.serves_many_connections();
        if self.grants_the_past() {
            self.reaches_back_as_far_as_the_history_says();
            self.grants_the_past_apart_from_all_else();
            self.leaves_the_past_of_blocks_of_the_present();
            self.takes_for_past_what_is_over_alone();
            self.closes_the_past_below_the_floor();
            self.fences_whoever_had_the_block_before();
            self.closes_the_past_that_it_forgot();
        }
        if let Some(damage) = self.damage {
            self.quarantines_a_damaged_block(damage);
            self.grants_nothing_of_damaged_blocks_alone(damage);
        }
    }

    fn exists_only_once_initialised(&self) {
        let mut store = (self.open)();
        let space = space("init", 5);
        for answer in every_method(&mut *store, &space, (self.now)()) {
            refused!(answer, NotInitialised);
        }

        let init = Init::new(History::New, (self.now)());
        let record = store.init(&space, &init).unwrap();
        assert_eq!(record.namespace, space);
        assert_eq!(record.limits, StoreLimits::default());
        assert_eq!(store.list(&space).unwrap().record, record);
        store.acquire(&space, &self.ask(1, 10)).unwrap();

        let known = store.list(&space).unwrap();
        refused!(store.init(&space, &init), AlreadyInitialised);
        assert_eq!(store.list(&space).unwrap(), known);
    }

    fn checks_the_limits(&self) {
        let mut store = (self.open)();
        let space = space("limits", 5);
        let limits = limits().with_failover(limits().skew());
        let init = Init::new(History::New, (self.now)()).with_limits(limits);
        refused!(store.init(&space, &init), Invalid);
        refused!(store.list(&space), NotInitialised);
    }

    fn refuses_another_secret_or_layout(&self) {
        let (mut store, space) = self.namespace("mismatch", 5);
        store.acquire(&space, &self.ask(2, 10)).unwrap();
        let known = store.list(&space).unwrap();

        let secret = Namespace::new(space.name(), space.layout(), Fingerprint::PLAIN).unwrap();
        for answer in every_method(&mut *store, &secret, (self.now)()) {
            refused!(answer, FingerprintMismatch);
        }
        let layout = Namespace::new(space.name(), &Layout::TWITTER, space.fingerprint()).unwrap();
        let blocks = space.clone().with_block_bits(6).unwrap();
        for other in [layout, blocks] {
            for answer in every_method(&mut *store, &other, (self.now)()) {
                refused!(answer, LayoutMismatch);
            }
        }
        assert_eq!(store.list(&space).unwrap(), known);
    }

    fn grants_disjoint_rectangles(&self) {
        // Two blocks, so that the same ones come back all the time.
        let (mut store, space) = self.namespace("disjoint", NODE_BITS - 1);
        let mut given = GrantedTicks::default();
        for round in 0..20 {
            let grants = store.acquire(&space, &self.ask(2, 1 + round % 3)).unwrap();
            for mut grant in grants {
                given.add(&grant);
                grant.to_lease(&space).unwrap();
                if round % 2 == 0 {
                    let renew = Renew::new(&grant, grant.ticks.end + 2, (self.now)());
                    let end = store.renew(&space, &renew).unwrap();
                    given.extend(&grant, end);
                    grant.ticks.end = end;
                }
                store.release(&space, grant.block, grant.epoch).unwrap();
            }
        }
        assert!(given.intervals() >= 40, "{given:?}");
    }

    fn grants_no_more_than_there_is(&self) {
        let (mut store, space) = self.namespace("exhausted", NODE_BITS - 2);
        let began = Instant::now();
        let first = store.acquire(&space, &self.ask(3, 60)).unwrap();
        let rest = store.acquire(&space, &self.ask(100, 60)).unwrap();
        let blocks: BTreeSet<_> = first.iter().chain(&rest).map(|g| g.block.index()).collect();
        assert_eq!((first.len(), rest.len()), (3, 1));
        assert_eq!(blocks, BTreeSet::from([0, 1, 2, 3]));

        let known = store.list(&space).unwrap();
        match store.acquire(&space, &self.ask(2, 60)).unwrap_err() {
            StoreError::Exhausted {
                wanted: 2,
                blocks: 4,
                retry_after,
            } => {
                let least = Duration::from_secs(50).saturating_sub(began.elapsed());
                let expected = least..=Duration::from_secs(63);
                assert!(expected.contains(&retry_after), "{retry_after:?}");
            }
            other => panic!("{other}"),
        }
        assert_eq!(store.list(&space).unwrap(), known);
    }

    fn checks_the_request(&self) {
        let (mut store, space) = self.namespace("invalid", 5);
        for (blocks, length) in [(0, 10), (MAX_ACQUIRE + 1, 10), (1, 0)] {
            refused!(store.acquire(&space, &self.ask(blocks, length)), Invalid);
        }
        let all = store.acquire(&space, &self.ask(MAX_ACQUIRE, 10)).unwrap();
        assert_eq!(all.len(), MAX_ACQUIRE as usize);

        let back = Renew::new(&all[0], all[0].ticks.end - 1, (self.now)());
        refused!(store.renew(&space, &back), Invalid);

        let beyond = Floor::Tick(space.layout().ticks());
        refused!(store.raise_floor(&space, beyond, (self.now)()), Invalid);
    }

    fn refuses_a_clock_that_is_off(&self) {
        let (mut store, space) = self.namespace("skew", 5);
        if !self.has_clock(&mut *store, &space) {
            return;
        }
        let now = (self.now)();
        let hour = 3_600_000;
        for client in [now - hour, now + hour] {
            match store
                .acquire(&space, &Acquire::new(1, 10, client))
                .unwrap_err()
            {
                StoreError::ClockSkew { client_unix_ms, .. } => assert_eq!(client_unix_ms, client),
                other => panic!("{other}"),
            }
        }
        assert!(store.list(&space).unwrap().blocks.is_empty());
    }

    fn makes_nothing_by_a_clock_that_is_off(&self) {
        let (mut store, known) = self.namespace("skew-known", 5);
        if !self.has_clock(&mut *store, &known) {
            return;
        }
        let space = space("skew-init", 5);
        let hour = 3_600_000;
        let at = |history, client| Init::new(history, client).with_limits(limits());
        for history in [History::New, History::Unused, History::Unknown] {
            for client in [(self.now)() - hour, (self.now)() + hour, 0] {
                match store.init(&space, &at(history, client)).unwrap_err() {
                    StoreError::ClockSkew { client_unix_ms, .. } => {
                        assert_eq!(client_unix_ms, client);
                    }
                    other => panic!("{other}"),
                }
                refused!(store.list(&space), NotInitialised);
            }
        }
        // Its secret is free.
        let again = Namespace::new("skew-again", space.layout(), space.fingerprint()).unwrap();
        store.init(&again, &at(History::New, (self.now)())).unwrap();
    }

    fn grants_up_to_the_horizon(&self) {
        let (mut store, space) = self.namespace("horizon", 5);
        let (before, horizon) = (self.tick(&space), limits().horizon().as_secs());
        for length in [horizon + 100, u64::MAX] {
            let grant = one(store.acquire(&space, &self.ask(1, length)));
            let end = grant.ticks.end;
            assert!(end >= before + horizon - 2, "{end} is early");
            assert!(end <= self.tick(&space) + horizon + 2, "{end} is late");
        }
    }

    fn keeps_namespaces_apart(&self) {
        let (mut store, left) = self.namespace("apart-1", NODE_BITS);
        let (_, right) = self.namespace("apart-2", NODE_BITS);
        one(store.acquire(&left, &self.ask(1, 10)));
        assert!(store.list(&right).unwrap().blocks.is_empty());
        let grant = one(store.acquire(&right, &self.ask(1, 20)));
        assert_eq!(grant.block, Block::new(0));
        store.release(&right, grant.block, grant.epoch).unwrap();
        assert!(!store.list(&left).unwrap().blocks[0].released);
    }

    fn lists_and_reports(&self) {
        let (mut store, space) = self.namespace("list", 5);
        let holder = Holder::new("host-1", "4711");
        // Long enough to be held at the check on a busy machine.
        let ask = self.ask(2, 60).held_by(holder.clone());
        let held = store.acquire(&space, &ask).unwrap();
        let released = one(store.acquire(&space, &self.ask(1, 10)));
        store
            .release(&space, released.block, released.epoch)
            .unwrap();

        let listing = store.list(&space).unwrap();
        assert!(listing.blocks.is_sorted_by_key(|block| block.block));
        assert_eq!(listing.blocks.len(), 3);
        for grant in &held {
            let found = state_of(&mut *store, &space, grant.block);
            assert_eq!((found.epoch, found.hwm_end), (grant.epoch, grant.ticks.end));
            assert_eq!(found.holder.as_ref(), Some(&holder));
            assert!(!found.released);
        }

        let began = Instant::now();
        let now = (self.now)();
        let report = store.check(&space, now).unwrap();
        let elapsed_ms = began.elapsed().as_millis() as u64;
        assert_eq!(report.record, listing.record);
        assert_eq!(report.client_unix_ms, now);
        assert!(!report.history_lost());
        assert_eq!((report.granted_blocks, report.held_blocks), (3, 2));
        let is_close = |skew: u64| skew <= 2000 + elapsed_ms;
        assert!(report.skew_ms().is_none_or(is_close));
        store.write_test(&space, now).unwrap();
        assert_eq!(store.list(&space).unwrap(), listing);
    }

    fn serves_many_connections(&self) {
        let (mut store, space) = self.namespace("many", 5);
        let now = (self.now)();
        let connections: Vec<_> = (0..4).map(|_| (self.open)()).collect();
        let grants: Vec<Grant> = std::thread::scope(|scope| {
            let workers: Vec<_> = connections
                .into_iter()
                .map(|mut store| {
                    let space = &space;
                    scope.spawn(move || {
                        (0..25)
                            .flat_map(|_| store.acquire(space, &Acquire::new(3, 10, now)).unwrap())
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap())
                .collect()
        });
        let mut given = GrantedTicks::default();
        grants.iter().for_each(|grant| given.add(grant));
        assert_eq!(grants.len(), 4 * 25 * 3);
        assert_eq!(store.list(&space).unwrap().blocks.len(), grants.len());
    }

    /// A connection and a fresh namespace on it.
    fn namespace(&self, name: &str, block_bits: u32) -> (Box<dyn LeaseStore>, Namespace) {
        let mut store = (self.open)();
        let space = space(name, block_bits);
        let init = Init::new(History::New, (self.now)()).with_limits(limits());
        store.init(&space, &init).unwrap();
        (store, space)
    }

    fn ask(&self, blocks: u32, length: u64) -> Acquire {
        Acquire::new(blocks, length, (self.now)())
    }

    fn tick(&self, space: &Namespace) -> u64 {
        space.layout().tick_at((self.now)()).unwrap()
    }

    /// Whether the store compares clocks. One that takes the caller's time has nothing to compare.
    fn has_clock(&self, store: &mut dyn LeaseStore, space: &Namespace) -> bool {
        let report = store.check(space, (self.now)()).unwrap();
        report.store_unix_ms.is_some()
    }

    /// Where a mark or a floor lies that was put above all lost grants after the tick `before`.
    fn above_lost_grants(&self, space: &Namespace, before: u64) -> RangeInclusive<u64> {
        let over = limits().horizon().as_secs() + limits().failover().as_secs() + 1;
        before + over - 2..=self.tick(space) + over + 2
    }
}

/// Each has a secret of its own.
fn space(name: &str, block_bits: u32) -> Namespace {
    let secret = hmac_sha256::HMAC::mac(name, "conformance");
    let mut print = [0; 16];
    print.copy_from_slice(&secret[..16]);
    let print = Fingerprint::from_bytes(print);
    Namespace::new(name, &Layout::RANDFLAKE, print)
        .and_then(|space| space.with_block_bits(block_bits))
        .unwrap()
}

fn limits() -> StoreLimits {
    StoreLimits::default()
        .with_horizon(Duration::from_secs(900))
        .with_failover(Duration::from_secs(30))
        // What a busy machine may take between the client's look at the clock and the store's.
        .with_skew(Duration::from_secs(15))
}

/// The answers of every method but `init` to plausible arguments.
fn every_method(
    store: &mut dyn LeaseStore,
    space: &Namespace,
    now: u64,
) -> Vec<Result<(), StoreError>> {
    let grants = [0, 1].map(|index| Grant::new(Block::new(index), Epoch::FIRST, 0..1));
    let renewals = grants.each_ref().map(|grant| Renew::new(grant, 2, now));
    let both = renewals.each_ref().map(|renew| (space, renew));
    let [Grant { block, epoch, .. }, _] = grants;
    let mut answers = vec![
        store.acquire(space, &Acquire::new(1, 10, now)).map(drop),
        store.renew(space, &renewals[0]).map(drop),
        store.release(space, block, epoch),
        store.list(space).map(drop),
        store.raise_floor(space, Floor::Tick(1), now).map(drop),
        store.check(space, now).map(drop),
        store.repair(space, block, now).map(drop),
    ];
    let renewed = store.renew_all(&both).into_iter();
    answers.extend(renewed.map(|answer| answer.map(drop)));
    answers
}

/// The recorded state of a block that was granted.
fn state_of(store: &mut dyn LeaseStore, space: &Namespace, block: Block) -> BlockState {
    let mut blocks = store.list(space).unwrap().blocks.into_iter();
    blocks
        .find(|known| known.block == block)
        .expect("it was granted")
}

fn one(grants: Result<Vec<Grant>, StoreError>) -> Grant {
    let mut grants = grants.unwrap();
    assert_eq!(grants.len(), 1);
    grants.remove(0)
}

/// A block that is none of these: which blocks are granted is chance.
fn none_of(grants: &[Grant]) -> Block {
    let mut blocks = (0..).map(Block::new);
    let is_other = |block: &Block| grants.iter().all(|grant| grant.block != *block);
    blocks.find(is_other).expect("there are few grants")
}

fn by_epoch(held: Epoch, recorded: Epoch) -> Fence {
    Fence::Epoch { held, recorded }
}

fn by_end(known: u64, recorded: u64) -> Fence {
    Fence::End { known, recorded }
}

#[track_caller]
fn fenced<T: std::fmt::Debug>(result: Result<T, StoreError>, expected: &Fence) {
    match result {
        Err(StoreError::Fenced { fence, .. }) => assert_eq!(fence, *expected),
        other => panic!("{other:?}, not fenced by {expected:?}"),
    }
}

opaque_debug!(Suite<'_>);
