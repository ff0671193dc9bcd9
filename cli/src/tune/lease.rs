//! How many nodes a load needs, and how far it drives them ahead of the clock.

use std::cmp::Ordering;
use std::ops::Range;

use anyhow::Result;
use ringflake::Layout;
use ringflake::plan::{self, Borrowing, Load, MARGIN};

use crate::load::BORROW_LIMIT;
use crate::units::{counted, percent, short, time};
use crate::usage::Misuse;

/// The nodes of a lease, and what the load does to them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LeasePlan {
    pub(super) nodes: Range<u64>,
    /// IDs a second without borrowing.
    pub(super) sustained: f64,
    /// The share of these that the load takes on average.
    pub(super) share: f64,
    pub(super) borrowing: Borrowing,
    /// How many nodes are enough; may be more than there are.
    pub(super) enough: u64,
    /// How many nodes the layout has.
    all: u64,
}

impl LeasePlan {
    pub(super) fn new(load: &Load, layout: &Layout, given: Option<Range<u64>>) -> Result<Self> {
        let all = layout.nodes();
        if let Some(nodes) = &given
            && nodes.end > all
        {
            let text = format!(
                "nodes {}..{} are outside the layout, which has nodes 0..{all}",
                nodes.start, nodes.end
            );
            return Err(Misuse(text).into());
        }
        let enough = plan::nodes_for(load, layout, BORROW_LIMIT);
        let nodes = given.unwrap_or(0..enough.min(all));
        let sustained = plan::sustained(layout, nodes.end - nodes.start);
        Ok(Self {
            nodes,
            sustained,
            share: load.mean() / sustained,
            borrowing: plan::borrowing(load, sustained, BORROW_LIMIT),
            enough,
            all,
        })
    }

    /// Whether takes are refused in the end.
    pub(super) fn is_too_small(&self) -> bool {
        self.borrowing.used_up_at.is_some()
    }

    /// What to lease, in a sentence.
    pub(super) fn headline(&self) -> String {
        let [nodes, enough] = [self.count(), self.enough].map(|nodes| counted(nodes, "node"));
        if let Some(at) = self.borrowing.used_up_at {
            let more = match self.enough > self.all {
                true => "which is more than the layout has: share the load among layouts",
                false => "which are enough",
            };
            let verb = if self.count() == 1 { "is" } else { "are" };
            return format!(
                "{nodes} {verb} too few: after {} the {} s that may be borrowed are used up, and takes \
                 fail from then on. The load needs {enough}, {more}.",
                time(at),
                BORROW_LIMIT.as_secs()
            );
        }
        let borrowed = match self.borrowing.most > 0.0 {
            true => format!("the bursts borrow {}", time(self.borrowing.most)),
            false => "the load borrows nothing".to_owned(),
        };
        match self.count().cmp(&self.enough) {
            Ordering::Less => {
                format!("Lease {nodes}: {borrowed}; a margin of {MARGIN} takes {enough}.")
            }
            Ordering::Equal => format!("Lease at least {nodes}: {borrowed}."),
            Ordering::Greater => format!("Lease {nodes}: {borrowed}."),
        }
    }

    /// The figures behind it.
    pub(super) fn details(&self, capacity: Option<usize>) -> String {
        let ring = capacity.map_or_else(String::new, |capacity| {
            format!(", a full ring {}", time(capacity as f64 / self.sustained))
        });
        format!(
            "{} ({} of 32 from a store) {} {} IDs/s, of which the load takes {} %; of the {} s that \
             may be borrowed the load borrows {}{ring}; a restart on the same nodes waits for what \
             is borrowed",
            counted(self.count(), "node"),
            counted(self.count().div_ceil(32), "block"),
            if self.count() == 1 {
                "sustains"
            } else {
                "sustain"
            },
            short(self.sustained),
            percent(self.share),
            BORROW_LIMIT.as_secs(),
            match self.borrowing.most {
                0.0 => "nothing".to_owned(),
                _ if self.is_too_small() => "all".to_owned(),
                most => format!("up to {}", time(most)),
            },
        )
    }

    fn count(&self) -> u64 {
        self.nodes.end - self.nodes.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(load: &str, nodes: Option<Range<u64>>) -> LeasePlan {
        let (rate, burst) = load.split_once(' ').unwrap_or((load, ""));
        let mut load = Load::steady(rate.parse().unwrap());
        if let Ok(burst) = burst.parse() {
            load = load.with_burst(burst);
        }
        LeasePlan::new(&load, &Layout::RANDFLAKE, nodes).unwrap()
    }

    #[test]
    fn the_headline_says_what_to_lease_and_what_is_borrowed() {
        let headlines = [
            ("50k", None),
            ("50k 10M:200ms/10s", None),
            ("1M 20M:100ms/1s", None),
            // Enough for the mean, with no margin.
            ("1M", Some(0..8)),
            ("1M", Some(0..1)),
            ("1k 10M:10s/1h", Some(3..5)),
            ("100G", None),
        ]
        .map(|(load, nodes)| lease(load, nodes).headline());
        let used_up = "the 60 s that may be borrowed are used up, and takes fail from then on";
        let expected = "\
            Lease at least 1 node: the load borrows nothing.\n\
            Lease at least 4 nodes: the bursts borrow 3.61 s.\n\
            Lease at least 45 nodes: the bursts borrow 239 ms.\n\
            Lease 8 nodes: the load borrows nothing; a margin of 2 takes 16 nodes.\n\
            1 node is too few: after 9.05 s the limit is used up. The load needs 16 nodes, which are \
            enough.\n\
            2 nodes are too few: after 1.62 s the limit is used up. The load needs 20 nodes, which are \
            enough.\n\
            131,072 nodes are too few: after 12.4 s the limit is used up. The load needs 1,525,879 \
            nodes, which is more than the layout has: share the load among layouts.";
        let headlines = headlines.join("\n");
        assert_eq!(headlines.replace(used_up, "the limit is used up"), expected);
    }

    #[test]
    fn the_details_say_what_load_and_ring_borrow() {
        let details = lease("1M", None).details(Some(1 << 16));
        assert!(details.starts_with("16 nodes (1 block of 32 from a store) sustain 2.1 M IDs/s"));
        let nothing = "the load borrows nothing, a full ring 31.2 ms;";
        assert!(details.contains(nothing), "{details}");
        let details = lease("1M", Some(0..1)).details(None);
        assert!(details.contains("the load borrows all;"), "{details}");
    }
}
