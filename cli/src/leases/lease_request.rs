//! How much of a namespace a run has use for.
//!
//! Nodes are width and ticks are depth. A run that is as wide as its IDs need
//! prints IDs of this very second, so it takes nodes first: enough for all its
//! IDs in one tick, as long as it leaves most nodes to others. Ticks it takes as
//! many as the rest needs, and a moment for the clock to pass. So a short run
//! leaves marks that pass in seconds, and thousands of them in a row use up
//! nothing. A run that goes on for longer is covered by its first renewals.

use std::ops::Range;
use std::time::Duration;

use ringflake::lease::Namespace;
use ringflake::{Clock, Local, SystemClock};

use crate::args::LeaseArgs;

/// The most blocks that a run holds, which is also the most that the library
/// lets one.
const MOST: u64 = 256;

/// A run takes one in so many nodes, unless it is told which.
const SHARE: u64 = 32;

/// How far beyond the clock leases are kept.
const DURATION: Duration = Duration::from_secs(60);

/// The same for the first moments of a run, which for most runs is their life.
const FIRST_DURATION: Duration = Duration::from_secs(2);

/// What a run is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DemandEstimate {
    /// The most IDs that it makes, those that are left in the ring included.
    pub(crate) ids: u64,
    /// How far its last ID lies ahead of the time at which it starts, at most.
    pub(crate) span: Duration,
}

/// How much of a namespace a run takes, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeaseRequest {
    /// Blocks to hold, and those to hold at most, if that is not left to the
    /// library.
    pub(super) blocks: u32,
    pub(super) widen_to: Option<u32>,
    /// The duration that the keeper is told.
    pub(super) renewed_for: Duration,
    /// Ticks that the IDs fill, on these blocks.
    depth: u64,
    /// Ticks to reach beyond that.
    first_duration: u64,
    duration: u64,
}

impl LeaseRequest {
    /// For a store of others, of which nothing is known.
    pub(super) fn shared(namespace: &Namespace, args: &LeaseArgs, demand: DemandEstimate) -> Self {
        Self::new(namespace, args, demand, args.blocks.unwrap_or(1), None)
    }

    /// For the store in the data directory, out of these blocks.
    pub(super) fn embedded(
        namespace: &Namespace,
        args: &LeaseArgs,
        demand: DemandEstimate,
        nodes: Option<&Range<u64>>,
    ) -> Self {
        let most = match nodes {
            // Given only where a block is one node.
            Some(nodes) => nodes.end - nodes.start,
            None => namespace.blocks() / SHARE,
        };
        let most = most.clamp(1, MOST);
        let useful = rows(namespace, demand).clamp(1, most);
        let (blocks, widen_to) = match args.blocks {
            Some(blocks) => (blocks, None),
            // Both at most 256.
            None => (useful as u32, Some(most as u32)),
        };
        let mut request = Self::new(namespace, args, demand, blocks, widen_to);
        // Up to the store's horizon; what is really asked for is cut below.
        let horizon = Local::limits(namespace.layout()).horizon();
        request.renewed_for = request.renewed_for.max(horizon);
        request
    }

    fn new(
        namespace: &Namespace,
        args: &LeaseArgs,
        demand: DemandEstimate,
        blocks: u32,
        widen_to: Option<u32>,
    ) -> Self {
        let tick_ms = namespace.layout().tick_ms();
        let ticks = |time: Duration| {
            let ticks = time.as_millis().div_ceil(u128::from(tick_ms));
            u64::try_from(ticks).unwrap_or(u64::MAX)
        };
        // The shortest that a keeper takes.
        let ten_ticks = Duration::from_millis(tick_ms.saturating_mul(10));
        let duration = args.lease_duration.unwrap_or(DURATION.max(ten_ticks));
        let first_duration = args.lease_duration.unwrap_or(FIRST_DURATION);
        let depth = rows(namespace, demand).div_ceil(u64::from(blocks.max(1)));
        Self {
            blocks,
            widen_to,
            renewed_for: duration,
            depth: depth.min(ticks(demand.span)),
            first_duration: ticks(first_duration),
            duration: ticks(duration),
        }
    }

    /// How many ticks to ask for at first, the one that is half over included.
    pub(super) fn length(&self) -> u64 {
        let length = self.depth.saturating_add(self.first_duration);
        length.saturating_add(1)
    }

