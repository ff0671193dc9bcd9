//! The options about leases, for both builders and the lease side.

use std::time::Duration;

use super::error::BuildError;
use crate::layout::Layout;
use crate::lease::protocol::LeasePlan;
use crate::lease::{Fingerprint, History, Holder, Lease, Namespace, StaticLease, WaitHook};

/// The default of how far ahead of the clock the IDs of a ring may lie. With given nodes
/// a restart has to wait for it.
pub(super) const DEFAULT_BORROW_LIMIT: Duration = Duration::from_secs(60);

/// The same with leases from a store: enough to go on through a lost history, if
/// limits and lease duration are the default.
pub(super) const STORE_BORROW_LIMIT: Duration = Duration::from_secs(250);

/// The maximum with a static lease. A restart of the program must wait for as long, or repeats
/// IDs.
pub(super) const MAX_STATIC_BORROW_LIMIT: Duration = Duration::from_secs(86_400);

/// The source of a generator's lease.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LeaseSource {
    /// A lease that was granted before.
    Granted(Lease),
    /// Nodes that the caller vouches for; the ticks begin when the generator
    /// is built.
    Static(StaticLease),
}

impl From<Lease> for LeaseSource {
    fn from(lease: Lease) -> Self {
        Self::Granted(lease)
    }
}

impl From<StaticLease> for LeaseSource {
    fn from(lease: StaticLease) -> Self {
        Self::Static(lease)
    }
}

/// The options of a builder about leases from a store.
#[derive(Clone, Debug, Default)]
pub(super) struct LeaseOptions {
    pub(super) namespace: Option<String>,
    pub(super) block_bits: Option<u32>,
    pub(super) blocks: Option<u32>,
    pub(super) widen_to: Option<u32>,
    pub(super) lease_duration: Option<Duration>,
    pub(super) holder: Option<Holder>,
    pub(super) init_if_new: Option<History>,
    /// For how long `build` waits for the first lease.
    pub(super) first_lease_within: Option<Duration>,
    /// How far the first lease reaches ahead of the clock.
    pub(super) first_lease_duration: Option<Duration>,
    /// The hook that each wait for the first lease is reported to.
    pub(super) wait_hook: Option<WaitHook>,
    /// Whether the first lease comes after the generator was built.
    pub(super) detached: bool,
}

impl LeaseOptions {
    /// Refuses options that have no meaning without a store.
    pub(super) fn check_unused(&self) -> Result<(), BuildError> {
        let given = [
            ("namespace", self.namespace.is_some()),
            ("block_bits", self.block_bits.is_some()),
            ("blocks", self.blocks.is_some()),
            ("widen_to", self.widen_to.is_some()),
            ("lease_duration", self.lease_duration.is_some()),
            ("holder", self.holder.is_some()),
            ("init_if_new", self.init_if_new.is_some()),
            ("first_lease_within", self.first_lease_within.is_some()),
            ("first_lease_duration", self.first_lease_duration.is_some()),
            ("on_lease_wait_hook", self.wait_hook.is_some()),
        ];
        match given.into_iter().find(|&(_, given)| given) {
            Some((option, _)) => Err(BuildError::NoStore { option }),
            None => Ok(()),
        }
    }

    /// The namespace, as it has to be on record.
    pub(super) fn namespace(
        &self,
        layout: &Layout,
        fingerprint: Fingerprint,
    ) -> Result<Namespace, BuildError> {
        let name = self.namespace.clone().ok_or(BuildError::NoNamespace)?;
        let namespace = Namespace::new(name, layout, fingerprint).map_err(BuildError::Namespace)?;
        match self.block_bits {
            Some(bits) => namespace
                .with_block_bits(bits)
                .map_err(BuildError::Namespace),
            None => Ok(namespace),
        }
    }

    /// The plan of the leases, checked against the namespace.
    pub(super) fn plan(&self, namespace: &Namespace) -> Result<LeasePlan, BuildError> {
        let mut plan = LeasePlan::new(self.blocks.unwrap_or(1));
        plan.widen_to = self.widen_to.unwrap_or(plan.widen_to);
        plan.lease_duration = self.lease_duration.unwrap_or(plan.lease_duration);
        let holder = self.holder.clone();
        plan.holder = Some(holder.unwrap_or_else(Holder::this_process));
        plan.validate(namespace).map_err(BuildError::Plan)?;
        match self.first_lease_duration {
            Some(value) if value.is_zero() || value > plan.lease_duration => {
                let max = plan.lease_duration;
                Err(BuildError::FirstLeaseDuration { value, max })
            }
            _ => Ok(plan),
        }
    }
}
