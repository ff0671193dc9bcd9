//! Who was told what.

use super::*;

/// All that was ever told.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    /// To processes: by block, and disjoint.
    given: BTreeMap<Block, Vec<Range<u64>>>,
    /// To machines.
    passed: BTreeMap<Block, Vec<Range<u64>>>,
    pub(super) objection: Option<String>,
    pub(super) met: Coverage,
}

impl Oracle {
    /// A process was told that these ticks are its own.
    pub(super) fn give(&mut self, block: Block, ticks: Range<u64>) {
        self.met.given += 1;
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
        self.met.passed += 1;
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

macro_rules! coverage {
    ($($what:ident: $text:literal,)*) => {
        /// How often what happened.
        #[derive(Clone, Debug, Default)]
        pub(super) struct Coverage { $(pub(super) $what: u64,)* }

        impl Coverage {
            fn all(&self) -> impl Iterator<Item = (u64, &'static str)> {
                [$((self.$what, $text),)*].into_iter()
            }

            pub(super) fn add(&mut self, other: &Self) {
                $(self.$what += other.$what;)*
            }
        }
    };
}

coverage! {
    given: "intervals given to processes",
    given_while_away: "requests answered while the upstream store was away",
    passed: "intervals granted to machines",
    swallowed: "replies swallowed",
    overtaken: "requests overtaken by another process",
    lost: "ledgers lost",
    put_back: "ledgers put back or copied",
    put_back_meanwhile: "of them while a request was under way",
    server_put_back: "upstream stores put back",
    exhausted: "refused: exhausted",
    floor_ahead: "refused: floor ahead",
    unavailable: "refused: unavailable",
    history_lost: "refused: history lost",
    fenced_upstream: "fenced: the machine lost the block",
    fenced: "fenced otherwise",
    clock_skew: "refused: clock skew",
}

impl Coverage {
    pub(super) fn refused(&mut self, error: &StoreError) {
        match error {
            StoreError::Exhausted { .. } => self.exhausted += 1,
            StoreError::FloorAhead { .. } => self.floor_ahead += 1,
            StoreError::Unavailable { .. } => self.unavailable += 1,
            StoreError::HistoryLost { .. } => self.history_lost += 1,
            StoreError::ClockSkew { .. } => self.clock_skew += 1,
            StoreError::Fenced {
                fence: Fence::Upstream,
                ..
            } => self.fenced_upstream += 1,
            StoreError::Fenced { .. } => self.fenced += 1,
            _ => {}
        }
    }

    /// Schedules that never come by something say nothing of it.
    pub(super) fn assert_all_met(&self) {
        for (times, what) in self.all() {
            assert!(times > 0, "no schedule has met: {what}");
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (times, what) in self.all() {
            writeln!(f, "{times:>12} {what}")?;
        }
        Ok(())
    }
}
