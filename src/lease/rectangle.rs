//! The rectangle of ID space that a lease owns.

use std::fmt;
use std::ops::Range;

use crate::describe::describe;
use crate::layout::{Layout, Utc};
use crate::lease::claim::Claim;

/// Ownership of a range of nodes times a half-open interval of ticks.
///
/// A lease says which IDs may be issued, not until when: it does not expire. A
/// `Lease` only asserts that its rectangle is its holder's alone. [`Lease::new`]
/// checks the ranges and can't make that true. Get a lease from a
/// [`StaticLease`](crate::lease::StaticLease) or from a [`Grant`](crate::lease::Grant) instead,
/// unless this is a test.
///
/// A lease and its clones serve one generator at a time. The next one continues
/// after the last ID that was claimed. Within one process no generator is built on
/// a lease that overlaps with one that another generator has or had; see
/// [`StaticLease`](crate::lease::StaticLease#what-this-process-checks).
///
/// # Examples
/// ```
/// use ringflake::{Layout, lease::Lease};
///
/// let lease = Lease::new(Layout::RANDFLAKE, 32..64, 1000..1600)?;
/// assert!(lease.contains(63, 1599));
/// assert!(!lease.contains(63, 1600));
/// assert_eq!(lease.to_string(), "nodes 32..64, ticks 1000..1600");
/// # Ok::<(), ringflake::lease::LeaseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    layout: Layout,
    nodes: Range<u64>,
    ticks: Range<u64>,
    claim: Claim,
}

impl Lease {
    /// The rectangle of `nodes` times `ticks`, both half-open.
    ///
    /// # Errors
    /// When a range is empty, or reaches past the layout's nodes or ticks.
    pub fn new(layout: Layout, nodes: Range<u64>, ticks: Range<u64>) -> Result<Self, LeaseError> {
        let is_within = |range: &Range<u64>, max| !range.is_empty() && range.end <= max;
        if !is_within(&nodes, layout.nodes()) {
            return Err(LeaseError::Nodes {
                start: nodes.start,
                end: nodes.end,
                layout_nodes: layout.nodes(),
            });
        }
        if !is_within(&ticks, layout.ticks()) {
            return Err(LeaseError::Ticks {
                start: ticks.start,
                end: ticks.end,
                layout_ticks: layout.ticks(),
            });
        }
        Ok(Self {
            layout,
            nodes,
            ticks,
            claim: Claim::default(),
        })
    }

    /// The same lease under a claim that others share.
    pub(crate) fn with_claim(mut self, claim: Claim) -> Self {
        self.claim = claim;
        self
    }

    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }

    /// The layout that the nodes and ticks are counted in.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The nodes, never empty, within `0..layout.nodes()`.
    pub fn nodes(&self) -> Range<u64> {
        self.nodes.clone()
    }

    /// The ticks since the layout's epoch, never empty, within
    /// `0..layout.ticks()`.
    pub fn ticks(&self) -> Range<u64> {
        self.ticks.clone()
    }

    /// Whether an ID with this node and tick may be issued under the lease.
    pub fn contains(&self, node: u64, tick: u64) -> bool {
        self.nodes.contains(&node) && self.ticks.contains(&tick)
    }
}

impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nodes {:?}, ticks {:?}", self.nodes, self.ticks)
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("nodes", &self.nodes)
            .field("ticks", &self.ticks)
            .field("layout", &format_args!("{}", self.layout))
            .finish()
    }
}

/// Why a rectangle is not a [`Lease`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseError {
    /// The range of nodes holds none, or reaches past the layout's.
    Nodes {
        /// The first node asked for.
        start: u64,
        /// The node after the last.
        end: u64,
        /// How many nodes the layout has.
        layout_nodes: u64,
    },
    /// The interval of ticks holds none, or reaches past the layout's.
    Ticks {
        /// The first tick asked for.
        start: u64,
        /// The tick after the last.
        end: u64,
        /// How many ticks the layout has.
        layout_ticks: u64,
    },
    /// The clock shows a time before the layout's epoch.
    BeforeEpoch {
        /// The clock's time, in milliseconds since 1970.
        unix_ms: u64,
        /// The epoch, in milliseconds since 1970.
        epoch_unix_ms: u64,
    },
    /// The layout has run out of ticks.
    LayoutEnded {
        /// The tick to start at.
        start: u64,
        /// How many ticks the layout has.
        layout_ticks: u64,
    },
}

describe! {
    LeaseError;

    Self::Nodes { start, end, layout_nodes } if end <= layout_nodes =>
        "node range {start}..{end} is empty: give at least one node of 0..{layout_nodes}";
    Self::Nodes { end, layout_nodes, .. } =>
        "node range ends at {end}, but the layout has {layout_nodes} nodes: let it end at \
         {layout_nodes} or before";
    Self::Ticks { start, end, layout_ticks } if end <= layout_ticks =>
        "tick interval {start}..{end} is empty: give at least one tick of 0..{layout_ticks}";
    Self::Ticks { end, layout_ticks, .. } =>
        "tick interval ends at {end}, but the layout has {layout_ticks} ticks: let it end at \
         {layout_ticks} or before";
    Self::BeforeEpoch { unix_ms, epoch_unix_ms } => (
        "the clock shows {}, before the layout's epoch at {}: set the clock, or name the tick to \
         start at", Utc(*unix_ms), Utc(*epoch_unix_ms));
    Self::LayoutEnded { start, layout_ticks } =>
        "the layout has run out of ticks: the lease would start at tick {start} of {layout_ticks}; \
         move to a layout with more time bits, and keep its IDs apart from the old ones";
}

impl std::error::Error for LeaseError {}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout::RANDFLAKE;

    #[test]
    fn takes_what_the_layout_has_and_no_more() {
        let (nodes, ticks) = (LAYOUT.nodes(), LAYOUT.ticks());
        let whole = Lease::new(LAYOUT, 0..nodes, 0..ticks).unwrap();
        assert_eq!((whole.nodes(), whole.ticks()), (0..nodes, 0..ticks));
        assert_eq!(
            Lease::new(LAYOUT, 0..nodes + 1, 0..ticks),
            Err(LeaseError::Nodes {
                start: 0,
                end: nodes + 1,
                layout_nodes: nodes
            })
        );
        assert_eq!(
            Lease::new(LAYOUT, 0..nodes, 0..ticks + 1),
            Err(LeaseError::Ticks {
                start: 0,
                end: ticks + 1,
                layout_ticks: ticks
            })
        );
    }

    #[test]
    fn refuses_what_is_empty() {
        #[expect(
            clippy::reversed_empty_ranges,
            reason = "one of the ranges to be refused"
        )]
        for nodes in [5..5, 6..5] {
            let error = Lease::new(LAYOUT, nodes.clone(), 0..1).unwrap_err();
            assert!(error.to_string().contains(&format!("{nodes:?}")), "{error}");
        }
        let error = Lease::new(LAYOUT, 0..1, 9..9).unwrap_err();
        assert!(error.to_string().contains("9..9"), "{error}");
    }
}
