//! What both generators are built from, and how that can fail.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::cipher::{Cipher, Secret};
use crate::clock::{Clock, CoarseClock, SystemClock};
use crate::fill::PolicyError;
use crate::layout::{Layout, LayoutError};
use crate::lease::{Lease, LeaseError, StaticLease};
use crate::ring::RingError;

/// The narrowest layout that may be encrypted is one bit wider than this.
///
/// A layout of at most 53 bits is chosen so that its IDs fit a double exactly,
/// and encryption always yields 64 bits.
const DOUBLE_BITS: u32 = 53;

/// Where a generator's lease comes from.
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

/// Layout, cipher, lease and clock of a generator to be.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) layout: Layout,
    pub(super) cipher: Option<Cipher>,
    pub(super) lease: Option<LeaseSource>,
    /// The system's, unless another is given.
    pub(super) clock: Option<Arc<dyn Clock>>,
}

/// A setup that was checked.
pub(super) struct Checked {
    pub(super) layout: Layout,
    pub(super) cipher: Cipher,
    pub(super) lease: Lease,
    pub(super) clock: Arc<dyn Clock>,
}

impl Setup {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            layout,
            cipher: None,
            lease: None,
            clock: None,
        }
    }

    pub(super) fn encrypt_with(&mut self, secret: &Secret) {
        self.cipher = Some(Cipher::sparx64(secret));
    }

    pub(super) fn check(self) -> Result<Checked, BuildError> {
        let layout = self.layout;
        let cipher = self.cipher.ok_or(BuildError::NoCipher)?;
        let bits = layout.total_bits();
        if bits <= DOUBLE_BITS && !cipher.is_plain() {
            return Err(BuildError::EncryptionWidens { bits });
        }
        let clock = self.clock.unwrap_or_else(|| system_clock(layout.tick_ms()));
        let now_unix_ms = clock.unix_ms();
        layout
            .check_alive(now_unix_ms)
            .map_err(BuildError::Layout)?;
        let lease = match self.lease.ok_or(BuildError::NoLease)? {
            LeaseSource::Granted(lease) => lease,
            LeaseSource::Static(lease) => lease.grant(now_unix_ms).map_err(BuildError::Lease)?,
        };
        if *lease.layout() != layout {
            return Err(BuildError::LeaseLayout {
                lease: *lease.layout(),
                generator: layout,
            });
        }
        Ok(Checked {
            layout,
            cipher,
            lease,
            clock,
        })
    }
}

/// The system's clock, no more exact than ticks of this length need.
fn system_clock(tick_ms: u64) -> Arc<dyn Clock> {
    /// A tenth of this is the most that the coarse clock lags.
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

/// Why a generator could not be built. Nothing is left running or held.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// Neither a secret was given nor plain IDs chosen.
    NoCipher,
    /// No lease was given: which nodes are this generator's?
    NoLease,
    /// A layout made to fit a double would not fit it any more once encrypted.
    EncryptionWidens {
        /// The layout's width in bits.
        bits: u32,
    },
    /// The layout can't be used: it has run out.
    Layout(LayoutError),
    /// The static lease can't be granted.
    Lease(LeaseError),
    /// The lease is counted in another layout than the generator's.
    LeaseLayout {
        /// The lease's layout.
        lease: Layout,
        /// The generator's.
        generator: Layout,
    },
    /// A threshold or a period is out of its range.
    Policy(PolicyError),
    /// The ring could not be made.
    Ring(RingError),
    /// The number of producer threads is not between 1 and 64.
    Producers {
        /// The number that was given.
        count: usize,
    },
    /// [`OnEmpty::Wait`](crate::OnEmpty::Wait) without a threshold fill: nobody would come.
    WaitWithoutThreshold,
    /// The leased nodes can't be divided by the rollback bits.
    RollbackBits {
        /// The bits that were asked for.
        bits: u8,
        /// The leased nodes.
        nodes: std::ops::Range<u64>,
    },
    /// The operating system refused memory or a thread.
    System(io::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCipher => f.write_str(
                "no cipher was chosen: give a secret with `secret`, or choose `plain` for \
                 IDs that are sorted by time and readable by anybody",
            ),
            Self::NoLease => f.write_str(
                "no lease was given: there is no default node, because two generators that \
                 share one make duplicates; give a lease with `lease`",
            ),
            Self::EncryptionWidens { bits } => write!(
                f,
                "IDs of a layout of {bits} bits fit a double, but encrypted ones have 64 bits: \
                 choose `plain` or a layout of more than {DOUBLE_BITS} bits"
            ),
            Self::Layout(error) => error.fmt(f),
            Self::Lease(error) => error.fmt(f),
            Self::LeaseLayout { lease, generator } => write!(
                f,
                "the lease is for the layout {lease} and the generator for {generator}: \
                 build both with the same one"
            ),
            Self::Policy(error) => error.fmt(f),
            Self::Ring(error) => error.fmt(f),
            Self::Producers { count } => {
                write!(f, "{count} producer threads can't be had: choose 1 to 64")
            }
            Self::WaitWithoutThreshold => f.write_str(
                "OnEmpty::Wait needs a threshold fill, or nothing wakes a producer: \
                 give one, or choose OnEmpty::Generate",
            ),
            Self::RollbackBits { bits, nodes } => write!(
                f,
                "{bits} rollback bits can't be taken from the nodes {}..{}: choose 1 to 8 bits, \
                 and a number of nodes that is a multiple of 2^bits",
                nodes.start, nodes.end
            ),
            Self::System(_) => f.write_str(
                "the system refused memory or a thread: see the cause, and the limits that \
                 the process runs under",
            ),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // These print the error they hold, so what comes next is its source.
            Self::Layout(error) => error.source(),
            Self::Lease(error) => error.source(),
            Self::Policy(error) => error.source(),
            Self::Ring(error) => error.source(),
            Self::System(error) => Some(error),
            _ => None,
        }
    }
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
