//! How a generator holds its leases: one that was given, or those that a keeper
//! has from a store.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::setup::{KeptOptions, LeaseSource};
use super::{BuildError, Shutdown};
use crate::cipher::Secret;
use crate::clock::Clock;
use crate::layout::Layout;
use crate::lease::protocol::{Change, Demand, Expiry, LeasePlan, LeaseStatus, Manager};
use crate::lease::{
    Block, Claimed, Conflict, Denied, Fingerprint, FirstLease, Grant, History, Holder, Keeper,
    KeeperError, Lease, LeaseStore, Namespace, Outage, Position, Space, Tenant, may_come,
};
use crate::source::Source;
use crate::timeline::{ClaimPolicy, LaneIndex, Timeline};

/// What a generator to be has its nodes and ticks from.
pub(super) enum Ground {
    /// What is left of a lease that was given, and the claim on it.
    Given { lease: Lease, claimed: Box<Claimed> },
    /// Leases to be had from a store.
    Kept(Box<Kept>),
}

/// A store, and what to ask it for.
pub(super) struct Kept {
    store: Box<dyn LeaseStore>,
    namespace: Namespace,
    plan: LeasePlan,
    outage: Arc<Outage>,
    /// What a namespace that is not there is initialised with.
    history: Option<History>,
    /// For how long the first lease is waited for; none if it is to come later.
    patience: Option<Duration>,
}

impl Ground {
    /// The ground of a lease, if nobody has it. A lease that was used goes on
    /// after what was claimed from it.
    pub(super) fn given(
        source: LeaseSource,
        layout: &Layout,
        secret: Option<&Secret>,
        now_unix_ms: u64,
    ) -> Result<Self, BuildError> {
        let lease = match source {
            LeaseSource::Granted(lease) => lease,
            LeaseSource::Static(lease) => lease.grant(now_unix_ms).map_err(BuildError::Lease)?,
        };
        if lease.layout() != layout {
            return Err(BuildError::LeaseLayout {
                lease: *lease.layout(),
                generator: *layout,
            });
        }
        let space = Space::new(*layout, secret);
        let claimed = lease
            .claim()
            .take(space, lease.nodes(), lease.ticks())
            .map_err(|denied| denied_build(&lease, denied))?;
        let left = claimed.rectangle();
        let lease = Lease::new(*layout, left.nodes.clone(), left.ticks.clone())
            .map_err(BuildError::Lease)?;
        let claimed = Box::new(claimed);
        Ok(Self::Given { lease, claimed })
    }

    /// The ground of a store.
    pub(super) fn kept(
        store: Box<dyn LeaseStore>,
        options: KeptOptions,
        layout: &Layout,
        secret: Option<&Secret>,
    ) -> Result<Self, BuildError> {
        let name = options.namespace.clone().ok_or(BuildError::NoNamespace)?;
        let fingerprint = match secret {
            Some(secret) => Fingerprint::of(secret),
            None => Fingerprint::PLAIN,
        };
        let mut namespace =
            Namespace::new(name, layout, fingerprint).map_err(BuildError::Namespace)?;
        if let Some(bits) = options.block_bits {
            namespace = namespace
                .with_block_bits(bits)
                .map_err(BuildError::Namespace)?;
        }
        let plan = plan(&options, &namespace)?;
        let within = options.first_lease_within;
        Ok(Self::Kept(Box::new(Kept {
            store,
            namespace,
            plan,
            outage: Arc::default(),
            history: options.init_if_new,
            patience: (!options.detached).then(|| within.unwrap_or(FirstLease::PATIENCE)),
        })))
    }

    /// The nodes of what is claimed from together: the lease's, or those that
    /// the first block would have.
    pub(super) fn nodes(&self) -> std::ops::Range<u64> {
        match self {
            Self::Given { lease, .. } => lease.nodes(),
            Self::Kept(kept) => kept.namespace.nodes_of(Block::new(0)),
        }
    }

