//! A store's description of itself.

use std::fmt;
use std::time::Duration;

use crate::lease::block::BlockState;
use crate::lease::store::quarantine::{Judged, Quarantined};
use crate::lease::store::record::{Incarnation, StoreRecord};

/// Everything on record about a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The namespace's record.
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

    /// A listing of blocks whose records were judged; each that is quarantined is logged.
    pub(in crate::lease) fn of_judged(
        record: StoreRecord,
        judged: impl IntoIterator<Item = Judged>,
    ) -> Self {
        let mut listing = Self::new(record, Vec::new());
        for judged in judged {
            match judged {
                Ok(state) => listing.blocks.push(state),
                Err(found) => {
                    found.log(&listing.record.namespace);
                    listing.quarantined.push(found);
                }
            }
        }
        let quarantined = &mut listing.quarantined;
        quarantined.sort_by_key(|found| (found.block.is_none(), found.block));
        listing
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

impl Durability {
    /// Of a store that can lose what it confirms for this reason, if there is one.
    #[cfg(any(
        feature = "mysql",
        feature = "postgres",
        feature = "redis",
        feature = "sqlite"
    ))]
    pub(in crate::lease) fn of(weakness: Option<&str>) -> Self {
        weakness.map_or(Self::Durable, |reason| Self::BestEffort {
            reason: reason.to_owned(),
        })
    }
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

/// The state of a store.
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
    /// Whether the store is a copy that nobody adopted.
    pub is_copy: bool,
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
            is_copy: false,
            store_unix_ms: None,
            client_unix_ms,
            granted_blocks: 0,
            held_blocks: 0,
            quarantined: Vec::new(),
        }
    }

    /// Whether the store was replaced or restored since it last granted
    /// something, so that the next grant will raise the floor; or, for a copy, will be refused.
    pub fn history_lost(&self) -> bool {
        self.record.incarnation != self.incarnation
    }

    /// The store's time, or the caller's where the store has no clock, in milliseconds
    /// since 1970.
    pub fn now_unix_ms(&self) -> u64 {
        self.store_unix_ms.unwrap_or(self.client_unix_ms)
    }

    /// How far the floor lies ahead of [that time](Self::now_unix_ms); zero where it
    /// doesn't. No grant begins below the floor.
    ///
    /// Ordinarily the floor lies behind. A store raises it when it finds that it has lost
    /// history, by its own incarnation or by a process's evidence
    /// ([`StoreError::HistoryLost`](crate::lease::StoreError::HistoryLost)): to the horizon and
    /// [`failover`](crate::lease::StoreLimits::failover) ahead, so that this is above zero for
    /// as long. It lies as far ahead after
    /// [`raise_floor`](crate::lease::LeaseStore::raise_floor), and if a namespace began with an
    /// unknown history. Clocks that are apart can make it seem ahead by no more than the
    /// [`skew`](crate::lease::StoreLimits::skew).
    ///
    /// # Examples
    /// ```
    /// use std::{sync::Arc, time::Duration};
    /// use ringflake::{Layout, ManualClock};
    /// use ringflake::lease::{
    ///     Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace, StoreLimits,
    /// };
    ///
    /// let now = 1_760_000_000_000;
    /// let mut store = MemoryStore::new(Arc::new(ManualClock::new(now)));
    /// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
    /// let limits = StoreLimits::default()
    ///     .with_horizon(Duration::from_secs(600))
    ///     .with_failover(Duration::from_secs(60));
    /// store.init(&orders, &Init::new(History::Unknown, now).with_limits(limits))?;
    ///
    /// let report = store.check(&orders, now)?;
    /// assert_eq!(report.floor_ahead(), Duration::from_secs(661));
    /// // Then grants may begin there.
    /// assert_eq!(report.nothing_granted_for(), Duration::from_secs(62));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn floor_ahead(&self) -> Duration {
        self.record.until(self.record.floor, self.now_unix_ms())
    }

    /// For how long from [now](Self::now_unix_ms) the floor lets nothing be granted:
    /// until the horizon has passed it. Zero where it is no obstacle.
    pub fn nothing_granted_for(&self) -> Duration {
        let reached = self.record.reached_from(self.record.floor);
        self.record.until(reached, self.now_unix_ms())
    }

    /// How far the store's clock and the caller's are apart, in milliseconds;
    /// none if the store has no clock.
    pub fn skew_ms(&self) -> Option<u64> {
        Some(self.store_unix_ms?.abs_diff(self.client_unix_ms))
    }
}
