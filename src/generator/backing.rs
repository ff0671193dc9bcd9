//! The source of a generator's nodes and ticks: a given lease, or a store.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::error::BuildError;
use super::lease_options::{LeaseOptions, LeaseSource};
use crate::cipher::Secret;
use crate::clock::Clock;
use crate::layout::Layout;
use crate::lease::protocol::LeasePlan;
use crate::lease::{
    Block, Claimed, Conflict, Denied, Fingerprint, FirstLease, Lease, LeaseError, LeaseStore,
    Namespace, Position, Rectangle, Space, StoreHealth,
};
use crate::timeline::{ClaimPolicy, Timeline};

/// The source of nodes and ticks for a generator that is being built.
pub(super) enum LeaseBacking {
    /// The rest of a lease that was given, and the claim on it.
    Given { lease: Lease, claimed: Box<Claimed> },
    /// Leases to acquire from a store.
    Kept(Box<Kept>),
}

/// A store, and the leases to ask it for.
pub(super) struct Kept {
    pub(super) store: Box<dyn LeaseStore>,
    pub(super) namespace: Namespace,
    /// The fingerprints of its secret at all widths.
    pub(super) same_secret: Vec<Fingerprint>,
    pub(super) plan: LeasePlan,
    pub(super) health: Arc<StoreHealth>,
    pub(super) options: LeaseOptions,
    /// For how long the first lease is waited for; none if it is to come later.
    pub(super) patience: Option<Duration>,
}

impl LeaseBacking {
    /// A given lease, if no generator has it. A lease that was used continues
    /// after the last position that was claimed from it.
    pub(super) fn given(
        source: LeaseSource,
        layout: &Layout,
        secret: Option<&Secret>,
        now_unix_ms: u64,
    ) -> Result<Self, BuildError> {
        let lease = granted(source, layout, now_unix_ms)?;
        let space = Space::new(*layout, secret);
        let claimed = lease
            .claim()
            .take(space, lease.nodes(), lease.ticks())
            .map_err(|denied| denied_build(&lease, denied))?;
        let lease = lease_of(layout, claimed.rectangle())?;
        let claimed = Box::new(claimed);
        Ok(Self::Given { lease, claimed })
    }

    /// The whole ticks of a given lease that no generator has claimed from, and the claim on
    /// them. All of them are to be written off when IDs were issued.
    pub(super) fn past(
        lease: Lease,
        layout: &Layout,
        secret: Option<&Secret>,
    ) -> Result<(Lease, Box<Claimed>), BuildError> {
        // A granted lease asks no clock.
        match Self::given(lease.into(), layout, secret, 0)? {
            Self::Given { lease, claimed } => {
                let (whole, _) = beginning(&lease, claimed.start(), 2)?;
                Ok((whole, claimed))
            }
            Self::Kept(_) => Err(BuildError::NoLease),
        }
    }

    /// The rest of a given lease that a generator would begin with, whose number of
    /// lanes follows from the nodes. Claims nothing, and refuses what
    /// [`given`](Self::given) and [`timeline`](Self::timeline) refuse.
    pub(super) fn check_given(
        source: LeaseSource,
        layout: &Layout,
        secret: Option<&Secret>,
        now_unix_ms: u64,
        lanes: impl FnOnce(Range<u64>) -> u64,
    ) -> Result<Lease, BuildError> {
        let lease = granted(source, layout, now_unix_ms)?;
        let space = Space::new(*layout, secret);
        let rest = lease
            .claim()
            .check(space, lease.nodes(), lease.ticks())
            .map_err(|denied| denied_build(&lease, denied))?;
        let lease = lease_of(layout, &rest.rectangle)?;
        let (lease, _) = beginning(&lease, rest.start, lanes(lease.nodes()))?;
        Ok(lease)
    }