    /// The timeline of a share of the nodes, with the claim policy that the ground demands.
    pub(super) fn timeline(
        &self,
        share: Share,
        layout: &Layout,
        clock: Arc<dyn Clock>,
        mut policy: ClaimPolicy,
    ) -> Result<Timeline, BuildError> {
        match self {
            Self::Given { lease, claimed } => {
                let start = claimed.start();
                // To the sequence where all nodes are one line, as they were.
                let (lease, offset) = if share.count == 1 {
                    (share.of(lease), start.offset)
                } else {
                    let ticks = start.whole_tick()..lease.ticks().end;
                    let whole = Lease::new(*layout, lease.nodes(), ticks);
                    (whole.and_then(|lease| share.of(&lease)), 0)
                };
                Timeline::new(&lease.map_err(BuildError::Lease)?, offset, clock, policy)
            }
            Self::Kept(kept) => {
                // Whatever the generator would do with a lease that was given.
                policy.serves_the_past = kept.plan.expiry == Expiry::Serve;
                // Twice, for those that are used up while others replace them.
                let lanes = 2 * kept.plan.widen_to as usize + 8;
                Timeline::for_leases(*layout, lanes, clock, policy, Arc::clone(&kept.outage))
            }
        }
        .map_err(BuildError::System)
    }

    /// Takes possession: `host` has its first leases when this returns, unless they are
    /// to come later.
    pub(super) fn settle(self, host: impl Host) -> Result<Tenancy, BuildError> {
        match self {
            Self::Given { claimed, .. } => Ok(Tenancy::Given(Given {
                claimed: Some(claimed),
                host: Box::new(host),
                begun: false,
            })),
            Self::Kept(kept) => {
                let Kept {
                    store,
                    namespace,
                    plan,
                    outage,
                    history,
                    patience,
                } = *kept;
                let manager =
                    Manager::new(namespace.clone(), plan, seed()).map_err(BuildError::Plan)?;
                let estate = Estate {
                    host,
                    namespace: namespace.clone(),
                    held: Vec::new(),
                };
                let tenant = Box::new(estate);
                let started = Instant::now();
                // Who does not wait here asks again in the background.
                let first = FirstLease::new(history, patience.unwrap_or_default());
                Keeper::start(store, manager, tenant, outage, first, patience.is_some())
                    .map(Tenancy::Kept)
                    .map_err(|error| match error {
                        KeeperError::Store(error) if may_come(&error) => BuildError::NoLeaseYet {
                            waited: started.elapsed(),
                            error,
                        },
                        KeeperError::Store(error) => BuildError::Store(error),
                        KeeperError::System(error) => BuildError::System(error),
                    })
            }
        }
    }
}

/// Why nothing can be built on `lease`.
fn denied_build(lease: &Lease, denied: Denied) -> BuildError {
    let (nodes, ticks) = (lease.nodes(), lease.ticks());
    match denied {
        Denied::Conflict(Conflict::InUse(other)) => BuildError::LeaseTaken {
            nodes,
            ticks,
            other_nodes: other.nodes,
            other_ticks: other.ticks,
        },
        Denied::Conflict(Conflict::Used(used)) => BuildError::LeaseUsed {
            nodes,
            ticks,
            used_nodes: used.nodes,
            used_ticks: used.ticks,
        },
        Denied::Conflict(Conflict::Inherited(parents_nodes)) => BuildError::LeaseOfParent {
            nodes,
            ticks,
            parents_nodes,
        },
        Denied::GivenUp => BuildError::LeaseGivenUp { nodes, ticks },
        Denied::System(error) => BuildError::System(error),
    }
}

/// What to ask a store for, checked against the namespace.
pub(super) fn plan(options: &KeptOptions, namespace: &Namespace) -> Result<LeasePlan, BuildError> {
    let mut plan = LeasePlan::new(options.blocks.unwrap_or(1));
    if let Some(widen_to) = options.widen_to {
        plan = plan.with_widen_to(widen_to);
    }
    if let Some(lease_duration) = options.lease_duration {
        plan = plan.with_lease_duration(lease_duration);
    }
    if let Some(expiry) = options.expiry {
        plan = plan.with_expiry(expiry);
    }
    plan = plan.held_by(options.holder.clone().unwrap_or_else(this_process));
    plan.validate(namespace).map_err(BuildError::Plan)?;
    Ok(plan)
}

