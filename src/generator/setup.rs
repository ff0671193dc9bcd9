//! What both generators are built from, and how that can fail.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::tenancy::Ground;
use crate::cipher::{Cipher, Secret};
use crate::clock::{Clock, CoarseClock, SystemClock};
use crate::fill::PolicyError;
use crate::layout::{Layout, LayoutError};
use crate::lease::{
    Expiry, History, Holder, Lease, LeaseError, LeaseStore, NamespaceError, PlanError, StaticLease,
    StoreError,
};
use crate::ring::RingError;

/// The narrowest layout that may be encrypted is one bit wider than this.
///
/// A layout of at most 53 bits is chosen so that its IDs fit a double exactly,
/// and encryption always yields 64 bits.
const DOUBLE_BITS: u32 = 53;

/// How far ahead of the clock the IDs of a ring may lie unless it is said. With nodes of
/// one's own a restart has to wait for it.
pub(super) const DEFAULT_BORROW_LIMIT: Duration = Duration::from_secs(60);

/// The same with leases from a store: enough to go on through a lost history, where
/// limits and lease duration are the default.
pub(super) const STORE_BORROW_LIMIT: Duration = Duration::from_secs(250);

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
    cipher: Option<Cipher>,
    /// Kept for the namespace's fingerprint.
    secret: Option<Secret>,
    pub(super) lease: Option<LeaseSource>,
    pub(super) store: Option<Box<dyn LeaseStore>>,
    #[cfg(feature = "sqlite")]
    pub(super) local: Option<crate::local::Local>,
    pub(super) kept: KeptOptions,
    /// The system's, unless another is given.
    pub(super) clock: Option<Arc<dyn Clock>>,
}

/// What was said about leases from a store.
#[derive(Debug, Default)]
pub(super) struct KeptOptions {
    pub(super) namespace: Option<String>,
    pub(super) block_bits: Option<u32>,
    pub(super) blocks: Option<u32>,
    pub(super) widen_to: Option<u32>,
    pub(super) lease_duration: Option<Duration>,
    pub(super) expiry: Option<Expiry>,
    pub(super) holder: Option<Holder>,
    pub(super) init_if_new: Option<History>,
    /// For how long `build` waits for the first lease.
    pub(super) first_lease_within: Option<Duration>,
    /// Whether the first lease comes after the generator was built.
    pub(super) detached: bool,
}

/// A setup that was checked.
pub(super) struct Checked {
    pub(super) layout: Layout,
    pub(super) cipher: Cipher,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ground: Ground,
}

impl Setup {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            layout,
            cipher: None,
            secret: None,
            lease: None,
            store: None,
            #[cfg(feature = "sqlite")]
            local: None,
            kept: KeptOptions::default(),
            clock: None,
        }
    }

    pub(super) fn encrypt_with(&mut self, secret: &Secret) {
        self.cipher = Some(Cipher::sparx64(secret));
        self.secret = Some(secret.clone());
    }

    pub(super) fn leave_plain(&mut self) {
        self.cipher = Some(Cipher::plain());
        self.secret = None;
    }

    pub(super) fn check(self) -> Result<Checked, BuildError> {
        let layout = self.layout;
        let bits = layout.total_bits();
        if bits <= DOUBLE_BITS && !self.is_plain()? {
            return Err(BuildError::EncryptionWidens { bits });
        }
        let clock = self.clock.clone();
        let clock = clock.unwrap_or_else(|| system_clock(layout.tick_ms()));
        let now_unix_ms = clock.unix_ms();
        layout
            .check_alive(now_unix_ms)
            .map_err(BuildError::Layout)?;
        #[cfg(feature = "sqlite")]
        let this = self.with_local()?;
        #[cfg(not(feature = "sqlite"))]
        let this = self;
        let cipher = this.cipher.ok_or(BuildError::NoCipher)?;
        let ground = match (this.lease, this.store) {
            (None, None) => return Err(BuildError::NoLease),
            (Some(_), Some(_)) => return Err(BuildError::TwoLeases),
            (Some(lease), None) => {
                this.kept.check_unused()?;
                Ground::given(lease, &layout, this.secret.as_ref(), now_unix_ms)?
            }
            (None, Some(store)) => {
                let secret = this.secret.as_ref();
                Ground::kept(store, this.kept, &layout, secret)?
            }
        };
        Ok(Checked {
            layout,
            cipher,
            clock,
            ground,
        })
    }
}

