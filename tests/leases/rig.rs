//! A store, a clock and generators on them, and a judge of what they issue.

use std::thread;
use std::time::Duration;

use ringflake::lease::{
    BlockState, Fingerprint, Grant, GrantState, LeaseStatus, LeaseStore, Namespace, StoreLimits,
};
use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Clock, DirectGenerator, DirectGeneratorBuilder, Id,
    Inspector, Layout, ManualClock, OnEmpty, PaddingFill, Refused, Shutdown, TakeError,
};

use ringflake_kit::eventually;
use ringflake_kit::faulty_store::Faulty;
use ringflake_kit::oracle::Oracle;
use ringflake_kit::small::{clock_at, layout, namespace, secret, store_with};

pub(crate) const NAME: &str = "test";

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Longer than what is waited for ever takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const START: u64 = 1_000;

/// The ticks of a grant: the default lease duration in seconds, and one for the tick that
/// is running.
pub(crate) const LEASE_DURATION: u64 = 601;

/// A lease so short that attempts come a second apart at most, and the first tick after it.
pub(crate) const SHORT_LEASE: Duration = Duration::from_secs(20);
pub(crate) const SHORT_END: u64 = START + 21;

/// How far the judge's view reaches.
const TICKS: u64 = 20_000;

/// A namespace of 64 blocks with 8 nodes each, and 4 IDs a node and second, in a
/// store whose clock is the generators'.
pub(crate) struct Rig {
    pub(crate) layout: Layout,
    pub(crate) clock: ManualClock,
    pub(crate) space: Namespace,
    pub(crate) store: Faulty,
}

pub(crate) const BLOCK_IDS: u64 = 8 * 4;

const BLOCK_BITS: u32 = 3;

impl Rig {
    pub(crate) fn new() -> Self {
        let layout = layout(44, 9, 2);
        let clock = clock_at(layout, START);
        let space = namespace(NAME, &layout, Fingerprint::of(&secret()), BLOCK_BITS);
        Self {
            layout,
            store: Faulty::new(store_with(&space, &clock, StoreLimits::default())),
            clock,
            space,
        }
    }

    pub(crate) fn judged() -> (Self, Judge) {
        let rig = Self::new();
        let judge = Judge::new(&rig);
        (rig, judge)
    }

    /// One block, a ring of 64, and no more borrowing than a minute.
    pub(crate) fn cached(&self) -> CachedGeneratorBuilder {
        CachedGenerator::builder(self.layout)
            .secret(secret())
            .lease_store(self.store.clone())
            .namespace(NAME)
            .block_bits(BLOCK_BITS)
            .widen_to(1)
            .clock(self.clock.clone())
            .borrow_limit(60 * SECOND)
            .capacity(64)
    }

    /// The same without anything made before it is taken.
    pub(crate) fn in_place(&self) -> CachedGeneratorBuilder {
        // One slot, for which no take makes anything.
        self.cached()
            .capacity(1)
            .padding_fill(PaddingFill::Off)
            .threshold_fill(None)
            .on_empty(OnEmpty::Generate)
    }

    pub(crate) fn direct(&self) -> DirectGeneratorBuilder {
        DirectGenerator::builder(self.layout)
            .secret(secret())
            .lease_store(self.store.clone())
            .namespace(NAME)
            .block_bits(BLOCK_BITS)
            .widen_to(1)
            .clock(self.clock.clone())
    }

    /// Gives so many blocks away up to the end of a lease, and has them released: a drop
    /// alone does not wait for that for long.
    pub(crate) fn give_away(&self, blocks: u32) {
        let builder = self.cached().blocks(blocks).widen_to(blocks);
        let ids = builder.build().unwrap();
        assert_eq!(ids.shutdown(PATIENCE), Shutdown::Released);
    }

    pub(crate) fn tick(&self) -> u64 {
        self.layout.tick_at(self.clock.unix_ms()).unwrap()
    }

    pub(crate) fn set_tick(&self, tick: u64) {
        self.clock.set(self.unix_ms(tick));
    }