    /// How far a grant that starts at this tick is worth renewing, at present.
    pub(super) fn useful_end(&self, namespace: &Namespace, start: u64) -> u64 {
        let now = namespace.layout().tick_at(SystemClock.unix_ms());
        let length = self.depth.saturating_add(self.duration).saturating_add(1);
        start.max(now.unwrap_or(0)).saturating_add(length)
    }
}

/// Ticks that the IDs fill on one block.
fn rows(namespace: &Namespace, demand: DemandEstimate) -> u64 {
    let row = namespace.layout().sequences();
    let row = row.saturating_mul(namespace.block_nodes());
    demand.ids.div_ceil(row)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use ringflake::Layout;
    use ringflake::lease::Fingerprint;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        leases: LeaseArgs,
    }

    fn embedded(layout: Layout, line: &[&str], ids: u64) -> LeaseRequest {
        let space = Namespace::new("a", &layout, Fingerprint::PLAIN).unwrap();
        let space = space.with_block_bits(0).unwrap();
        let args = Line::parse_from([&["x"], line].concat()).leases;
        let demand = DemandEstimate {
            ids,
            span: Duration::MAX,
        };
        LeaseRequest::embedded(&space, &args, demand, args.nodes.given().as_ref())
    }

    #[test]
    fn a_run_is_as_wide_as_its_ids_need_and_leaves_most_nodes_to_others() {
        const ROW: u64 = 131_072;
        for (layout, line, ids, blocks, length) in [
            (Layout::RANDFLAKE, &[][..], 10, 1, 1 + 2 + 1),
            (Layout::RANDFLAKE, &[], ROW, 1, 1 + 2 + 1),
            (Layout::RANDFLAKE, &[], ROW + 1, 2, 1 + 2 + 1),
            (Layout::RANDFLAKE, &[], 256 * ROW, 256, 1 + 2 + 1),
            (Layout::RANDFLAKE, &[], 256 * ROW + 1, 256, 2 + 2 + 1),
            (
                Layout::RANDFLAKE,
                &["--nodes", "7..9"],
                3 * ROW,
                2,
                2 + 2 + 1,
            ),
            (Layout::RANDFLAKE, &["--blocks", "3"], 7 * ROW, 3, 3 + 2 + 1),
            (
                Layout::RANDFLAKE,
                &["--lease-duration", "5min"],
                10,
                1,
                1 + 300 + 1,
            ),
            // 1,024 nodes, and 4,096 IDs a millisecond on each.
            (Layout::TWITTER, &[], 100 * 4096, 32, 4 + 2000 + 1),
        ] {
            let request = embedded(layout, line, ids);
            let case = format!("{layout} {line:?} {ids}");
            assert_eq!(
                (request.blocks, request.length()),
                (blocks, length),
                "{case}"
            );
            assert!(request.widen_to.is_none_or(|most| most >= blocks), "{case}");
        }
        let endless = embedded(Layout::RANDFLAKE, &[], u64::MAX);
        assert!(endless.length() > 1 << 38, "{endless:?}");
    }

    #[test]
    fn a_renewal_reaches_beyond_the_clock_and_what_is_needed() {
        let layout = Layout::RANDFLAKE;
        let space = Namespace::new("a", &layout, Fingerprint::PLAIN).unwrap();
        let request = embedded(layout, &["--nodes", "0..1"], 10 * 131_072);
        let now = layout.tick_at(SystemClock.unix_ms()).unwrap();
        let end = request.useful_end(&space, 0);
        assert!((now + 71..now + 80).contains(&end), "{end}");
        assert_eq!(request.useful_end(&space, 1 << 29), (1 << 29) + 71);
    }

    #[test]
    fn a_span_bounds_what_is_needed() {
        let layout = Layout::RANDFLAKE;
        let space = Namespace::new("a", &layout, Fingerprint::PLAIN).unwrap();
        let args = Line::parse_from(["x"]).leases;
        let demand = DemandEstimate {
            ids: u64::MAX,
            span: Duration::from_secs(70),
        };
        assert_eq!(
            LeaseRequest::shared(&space, &args, demand).length(),
            70 + 2 + 1
        );
    }
}
