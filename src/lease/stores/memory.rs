//! The store that keeps everything in this process.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use crate::clock::Clock;
use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::grant::Grant;
use crate::lease::namespace::Namespace;
use crate::lease::quarantine::{self, Judged};
use crate::lease::record::{Incarnation, LowestMarks, StoreRecord};
use crate::lease::report::{Durability, Listing, StoreReport};
use crate::lease::request::{Acquire, Floor, Init, Renew};
use crate::lease::store::LeaseStore;
use crate::lease::voucher::Voucher;
use crate::sync::{Mutex, MutexGuard};

/// A store in the memory of one process: the reference for all others, and what
/// tests use.
///
/// Clones share one server, as connections to a database do. It forgets
/// everything with the last of them, so it keeps the generators of one process
/// apart and no more.
///
/// For tests of failures, the server's clock is given from outside, its
/// incarnation can be changed, and its state can be copied and put back: an
/// older state put back is a stale replica that took over, and the same state in
/// another server is the primary that it superseded.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use ringflake::{Layout, ManualClock};
/// use ringflake::lease::{
///     Acquire, Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace, Renew,
/// };
///
/// let now = 1_760_000_000_000;
/// let mut store = MemoryStore::new(Arc::new(ManualClock::new(now)));
/// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
/// store.init(&orders, &Init::new(History::New, now))?;
///
/// // One block of 32 nodes, for 600 ticks of one second.
/// let grants = store.acquire(&orders, &Acquire::new(1, 600, now))?;
/// let lease = grants[0].to_lease(&orders)?;
/// assert_eq!(lease.nodes(), 0..32);
/// assert_eq!(lease.ticks(), 30_000_000..30_000_600);
///
/// // Half a minute later: let it reach 600 ticks ahead again.
/// let end = store.renew(&orders, &Renew::new(&grants[0], 30_000_630, now + 30_000))?;
/// assert_eq!(end, 30_000_630);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemoryStore {
    server: Arc<Mutex<Server>>,
}

#[derive(Debug)]
struct Server {
    clock: Arc<dyn Clock>,
    incarnation: Incarnation,
    spaces: BTreeMap<String, Space>,
}

#[derive(Clone, Debug)]
struct Space {
    record: StoreRecord,
    /// The blocks granted so far. Fresh ones are taken in order, so block `i`
    /// stands at index `i`.
    blocks: Vec<BlockState>,
}

/// The contents of a [`MemoryStore`] at some moment.
#[derive(Clone, Debug)]
pub struct MemorySnapshot {
    spaces: BTreeMap<String, Space>,
}

impl MemoryStore {
    /// An empty store whose server has this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            server: Arc::new(Mutex::new(Server {
                clock,
                incarnation: Incarnation::new("memory"),
                spaces: BTreeMap::new(),
            })),
        }
    }

    /// Changes the server's incarnation, as a restart from other data would.
    pub fn set_incarnation(&self, incarnation: Incarnation) {
        self.server().incarnation = incarnation;
    }

    /// Copies the contents of the server: every namespace with its record and blocks,
    /// but not the server's own incarnation and clock.
    pub fn snapshot(&self) -> MemorySnapshot {
        MemorySnapshot {
            spaces: self.server().spaces.clone(),
        }
    }

    /// Puts back a copy of a server's contents. Later changes are forgotten.
    ///
    /// The server's incarnation stays as it is. Real servers change it at such a
    /// moment; call [`set_incarnation`](Self::set_incarnation) for that.
    pub fn restore(&self, snapshot: &MemorySnapshot) {
        self.server().spaces.clone_from(&snapshot.spaces);
    }

    /// Leaves something that no rule writes in the record of a block, as a hand or a
    /// bad disk may; false where the block was never granted.
    pub fn damage(&self, namespace: &Namespace, block: Block) -> bool {
        let mut server = self.server();
        let space = server.spaces.get_mut(namespace.name());
        let known = space.and_then(|space| space.raw(block));
        known.map(|known| known.hwm_end = u64::MAX).is_some()
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        // Every change below is a whole one, made after all that can fail, so
        // a panicking thread leaves a sound state behind.
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A namespace of a server, at one moment.
struct Opened<'a> {
    space: &'a mut Space,
    /// The server's, not the one on record.
    incarnation: Incarnation,
    /// The server's clock, and the same in ticks.
    store_unix_ms: u64,
    now: u64,
}

impl Server {
    fn space(&mut self, namespace: &Namespace) -> Result<&mut Space, StoreError> {
        let space = self.spaces.get_mut(namespace.name());
        let space = space.ok_or_else(|| namespace.not_initialised())?;
        space.record.verify(namespace)?;
        Ok(space)
    }

    /// As [`space`](Self::space), with the time.
    fn open(&mut self, namespace: &Namespace) -> Result<Opened<'_>, StoreError> {
        let store_unix_ms = self.clock.unix_ms();
        let incarnation = self.incarnation.clone();
        let space = self.space(namespace)?;
        let now = space.record.tick_at(store_unix_ms)?;
        Ok(Opened {
            space,
            incarnation,
            store_unix_ms,
            now,
        })
    }
}

impl Space {
    fn raw(&mut self, block: Block) -> Option<&mut BlockState> {
        self.blocks.get_mut(usize::try_from(block.index()).ok()?)
    }

    /// The record of a block, judged.
    fn known(&mut self, block: Block) -> Option<Judged> {
        let known = self.raw(block)?.clone();
        Some(quarantine::judge(&self.record.namespace, known))
    }

    /// As [`known`](Self::known), of a grant that is to be changed.
    fn subject(&mut self, block: Block) -> Result<Option<BlockState>, StoreError> {
        let namespace = &self.record.namespace.clone();
        let known = self.known(block).transpose();
        known.map_err(|found| found.fence(namespace, block))
    }

