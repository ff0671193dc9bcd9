//! How a store describes itself.

use std::fmt;

use super::{BlockState, Incarnation, Quarantined, StoreRecord};

/// All that a store knows of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// What holds for all blocks.
    pub record: StoreRecord,
    /// The blocks that were granted at least once, by index.
    pub blocks: Vec<BlockState>,
    /// Those whose records can't be true.
    pub quarantined: Vec<Quarantined>,
}

impl Listing {
    /// A listing of these blocks, with none in quarantine.
    pub fn new(record: StoreRecord, blocks: Vec<BlockState>) -> Self {
        Self {
            record,
            blocks,
            quarantined: Vec::new(),
        }
    }
}

/// Whether a store keeps what it has confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Through a loss of power.
    Durable,
    /// Not in every case, and somebody accepted that explicitly.
    BestEffort {
        /// When it loses what.
        reason: String,
    },
    /// For as long as the process lives.
    Volatile,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Durable => write!(f, "durable"),
            Self::BestEffort { reason } => write!(f, "best effort: {reason}"),
            Self::Volatile => write!(f, "in memory only"),
        }
    }
}

/// How a store stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreReport {
    /// Which store, without credentials.
    pub store: String,
    /// The namespace's record.
    pub record: StoreRecord,
    /// The server's incarnation at present.
    pub incarnation: Incarnation,
    /// Whether the store keeps what it has confirmed.
    pub durability: Durability,
    /// The store's time in milliseconds since 1970; none if it has no clock.
    pub store_unix_ms: Option<u64>,
    /// The caller's time in milliseconds since 1970.
    pub client_unix_ms: u64,
    /// How many blocks were granted at least once.
    pub granted_blocks: u64,
    /// How many blocks have a mark after now and were not released.
    pub held_blocks: u64,
    /// The blocks that are not granted since their records can't be true. They are not
    /// among those counted.
    pub quarantined: Vec<Quarantined>,
}

impl StoreReport {
    /// A report on a store without a clock, on which nothing was granted yet.
    pub fn new(
        store: impl Into<String>,
        record: StoreRecord,
        incarnation: Incarnation,
        durability: Durability,
        client_unix_ms: u64,
    ) -> Self {
        Self {
            store: store.into(),
            record,
            incarnation,
            durability,
            store_unix_ms: None,
            client_unix_ms,
            granted_blocks: 0,
            held_blocks: 0,
            quarantined: Vec::new(),
        }
    }

    /// Whether the store was replaced or restored since it last granted
    /// something, so that the next grant will raise the floor; or, for a file that
    /// was copied, will be refused.
    pub fn history_lost(&self) -> bool {
        self.record.incarnation != self.incarnation
    }

    /// How far the store's clock and the caller's are apart, in milliseconds;
    /// none if the store has no clock.
    pub fn skew_ms(&self) -> Option<u64> {
        Some(self.store_unix_ms?.abs_diff(self.client_unix_ms))
    }
}
