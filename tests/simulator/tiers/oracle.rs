//! The replies to every process and machine.

use super::*;

/// All that was ever told.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    /// To processes: by block, and disjoint.
    given: BTreeMap<Block, Vec<Range<u64>>>,
    /// To machines.
    passed: BTreeMap<Block, Vec<Range<u64>>>,
    pub(super) objection: Option<String>,
    pub(super) met: Tally,
}

impl Oracle {
    /// A process was told that these ticks are its own.
    pub(super) fn give(&mut self, block: Block, ticks: Range<u64>) {
        self.met.meet("intervals given to processes");
        let before = self.given.entry(block).or_default();
        let meets = |other: &&Range<u64>| ticks.start < other.end && other.start < ticks.end;
        let twice = before.iter().find(meets).cloned();
        before.push(ticks.clone());
        if let Some(other) = twice {
            self.object(format!("S1: block {block} {ticks:?} after {other:?}"));
        }
        let passed = self.passed.get(&block).into_iter().flatten();
        if !covers(passed, &ticks) {
            self.object(format!("S9: block {block} {ticks:?} was not passed on"));
        }
    }

    /// A machine was told so.
    pub(super) fn pass(&mut self, block: Block, ticks: Range<u64>) {
        self.met.meet("intervals granted to machines");
        self.passed.entry(block).or_default().push(ticks);
    }

    pub(super) fn object(&mut self, objection: String) {
        self.objection.get_or_insert(objection);
    }
}

/// Whether all of these ticks lie in some of the intervals.
fn covers<'a>(intervals: impl Iterator<Item = &'a Range<u64>>, ticks: &Range<u64>) -> bool {
    let mut intervals: Vec<_> = intervals.collect();
    intervals.sort_by_key(|interval| interval.start);
    let mut next = ticks.start;
    for interval in intervals {
        if interval.start <= next {
            next = next.max(interval.end);
        }
    }
    next >= ticks.end
}
