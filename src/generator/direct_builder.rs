//! The builder of a direct generator.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::backing::Share;
use super::check::BuildCheck;
use super::direct::{ClockPolicy, DirectGenerator};
use super::error::BuildError;
use super::grant_lanes::LeaseUser;
use super::lease_hold::LeaseHold;
use super::options::shared_options;
use super::setup::{Setup, in_whole_ticks, to_ticks};
use crate::layout::Layout;
use crate::source::Source;
use crate::timeline::ClaimPolicy;

/// The maximum of lanes that a lease is divided into; each takes a page of
/// memory.
const MAX_LANES: u64 = 256;

impl DirectGenerator {
    /// Starts building a generator for IDs of `layout`.
    #[doc(alias = "new")]
    pub fn builder(layout: Layout) -> DirectGeneratorBuilder {
        DirectGeneratorBuilder {
            setup: Setup::new(layout),
            policy: ClockPolicy::default(),
        }
    }
}

/// Configures a [`DirectGenerator`].
#[derive(Debug)]
#[must_use = "nothing is built before `build`"]
pub struct DirectGeneratorBuilder {
    setup: Setup,
    policy: ClockPolicy,
}

impl DirectGeneratorBuilder {
    shared_options!();

    /// The policy for a clock that was set back or a tick that is used up.
    pub fn clock_policy(mut self, policy: ClockPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Checks everything and makes the generator.
    ///
    /// # Errors
    ///
    /// [`BuildError`] with the value that is wrong and what is allowed.
    pub fn build(self) -> Result<DirectGenerator, BuildError> {
        self.validate()?;
        let setup = self.setup.check()?;
        let lanes = lanes(self.policy, setup.backing.nodes());
        let claim_policy = match self.policy {
            ClockPolicy::Logical { at_most_ahead } => ClaimPolicy {
                borrow_limit: to_ticks(&setup.layout, at_most_ahead),
                follows_clock: false,
                serves_the_past: true,
            },
            _ => ClaimPolicy {
                borrow_limit: 0,
                follows_clock: true,
                serves_the_past: false,
            },
        };
        let lanes: Arc<[Source]> = (0..lanes)
            .map(|index| {
                let share = Share {
                    index,
                    count: lanes,
                };
                let clock = Arc::clone(&setup.clock);
                let timeline = setup
                    .backing
                    .timeline(share, &setup.layout, clock, claim_policy)?;
                Ok(Source::new(timeline, setup.cipher.clone()))
            })
            .collect::<Result<_, BuildError>>()?;
        let leases = LeaseHold::of(setup.backing, Arc::clone(&lanes))?.begin();
        Ok(DirectGenerator::new(lanes, self.policy, leases))
    }

    /// The same without waiting for the first lease from a store; see
    /// [`CachedGeneratorBuilder::build_detached`](crate::CachedGeneratorBuilder::build_detached).
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build), except the store's errors.
    pub fn build_detached(mut self) -> Result<DirectGenerator, BuildError> {
        self.setup.lease_options.detached = true;
        self.build()
    }

    /// Returns what [`build`](Self::build) would do; see
    /// [`CachedGeneratorBuilder::check`](crate::CachedGeneratorBuilder::check).
    ///
    /// # Errors
    ///
    /// [`BuildError`] as [`build`](Self::build), except errors of a store, the disk or
    /// the system.
    pub fn check(&self) -> Result<BuildCheck, BuildError> {
        self.validate()?;
        let leases = self.setup.dry_run(|nodes| lanes(self.policy, nodes))?;
        let borrow_limit = match self.policy {
            ClockPolicy::Logical { at_most_ahead } => at_most_ahead,
            _ => Duration::ZERO,
        };
        Ok(BuildCheck {
            capacity: 0,
            stripes: 0,
            core_stocks: None,
            threshold: 0,
            borrow_limit: in_whole_ticks(&self.setup.layout, borrow_limit),
            id_width: self.setup.id_width(),
            leases,
        })
    }

    fn validate(&self) -> Result<(), BuildError> {
        match self.policy {
            ClockPolicy::Logical { at_most_ahead } => self.setup.check_borrow_limit(at_most_ahead),
            _ => Ok(()),
        }
    }
}

/// How many lanes the nodes are divided into that are claimed from together.
fn lanes(policy: ClockPolicy, nodes: Range<u64>) -> u64 {
    match policy {
        ClockPolicy::Refuse | ClockPolicy::Wait { .. } | ClockPolicy::Logical { .. } => 1,
        ClockPolicy::SwitchNode => (nodes.end - nodes.start).min(MAX_LANES),
    }
}

impl LeaseUser for Arc<[Source]> {
    fn sources(&self) -> &[Source] {
        self
    }

    /// Nobody waits for it.
    fn has_more(&self) {}

    /// Nothing is made before it is taken.
    fn stop_serving(&self) -> bool {
        false
    }
}
