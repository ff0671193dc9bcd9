//! How the leases of a process stand.

#[cfg(feature = "serde")]
use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use super::counts::{ClockOffset, LeaseCounts};
use crate::lease::{Grant, StoreError};

/// How the leases of a process stand.
///
/// With the `serde` feature it can be serialized, for people and for monitoring. It can't
/// be read again: a grant is the store's word, and none comes from a text.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LeaseStatus {
    /// The grants, in the order in which they came.
    pub grants: Vec<GrantStatus>,
    /// How many blocks are wanted at present. Fewer that are
    /// [`Held`](GrantState::Held) mean that more are asked for.
    pub target: u32,
    /// The plan's: how far ahead of the clock each renewal asks for.
    pub lease_duration: Duration,
    /// How far ahead of the clock the last positive reply carried, at most the
    /// plan's lease duration. Persistently less means that the store's horizon is shorter
    /// than the lease duration, or that the clocks are apart.
    pub reach: Duration,
    /// Since when the clock has passed the end of every grant, in milliseconds
    /// since 1970; none while a grant is in force.
    pub expired_since_unix_ms: Option<u64>,
    /// How often requests went how.
    pub counts: LeaseCounts,
    /// How far the store's clock is ahead; none before the store has said its time.
    pub clock: Option<ClockOffset>,
    /// How it goes with the store.
    pub health: LeaseHealth,
}

/// One grant of [`LeaseStatus`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GrantStatus {
    /// The grant, with its end as confirmed.
    pub grant: Grant,
    /// Its state.
    pub state: GrantState,
}

/// The state of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum GrantState {
    /// It is renewed.
    Held,
    /// It is no longer needed. It is used up to its end, then released.
    Lapsing,
    /// The store refused to renew it, or may have renewed it without a reply:
    /// the confirmed ticks are used, and the block is given up.
    Draining,
}

/// How it goes with the store.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LeaseHealth {
    /// Since when requests fail, by the wall clock, in milliseconds since 1970;
    /// none while they succeed. Blocks that are refused because all are held
    /// are no failure as long as one is in force here.
    pub failing_since_unix_ms: Option<u64>,
    /// The answer to the last request that failed.
    #[cfg_attr(feature = "serde", serde(serialize_with = "as_text"))]
    pub last_error: Option<Arc<StoreError>>,
    /// When the next request is due, on the scale of
    /// [`Moment::elapsed`](super::Moment::elapsed); none while one is under way,
    /// and when everything is released.
    pub next_attempt: Option<Duration>,
}

/// The text of the error and its causes; programs match on the error itself.
#[cfg(feature = "serde")]
fn as_text<S: serde::Serializer>(
    error: &Option<Arc<StoreError>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let Some(error) = error else {
        return serializer.serialize_none();
    };
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    serializer.serialize_some(&text)
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lease::{Block, Epoch};

    #[test]
    fn a_status_is_serialized_with_its_grants() {
        let error = StoreError::Corrupt {
            detail: "no number".into(),
            source: Some("connection reset".into()),
        };
        let says = format!("{error}: connection reset");
        let mut status = LeaseStatus {
            grants: vec![GrantStatus {
                grant: Grant::new(Block::new(3), Epoch::FIRST, 10..20),
                state: GrantState::Draining,
            }],
            target: 2,
            lease_duration: Duration::from_secs(2),
            reach: Duration::from_millis(1_500),
            expired_since_unix_ms: None,
            counts: LeaseCounts::default(),
            clock: Some(ClockOffset {
                store_ahead_ms: -40,
                measured_unix_ms: 6,
            }),
            health: LeaseHealth {
                failing_since_unix_ms: Some(7),
                last_error: Some(Arc::new(error)),
                next_attempt: None,
            },
        };
        let grant = json!({"block": 3, "epoch": 1, "ticks": {"start": 10, "end": 20}});
        let mut expected = json!({
            "grants": [{"grant": grant, "state": "draining"}],
            "target": 2,
            "lease_duration": {"secs": 2, "nanos": 0},
            "reach": {"secs": 1, "nanos": 500_000_000},
            "expired_since_unix_ms": null,
            "counts": {
                "renewals": {
                    "renewed": 0, "fenced": 0, "unavailable": 0, "denied": 0, "ambiguous": 0,
                    "other": 0,
                },
                "fenced": {
                    "never_granted": 0, "epoch": 0, "end": 0, "floor": 0, "incarnation": 0,
                    "upstream": 0, "quarantined": 0,
                },
                "history_lost": 0,
                "incarnation_changes": 0,
            },
            "clock": {"store_ahead_ms": -40, "measured_unix_ms": 6},
            "health": {
                "failing_since_unix_ms": 7,
                "last_error": says,
                "next_attempt": null,
            },
        });
        assert_eq!(serde_json::to_value(&status).unwrap(), expected);

        status.health.last_error = None;
        expected["health"]["last_error"] = json!(null);
        assert_eq!(serde_json::to_value(&status).unwrap(), expected);
    }
}
