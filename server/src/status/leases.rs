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
    state: Option<GrantState>,
    from_unix_ms: u64,
    until_unix_ms: u64,
}

impl Hold {
    /// Those that a store granted.
    pub(super) fn of_grants(status: &LeaseStatus, layout: &Layout) -> Vec<Self> {
        let of = |it: &ringflake::lease::GrantStatus| {
            let (from_unix_ms, until_unix_ms) = times(&it.grant.ticks, layout);
            Self {
                block: Some(it.grant.block.index()),
                nodes: None,
                state: Some(it.state),
                from_unix_ms,
                until_unix_ms,
            }
        };
        status.grants.iter().map(of).collect()
    }

    /// Those that were given.
    pub(super) fn of_leases(leases: &[Lease], layout: &Layout) -> Vec<Self> {
        let of = |it: &Lease| {
            let (from_unix_ms, until_unix_ms) = times(&it.ticks(), layout);
            Self {
                block: None,
                nodes: Some(it.nodes()),
                state: None,
                from_unix_ms,
                until_unix_ms,
            }
        };
        leases.iter().map(of).collect()
    }
}

/// How many nodes a lease has.
pub(super) fn nodes(lease: &Lease) -> f64 {
    let Range { start, end } = lease.nodes();
    (end - start) as f64
}

fn times(ticks: &Range<u64>, layout: &Layout) -> (u64, u64) {
    // A lease without an end ends with its layout.
    let until = layout.tick_start_unix_ms(ticks.end.min(layout.ticks()));
    (layout.tick_start_unix_ms(ticks.start), until)
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