    /// Those that were granted, judged.
    fn judged(&self) -> impl Iterator<Item = Judged> {
        let blocks = self.blocks.iter().cloned();
        blocks.map(|block| quarantine::judge(&self.record.namespace, block))
    }

    /// Those that were granted and are sound.
    fn sound(&self) -> Vec<BlockState> {
        quarantine::sort(&self.record.namespace, self.judged()).0
    }

    /// The state of a block before its next grant, for all that can be granted:
    /// first the fresh ones, then those whose mark has passed or that were
    /// released, the lowest mark first.
    fn candidates(&self, now: u64, acquire: &Acquire) -> Vec<BlockState> {
        let record = &self.record;
        let Some(window) = record.mark_window(now, acquire) else {
            return Vec::new();
        };
        let granted = self.blocks.len() as u64;
        let mut candidates: Vec<_> = (granted..record.namespace.blocks())
            .map(|index| BlockState::never_granted(Block::new(index)))
            .take(acquire.blocks as usize)
            .collect();
        let mut idle = self.sound();
        idle.retain(|block| !block.is_held(window.idle_until));
        idle.sort_unstable_by_key(|block| (block.hwm_end, block.block));
        candidates.extend(idle);
        candidates
    }
}

impl LeaseStore for MemoryStore {
    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        let mut server = self.server();
        if server.spaces.contains_key(namespace.name()) {
            return Err(namespace.already_initialised());
        }
        let claims = init.claims(namespace);
        let mut known = server.spaces.values().map(|space| &space.record.namespace);
        if let Some(owner) = known.find(|known| claims.contains(&known.fingerprint())) {
            namespace.check_secret(owner.fingerprint(), Some(owner.name()))?;
        }
        let store_unix_ms = server.clock.unix_ms();
        let record = StoreRecord::create(namespace, init, &server.incarnation, store_unix_ms)?;
        server.spaces.insert(
            namespace.name().to_owned(),
            Space {
                record: record.clone(),
                blocks: Vec::new(),
            },
        );
        Ok(record)
    }

    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        Voucher::Program.check(namespace, init, Durability::Volatile)?;
        self.init(namespace, init)
    }

    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        acquire.validate()?;
        let mut server = self.server();
        let Opened {
            space,
            incarnation,
            store_unix_ms,
            now,
        } = server.open(namespace)?;

        space
            .record
            .check_skew(store_unix_ms, acquire.now_unix_ms)?;
        space.record.observe(&incarnation, now);

        for confirmed in &acquire.evidence {
            let known = space.known(confirmed.block);
            let record = &mut space.record;
            if let Err(lost) = record.check_evidence(now, known.as_ref(), confirmed) {
                record.raise_floor(Floor::OverLostGrants, now)?;
                return Err(lost);
            }
        }

        let record = &space.record;
        let granted: Vec<_> = space
            .candidates(now, acquire)
            .iter()
            .filter_map(|block| record.granted(now, store_unix_ms, block, acquire))
            .take(acquire.blocks as usize)
            .collect();
        if granted.is_empty() {
            let lowest = LowestMarks::of(&space.sound());
            return Err(record.refusal(store_unix_ms, now, acquire, lowest));
        }
        let mut grants = Vec::with_capacity(granted.len());
        for (grant, block) in granted {
            grants.push(grant);
            match space.raw(block.block) {
                Some(known) => *known = block,
                None => space.blocks.push(block),
            }
        }
        Ok(grants)
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        renew.validate()?;
        let mut server = self.server();
        let Opened {
            space,
            incarnation,
            now,
            ..
        } = server.open(namespace)?;

        let known = space.subject(renew.block)?;
        let renewed = space.record.renewed(&incarnation, now, known, renew)?;
        let end = renewed.hwm_end;
        if let Some(block) = space.raw(renew.block) {
            *block = renewed;
        }
        Ok(end)
    }

    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        let mut server = self.server();
        let space = server.space(namespace)?;
        let released = StoreRecord::released(block, epoch, space.subject(block)?)?;
        if let Some(known) = space.raw(block) {
            *known = released;
        }
        Ok(())
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        let mut server = self.server();
        let space = server.space(namespace)?;
        Ok(Listing::of_judged(space.record.clone(), space.judged()))
    }

    fn repair(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        let mut server = self.server();
        let store_unix_ms = server.clock.unix_ms();
        let space = server.space(namespace)?;
        space.record.check_skew(store_unix_ms, now_unix_ms)?;
        let now = space.record.tick_at(store_unix_ms)?;
        let Some(Err(_)) = space.known(block) else {
            return Err(StoreError::NotQuarantined { block });
        };
        let record = space.record.clone();
        let known = space
            .raw(block)
            .ok_or(StoreError::NotQuarantined { block })?;
        *known = record.repaired(now, block, Some(known.hwm_end));
        Ok(known.clone())
    }

    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        let mut server = self.server();
        let Opened {
            space,
            store_unix_ms,
            now,
            ..
        } = server.open(namespace)?;
        if floor.heeds_clocks() {
            space.record.check_skew(store_unix_ms, now_unix_ms)?;
        }
        space.record.raise_floor(floor, now)?;
        Ok(space.record.floor)
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        let mut server = self.server();
        let Opened {
            space,
            incarnation,
            store_unix_ms,
            now,
        } = server.open(namespace)?;
        let record = space.record.clone();
        let durability = Durability::Volatile;
        let report = StoreReport::new("memory", record, incarnation, durability, now_unix_ms);
        Ok(report.at(store_unix_ms).with_blocks(now, space.judged()))
    }
}