impl Setup {
    #[cfg(feature = "sqlite")]
    pub(super) fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    #[cfg(feature = "sqlite")]
    pub(super) fn chose_plain(&self) -> bool {
        self.cipher.as_ref().is_some_and(Cipher::is_plain)
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

    fn is_plain(&self) -> Result<bool, BuildError> {
        #[cfg(feature = "sqlite")]
        if let Some(local) = &self.local
            && self.cipher.is_none()
        {
            return Ok(local.is_plain());
        }
        let cipher = self.cipher.as_ref().ok_or(BuildError::NoCipher)?;
        Ok(cipher.is_plain())
    }
}

impl KeptOptions {
    /// Refuses what has no meaning without a store.
    fn check_unused(&self) -> Result<(), BuildError> {
        let given = [
            ("namespace", self.namespace.is_some()),
            ("block_bits", self.block_bits.is_some()),
            ("blocks", self.blocks.is_some()),
            ("widen_to", self.widen_to.is_some()),
            ("lease_duration", self.lease_duration.is_some()),
            ("expiry", self.expiry.is_some()),
            ("holder", self.holder.is_some()),
            ("init_if_new", self.init_if_new.is_some()),
            ("first_lease_within", self.first_lease_within.is_some()),
        ];
        match given.into_iter().find(|&(_, given)| given) {
            Some((option, _)) => Err(BuildError::NoStore { option }),
            None => Ok(()),
        }
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
    /// Both a lease and a store were given.
    TwoLeases,
    /// Another generator of this process is using IDs that the lease holds too:
    /// it has the same lease, or one that meets it.
    LeaseTaken {
        /// The lease's nodes.
        nodes: std::ops::Range<u64>,
        /// The lease's ticks.
        ticks: std::ops::Range<u64>,
        /// The other generator's nodes.
        other_nodes: std::ops::Range<u64>,
        /// The other generator's ticks.
        other_ticks: std::ops::Range<u64>,
    },
    /// A generator of this process that is gone may have issued IDs that the
    /// lease holds too.
    LeaseUsed {
        /// The lease's nodes.
        nodes: std::ops::Range<u64>,
        /// The lease's ticks.
        ticks: std::ops::Range<u64>,
        /// The nodes of that generator.
        used_nodes: std::ops::Range<u64>,
        /// The ticks that it may have issued IDs of. Nothing stands against a
        /// start at their end.
        used_ticks: std::ops::Range<u64>,
    },
    /// The process that this one was forked from had a generator on some of the
    /// nodes, and may go on with them. What the child drops changes nothing.
    LeaseOfParent {
        /// The lease's nodes.
        nodes: std::ops::Range<u64>,
        /// The lease's ticks.
        ticks: std::ops::Range<u64>,
        /// The parent's nodes.
        parents_nodes: std::ops::Range<u64>,
    },
    /// The lease was given up when the generator that had it was invalidated: a
    /// copy of this process may go on with it.
    LeaseGivenUp {
        /// The lease's nodes.
        nodes: std::ops::Range<u64>,
        /// The lease's ticks.
        ticks: std::ops::Range<u64>,
    },
    /// An option about leases from a store, but no store.
    NoStore {
        /// The option.
        option: &'static str,
    },
    /// A store, but no namespace in it.
    NoNamespace,
    /// The namespace's name or block size is wrong.
    Namespace(NamespaceError),
    /// The number of blocks or the lease duration is out of its range.
    Plan(PlanError),
    /// The store gives no lease, and waiting does not help. Nothing is held in it, unless
    /// this is [`StoreError::Ambiguous`]; then a block may lie idle until its end.
    Store(StoreError),
    /// The store gave no lease, but may give one later: it could not be reached, all
    /// blocks are held, or it waits out what may have been granted before. Nothing is held
    /// in it.
    NoLeaseYet {
        /// For how long it was tried.
        waited: Duration,
        /// What the store said last.
        error: StoreError,
    },
    /// The namespace on this machine can't be used.
    #[cfg(feature = "sqlite")]
    Local(crate::local::LocalError),
    /// An option beside `local` that says what `local` sees to.
    #[cfg(feature = "sqlite")]
    LocalHas {
        /// The option.
        option: &'static str,
    },
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
                 share one make duplicates; give a lease with `lease`, or a store with `lease_store`",
            ),
            Self::TwoLeases => f.write_str(
                "both a lease and a store were given: choose `lease` for nodes that nobody else \
                 has, or `lease_store` to have them granted",
            ),
            Self::LeaseTaken {
                nodes,
                ticks,
                other_nodes,
                other_ticks,
            } => write!(
                f,
                "the lease on nodes {nodes:?}, ticks {ticks:?}, is taken: another generator of \
                 this process has nodes {other_nodes:?}, ticks {other_ticks:?}, and two would make \
                 duplicates; clone that generator, or drop it and build on the same lease again, \
                 or use other nodes"
            ),
            Self::LeaseUsed {
                nodes,
                ticks,
                used_nodes,
                used_ticks,
            } => write!(
                f,
                "the lease on nodes {nodes:?}, ticks {ticks:?}, was used in part: a generator of \
                 this process may have issued IDs of nodes {used_nodes:?}, ticks {used_ticks:?}, \
                 and they would be issued again; build on the lease that it had or a clone of it, \
                 which goes on after them, or start at tick {} or later, or use other nodes",
                used_ticks.end
            ),
            Self::LeaseOfParent {
                nodes,
                ticks,
                parents_nodes,
            } => write!(
                f,
                "the lease on nodes {nodes:?}, ticks {ticks:?}, meets what the parent of this \
                 forked process had: it has used nodes {parents_nodes:?} and may go on with them, \
                 whatever is dropped here; use nodes of the child's own, or build after the fork \
                 and not before"
            ),
            Self::LeaseGivenUp { nodes, ticks } => write!(
                f,
                "the lease on nodes {nodes:?}, ticks {ticks:?}, was given up when its generator \
                 was invalidated, since a copy of this process may go on with it: use nodes that \
                 the copy does not have"
            ),
            Self::NoStore { option } => write!(
                f,
                "`{option}` is about leases from a store, and none was given: \
                 give one with `lease_store`, or leave `{option}` out"
            ),
            Self::NoNamespace => f.write_str(
                "a store was given, but no namespace: name the ID space with `namespace`",
            ),
            Self::Namespace(error) => error.fmt(f),
            Self::Plan(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::NoLeaseYet { waited, error } => write!(
                f,
                "no lease came within {:.1} s: {error}; let `first_lease_within` be longer, or \
                 begin without one with `build_detached`",
                waited.as_secs_f64()
            ),
            #[cfg(feature = "sqlite")]
            Self::Local(error) => error.fmt(f),
            #[cfg(feature = "sqlite")]
            Self::LocalHas { option } => write!(
                f,
                "`local` sees to what `{option}` says: leave `{option}` out, or use \
                 `lease_store` in place of `local`"
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
            // These print the error they hold, so what comes next is its source. The
            // other errors have none.
            Self::Store(error) | Self::NoLeaseYet { error, .. } => error.source(),
            #[cfg(feature = "sqlite")]
            Self::Local(error) => error.source(),
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

    #[test]
    fn an_error_names_what_was_behind_it_and_prints_it_once() {
        let behind = || std::io::Error::other("a disk that is full");
        let unavailable = StoreError::Unavailable {
            source: Box::new(behind()),
        };
        for error in [
            BuildError::Store(unavailable),
            BuildError::Ring(crate::RingError::Memory(behind())),
            BuildError::System(behind()),
            #[cfg(feature = "sqlite")]
            BuildError::Local(crate::LocalError::Directory {
                path: "orders".into(),
                source: behind(),
            }),
        ] {
            let source = std::error::Error::source(&error).unwrap();
            assert_eq!(source.to_string(), "a disk that is full");
            assert!(!error.to_string().contains("a disk"), "{error}");
        }
        assert!(std::error::Error::source(&BuildError::NoCipher).is_none());
    }
}
