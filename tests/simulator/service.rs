//! The servers of one simulated service, and the oracle's eye on them.

use std::sync::Arc;

use ringflake::ManualClock;
use ringflake::lease::protocol::{Answer, Request};
use ringflake::lease::{
    Acquire, Block, Fingerprint, Floor, History, Incarnation, Init, LeaseStore, Listing,
    MemorySnapshot, MemoryStore, Namespace, StoreError,
};

use crate::model_store::{ModelStore, State};
use crate::mutations::{Mutation, Promise};
use crate::oracle::{Oracle, Told, Violation, Watch, broken};
use crate::scenario::{ALIVE_MS, LAYOUT, SKEW_LIMIT_MS, SKEW_MS, START_MS, Scenario};

/// What the servers run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// The reference of the library.
    Memory,
    /// A store of the simulation, with all rules or without one.
    ModelStore(Option<Mutation>),
}

#[derive(Debug)]
enum Store {
    Memory(MemoryStore, Arc<ManualClock>),
    ModelStore(Box<ModelStore>),
}

/// What a server holds.
enum Snapshot {
    Memory(MemorySnapshot),
    ModelStore(Box<State>),
}

impl Store {
    fn new(backend: Backend, namespace: &Namespace, init: &Init) -> Self {
        match backend {
            Backend::Memory => {
                let clock = Arc::new(ManualClock::new(init.now_unix_ms));
                let mut store = MemoryStore::new(clock.clone());
                store.init(namespace, init).expect("the limits are valid");
                Self::Memory(store, clock)
            }
            Backend::ModelStore(mutation) => {
                let model_store = ModelStore::new(namespace, init, mutation);
                Self::ModelStore(Box::new(model_store.expect("the limits are valid")))
            }
        }
    }

    fn snapshot(&self) -> Snapshot {
        match self {
            Self::Memory(store, _) => Snapshot::Memory(store.snapshot()),
            Self::ModelStore(model_store) => Snapshot::ModelStore(Box::new(model_store.state())),
        }
    }

    fn restore(&mut self, snapshot: &Snapshot) {
        match (self, snapshot) {
            (Self::Memory(store, _), Snapshot::Memory(memory)) => store.restore(memory),
            (Self::ModelStore(model_store), Snapshot::ModelStore(state)) => {
                model_store.put_back(state)
            }
            _ => unreachable!("all servers of a service run on one backend"),
        }
    }

    /// Another server of the same service, with what the snapshot holds.
    fn promote(&self, snapshot: &Snapshot) -> Self {
        let mut other = match self {
            Self::Memory(..) => {
                let clock = Arc::new(ManualClock::new(0));
                Self::Memory(MemoryStore::new(clock.clone()), clock)
            }
            Self::ModelStore(model_store) => Self::ModelStore(model_store.clone()),
        };
        other.restore(snapshot);
        other
    }

    fn set_incarnation(&mut self, incarnation: Incarnation) {
        match self {
            Self::Memory(store, _) => store.set_incarnation(incarnation),
            Self::ModelStore(model_store) => model_store.incarnation = incarnation,
        }
    }

    fn damage(&mut self, namespace: &Namespace, block: Block) -> bool {
        match self {
            Self::Memory(store, _) => store.damage(namespace, block),
            Self::ModelStore(model_store) => model_store.damage(block),
        }
    }

    /// What a client would find if it looked its grants up.
    fn listing(&mut self, namespace: &Namespace) -> Option<Listing> {
        let store: &mut dyn LeaseStore = match self {
            Self::Memory(store, _) => store,
            Self::ModelStore(model_store) => &mut **model_store,
        };
        store.list(namespace).ok()
    }

    /// The store at this moment.
    fn at(&mut self, unix_ms: u64, uptime_ms: u64, token: u64) -> &mut dyn LeaseStore {
        match self {
            Self::Memory(store, clock) => {
                clock.set(unix_ms);
                store
            }
            Self::ModelStore(model_store) => {
                model_store.now_unix_ms = unix_ms;
                model_store.uptime_ms = uptime_ms;
                model_store.token = token;
                &mut **model_store
            }
        }
    }
}

