//! How many nodes a load needs, and how long they last.

use std::ops::Range;

use anyhow::Result;
use ringflake::Layout;
use ringflake::plan::{self, Borrowing, Load};

use crate::load::{BORROW_LIMIT, borrowing_in_words};
use crate::units::{grouped, short};
use crate::usage::Misuse;

/// More nodes than the mean rate needs: what is borrowed in a burst is paid
/// back before the next one.
const HEADROOM: f64 = 1.25;

/// The share of the borrow limit that a load may use up.
const BORROWED_SHARE: f64 = 0.25;

/// The nodes to use, and what they have.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NodeBudget {
    pub(super) nodes: Range<u64>,
    /// IDs a second without borrowing.
    pub(super) sustained: f64,
    pub(super) borrowing: Borrowing,
    /// The load's mean rate.
    mean: f64,
    /// How many nodes would be enough; may be more than there are.
    enough: u64,
    /// How many there are.
    all: u64,
}

impl NodeBudget {
    pub(super) fn new(load: &Load, layout: &Layout, given: Option<Range<u64>>) -> Result<Self> {
        let all = layout.nodes();
        if let Some(nodes) = &given
            && nodes.end > all
        {
            let text = format!(
                "nodes {}..{} lie outside of the layout, which has {all}: give nodes below that",
                nodes.start, nodes.end
            );
            return Err(Misuse(text).into());
        }
        let enough = enough(load, layout);
        let nodes = given.unwrap_or(0..enough.min(all));
        let sustained = plan::sustained(layout, nodes.end - nodes.start);
        Ok(Self {
            nodes,
            sustained,
            borrowing: borrowing(load, sustained),
            mean: load.mean(),
            enough,
            all,
        })
    }

    /// The share of the nodes' IDs that the load takes, on average.
    pub(super) fn share(&self) -> f64 {
        self.mean / self.sustained
    }

    /// Seconds that a full ring has borrowed.
    pub(super) fn borrowed_by_ring(&self, capacity: usize) -> f64 {
        capacity as f64 / self.sustained
    }

    /// How many nodes there are, and what they have.
    pub(super) fn in_words(&self) -> String {
        let count = self.nodes.end - self.nodes.start;
        let nodes = if count == 1 { "node has" } else { "nodes have" };
        format!("{count} {nodes} {} IDs/s", short(self.sustained))
    }

    /// Why the nodes are too few, in numbers.
    pub(super) fn warning(&self) -> Option<String> {
        if self.mean <= self.sustained && self.borrowing.used_up_at.is_none() {
            return None;
        }
        Some(format!(
            "the load asks for {} IDs/s on average, and {}: {}; {} nodes are enough{}",
            short(self.mean),
            self.in_words(),
            borrowing_in_words(&self.borrowing),
            grouped(self.enough),
            match self.enough > self.all {
                true => ", which is more than the layout has",
                false => "",
            }
        ))
    }
}

/// The fewest nodes with headroom over the mean rate, on which bursts do not
/// come near the borrow limit.
fn enough(load: &Load, layout: &Layout) -> u64 {
    let of_one = plan::sustained(layout, 1);
    let mut nodes = (load.mean() * HEADROOM / of_one).ceil().max(1.0) as u64;
    let allowed = BORROW_LIMIT.as_secs_f64() * BORROWED_SHARE;
    let peak = (load.peak() / of_one).ceil() as u64;
    // With as many as the peak asks for nothing is borrowed at all.
    while nodes < peak && borrowing(load, of_one * nodes as f64).most > allowed {
        nodes = (nodes + nodes.div_ceil(8)).min(peak);
    }
    nodes
}

/// What the load borrows, had it no limit.
fn borrowing(load: &Load, sustained: f64) -> Borrowing {
    /// Bursts that are looked at; after that each is like the last.
    const PERIODS: f64 = 1000.0;
    const LONGEST: f64 = 3600.0;
    let period = load.period().map(|period| period.as_secs_f64());
    let horizon = match (load.duration(), period) {
        (Some(whole), _) => whole.as_secs_f64(),
        (None, Some(period)) => (period * PERIODS).min(LONGEST).max(period * 2.0),
        (None, None) => LONGEST,
    };
    let mut borrowing = plan::borrowing(load, sustained, BORROW_LIMIT, horizon);
    let grows = load.mean() - sustained;
    if load.duration().is_none() && grows > 0.0 {
        let later = BORROW_LIMIT.as_secs_f64() * sustained / grows;
        borrowing.used_up_at.get_or_insert(later);
    }
    borrowing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(load: &Load) -> NodeBudget {
        NodeBudget::new(load, &Layout::RANDFLAKE, None).unwrap()
    }

    fn steady(rate: &str) -> Load {
        Load::steady(rate.parse().unwrap())
    }

    #[test]
    fn there_are_as_many_nodes_as_the_mean_needs_and_some_more() {
        assert_eq!(budget(&steady("50k")).nodes, 0..1);
        // 2.9 M/s on average; a node has 131,072.
        let bursts = steady("1M").with_burst("20M:100ms/1s".parse().unwrap());
        let budget = budget(&bursts);
        assert_eq!(budget.nodes, 0..28);
        assert_eq!(budget.warning(), None);
        assert!(budget.share() < 0.8);
        assert!((0.4..0.5).contains(&budget.borrowing.most), "{budget:?}");
        assert!((budget.borrowed_by_ring(1 << 17) - 1.0 / 28.0).abs() < 1e-9);
    }

    #[test]
    fn long_bursts_need_more_than_the_mean() {
        let mean = steady("10M");
        let bursts = steady("1k").with_burst("100M:2min/20min".parse().unwrap());
        assert!(bursts.mean() < 10.1e6);
        let (of_mean, of_bursts) = (budget(&mean), budget(&bursts));
        assert!(of_bursts.nodes.end > of_mean.nodes.end);
        assert!(of_bursts.borrowing.most <= 15.0, "{of_bursts:?}");
    }
}
