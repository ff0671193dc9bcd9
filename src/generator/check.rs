//! The outcome of a build, computed without building.

#[cfg(all(test, not(all(loom, feature = "loom"))))]
mod tests;

use std::ops::Range;
use std::time::Duration;

use super::backing::LeaseBacking;
use super::error::BuildError;
use super::setup::Setup;
use crate::cipher::IdWidth;
use crate::lease::protocol::LeasePlan;
use crate::lease::{Lease, Namespace};
use crate::per_core::stocks::CoreStocks;

/// The outcome of a builder's `build`, as `check` computes it without asking a store,
/// writing a file, making a ring or starting a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildCheck {
    /// Slots in all stripes, 8 bytes each; 0 for a generator without a ring.
    pub capacity: usize,
    /// The number of stripes, on this machine; 0 for a generator without a ring.
    pub stripes: usize,
    /// The level of all stripes, in slots, under which takes ask for a fill, each when its
    /// own stripe is under its share of it; 0 for never. What was asked for, or up to a slot
    /// more for each stripe, since shares are whole slots.
    pub threshold: usize,
    /// Whether takes use stocks of their cores, on this machine; none for a generator without a
    /// ring.
    pub core_stocks: Option<CoreStocks>,
    /// How far ahead of the clock IDs may lie, in whole ticks.
    pub borrow_limit: Duration,
    /// The width of the IDs; that of plain ones is a bound that their layout keeps.
    pub id_width: IdWidth,
    /// The source of the nodes.
    pub leases: LeaseCheck,
}

/// The source of the nodes of a generator that would be built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseCheck {
    /// The rest of a given lease.
    Given(Lease),
    /// A store would be asked for leases. Whether it would grant them now is for
    /// [`LeaseStore::check`](crate::lease::LeaseStore::check) and
    /// [`StoreReport::obstacles`](crate::lease::StoreReport::obstacles).
    Store {
        /// The namespace, as it has to be on record. If the builder was given `local`,
        /// the secret is still missing in its fingerprint.
        namespace: Namespace,
        /// The plan of the leases that would be acquired and renewed.
        plan: LeasePlan,
    },
}

impl Setup {
    /// The source of the leases. Refuses everything that [`check`](Self::check) refuses
    /// without asking a store or the disk. `lanes` returns how many lanes divide these nodes.
    pub(super) fn dry_run(
        &self,
        lanes: impl FnOnce(Range<u64>) -> u64,
    ) -> Result<LeaseCheck, BuildError> {
        let (_, now_unix_ms) = self.validate()?;
        #[cfg(feature = "sqlite")]
        if let Some(local) = &self.local {
            let namespace = self.outline(local)?;
            let plan = self.options_of_local().plan(&namespace)?;
            return Ok(LeaseCheck::Store { namespace, plan });
        }
        let secret = self.secret.as_ref();
        match (&self.lease, &self.store) {
            (None, None) => Err(BuildError::NoLease),
            (Some(_), Some(_)) => Err(BuildError::TwoLeases),
            (Some(lease), None) => {
                self.lease_options.check_unused()?;
                let lease = lease.clone();
                LeaseBacking::check_given(lease, &self.layout, secret, now_unix_ms, lanes)
                    .map(LeaseCheck::Given)
            }
            (None, Some(_)) => {
                let print = self.fingerprint();
                let namespace = self.lease_options.namespace(&self.layout, print)?;
                let plan = self.lease_options.plan(&namespace)?;
                Ok(LeaseCheck::Store { namespace, plan })
            }
        }
    }
}