    pub(super) fn kept(
        store: Box<dyn LeaseStore>,
        options: LeaseOptions,
        layout: &Layout,
        fingerprint: Fingerprint,
        secret: Option<&Secret>,
    ) -> Result<Self, BuildError> {
        let same_secret = secret.map(Fingerprint::of_all_widths);
        let namespace = options.namespace(layout, fingerprint)?;
        let plan = options.plan(&namespace)?;
        let within = options.first_lease_within;
        let patience = within.unwrap_or(FirstLease::PATIENCE);
        Ok(Self::Kept(Box::new(Kept {
            store,
            namespace,
            same_secret: same_secret.map(Vec::from).unwrap_or_default(),
            plan,
            health: Arc::default(),
            patience: (!options.detached).then_some(patience),
            options,
        })))
    }

    /// The nodes that are claimed from together: the lease's, or those that the
    /// first block would have.
    pub(super) fn nodes(&self) -> Range<u64> {
        match self {
            Self::Given { lease, .. } => lease.nodes(),
            Self::Kept(kept) => kept.namespace.nodes_of(Block::new(0)),
        }
    }

    /// The timeline of a share of the nodes, with the claim policy that the leases demand.
    pub(super) fn timeline(
        &self,
        share: Share,
        layout: &Layout,
        clock: Arc<dyn Clock>,
        mut policy: ClaimPolicy,
    ) -> Result<Timeline, BuildError> {
        match self {
            Self::Given { lease, claimed } => {
                let (whole, offset) = beginning(lease, claimed.start(), share.count)?;
                let share = share.of(&whole).map_err(BuildError::Lease)?;
                let timeline = Timeline::new(&share, offset, clock, policy);
                // A signal handler may have forked since the claim. Not checked before this: a
                // timeline that exists at a fork detects it.
                if claimed.is_parents() {
                    let denied = Denied::Conflict(Conflict::Inherited(lease.nodes()));
                    return Err(denied_build(lease, denied));
                }
                timeline
            }
            Self::Kept(kept) => {
                // Whatever the policy for a given lease.
                policy.serves_the_past = false;
                // Twice as many, for those that are used up while others
                // replace them.
                let lanes = 2 * kept.plan.widen_to as usize + 8;
                Timeline::for_leases(*layout, lanes, clock, policy, Arc::clone(&kept.health))
            }
        }
        .map_err(BuildError::System)
    }
}

/// The lease, if it has the generator's layout.
fn granted(source: LeaseSource, layout: &Layout, now_unix_ms: u64) -> Result<Lease, BuildError> {
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
    Ok(lease)
}

fn lease_of(layout: &Layout, left: &Rectangle) -> Result<Lease, BuildError> {
    Lease::new(*layout, left.nodes.clone(), left.ticks.clone()).map_err(BuildError::Lease)
}

/// Where a generator with so many lanes begins on the rest of a lease: that of it which
/// its lanes divide, and how many IDs of the first tick come before.
fn beginning(rest: &Lease, start: Position, lanes: u64) -> Result<(Lease, u64), BuildError> {
    // To the sequence where all nodes are one line, as they were.
    if lanes == 1 {
        return Ok((rest.clone(), start.offset));
    }
    let ticks = start.whole_tick()..rest.ticks().end;
    let whole = Lease::new(*rest.layout(), rest.nodes(), ticks);
    Ok((whole.map_err(BuildError::Lease)?, 0))
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

/// Part `index` of `count` equal parts of a lease's nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) index: u64,
    pub(super) count: u64,
}

impl Share {
    pub(super) const WHOLE: Self = Self { index: 0, count: 1 };

    pub(super) fn of(self, lease: &Lease) -> Result<Lease, LeaseError> {
        let nodes = lease.nodes();
        let width = u128::from(nodes.end - nodes.start);
        // 128 bits: a node field can be 62 bits wide.
        let cut =
            |index: u64| nodes.start + (width * u128::from(index) / u128::from(self.count)) as u64;
        let part = cut(self.index)..cut(self.index + 1);
        Lease::new(*lease.layout(), part, lease.ticks())
    }
}
