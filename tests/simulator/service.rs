//! The servers of one simulated service, and the oracle's eye on them.

use ringflake::lease::protocol::{Answer, Request};
use ringflake::lease::{
    Acquire, Confirmed, Floor, Grant, History, Incarnation, Init, LeaseStore, Listing, Namespace,
    StoreError,
};
use ringflake_kit::split_mix::SplitMix64;

use crate::flawed_store::{Connection, Contents, FlawedStore, Now, OTHERS};
use crate::mutations::{Mutation, Promise};
use crate::oracle::{Oracle, Violation, Watch, bounded, broken, moved_ends};
use crate::scenario::{ALIVE_MS, SKEW_LIMIT_MS, SKEW_MS, START_MS, Scenario, tick};

struct Server {
    store: FlawedStore,
    /// Which history it takes itself for.
    incarnation: Incarnation,
    /// How far its clock is ahead of the true time.
    ahead_ms: i64,
    superseded_ms: Option<u64>,
    down_until_ms: u64,
    /// When it said that grants would be possible again, by its own clock.
    opens_at_ms: Option<u64>,
    /// Before its last operation, for one that answers before it has written.
    before: Option<Contents>,
    lazy: bool,
}

impl Server {
    /// A store that takes itself for this incarnation.
    fn new(store: FlawedStore, incarnation: Incarnation, ahead_ms: i64, lazy: bool) -> Self {
        Self {
            store,
            incarnation,
            ahead_ms,
            superseded_ms: None,
            down_until_ms: 0,
            opens_at_ms: None,
            before: None,
            lazy,
        }
    }

    /// Whether its clock is more than a sound one off.
    fn has_broken_clock(&self) -> bool {
        self.ahead_ms.unsigned_abs() > SKEW_MS
    }

    fn unix_ms(&self, now_ms: u64) -> u64 {
        (START_MS + now_ms).saturating_add_signed(self.ahead_ms)
    }

    /// The connection of a process at this moment, and the time that the server's clock shows.
    fn at(&mut self, process: usize, now_ms: u64, token: u64) -> (Connection<'_>, u64) {
        let unix_ms = self.unix_ms(now_ms);
        let now = Now {
            unix_ms,
            uptime_ms: now_ms,
            token,
        };
        (self.store.connect(process, now), unix_ms)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) process: usize,
    pub(crate) number: u64,
    pub(crate) server: usize,
    /// What distinguishes it from all others.
    pub(crate) token: u64,
    /// Whether the clock of the process is further off than a sound one.
    pub(crate) broken_clock: bool,
    /// The confirmations of the process when it asked.
    pub(crate) known: Vec<Confirmed>,
    pub(crate) request: Request,
}

/// The servers, the last of which is the primary.
pub(crate) struct Service {
    servers: Vec<Server>,
    replica: Contents,
    backup: Contents,
    incarnations: u64,
    horizon: u64,
    lease_duration: u64,
    namespace: Namespace,
}

