//! Requests of clients, and the answers.

use std::ops::Range;
use std::time::Duration;

use ringflake::lease::{Fence, Grant, LeaseStore, Namespace, StoreError};
use ringflake::{IdWidth, Layout, Secret};

use crate::namespaces::OpenError;

/// How long a lease reaches unless the client says otherwise.
pub(crate) const DEFAULT_DURATION: Duration = Duration::from_secs(120);

/// The longest that a client can ask for.
pub(crate) const MOST_DURATION: Duration = Duration::from_secs(7 * 24 * 3600);

/// The most leases that a client can name as evidence.
pub(crate) const MOST_HAD: usize = 16;

/// A namespace and its store, for leases of clients.
pub(crate) struct Origin {
    /// The name that it is served by.
    pub(crate) name: String,
    /// As the store has it, possibly by another name.
    pub(crate) namespace: Namespace,
    /// None for plain IDs.
    pub(crate) secret: Option<Secret>,
    pub(crate) id_width: IdWidth,
    pub(crate) store: Box<dyn LeaseStore>,
}

/// The parameters of a generator in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) namespace: String,
    pub(crate) layout: Layout,
    pub(crate) id_width: IdWidth,
    pub(crate) is_encrypted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AcquireRequest {
    pub(crate) size: Size,
    /// How far ahead of the clock the leases are to reach.
    pub(crate) duration: Duration,
    /// Its name, for listings.
    pub(crate) holder: Option<String>,
    /// The texts of leases that it had, as evidence.
    pub(crate) had: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Blocks(u64),
    /// At least so many nodes.
    Nodes(u64),
}

/// A lease, as the store has confirmed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sublease {
    pub(crate) text: String,
    pub(crate) nodes: Range<u64>,
    pub(crate) ticks: Range<u64>,
    pub(super) grant: Grant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) parameters: Parameters,
    pub(crate) leases: Vec<Sublease>,
    /// When, in milliseconds since 1970.
    pub(crate) unix_ms: u64,
}

/// Why there is no lease.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// A value is not allowed: which ones are.
    Invalid(String),
    /// The text names no lease of a namespace that is served here.
    Unknown,
    /// The lease is not its holder's any more: the store's reason.
    Lost(Fence),
    /// So many blocks were given away that others have to wait.
    OverBudget(Duration),
    /// Too many calls wait for the store.
    Busy,
    /// The namespace can't be opened.
    Open(OpenError),
    /// The store's answer.
    Store(StoreError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Fenced { fence, .. } => Self::Lost(fence),
            error => Self::Store(error),
        }
    }
}
