//! The geometry of a lease: a line of positions.

use std::ops::Range;

use crate::layout::Layout;

/// The geometry of a lease: which raw lies at which position.
///
/// All sequences of a node come before the next node, and all nodes of a tick
/// before the next tick, so that the width of the lease is used before its
/// depth.
#[derive(Clone, Debug)]
pub(super) struct Line<'a> {
    layout: &'a Layout,
    first_node: u64,
    nodes: u64,
    ticks: Range<u64>,
    /// One past the last position.
    len: u64,
}

/// Consecutive raws of one tick and one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first of them.
    pub(crate) first: u64,
    /// How many; never 0.
    pub(crate) len: usize,
}

impl<'a> Line<'a> {
    /// The longest line: every position, and one past the last, fits a `u64`
    /// that the cursor stores one higher. Only a lease over all 2^64 raws of a layout
    /// is longer; its last raws are then never issued.
    const MAX_LEN: u64 = u64::MAX - 1;

    #[inline]
    pub(super) fn new(layout: &'a Layout, first_node: u64, nodes: u64, ticks: Range<u64>) -> Self {
        let end = ticks.end;
        let mut line = Self {
            layout,
            first_node,
            nodes,
            ticks,
            len: Self::MAX_LEN,
        };
        line.len = line.position_of(end);
        line
    }

    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn nodes(&self) -> Range<u64> {
        self.first_node..self.first_node + self.nodes
    }

    #[inline]
    pub(super) fn ticks(&self) -> Range<u64> {
        self.ticks.clone()
    }

    /// The position at which `tick` begins: 0 if that is before the lease, the end of
    /// the line if it is after the lease.
    #[inline]
    pub(super) fn position_of(&self, tick: u64) -> u64 {
        let ticks = tick.saturating_sub(self.ticks.start);
        ticks
            .checked_mul(self.nodes)
            .and_then(|nodes| nodes.checked_mul(self.layout.sequences()))
            .map_or(self.len, |position| position.min(self.len))
    }

    /// The tick that `position` lies in; the end of the lease for the end of the line.
    #[inline]
    pub(super) fn tick_of(&self, position: u64) -> u64 {
        self.ticks.start + (position >> self.layout.sequence_bits()) / self.nodes
    }

    #[inline]
    pub(super) fn begins_tick(&self, position: u64) -> bool {
        let sequences = self.layout.sequences();
        position & (sequences - 1) == 0
            && (position >> self.layout.sequence_bits()).is_multiple_of(self.nodes)
    }

    /// The raws of the positions `start..end`, which must lie in one run.
    #[inline]
    pub(super) fn run(&self, start: u64, end: u64) -> Run {
        let row = start >> self.layout.sequence_bits();
        let tick = self.ticks.start + row / self.nodes;
        let node = self.first_node + row % self.nodes;
        let sequence = start & (self.layout.sequences() - 1);
        // U3: the caller has checked `end` against the end of the line.
        debug_assert!(end <= self.len && tick < self.layout.ticks(), "U3");
        Run {
            first: self.layout.join(tick, node, sequence),
            len: (end - start) as usize,
        }
    }

    /// One past the last position of the run that `position` lies in.
    #[inline]
    pub(super) fn run_end(&self, position: u64) -> u64 {
        (position | (self.layout.sequences() - 1)).saturating_add(1)
    }
}
