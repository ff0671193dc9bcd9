//! The parts that both generators are built from.

use std::sync::Arc;
use std::time::Duration;

use super::backing::LeaseBacking;
use super::error::BuildError;
use super::lease_options::{
    DEFAULT_BORROW_LIMIT, LeaseOptions, LeaseSource, MAX_STATIC_BORROW_LIMIT, STORE_BORROW_LIMIT,
};
use crate::cipher::{Cipher, IdWidth, Secret};
use crate::clock::{Clock, CoarseClock, SystemClock};
use crate::layout::Layout;
use crate::lease::{Fingerprint, LeaseStore};

/// Layout, cipher, lease and clock of a generator to be.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) layout: Layout,
    pub(super) secret: Option<Secret>,
    /// Whether IDs without encryption were chosen. A secret as well is refused.
    pub(super) plain: bool,
    pub(super) id_width: Option<IdWidth>,
    pub(super) lease: Option<LeaseSource>,
    pub(super) store: Option<Box<dyn LeaseStore>>,
    #[cfg(feature = "sqlite")]
    pub(super) local: Option<crate::local::Local>,
    pub(super) lease_options: LeaseOptions,
    /// The system's, unless another is given.
    pub(super) clock: Option<Arc<dyn Clock>>,
}

pub(super) struct Checked {
    pub(super) layout: Layout,
    pub(super) cipher: Cipher,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) backing: LeaseBacking,
}

impl Setup {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            layout,
            secret: None,
            plain: false,
            id_width: None,
            lease: None,
            store: None,
            #[cfg(feature = "sqlite")]
            local: None,
            lease_options: LeaseOptions::default(),
            clock: None,
        }
    }

    /// Checks layout and cipher, and returns the clock and its time in milliseconds since
    /// 1970.
    pub(super) fn validate(&self) -> Result<(Arc<dyn Clock>, u64), BuildError> {
        let (layout, width) = (self.layout, self.id_width());
        self.check_width()?;
        let clock = self.clock.clone();
        let clock = clock.unwrap_or_else(|| system_clock(layout.tick_ms()));
        let now_unix_ms = clock.unix_ms();
        layout
            .check_alive(now_unix_ms)
            .map_err(BuildError::Layout)?;
        if !self.is_plain()? {
            width
                .check_available()
                .map_err(BuildError::IdWidthUnavailable)?;
        }
        Ok((clock, now_unix_ms))
    }

    /// Checks that one cipher was chosen at most, and that the layout has no more bits than
    /// IDs may have, nor so few that they would be exact as doubles but for the encryption.
    pub(super) fn check_width(&self) -> Result<(), BuildError> {
        if self.plain && self.secret.is_some() {
            return Err(BuildError::PlainAndSecret);
        }
        let (bits, width) = (self.layout.total_bits(), self.id_width());
        if bits > width.bits() {
            return Err(BuildError::LayoutTooWide { bits, width });
        }
        if bits < *width.layout_bits().start() && !self.is_plain()? {
            return Err(BuildError::EncryptionWidens { bits, width });
        }
        Ok(())
    }

    pub(super) fn check(self) -> Result<Checked, BuildError> {
        let layout = self.layout;
        let (clock, now_unix_ms) = self.validate()?;
        #[cfg(feature = "sqlite")]
        let this = self.with_local()?;
        #[cfg(not(feature = "sqlite"))]
        let this = self;
        let (cipher, fingerprint) = (this.cipher()?, this.fingerprint());
        let backing = match (this.lease, this.store) {
            (None, None) => return Err(BuildError::NoLease),
            (Some(_), Some(_)) => return Err(BuildError::TwoLeases),
            (Some(lease), None) => {
                this.lease_options.check_unused()?;
                LeaseBacking::given(lease, &layout, this.secret.as_ref(), now_unix_ms)?
            }
            (None, Some(store)) => {
                let (options, secret) = (this.lease_options, this.secret.as_ref());
                LeaseBacking::kept(store, options, &layout, fingerprint, secret)?
            }
        };
        Ok(Checked {
            layout,
            cipher,
            clock,
            backing,
        })
    }

    /// The width of the IDs: the builder's, or that of `local`.
    pub(super) fn id_width(&self) -> IdWidth {
        #[cfg(feature = "sqlite")]
        let of_local = self.local.as_ref().and_then(crate::local::Local::width);
        #[cfg(not(feature = "sqlite"))]
        let of_local = None;
        self.id_width.or(of_local).unwrap_or_default()
    }

    /// What a store keeps of the secret and the width.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let width = self.id_width();
        self.secret.as_ref().map_or(Fingerprint::PLAIN, |secret| {
            Fingerprint::of_width(secret, width)
        })
    }

    pub(super) fn cipher(&self) -> Result<Cipher, BuildError> {
        match &self.secret {
            Some(secret) => {
                Cipher::of_width(secret, self.id_width()).map_err(BuildError::IdWidthUnavailable)
            }
            None if self.plain => Ok(Cipher::plain()),
            None => Err(BuildError::NoCipher),
        }
    }

    /// How far ahead of the clock IDs may lie unless the builder says otherwise.
    pub(super) fn borrow_limit(&self) -> Duration {
        #[cfg(feature = "sqlite")]
        if let Some(limit) = self.local_borrow_limit() {
            return limit;
        }
        if self.store.is_some() {
            STORE_BORROW_LIMIT
        } else {
            DEFAULT_BORROW_LIMIT
        }
    }

    /// Refuses a limit that a restart on nodes of the caller's own would have to wait out.
    /// Granted leases end long before.
    pub(super) fn check_borrow_limit(&self, limit: Duration) -> Result<(), BuildError> {
        let tick = Duration::from_millis(self.layout.tick_ms());
        let max = MAX_STATIC_BORROW_LIMIT.max(tick);
        match &self.lease {
            Some(LeaseSource::Static(_)) if limit > max => {
                Err(BuildError::BorrowLimit { limit, max })
            }
            _ => Ok(()),
        }
    }

    fn is_plain(&self) -> Result<bool, BuildError> {
        if self.plain || self.secret.is_some() {
            return Ok(self.plain);
        }
        #[cfg(feature = "sqlite")]
        if let Some(local) = &self.local {
            return Ok(local.is_plain());
        }
        Err(BuildError::NoCipher)
    }
}

/// The system's clock, no more exact than ticks of this length need.
fn system_clock(tick_ms: u64) -> Arc<dyn Clock> {
    /// The coarse clock lags by at most a tenth of this.
    const COARSE_FROM_MS: u64 = 100;

    if tick_ms >= COARSE_FROM_MS {
        Arc::new(CoarseClock)
    } else {
        Arc::new(SystemClock)
    }
}

/// `duration` in whole ticks of `layout`, rounded down.
pub(super) fn to_ticks(layout: &Layout, duration: Duration) -> u64 {
    let ticks = duration.as_millis() / u128::from(layout.tick_ms());
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// `duration`, rounded down to whole ticks of `layout`.
pub(super) fn in_whole_ticks(layout: &Layout, duration: Duration) -> Duration {
    Duration::from_millis(to_ticks(layout, duration).saturating_mul(layout.tick_ms()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_as_exact_as_ticks_need() {
        for (tick_ms, clock) in [
            (1, "SystemClock"),
            (99, "SystemClock"),
            (100, "CoarseClock"),
            (1000, "CoarseClock"),
        ] {
            assert_eq!(format!("{:?}", system_clock(tick_ms)), clock);
        }
    }
}