impl Service {
    pub(crate) fn new(mutation: Option<Mutation>, scenario: &Scenario) -> Self {
        let init = Init::new(History::New, START_MS).with_limits(scenario.limits);
        let mut store = FlawedStore::new(&scenario.namespace, &init, mutation);
        let lazy = mutation == Some(Mutation::LazyCommit);
        let incarnation = store.listing(&scenario.namespace).record.incarnation;
        Self {
            replica: store.contents(),
            backup: store.contents(),
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

    /// The primary, and the namespace that it serves.
    fn last(&mut self) -> (&mut Server, &Namespace) {
        let last = self.servers.last_mut().expect("there is always a primary");
        (last, &self.namespace)
    }

    pub(crate) fn answers(&self, server: usize, now_ms: u64) -> bool {
        let server = &self.servers[server];
        let superseded = server.superseded_ms;
        now_ms >= server.down_until_ms && superseded.is_none_or(|at| now_ms <= at + ALIVE_MS)
    }

    fn incarnate(&mut self) -> Incarnation {
        self.incarnations += 1;
        Incarnation::new(self.incarnations.to_string())
    }

    pub(crate) fn replicate(&mut self) {
        self.replica = self.last().0.store.contents();
    }

    pub(crate) fn fail_over(&mut self, now_ms: u64, ahead_ms: i64) {
        let incarnation = self.incarnate();
        let last = self.servers.last_mut().expect("there is always a primary");
        let mut store = last.store.promote(&self.replica);
        store.set_incarnation(incarnation.clone());
        last.superseded_ms.get_or_insert(now_ms);
        let server = Server::new(store, incarnation, ahead_ms, last.lazy);
        self.servers.push(server);
    }

    pub(crate) fn restart(&mut self, now_ms: u64, reincarnate: bool) {
        let incarnation = reincarnate.then(|| self.incarnate());
        let (server, _) = self.last();
        server.down_until_ms = now_ms + 300;
        if let Some(incarnation) = incarnation {
            server.store.set_incarnation(incarnation.clone());
            server.incarnation = incarnation;
            server.opens_at_ms = None;
        }
        if let Some(before) = server.before.take() {
            server.store.restore(&before);
        }
    }

    pub(crate) fn back_up(&mut self) {
        self.backup = self.last().0.store.contents();
    }

    pub(crate) fn roll_back(&mut self, oracle: &mut Oracle) {
        let index = self.primary();
        let server = &mut self.servers[index];
        server.store.restore(&self.backup);
        server.opens_at_ms = None;
        server.before = None;
        let listing = server.store.listing(&self.namespace);
        // Records of another incarnation raise the floor by themselves.
        if listing.record.incarnation == server.incarnation {
            oracle.roll_back(index, &listing);
        }
    }

    pub(crate) fn set_clock(&mut self, ahead_ms: i64) {
        self.last().0.ahead_ms = ahead_ms;
    }

    pub(crate) fn raise_floor(&mut self, now_ms: u64, by: Option<u64>) {
        let (server, namespace) = self.last();
        // An operator who sees that the clock is wrong leaves the floor alone.
        if server.has_broken_clock() {
            return;
        }
        let (mut store, unix_ms) = server.at(OTHERS, now_ms, 0);
        let floor = by.map_or(Floor::OverLostGrants, |by| Floor::Tick(tick(unix_ms) + by));
        let raised = store.raise_floor(namespace, floor, unix_ms);
        raised.expect("it is in range");
        server.opens_at_ms = None;
    }

    /// Damages the record of one of the blocks that were granted; false where there is
    /// none that is sound.
    pub(crate) fn damage(&mut self, which: u64) -> bool {
        let (Server { store, .. }, namespace) = self.last();
        let blocks = store.listing(namespace).blocks;
        let index = which.checked_rem(blocks.len() as u64);
        index.is_some_and(|index| store.damage(namespace, blocks[index as usize].block))
    }

    /// Repairs every block that is quarantined, and answers how many there were.
    pub(crate) fn repair(&mut self, now_ms: u64) -> usize {
        let (server, namespace) = self.last();
        let listing = server.store.listing(namespace);
        let (store, _) = server.at(OTHERS, now_ms, 0);
        store.repair_all(namespace, &listing);
        listing.quarantined.len()
    }

    /// A copy of a process knows what the original has seen.
    pub(crate) fn copy_connections(&mut self, original: usize, copy: usize) {
        for server in &mut self.servers {
            server.store.copy_connection(original, copy);
        }
    }

    /// What a client would find if it looked its grants up.
    pub(crate) fn listing(&mut self, server: usize) -> Listing {
        self.servers[server].store.listing(&self.namespace)
    }

    /// Somebody with another secret asks for a block.
    pub(crate) fn resist(&mut self, now_ms: u64, watch: Watch) -> Result<(), Violation> {
        let (server, namespace) = self.last();
        let (store, _) = server.at(OTHERS, now_ms, 1);
        let resisted = store.resist(namespace);
        match watch {
            Watch::Promises => resisted,
            Watch::Duplicates => Ok(()),
        }
    }

    /// An import asks one of the servers for ticks that are over, as a rule, and answers what
    /// it was granted or why it was not; none if that server is away.
    pub(crate) fn import(
        &mut self,
        now_ms: u64,
        random: &mut SplitMix64,
        oracle: &mut Oracle,
    ) -> Result<Option<Result<Vec<Grant>, StoreError>>, Violation> {
        let index = random.below(self.servers.len() as u64) as usize;
        let token = random.roll();
        let length = random.between(1, 6);
        let (ago, blocks) = (random.below(40), random.between(1, 2) as u32);
        if !self.answers(index, now_ms) {
            return Ok(None);
        }
        let server = &mut self.servers[index];
        if server.lazy {
            server.before = Some(server.store.contents());
        }
        let (mut store, unix_ms) = server.at(OTHERS, now_ms, token);
        // By a sound clock: two that are broken can agree on the wrong time.
        let true_ms = START_MS + now_ms;
        let start = tick(true_ms) - ago;
        let past = start..start + length;
        let acquire = Acquire::past(blocks, past.clone(), true_ms);
        let answer = store.acquire(&self.namespace, &acquire);
        for grant in answer.iter().flatten() {
            oracle.import(grant, index)?;
            if oracle.watch == Watch::Promises {
                bounded(grant.ticks.end, tick(unix_ms), Promise::S7)?;
                assert_eq!(grant.ticks, past);
            }
        }
        Ok(Some(answer))
    }

    /// Carries a request out, and holds the reply against the promises.
    pub(crate) fn execute(
        &mut self,
        now_ms: u64,
        message: &Message,
        oracle: &mut Oracle,
    ) -> Result<Answer, Violation> {
        let index = message.server;
        let server = &mut self.servers[index];
        if server.lazy {
            server.before = Some(server.store.contents());
        }
        // Reading it out costs more than the request does; a sound server needs no comparison.
        let forgetful = oracle
            .has_forgotten(index)
            .then(|| server.store.listing(&self.namespace));
        let (store, unix_ms) = server.at(message.process, now_ms, message.token);
        // Tokens are spread evenly.
        let known_to_rival = oracle.known_to_any(message.token >> 8);
        let mut store = match message.token % 8 {
            0 => store.with_rival(known_to_rival.clone()),
            _ => store,
        };
        let answer = message.request.send(&mut store, &self.namespace);
        let (now, listing) = (tick(unix_ms), forgetful.as_ref());
        if let Some(rival) = store.take_rival() {
            oracle.acquired(index, now, listing, &known_to_rival, &rival)?;
        }
        // The grants, independent of their holders.
        let reply = (&message.request, &answer);
        oracle.reply(index, now, listing, &message.known, reply)?;
        if oracle.watch == Watch::Duplicates {
            return Ok(answer);
        }

        // S7, by the server's clock, and by the true time where that is sound.
        let true_ms = START_MS + now_ms;
        let broken_clock = server.has_broken_clock();
        let mut latest = now + self.horizon;
        if !broken_clock {
            latest = latest.min(tick(true_ms + SKEW_MS) + self.horizon);
        }
        // One bad clock of two moves nothing out of reach.
        let skew_ms = SKEW_MS + SKEW_LIMIT_MS;
        let reach = tick(true_ms + skew_ms) + self.horizon.max(self.lease_duration) + 2;
        for end in moved_ends(&message.request, &answer) {
            bounded(end, latest, Promise::S7)?;
            if !(broken_clock && message.broken_clock) {
                bounded(end, reach, Promise::Live)?;
            }
        }

        match &answer {
            // After a loss the floor was raised, and what was said before is void.
            Answer::Acquired(Ok(_) | Err(StoreError::HistoryLost { .. })) => {
                server.opens_at_ms = None;
            }
            Answer::Acquired(Err(StoreError::FloorAhead { retry_after, .. })) => {
                let opens_at = unix_ms + retry_after.as_millis() as u64;
                let said = *server.opens_at_ms.get_or_insert(opens_at);
                if unix_ms >= said {
                    let floor = format!("server {index} has a floor ahead at {unix_ms}");
                    let detail = format!("{floor}, and had promised grants for {said}");
                    return broken(Promise::Live, detail);
                }
            }
            _ => {}
        }
        Ok(answer)
    }
}