struct Server {
    store: Store,
    /// Which history it takes itself for.
    incarnation: Incarnation,
    /// How far its clock is ahead of the true time.
    ahead_ms: i64,
    /// Whether that is more than a sound clock is off.
    broken_clock: bool,
    superseded_ms: Option<u64>,
    down_until_ms: u64,
    /// When it said that grants would be possible again, by its own clock.
    opens_at_ms: Option<u64>,
    /// Before its last operation, for one that answers before it has written.
    before: Option<Snapshot>,
    lazy: bool,
}

impl Server {
    /// A store that takes itself for this incarnation.
    fn new(store: Store, incarnation: Incarnation, ahead_ms: i64, lazy: bool) -> Self {
        Self {
            store,
            incarnation,
            ahead_ms,
            broken_clock: false,
            superseded_ms: None,
            down_until_ms: 0,
            opens_at_ms: None,
            before: None,
            lazy,
        }
    }
}

/// Who asks, as far as a server could tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) token: u64,
    /// Whether its clock is further off than a sound one.
    pub(crate) broken_clock: bool,
}

/// The servers, the last of which is the primary.
pub(crate) struct Service {
    servers: Vec<Server>,
    replica: Snapshot,
    backup: Snapshot,
    incarnations: u64,
    horizon: u64,
    lease_duration: u64,
    namespace: Namespace,
}

impl Service {
    pub(crate) fn new(backend: Backend, scenario: &Scenario) -> Self {
        let init = Init::new(History::New, START_MS).with_limits(scenario.limits);
        let mut store = Store::new(backend, &scenario.namespace, &init);
        let lazy = backend == Backend::ModelStore(Some(Mutation::LazyCommit));
        let first = store.listing(&scenario.namespace).expect("it was made");
        let incarnation = first.record.incarnation;
        Self {
            replica: store.snapshot(),
            backup: store.snapshot(),
            servers: vec![Server::new(store, incarnation, 0, lazy)],
            incarnations: 0,
            horizon: scenario.horizon,
            lease_duration: scenario.plan.lease_duration.as_secs(),
            namespace: scenario.namespace.clone(),
        }
    }

    pub(crate) fn primary(&self) -> usize {
        self.servers.len() - 1
    }

    fn last(&mut self) -> &mut Server {
        self.servers.last_mut().expect("there is always a primary")
    }

    pub(crate) fn answers(&self, server: usize, now_ms: u64) -> bool {
        let server = &self.servers[server];
        let superseded = server.superseded_ms;
        now_ms >= server.down_until_ms && superseded.is_none_or(|at| now_ms <= at + ALIVE_MS)
    }

    pub(crate) fn replicate(&mut self) {
        self.replica = self.last().store.snapshot();
    }

    pub(crate) fn fail_over(&mut self, now_ms: u64, ahead_ms: i64) {
        self.incarnations += 1;
        let incarnation = Incarnation::new(self.incarnations.to_string());
        let last = self.servers.last_mut().expect("there is always a primary");
        let mut store = last.store.promote(&self.replica);
        store.set_incarnation(incarnation.clone());
        last.superseded_ms.get_or_insert(now_ms);
        let lazy = last.lazy;
        let server = Server::new(store, incarnation, ahead_ms, lazy);
        self.servers.push(server);
    }

    pub(crate) fn restart(&mut self, now_ms: u64, reincarnate: bool) {
        if reincarnate {
            self.incarnations += 1;
        }
        let incarnation = Incarnation::new(self.incarnations.to_string());
        let server = self.last();
        server.down_until_ms = now_ms + 300;
        if reincarnate {
            server.store.set_incarnation(incarnation.clone());
            server.incarnation = incarnation;
            server.opens_at_ms = None;
        }
        if let Some(before) = server.before.take() {
            server.store.restore(&before);
        }
    }