/// The name of this machine, where it can be had, and the process number.
fn this_process() -> Holder {
    let kernel = || std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = std::env::var("HOSTNAME").or_else(|_| kernel());
    let host = host.unwrap_or_default();
    Holder::new(host.trim_end(), std::process::id().to_string())
}

/// Spreads the requests of processes that start together. Nothing else depends
/// on it, so the keys that the standard library draws for its maps will do.
fn seed() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id())
}

/// Part `index` of `count` equal parts of a lease's nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) index: u64,
    pub(super) count: u64,
}

impl Share {
    /// All of it.
    pub(super) const WHOLE: Self = Self { index: 0, count: 1 };

    fn of(self, lease: &Lease) -> Result<Lease, crate::LeaseError> {
        let nodes = lease.nodes();
        let width = u128::from(nodes.end - nodes.start);
        // 128 bits: a node field can be 62 bits wide.
        let cut =
            |index: u64| nodes.start + (width * u128::from(index) / u128::from(self.count)) as u64;
        let part = cut(self.index)..cut(self.index + 1);
        Lease::new(*lease.layout(), part, lease.ticks())
    }
}

/// A generator's hold on its leases. Dropping it lets go of them, when its
/// threads are joined and no take can be under way.
#[derive(Debug)]
pub(super) enum Tenancy {
    /// A lease that was given.
    Given(Given),
    /// A thread keeps leases from a store.
    Kept(Keeper),
}

/// A lease that was given, and the generator that has it.
pub(super) struct Given {
    /// There until it is dropped.
    claimed: Option<Box<Claimed>>,
    host: Box<dyn Host>,
    /// Whether IDs may have been issued.
    begun: bool,
}

impl Given {
    /// Closes the timelines and returns where they have come to, and whether the
    /// lease was given up before.
    fn finish(&self) -> (Position, bool) {
        let timelines = self.host.sources().iter().map(Source::timeline);
        let lines: Vec<_> = timelines.map(Timeline::finish).collect();
        let given_up = lines.iter().any(|line| !line.was_open);
        let next = match lines.as_slice() {
            [line] => line.next,
            // The next generator may divide the nodes in another way.
            lines => {
                let ticks = lines.iter().map(|line| line.next.whole_tick());
                Position::start_of(ticks.max().unwrap_or_default())
            }
        };
        (next, given_up)
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        // Without IDs, the claim leaves the lease as it was. So it does in a
        // forked child, which finds no position to note.
        if let Some(claimed) = self.claimed.take()
            && self.begun
        {
            let (next, given_up) = self.finish();
            claimed.finish(next, given_up);
        }
    }
}

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Given")
            .field("claimed", &self.claimed)
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}

impl Tenancy {
    /// From now on IDs are issued: nothing can fail any more that would give back
    /// a lease of which nobody has had any.
    pub(super) fn begin(mut self) -> Self {
        if let Self::Given(given) = &mut self {
            given.begun = true;
        }
        self
    }

    /// Lets go of the leases; those from a store are released, if that takes no longer
    /// than `patience`.
    pub(super) fn shut_down(self, patience: Duration) -> Shutdown {
        let released = match self {
            Self::Given(_) => true,
            Self::Kept(keeper) => keeper.shut_down(patience),
        };
        if released {
            Shutdown::Released
        } else {
            Shutdown::Unreleased
        }
    }

    pub(super) fn status(&self) -> Option<LeaseStatus> {
        match self {
            Self::Given(_) => None,
            Self::Kept(keeper) => Some(keeper.status()),
        }
    }

    /// Waits until a lease is in force, for no longer than `patience`, and answers
    /// whether one is.
    pub(super) fn wait_ready(&self, patience: Duration) -> bool {
        match self {
            Self::Given(_) => true,
            Self::Kept(keeper) => keeper.wait_ready(patience),
        }
    }

    /// Gives up the leases of `host`, its own, with all that was made from them.
    /// A keeper then acquires others.
    pub(super) fn invalidate(&self, host: &impl Host) {
        match self {
            Self::Given(_) => {
                let timelines = host.sources().iter().map(Source::timeline);
                timelines.for_each(Timeline::close_all);
                while host.stop_serving() {}
            }
            Self::Kept(keeper) => keeper.invalidate(),
        }
    }
}

