//! Why a store did not do what it was asked.

mod fence;
mod message;

use std::error::Error;
use std::ops::RangeInclusive;
use std::time::Duration;

pub use self::fence::Fence;
pub(crate) use self::message::FAR_AHEAD;
use crate::lease::block::{Block, Epoch};
use crate::lease::confirmed::Confirmed;
use crate::lease::fingerprint::Fingerprint;

/// Why a store did not do what it was asked.
///
/// Except for [`Ambiguous`](Self::Ambiguous) nothing was granted, renewed,
/// released or initialised. `Display` says what is wrong, in one line;
/// [`note`](Self::note) says why it matters, and [`help`](Self::help) what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The store has no record of the namespace.
    NotInitialised {
        /// The namespace's name.
        namespace: String,
    },
    /// The store has a record of the namespace already.
    AlreadyInitialised {
        /// The namespace's name.
        namespace: String,
    },
    /// The store has no record of the namespace, and may have lost it.
    HistoryUnknown {
        /// The namespace's name.
        namespace: String,
        /// Why the store can't know.
        reason: String,
    },
    /// The namespace was initialised with another secret, or for IDs of another
    /// [width](crate::IdWidth).
    FingerprintMismatch {
        /// The namespace's name.
        namespace: String,
        /// The fingerprint on record.
        recorded: Fingerprint,
        /// The fingerprint of the secret at hand.
        offered: Fingerprint,
    },
    /// Another namespace of the store has this secret already, or this one had it for IDs
    /// of another width before its record was lost.
    SecretInUse {
        /// The name of the namespace that was to be made.
        namespace: String,
        /// The one that has it; the same one where its record was lost.
        other: String,
    },
    /// The namespace is on record in a format that this version does not read: a newer
    /// version wrote it.
    Format {
        /// The namespace's name.
        namespace: String,
        /// The format on record.
        recorded: i64,
        /// The format that this version reads and writes.
        known: i64,
    },
    /// The namespace was initialised with another layout or block size.
    LayoutMismatch {
        /// The namespace's name.
        namespace: String,
        /// The layout and block size on record.
        recorded: String,
        /// The layout and block size at hand.
        offered: String,
    },
    /// The grant is not the block's last, or must not grow any more.
    Fenced {
        /// The block.
        block: Block,
        /// Which comparison failed.
        fence: Fence,
    },
    /// Every block is held.
    Exhausted {
        /// How many blocks were asked for.
        wanted: u32,
        /// How many blocks there are: those of the namespace, or of the range that was asked for.
        blocks: u64,
        /// When the first of them becomes free at the earliest. Its holder will
        /// renew it before that if it is alive.
        retry_after: Duration,
    },
    /// The past ticks that were asked for begin before the namespace's floor.
    BeforeFloor {
        /// Their first tick.
        start: u64,
        /// When it begins, in milliseconds since 1970.
        start_unix_ms: u64,
        /// The floor, in ticks.
        floor: u64,
        /// When that tick begins, in milliseconds since 1970.
        floor_unix_ms: u64,
    },
    /// The past ticks that were asked for are not over by the store's clock.
    NotPast {
        /// Their end, in ticks.
        end: u64,
        /// When that tick begins, in milliseconds since 1970.
        end_unix_ms: u64,
        /// The latest end that is allowed at present, in ticks.
        latest: u64,
        /// When that tick begins, in milliseconds since 1970.
        latest_unix_ms: u64,
    },
    /// Of every block something was given away that ends after the first of the requested past
    /// ticks.
    PastExhausted {
        /// How many blocks were asked for.
        wanted: u32,
        /// How many blocks there are: those of the namespace, or of the range that was asked for.
        blocks: u64,
        /// The first of the ticks.
        start: u64,
        /// When it begins, in milliseconds since 1970.
        start_unix_ms: u64,
        /// When the past begins of which a block can be had, in milliseconds since 1970; it
        /// may lie ahead. None where no block is sound.
        lowest_mark_unix_ms: Option<u64>,
    },
    /// The store grants no ticks of the past.
    PresentOnly {
        /// Which store, without credentials.
        store: String,
    },
    /// The floor lies so far ahead that no grant can start there yet.
    FloorAhead {
        /// The floor, in ticks.
        floor: u64,
        /// When that tick begins, in milliseconds since 1970.
        floor_unix_ms: u64,
        /// The store's time, in milliseconds since 1970.
        now_unix_ms: u64,
        /// When the first grant becomes possible.
        retry_after: Duration,
    },
    /// A floor so far ahead would guard nothing, and keep the store from granting
    /// anything for long. It was not raised.
    FloorTooFar {
        /// The tick asked for.
        tick: u64,
        /// When it begins, in milliseconds since 1970.
        tick_unix_ms: u64,
        /// The last tick that is allowed at present: above all that was ever granted.
        latest: u64,
        /// When that begins, in milliseconds since 1970.
        latest_unix_ms: u64,
        /// For how long nothing would be granted.
        idle: Duration,
    },
    /// The block's record is sound, so that there is nothing to repair.
    NotQuarantined {
        /// The block.
        block: Block,
    },
    /// The store knows less than it has confirmed: it was put back to an earlier
    /// state, and shows no other sign of it. Its floor was raised over all that it may
    /// have granted since; the same request finds it there.
    HistoryLost {
        /// What it had confirmed.
        confirmed: Confirmed,
        /// The epoch and the mark of the block on record, if there is any.
        recorded: Option<(Epoch, u64)>,
    },
    /// The layout has run out of ticks.
    LayoutEnded {
        /// The tick at which a grant would start.
        start: u64,
        /// How many ticks the layout has.
        layout_ticks: u64,
    },
    /// The clocks of store and client are too far apart to grant anything.
    ClockSkew {
        /// The store's time, in milliseconds since 1970.
        store_unix_ms: u64,
        /// The client's time, in milliseconds since 1970.
        client_unix_ms: u64,
        /// How far apart they may be.
        limit: Duration,
    },
    /// The store's clock shows a time before the layout's epoch.
    BeforeEpoch {
        /// The store's time, in milliseconds since 1970.
        unix_ms: u64,
        /// The epoch, in milliseconds since 1970.
        epoch_unix_ms: u64,
    },
    /// The store is set up so that it can forget what it has confirmed.
    NotDurable {
        /// Which store, without credentials.
        store: String,
        /// The setting, its value, and what it should be.
        reason: String,
    },
    /// The store is a copy of the one that granted before, or was put back to an
    /// earlier state. It grants nothing: the other one may still be granting.
    Copied {
        /// Which store, without credentials.
        store: String,
        /// The identity in the record.
        recorded: String,
        /// The identity that was found instead.
        found: String,
    },
    /// The store can't be reached, or can't carry out requests at present. The request was not carried out.
    Unavailable {
        /// The driver's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store refused the login: user, password or certificate are wrong or
    /// missing. The request was not carried out.
    Denied {
        /// The driver's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The request was sent, and its outcome is unknown.
    Ambiguous {
        /// The operation.
        operation: &'static str,
        /// The driver's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A number in the request is out of range.
    Invalid {
        /// The name of the number, with its unit.
        what: &'static str,
        /// The number.
        value: u64,
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
    },
    /// One of the store's tables is missing. The next initialisation of a new namespace creates it.
    TableMissing {
        /// The driver's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store holds something that this version did not write.
    Corrupt {
        /// The content, and its place.
        detail: String,
        /// The driver's error, if it was the driver that failed.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unavailable { source }
            | Self::Denied { source }
            | Self::Ambiguous { source, .. }
            | Self::TableMissing { source } => Some(&**source),
            Self::Corrupt {
                source: Some(source),
                ..
            } => Some(&**source),
            _ => None,
        }
    }
}

impl StoreError {
    /// Refuses a number that is not within `range`.
    pub(super) fn check_range(
        what: &'static str,
        value: u64,
        range: RangeInclusive<u64>,
    ) -> Result<(), Self> {
        if range.contains(&value) {
            return Ok(());
        }
        let (min, max) = range.into_inner();
        Err(Self::Invalid {
            what,
            value,
            min,
            max,
        })
    }

    /// The request was not carried out, for this reason.
    pub(crate) fn unavailable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable {
            source: source.into(),
        }
    }

    /// The store holds something that this version did not write.
    pub(super) fn corrupt(detail: impl Into<String>) -> Self {
        Self::Corrupt {
            detail: detail.into(),
            source: None,
        }
    }

    /// Whether the store could not be asked, or has not answered. The next request may
    /// wait as long.
    pub(crate) fn is_away(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::Denied { .. } | Self::Ambiguous { .. }
        )
    }

    /// The message of its source, or else its own.
    pub(crate) fn cause(&self) -> String {
        let source = self.source().map(ToString::to_string);
        source.unwrap_or_else(|| self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_the_source_and_not_repeated() {
        let driver = || Box::from("connection reset");
        for error in [
            StoreError::Unavailable { source: driver() },
            StoreError::Denied { source: driver() },
            StoreError::Ambiguous {
                operation: "acquire",
                source: driver(),
            },
            StoreError::Corrupt {
                detail: "mark -3 of block 7".into(),
                source: Some(driver()),
            },
        ] {
            assert_eq!(error.source().unwrap().to_string(), "connection reset");
            assert!(!error.to_string().contains("reset"), "{error}");
        }
    }
}