    pub(crate) fn back_up(&mut self) {
        self.backup = self.last().store.snapshot();
    }

    pub(crate) fn roll_back(&mut self, oracle: &mut Oracle) {
        let index = self.primary();
        let server = self.servers.last_mut().expect("there is always a primary");
        server.store.restore(&self.backup);
        server.opens_at_ms = None;
        server.before = None;
        let listing = server.store.listing(&self.namespace);
        let listing = listing.expect("it was made");
        // What was written as another incarnation raises the floor by itself.
        if listing.record.incarnation == server.incarnation {
            oracle.roll_back(index, &listing);
        }
    }

    pub(crate) fn set_clock(&mut self, ahead_ms: i64) {
        let server = self.last();
        server.ahead_ms = ahead_ms;
        server.broken_clock = ahead_ms.unsigned_abs() > SKEW_MS;
    }

    pub(crate) fn raise_floor(&mut self, now_ms: u64, by: Option<u64>) {
        let namespace = self.namespace.clone();
        let server = self.last();
        // An operator who sees that the clock is wrong leaves the floor alone.
        if !server.broken_clock {
            let unix_ms = (START_MS + now_ms).saturating_add_signed(server.ahead_ms);
            let now = LAYOUT.tick_at(unix_ms).unwrap_or(0);
            let floor = by.map_or(Floor::OverLostGrants, |by| Floor::Tick(now + by));
            let store = server.store.at(unix_ms, now_ms, 0);
            store
                .raise_floor(&namespace, floor, unix_ms)
                .expect("it is in range");
            server.opens_at_ms = None;
        }
    }

    /// Damages the record of one of the blocks that were granted; false where there is
    /// none that is sound.
    pub(crate) fn damage(&mut self, which: u64) -> bool {
        let namespace = self.namespace.clone();
        let store = &mut self.last().store;
        let blocks = store.listing(&namespace).map(|listing| listing.blocks);
        let blocks = blocks.unwrap_or_default();
        let Some(index) = which.checked_rem(blocks.len() as u64) else {
            return false;
        };
        store.damage(&namespace, blocks[index as usize].block)
    }

    /// Repairs every block that is quarantined, and answers how many there were.
    pub(crate) fn repair(&mut self, now_ms: u64) -> usize {
        let namespace = self.namespace.clone();
        let server = self.last();
        let unix_ms = (START_MS + now_ms).saturating_add_signed(server.ahead_ms);
        let listing = server.store.listing(&namespace);
        let quarantined = listing.map(|listing| listing.quarantined);
        let quarantined = quarantined.unwrap_or_default();
        let store = server.store.at(unix_ms, now_ms, 0);
        for found in &quarantined {
            let block = found.block.expect("every record is of a block");
            let repaired = store.repair(&namespace, block, unix_ms);
            assert!(repaired.expect("it is quarantined").released);
        }
        quarantined.len()
    }

    /// What a client would find if it looked its grants up.
    pub(crate) fn listing(&mut self, server: usize) -> Option<Listing> {
        self.servers[server].store.listing(&self.namespace)
    }

    /// Somebody with another secret asks for a block.
    pub(crate) fn resist(&mut self, now_ms: u64, watch: Watch) -> Result<(), Violation> {
        let secret = Fingerprint::from_bytes([9; 16]);
        let space = Namespace::new(self.namespace.name(), &LAYOUT, secret)
            .and_then(|space| space.with_block_bits(self.namespace.block_bits()))
            .expect("it fits the layout");
        let server = self.last();
        let unix_ms = (START_MS + now_ms).saturating_add_signed(server.ahead_ms);
        let store = server.store.at(unix_ms, now_ms, 1);
        match store.acquire(&space, &Acquire::new(1, 5, unix_ms)) {
            Err(StoreError::FingerprintMismatch { .. }) => Ok(()),
            _ if watch == Watch::Duplicates => Ok(()),
            other => broken(
                Promise::S5,
                format_args!("another secret was answered {other:?}"),
            ),
        }
    }

