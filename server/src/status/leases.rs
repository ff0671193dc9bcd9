//! Leases as an axis of time shows them.

use std::ops::Range;

use ringflake::Layout;
use ringflake::Lease;
use ringflake::lease::{GrantState, LeaseStatus};
use serde::Serialize;

/// A lease: nodes, from when until when.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Hold {
    /// The block; none where the lease was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u64>,
    /// The nodes; none where it is a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Range<u64>>,
    /// None where the lease was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    from_unix_ms: u64,
    until_unix_ms: u64,
}

impl Hold {
    fn of_ticks(ticks: &Range<u64>, layout: &Layout) -> Self {
        Self {
            block: None,
            nodes: None,
            state: None,
            from_unix_ms: layout.tick_start_unix_ms(ticks.start),
            // A lease without an end ends with its layout.
            until_unix_ms: layout.tick_start_unix_ms(ticks.end.min(layout.ticks())),
        }
    }

    pub(super) fn of_grants(status: &LeaseStatus, layout: &Layout) -> Vec<Self> {
        let grants = status.grants.iter().map(|it| Self {
            block: Some(it.grant.block.index()),
            state: Some(match it.state {
                GrantState::Held => "held",
                GrantState::Lapsing => "lapsing",
                _ => "draining",
            }),
            ..Self::of_ticks(&it.grant.ticks, layout)
        });
        grants.collect()
    }

    /// The leases of the configuration.
    pub(super) fn of_leases(leases: &[Lease], layout: &Layout) -> Vec<Self> {
        let leases = leases.iter().map(|it| Self {
            nodes: Some(it.nodes()),
            ..Self::of_ticks(&it.ticks(), layout)
        });
        leases.collect()
    }
}

pub(super) fn nodes(lease: &Lease) -> f64 {
    let Range { start, end } = lease.nodes();
    (end - start) as f64
}

#[cfg(test)]
mod tests {
    use ringflake::{CachedGenerator, StaticLease};

    use super::*;

    #[test]
    fn a_lease_without_an_end_ends_with_its_layout() {
        let layout = Layout::RANDFLAKE;
        let lease = StaticLease::assume_unique(layout, 7..9);
        let ids = CachedGenerator::builder(layout).plain().lease(lease);
        let leases = ids.build().unwrap().leases();
        let holds = Hold::of_leases(&leases, &layout);
        assert_eq!(nodes(&leases[0]), 2.0);
        assert_eq!(holds[0].nodes, Some(7..9));
        assert_eq!(holds.len(), 1);
        assert_eq!(holds[0].until_unix_ms, layout.end_unix_ms());
    }
}
