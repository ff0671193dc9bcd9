//! How much of a namespace a run has use for.
//!
//! Nodes are width and ticks are depth. A run that is as wide as its IDs need
//! prints IDs of this very second, so it takes nodes first: enough for all its
//! IDs in one tick, as long as it leaves most nodes to others. Ticks it takes as
//! many as the rest needs, and a moment for the clock to pass. So a short run
//! leaves marks that pass in seconds, and thousands of them in a row use up
//! nothing. A run that goes on for longer is covered by its first renewals.

use std::time::Duration;

use ringflake::Local;
use ringflake::lease::{LeasePlan, Namespace, StoreLimits};

use crate::args::LeaseArgs;

/// The most blocks that a run holds, which is also the most that the library
/// lets one.
const MOST: u64 = 256;

/// A run takes one in so many nodes.
const SHARE: u64 = 32;

/// How far beyond the clock leases are kept.
const DURATION: Duration = Duration::from_secs(60);

/// The same for the first moments of a run, which for most runs is their life.
const FIRST_DURATION: Duration = Duration::from_secs(2);

/// The planned IDs and time of a run.
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
    /// How far beyond the clock the first leases reach.
    pub(super) first_duration: Duration,
    /// The same for those after them; at least as far.
    pub(super) duration: Duration,
}

impl LeaseRequest {
    /// For a store of others, of which nothing is known.
    pub(super) fn shared(namespace: &Namespace, args: &LeaseArgs, demand: DemandEstimate) -> Self {
        let blocks = args.blocks.unwrap_or(1);
        let longest = LeasePlan::default().lease_duration;
        Self::new(namespace, args, demand, blocks, longest)
    }

    /// For the store in the data directory. Leases reach as far as can be if they start
    /// `in_the_future`: a short one would not be renewed before the clock has come near.
    pub(super) fn embedded(
        namespace: &Namespace,
        args: &LeaseArgs,
        demand: DemandEstimate,
        in_the_future: bool,
    ) -> Self {
        let most = (namespace.blocks() / SHARE).clamp(1, MOST);
        let useful = rows(namespace, demand).clamp(1, most);
        let (blocks, widen_to) = match args.blocks {
            Some(blocks) => (blocks, None),
            // Both at most 256.
            None => (useful as u32, Some(most as u32)),
        };
        let horizon = Local::limits(namespace.layout()).horizon();
        let request = Self::new(namespace, args, demand, blocks, horizon);
        Self {
            widen_to,
            duration: match in_the_future {
                true => request.duration.max(horizon),
                false => request.duration,
            },
            ..request
        }
    }

    /// Leases that reach no further than `longest`, unless a longer duration is given.
    fn new(
        namespace: &Namespace,
        args: &LeaseArgs,
        demand: DemandEstimate,
        blocks: u32,
        longest: Duration,
    ) -> Self {
        let tick_ms = namespace.layout().tick_ms();
        let ticks = |count: u64| Duration::from_millis(tick_ms.saturating_mul(count));
        let depth = rows(namespace, demand).div_ceil(u64::from(blocks.max(1)));
        let depth = ticks(depth).min(demand.span).min(longest);
        // The shortest that the library takes.
        let default = DURATION.max(ticks(10));
        let (first, later, longest) = match args.lease_duration {
            // One that is too long by itself is the library's to refuse.
            Some(given) => (given, given, StoreLimits::MAX.max(given)),
            None => (FIRST_DURATION, default, longest.max(default)),
        };
        Self {
            blocks,
            widen_to: None,
            first_duration: depth.saturating_add(first).min(longest),
            duration: depth.saturating_add(later).min(longest),
        }
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

    fn args(line: &str) -> LeaseArgs {
        Line::parse_from(format!("x {line}").split_whitespace()).leases
    }

    fn namespace(layout: Layout) -> Namespace {
        let space = Namespace::new("a", &layout, Fingerprint::PLAIN).unwrap();
        space.with_block_bits(0).unwrap()
    }

    /// For so many IDs, however long they take.
    fn demand(ids: u64) -> DemandEstimate {
        DemandEstimate {
            ids,
            span: Duration::MAX,
        }
    }

    fn embedded(layout: Layout, line: &str, ids: u64, in_the_future: bool) -> LeaseRequest {
        LeaseRequest::embedded(&namespace(layout), &args(line), demand(ids), in_the_future)
    }

    #[test]
    fn a_run_is_as_wide_as_its_ids_need_and_leaves_most_nodes() {
        /// The IDs of a node and tick.
        const ROW: u64 = 131_072;
        const RANDFLAKE: Layout = Layout::RANDFLAKE;
        const TWITTER: Layout = Layout::TWITTER;
        let brief = Duration::from_millis(2004);
        let given = "--blocks 1 --lease-duration 5min";
        let secs = Duration::from_secs;
        // Blocks, and how far the first leases and those after them reach beyond the clock.
        for (layout, line, ids, blocks, first, later) in [
            (RANDFLAKE, "", ROW, 1, secs(1 + 2), secs(61)),
            (RANDFLAKE, "", ROW + 1, 2, secs(1 + 2), secs(61)),
            (RANDFLAKE, "", 256 * ROW, 256, secs(1 + 2), secs(61)),
            (RANDFLAKE, "", 256 * ROW + 1, 256, secs(2 + 2), secs(62)),
            (RANDFLAKE, "--blocks 3", 7 * ROW, 3, secs(3 + 2), secs(63)),
            // As far as the horizon.
            (RANDFLAKE, "", u64::MAX, 256, secs(120), secs(120)),
            // 1,024 nodes, and 4,096 IDs a millisecond on each.
            (TWITTER, "", 100 * 4096, 32, brief, brief + secs(58)),
            // A duration that is given is that of all leases.
            (RANDFLAKE, given, 10 * ROW, 1, secs(310), secs(310)),
        ] {
            let request = embedded(layout, line, ids, false);
            let found = (request.blocks, request.first_duration, request.duration);
            assert_eq!(found, (blocks, first, later), "{layout} {line} {ids}");
            assert!(request.widen_to.is_none_or(|most| most >= blocks), "{line}");
        }
        // As far as can be where they start at the horizon.
        let ahead = embedded(RANDFLAKE, "", 10, true);
        assert_eq!((ahead.first_duration, ahead.duration), (secs(3), secs(120)));
    }

    #[test]
    fn a_long_duration_stays_one_that_the_library_takes() {
        let most = StoreLimits::MAX;
        let days = most.as_secs() / (24 * 3600);
        let request = |days: u64| {
            let line = format!("--lease-duration {days}days");
            embedded(Layout::RANDFLAKE, &line, 1, false)
        };
        let longest = request(days);
        assert_eq!((longest.first_duration, longest.duration), (most, most));
        // Not shortened in silence.
        assert!(request(days + 1).duration > most);
    }

    #[test]
    fn a_span_bounds_what_is_needed() {
        let span = Duration::from_secs(70);
        let demand = DemandEstimate {
            span,
            ..demand(u64::MAX)
        };
        let request = LeaseRequest::shared(&namespace(Layout::RANDFLAKE), &args(""), demand);
        assert_eq!(request.first_duration, span + FIRST_DURATION);
        assert_eq!(request.duration, span + DURATION);
    }
}