    /// Carries a request out, and holds the reply against the promises.
    pub(crate) fn execute(
        &mut self,
        index: usize,
        now_ms: u64,
        caller: Caller,
        request: &Request,
        told: &[Told],
        oracle: &mut Oracle,
    ) -> Result<Answer, Violation> {
        let server = &mut self.servers[index];
        let true_ms = START_MS + now_ms;
        let unix_ms = true_ms.saturating_add_signed(server.ahead_ms);
        if server.lazy {
            server.before = Some(server.store.snapshot());
        }
        let tick = |unix_ms| LAYOUT.tick_at(unix_ms).unwrap_or(0);
        let listing = server.store.listing(&self.namespace);
        let store = server.store.at(unix_ms, now_ms, caller.token);
        let answer = request.send(store, &self.namespace);
        match (&answer, listing) {
            // Before anything was looked at.
            (
                Answer::Acquired(Err(
                    StoreError::ClockSkew { .. } | StoreError::BeforeEpoch { .. },
                )),
                _,
            ) => {}
            (Answer::Acquired(_), Some(listing)) => {
                oracle.remind(index, tick(unix_ms), &listing, told);
            }
            _ => {}
        }
        match (request, &answer) {
            (Request::Acquire(_), Answer::Acquired(Ok(grants))) => {
                for grant in grants {
                    oracle.give(grant.block, grant.ticks.clone(), index)?;
                }
            }
            (Request::Renew(renew), Answer::Renewed(Ok(end))) if *end > renew.known_end => {
                oracle.give(renew.block, renew.known_end..*end, index)?;
            }
            _ => {}
        }
        if oracle.watch == Watch::Duplicates {
            return Ok(answer);
        }

        // S7, by the server's clock, and by the true time where that is sound.
        let mut latest = tick(unix_ms) + self.horizon;
        if !server.broken_clock {
            latest = latest.min(tick(true_ms + SKEW_MS) + self.horizon);
        }
        // One bad clock of two moves nothing out of reach.
        let both_broken = server.broken_clock && caller.broken_clock;
        let skew_ms = SKEW_MS + SKEW_LIMIT_MS;
        let reach = tick(true_ms + skew_ms) + self.horizon.max(self.lease_duration) + 2;

        match (request, &answer) {
            (Request::Acquire(_), Answer::Acquired(Ok(grants))) => {
                server.opens_at_ms = None;
                for grant in grants {
                    bounded(grant.ticks.end, latest, Promise::S7)?;
                    if !both_broken {
                        bounded(grant.ticks.end, reach, Promise::Live)?;
                    }
                }
            }
            (Request::Renew(renew), Answer::Renewed(Ok(end))) if *end > renew.known_end => {
                bounded(*end, latest, Promise::S7)?;
                if !both_broken {
                    bounded(*end, reach, Promise::Live)?;
                }
            }
            (
                Request::Acquire(_),
                Answer::Acquired(Err(StoreError::FloorAhead { retry_after, .. })),
            ) => {
                let opens_at = unix_ms + retry_after.as_millis() as u64;
                let said = *server.opens_at_ms.get_or_insert(opens_at);
                if unix_ms >= said {
                    return broken(
                        Promise::Live,
                        format_args!(
                            "server {index} has a floor ahead at {unix_ms}, \
                             and had promised grants for {said}"
                        ),
                    );
                }
            }
            // The floor was raised, and what was said before is void.
            (Request::Acquire(_), Answer::Acquired(Err(StoreError::HistoryLost { .. }))) => {
                server.opens_at_ms = None;
            }
            _ => {}
        }
        Ok(answer)
    }
}

fn bounded(end: u64, latest: u64, promise: Promise) -> Result<(), Violation> {
    if end <= latest {
        return Ok(());
    }
    broken(
        promise,
        format_args!("an end was moved to tick {end}, after {latest}"),
    )
}
