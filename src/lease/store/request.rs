//! Requests to a store.

use std::ops::Range;

use crate::cipher::Secret;
use crate::lease::block::{Block, Epoch};
use crate::lease::confirmed::Confirmed;
use crate::lease::error::StoreError;
use crate::lease::fingerprint::Fingerprint;
use crate::lease::grant::Grant;
use crate::lease::holder::Holder;
use crate::lease::store::limits::StoreLimits;

/// The maximum of blocks in one [`Acquire`]. With the namespace's record and the cluster's
/// history they fit a transaction of etcd, which takes 128 operations.
pub const MAX_ACQUIRE: u32 = 120;

/// The known history of a namespace before its record is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum History {
    /// No ID at all was issued with this layout and secret. Grants start at once, and those
    /// of the [past](Acquire::past) reach back to the layout's epoch.
    Unused,
    /// No ID with the current tick or a later one was issued with this layout and secret.
    /// Grants start at once; none reaches back before that tick.
    New,
    /// Anything else, or in doubt: IDs may have been issued under a record that is lost.
    /// Grants start above everything that a lost grant can reach, and so only after
    /// [`StoreLimits::failover`] has passed.
    Unknown,
}

/// How to make the record of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Init {
    /// The known history before this record.
    pub history: History,
    /// The limits, for the life of the namespace.
    pub limits: StoreLimits,
    /// The caller's time, in milliseconds since 1970. A store whose clock is further from it
    /// than the [skew limit](StoreLimits::skew) refuses, since the floor comes from that clock.
    pub now_unix_ms: u64,
    /// The fingerprints of the namespace's secret at all widths of IDs. No other namespace
    /// may have one of them.
    pub same_secret: Vec<Fingerprint>,
}

impl Init {
    /// With the limits of [`StoreLimits::default`], and the namespace's own fingerprint as
    /// all that is known of its secret.
    pub fn new(history: History, now_unix_ms: u64) -> Self {
        Self {
            history,
            limits: StoreLimits::default(),
            now_unix_ms,
            same_secret: Vec::new(),
        }
    }

    /// With other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: StoreLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Also refuses `secret`, the namespace's own, where another namespace has it for IDs of
    /// another [width](crate::IdWidth): IDs of two widths under one secret meet.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use ringflake::lease::{
    ///     Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace, StoreError,
    /// };
    /// use ringflake::{Clock, IdWidth, Layout, Secret, SystemClock};
    ///
    /// let secret = Secret::from_bytes([7; 16]);
    /// let init = Init::new(History::New, SystemClock.unix_ms()).with_secret(&secret);
    /// let of = |name, layout, width| {
    ///     Namespace::new(name, layout, Fingerprint::of_width(&secret, width))
    /// };
    /// let mut store = MemoryStore::new(Arc::new(SystemClock));
    /// store.init(&of("orders", &Layout::RANDFLAKE, IdWidth::Full)?, &init)?;
    ///
    /// let signed = of("signed-orders", &Layout::POSITIVE, IdWidth::Positive)?;
    /// let refused = store.init(&signed, &init);
    /// assert!(matches!(refused, Err(StoreError::SecretInUse { other, .. }) if other == "orders"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_secret(mut self, secret: &Secret) -> Self {
        self.same_secret = Fingerprint::of_all_widths(secret).to_vec();
        self
    }
}

/// A request for blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acquire {
    /// How many, from 1 to [`MAX_ACQUIRE`].
    pub blocks: u32,
    /// For how many ticks, from 1. Those of the past have their own.
    pub length: u64,
    /// These ticks, which are over, instead of some from now on.
    pub past: Option<Range<u64>>,
    /// The caller's time, in milliseconds since 1970.
    pub now_unix_ms: u64,
    /// The requesting process, for the listing.
    pub holder: Option<Holder>,
    /// The store's confirmations to the requesting process, at most one for each
    /// block.
    pub evidence: Vec<Confirmed>,
}

impl Acquire {
    /// With no holder named.
    pub fn new(blocks: u32, length: u64, now_unix_ms: u64) -> Self {
        Self {
            blocks,
            length,
            past: None,
            now_unix_ms,
            holder: None,
            evidence: Vec::new(),
        }
    }

