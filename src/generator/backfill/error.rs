//! Why no ID of a past moment can be made.

use std::error::Error;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use crate::describe::describe;
use crate::layout::{Moment, Utc, span};

/// Why a [`BackfillGenerator`](crate::BackfillGenerator) gave no ID.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackfillError {
    /// The moment lies in none of the lease's ticks.
    OutsideLease {
        /// The moment.
        moment: SystemTime,
        /// When the lease begins, in milliseconds since 1970.
        start_unix_ms: u64,
        /// When it ends, in milliseconds since 1970; not included.
        end_unix_ms: u64,
    },
    /// All IDs of the tick that the moment lies in were issued.
    UsedUp {
        /// When the tick begins, in milliseconds since 1970.
        tick_unix_ms: u64,
        /// How long it is, in milliseconds.
        tick_ms: u64,
        /// How many IDs it had: nodes times sequences.
        ids: u64,
        /// The nodes.
        nodes: Range<u64>,
    },
    /// This process is a forked child; the IDs belong to its parent.
    Forked,
}

describe! {
    BackfillError;

    Self::OutsideLease { moment, start_unix_ms, end_unix_ms } => (
        "{} lies outside the lease, which goes from {} to {}: use a lease that covers this time, \
         on nodes that were not used then",
        Moment(*moment), Utc(*start_unix_ms), Utc(*end_unix_ms));
    Self::UsedUp { tick_unix_ms, tick_ms, ids, nodes } => (
        "all {ids} IDs of the tick ({}) that begins at {} on nodes {nodes:?} are issued: use a \
         lease with more nodes, or move the moment to another tick",
        span(Duration::from_millis(*tick_ms)), Utc(*tick_unix_ms));
    Self::Forked =>
        "this process was forked and its IDs belong to the parent: build a backfill generator with \
         a lease of its own in the child";
}

impl Error for BackfillError {}
