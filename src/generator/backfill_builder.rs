//! The builder of a backfill generator.

use super::backfill::BackfillGenerator;
use super::backing::LeaseBacking;
use super::error::BuildError;
use super::options::cipher_options;
use super::setup::Setup;
use crate::clock::{Clock, SystemClock};
use crate::layout::Layout;
use crate::lease::Lease;

impl BackfillGenerator {
    /// Starts building a generator for IDs of `layout`, which may have ended.
    pub fn builder(layout: Layout) -> BackfillGeneratorBuilder {
        BackfillGeneratorBuilder {
            setup: Setup::new(layout),
            lease: None,
        }
    }
}

/// Configures a [`BackfillGenerator`]. It has the options of the other builders that are not
/// about the present: there is no clock to choose, and no store.
#[derive(Debug)]
#[must_use = "nothing is built before `build`"]
pub struct BackfillGeneratorBuilder {
    setup: Setup,
    lease: Option<Lease>,
}

impl BackfillGeneratorBuilder {
    cipher_options!();

    /// The nodes and past ticks to make IDs of; see
    /// [`StaticLease::assume_unique_past`](crate::StaticLease::assume_unique_past).
    pub fn lease(mut self, lease: Lease) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Checks everything and makes the generator.
    ///
    /// # Errors
    ///
    /// [`BuildError`] with the value that is wrong and what is allowed.
    /// [`BuildError::LeaseTaken`] while any generator of this process uses some of the nodes
    /// and ticks, and [`BuildError::LeaseUsed`] where one did. [`BuildError::LeaseNotPast`] if
    /// some of the ticks are not over by the system's clock: generators of the present make
    /// their IDs.
    pub fn build(self) -> Result<BackfillGenerator, BuildError> {
        let Self { setup, lease } = self;
        setup.check_width()?;
        let cipher = setup.cipher()?;
        let lease = lease.ok_or(BuildError::NoLease)?;
        let end_unix_ms = setup.layout.tick_start_unix_ms(lease.ticks().end);
        let now_unix_ms = SystemClock.unix_ms();
        if end_unix_ms > now_unix_ms {
            return Err(BuildError::LeaseNotPast {
                end_unix_ms,
                now_unix_ms,
            });
        }
        let (rest, claimed) = LeaseBacking::past(lease, &setup.layout, setup.secret.as_ref())?;
        BackfillGenerator::new(rest, claimed, cipher).map_err(BuildError::System)
    }
}