    /// For these ticks since the layout's epoch, half-open, which must be over: for IDs of
    /// moments that lie in the past. The interval of each grant is all of them.
    ///
    /// Granted are blocks of which nothing was given away from the first of these ticks on:
    /// those whose mark lies at or before it. The mark then moves to the end, as at each
    /// grant. So the block is not granted for the time before it any more; and the past can
    /// be granted of no block that serves the present. A store grants those
    /// never granted first, so a namespace has such blocks only as long as it had fewer
    /// grants than blocks.
    ///
    /// Nothing below the namespace's floor is granted. That is 0 after [`History::Unused`],
    /// and else the tick at which the namespace was initialised, or a later one; after each
    /// loss that the store notices it lies above the present. After one that it did not
    /// notice, of any grants and however long ago, [raise it](crate::lease::LeaseStore::raise_floor)
    /// before: else what was forgotten can be granted again.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use ringflake::{Layout, ManualClock};
    /// use ringflake::lease::{
    ///     Acquire, Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace,
    /// };
    ///
    /// let now = 1_760_000_000_000;
    /// let mut store = MemoryStore::new(Arc::new(ManualClock::new(now)));
    /// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
    /// store.init(&orders, &Init::new(History::Unused, now))?;
    ///
    /// let import = store.acquire(&orders, &Acquire::past(1, 0..30_000_000, now))?.remove(0);
    /// assert_eq!(import.ticks, 0..30_000_000);
    /// let again = store.acquire(&orders, &Acquire::past(1, 0..30_000_000, now))?.remove(0);
    /// assert_ne!(again.block, import.block);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn past(blocks: u32, ticks: Range<u64>, now_unix_ms: u64) -> Self {
        Self {
            past: Some(ticks.clone()),
            ..Self::new(blocks, ticks.end.saturating_sub(ticks.start), now_unix_ms)
        }
    }

    /// On behalf of this process.
    #[must_use]
    pub fn held_by(mut self, holder: Holder) -> Self {
        self.holder = Some(holder);
        self
    }

    /// With what the store has confirmed before.
    #[must_use]
    pub fn with_evidence(mut self, evidence: Vec<Confirmed>) -> Self {
        self.evidence = evidence;
        self
    }

    /// Checks the numbers, before the store is asked.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] with the number and its range.
    pub fn validate(&self) -> Result<(), StoreError> {
        let blocks = u64::from(self.blocks);
        StoreError::check_range("the number of blocks", blocks, 1..=u64::from(MAX_ACQUIRE))?;
        match &self.past {
            Some(past) => {
                let ends = past.start.saturating_add(1)..=u64::MAX;
                StoreError::check_range("the end of the past ticks", past.end, ends)
            }
            None => StoreError::check_range("the length in ticks", self.length, 1..=u64::MAX),
        }
    }
}

/// A request to move the end of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renew {
    /// The block.
    pub block: Block,
    /// The grant's epoch.
    pub epoch: Epoch,
    /// The grant's end as the holder knows it, in ticks.
    pub known_end: u64,
    /// The end that the holder wishes for, in ticks; not before the known one.
    pub new_end: u64,
    /// The caller's time, in milliseconds since 1970.
    pub now_unix_ms: u64,
}

impl Renew {
    /// Asks to let `grant` end at `new_end`.
    pub fn new(grant: &Grant, new_end: u64, now_unix_ms: u64) -> Self {
        Self {
            block: grant.block,
            epoch: grant.epoch,
            known_end: grant.ticks.end,
            new_end,
            now_unix_ms,
        }
    }

    /// Checks the numbers, before the store is asked.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] with the number and its range.
    pub fn validate(&self) -> Result<(), StoreError> {
        let ends = self.known_end..=u64::MAX;
        StoreError::check_range("the new end in ticks", self.new_end, ends)
    }
}

/// Where to raise a floor to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Floor {
    /// Above everything that a lost grant can reach: after a restore that the
    /// store itself can't notice. It also adopts a copy.
    OverLostGrants,
    /// To this tick since the layout's epoch, at most
    /// [what a lost grant can reach](crate::lease::StoreRecord::floor_over_lost_grants): nothing lies
    /// above that which a floor could guard.
    Tick(u64),
    /// To this tick, at most the layout's last, however far it lies ahead of the store's
    /// clock and whatever that shows. Nothing is granted until the horizon reaches it,
    /// and there is no way back.
    AnyTick(u64),
}

impl Floor {
    /// Whether clocks are compared.
    pub(in crate::lease) fn heeds_clocks(self) -> bool {
        !matches!(self, Self::AnyTick(_))
    }
}