    pub(crate) fn unix_ms(&self, tick: u64) -> u64 {
        self.layout.tick_start_unix_ms(tick)
    }

    /// The store's state of each block that was granted.
    pub(crate) fn blocks(&self) -> Vec<BlockState> {
        self.store.inner.clone().list(&self.space).unwrap().blocks
    }

    pub(crate) fn held_blocks(&self) -> u64 {
        let now = self.clock.unix_ms();
        let report = self.store.inner.clone().check(&self.space, now);
        report.unwrap().held_blocks
    }

    /// Moves the clock on so far that renewals are due, half-way to the first end.
    pub(crate) fn make_renewals_due(&self, statuses: impl Fn() -> Vec<Option<LeaseStatus>>) {
        let statuses = statuses();
        let ends = statuses.iter().flatten().map(held_end);
        let (now, end) = (self.tick(), ends.min().unwrap());
        assert!(now < end, "a lease has ended");
        self.set_tick(end - (end - now) / 2);
    }

    /// Lets the lease threads renew all that is held.
    pub(crate) fn let_them_renew(&self, statuses: impl Fn() -> Vec<Option<LeaseStatus>>) {
        let ends = || -> Vec<u64> { statuses().iter().flatten().map(held_end).collect() };
        let end = ends().into_iter().min().unwrap();
        self.make_renewals_due(&statuses);
        let due = self.tick() + (end - self.tick()) * 4 / 3;
        eventually("the leases are renewed", || {
            ends().iter().all(|&end| end > due) && statuses().iter().flatten().all(all_held)
        });
    }
}

/// The earliest end of the grants that are renewed.
pub(crate) fn held_end(status: &LeaseStatus) -> u64 {
    let held = status.grants.iter().filter(|g| g.state == GrantState::Held);
    held.map(|held| held.grant.ticks.end).min().unwrap_or(0)
}

pub(crate) fn all_held(status: &LeaseStatus) -> bool {
    let held = status.grants.iter().filter(|g| g.state == GrantState::Held);
    held.count() == status.target as usize
}

/// Judges each ID: in a grant whose reply arrived, and never seen before.
pub(crate) struct Judge {
    store: Faulty,
    space: Namespace,
    inspector: Inspector,
    oracle: Oracle,
}

impl Judge {
    pub(crate) fn new(rig: &Rig) -> Self {
        let cipher = ringflake::Cipher::sparx64(&secret());
        Self {
            store: rig.store.clone(),
            space: rig.space.clone(),
            inspector: Inspector::new(rig.layout, cipher),
            oracle: Oracle::new(rig.layout, 0..rig.layout.nodes(), START..START + TICKS),
        }
    }

    /// # Panics
    /// When it comes twice (U1) or was not granted (U2).
    pub(crate) fn judge(&self, id: Id) {
        self.judge_all(&[id]);
    }

    /// The same for many, which is quicker than one by one.
    pub(crate) fn judge_all(&self, ids: &[Id]) {
        let granted = self.store.granted();
        for &id in ids {
            let parts = self.inspector.inspect(id).unwrap();
            let block = self.space.block_of(parts.node);
            let covers = |grant: &Grant| grant.block == block && grant.ticks.contains(&parts.tick);
            assert!(granted.iter().any(covers), "U2: {parts:?}");
            self.oracle.mark(parts).unwrap();
        }
    }

    pub(crate) fn issued(&self) -> u64 {
        self.oracle.marked()
    }
}

/// Whether this is the thread that keeps leases, for clocks that are tricky there.
pub(crate) fn on_lease_thread() -> bool {
    thread::current().name() == Some("ringflake-lease")
}

pub(crate) fn one<E>(batch: &mut [Id], id: Result<Id, E>) -> Result<usize, E> {
    batch[0] = id?;
    Ok(1)
}

/// The refusal of a take that found no lease in force.
pub(crate) fn is_without_lease(outcome: &Result<Id, TakeError>) -> bool {
    matches!(outcome, Err(TakeError::Refused(Refused::NoLease { .. })))
}
