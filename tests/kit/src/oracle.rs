//! Which cells of a lease were issued: one bit each.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use ringflake::{Layout, Parts};

/// A bitmap over the cells (tick, node, sequence) of a lease.
pub struct Oracle {
    layout: Layout,
    nodes: Range<u64>,
    ticks: Range<u64>,
    words: Box<[AtomicU64]>,
}

/// What an ID must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// U1: its cell was marked before.
    Twice(Parts),
    /// U2: its cell is none of the lease's.
    Outside(Parts),
}

impl Oracle {
    pub fn new(layout: Layout, nodes: Range<u64>, ticks: Range<u64>) -> Self {
        let cells = (nodes.end - nodes.start) * (ticks.end - ticks.start) * layout.sequences();
        let words = (0..cells.div_ceil(64)).map(|_| AtomicU64::new(0));
        Self {
            layout,
            nodes,
            ticks,
            words: words.collect(),
        }
    }

    pub fn mark(&self, parts: Parts) -> Result<(), Fault> {
        if !self.nodes.contains(&parts.node) || !self.ticks.contains(&parts.tick) {
            return Err(Fault::Outside(parts));
        }
        let width = self.nodes.end - self.nodes.start;
        let row = (parts.tick - self.ticks.start) * width + (parts.node - self.nodes.start);
        let cell = row * self.layout.sequences() + parts.sequence;
        let bit = 1 << (cell % 64);
        let word = &self.words[(cell / 64) as usize];
        if word.fetch_or(bit, Relaxed) & bit == 0 {
            Ok(())
        } else {
            Err(Fault::Twice(parts))
        }
    }

    pub fn marked(&self) -> u64 {
        let ones = |word: &AtomicU64| u64::from(word.load(Relaxed).count_ones());
        self.words.iter().map(ones).sum()
    }
}