/// A generator, as those see it who bring it leases.
pub(super) trait Host: Send + Sync + 'static {
    /// What claims from the leases; each has an equal share of every grant.
    fn sources(&self) -> &[Source];

    /// There is more to claim than before.
    fn has_more(&self);

    /// What was made and not yet taken must not be served any more. Returns
    /// whether this must be called again for what is still to come.
    fn stop_serving(&self) -> bool;
}

/// The grants that a host has, and the lanes that they are claimed from.
struct Estate<H> {
    host: H,
    namespace: Namespace,
    held: Vec<Held>,
}

struct Held {
    grant: Grant,
    /// One for each source; none where its share of the nodes is empty.
    lanes: Vec<Option<LaneIndex>>,
}

impl<H: Host> Estate<H> {
    fn open(&mut self, grant: &Grant) {
        let Ok(lease) = grant.to_lease(&self.namespace) else {
            // Not of this namespace: nothing may be issued from it.
            debug_assert!(false, "{grant} is none of {}", self.namespace);
            return;
        };
        let sources = self.host.sources();
        let count = sources.len() as u64;
        let lanes = (0..count).zip(sources).map(|(index, source)| {
            let part = Share { index, count }.of(&lease).ok()?;
            source.timeline().open(&part)
        });
        self.held.push(Held {
            grant: grant.clone(),
            lanes: lanes.collect(),
        });
        self.host.has_more();
    }

    fn extend(&self, grant: &Grant) {
        for held in self.held.iter().filter(|held| held.is(grant)) {
            for (timeline, lane) in held.lanes(&self.host) {
                timeline.extend(lane, grant.ticks.end);
            }
        }
        self.host.has_more();
    }

    fn close(&mut self, grant: &Grant) {
        let host = &self.host;
        self.held.retain(|held| {
            if held.is(grant) {
                held.lanes(host)
                    .for_each(|(timeline, lane)| timeline.close(lane));
            }
            !held.is(grant)
        });
    }
}

impl Held {
    /// A block's epoch does not identify a grant: a store whose history was lost
    /// can use a number again. Its beginning does, among those of one process.
    fn is(&self, grant: &Grant) -> bool {
        (self.grant.block, self.grant.ticks.start) == (grant.block, grant.ticks.start)
    }

    fn lanes<'a>(&'a self, host: &'a impl Host) -> impl Iterator<Item = (&'a Timeline, LaneIndex)> {
        let lanes = self.lanes.iter().zip(host.sources());
        lanes.filter_map(|(lane, source)| Some((source.timeline(), (*lane)?)))
    }
}

impl<H: Host> Tenant for Estate<H> {
    fn unix_ms(&self) -> u64 {
        // There is at least one source.
        let source = self.host.sources().first();
        source.map_or(0, |source| source.timeline().clock().unix_ms())
    }

    fn demand(&self) -> Demand {
        let timelines = || self.host.sources().iter().map(Source::timeline);
        let borrow_limit = timelines().map(Timeline::borrow_limit).max();
        let borrow_limit = borrow_limit.unwrap_or_default();
        // Who has several borrows nothing. They are ahead of the clock after it
        // was set back alone, and as long as one is not, IDs flow.
        let borrowed = timelines().filter_map(Timeline::ahead).min();
        Demand {
            borrowed: borrowed.unwrap_or_default(),
            borrow_limit,
            room: timelines().map(Timeline::room).min().unwrap_or(0),
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Opened(grant) => self.open(grant),
            Change::Extended(grant) => self.extend(grant),
            Change::Closed(grant) | Change::Revoked(grant) => self.close(grant),
            // Without a new grant, if the clock was set back.
            Change::Revived => self.host.has_more(),
            Change::Expired { .. } => {}
        }
    }

    fn stop_serving(&self) -> bool {
        self.host.stop_serving()
    }
}

impl<H> std::fmt::Debug for Estate<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Estate")
            .field("namespace", &self.namespace)
            .field("held", &self.held.len())
            .finish_non_exhaustive()
    }
}
