//! The parts of answers about stores.

use ringflake::Layout;
use ringflake::lease::{Block, Quarantined, StoreLimits};
use serde::Serialize;

use crate::timestamp::exact;

/// A tick and when it begins, as JSON shows them together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Moment {
    pub(super) tick: u64,
    pub(super) unix_ms: u64,
    /// RFC 3339; null after the year 9999.
    pub(super) time: Option<String>,
}

impl Moment {
    pub(super) fn new(layout: &Layout, tick: u64) -> Self {
        let unix_ms = layout.tick_start_unix_ms(tick);
        Self {
            tick,
            unix_ms,
            time: exact(unix_ms),
        }
    }

    /// For a table.
    pub(super) fn in_words(&self) -> String {
        match &self.time {
            Some(time) => format!("{time} (tick {})", self.tick),
            None => format!("tick {}", self.tick),
        }
    }
}

/// A record that can't be true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Damage {
    /// Null where it is of no block.
    pub(super) block: Option<u64>,
    pub(super) reason: String,
}

impl Damage {
    pub(super) fn new(found: &Quarantined) -> Self {
        Self {
            block: found.block.map(Block::index),
            reason: found.reason.clone(),
        }
    }
}

/// Limits, for a table.
pub(super) fn limits(limits: &StoreLimits) -> String {
    let [horizon, failover, skew] =
        [limits.horizon(), limits.failover(), limits.skew()].map(humantime::format_duration);
    format!("horizon {horizon}, failover {failover}, skew {skew}")
}
