//! Which blocks an acquisition asks for.
//!
//! Nothing is locked between reading and writing, so acquirers that choose alike
//! disturb each other: one transaction is done, the others fail and start over.
//! Everybody therefore chooses at random where the rules leave a choice: a part
//! of the blocks that were never granted, and any of those whose mark has passed.
//! A released block whose mark has not passed comes last and in order, since a grant
//! of it starts at its mark.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;

use super::record;
use super::wire::TxnReply;
use crate::lease::block::{Block, BlockState};
use crate::lease::error::StoreError;
use crate::lease::namespace::Namespace;
use crate::lease::random::SplitMix64;
use crate::lease::record::{LowestMarks, StoreRecord};
use crate::lease::request::Acquire;

/// Namespaces with no more blocks are read as a whole when nothing else helps.
pub(super) const READ_WHOLE: u64 = 16_384;

/// The state of a block, and the revision at which its key was last written; 0 if
/// there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) state: BlockState,
    pub(super) mod_revision: i64,
}

/// A namespace's blocks, as far as they were read.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Those with the lowest marks, in their order.
    pub(super) lowest: Vec<Candidate>,
    /// Whether these are all that were ever granted.
    pub(super) complete: bool,
    /// Some indices, and those of them that were granted.
    pub(super) window: Range<u64>,
    pub(super) granted: BTreeSet<u64>,
}

impl View {
    /// Up to as many blocks as are asked for that can be granted at the store's time `now`,
    /// in ticks, in the order in which they are to be.
    pub(super) fn candidates(
        &self,
        record: &StoreRecord,
        now: u64,
        acquire: &Acquire,
        random: &mut Random,
    ) -> Vec<Candidate> {
        let Some(window) = record.mark_window(now, acquire) else {
            return Vec::new();
        };
        let mut fresh: Vec<_> = self
            .window
            .clone()
            .filter(|index| !self.granted.contains(index))
            .map(|index| Candidate {
                state: BlockState::never_granted(Block::new(index)),
                mod_revision: 0,
            })
            .collect();
        random.shuffle(&mut fresh);
        let (mut idle, later): (Vec<_>, Vec<_>) = self
            .lowest
            .iter()
            .cloned()
            .partition(|known| known.state.hwm_end <= window.idle_until);
        random.shuffle(&mut idle);
        let released = later
            .into_iter()
            .filter(|known| known.state.released && known.state.hwm_end < window.released_below);
        fresh
            .into_iter()
            .chain(idle)
            .chain(released)
            .take(acquire.blocks as usize)
            .collect()
    }

    /// The lowest marks of the blocks.
    pub(super) fn lowest_marks(&self) -> LowestMarks {
        LowestMarks::of(self.lowest.iter().map(|known| &known.state))
    }
}

/// The blocks out of the reply to `view_ops`, but for those that are quarantined.
pub(super) fn view(
    namespace: &Namespace,
    reply: &TxnReply,
    window: Range<u64>,
) -> Result<View, StoreError> {
    let read = &reply.range(2)?.kvs;
    let mut lowest = Vec::with_capacity(read.len());
    for kv in read {
        match record::judge(namespace, kv) {
            Ok(state) => lowest.push(Candidate {
                state,
                mod_revision: kv.mod_revision,
            }),
            Err(found) => found.log(namespace),
        }
    }
    // A key that is of no block takes none away.
    let granted = reply.range(3)?.kvs.iter();
    let granted = granted.filter_map(|kv| record::decode_key(namespace, kv).ok());
    Ok(View {
        complete: read.len() as u64 == reply.range(1)?.count,
        lowest,
        window,
        granted: granted.map(Block::index).collect(),
    })
}

/// Somewhere among the blocks: so many indices, or all if there are fewer.
pub(super) fn window(namespace: &Namespace, length: u64, random: &mut Random) -> Range<u64> {
    let last = namespace.blocks().saturating_sub(length);
    let start = random.below(last.saturating_add(1));
    start..namespace.blocks().min(start.saturating_add(length))
}

/// Random numbers that need be no secret, seeded from the standard library's hash keys.
#[derive(Clone, Debug)]
pub(super) struct Random(SplitMix64);

impl Random {
    pub(super) fn new() -> Self {
        Self(SplitMix64::new(RandomState::new().build_hasher().finish()))
    }

    /// A number below `bound`, or 0 for 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.0.next()) * u128::from(bound);
        (wide >> 64) as u64
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::lease::block::Epoch;
    use crate::lease::fingerprint::Fingerprint;
    use crate::lease::limits::StoreLimits;
    use crate::lease::record::Incarnation;

    const NOW: u64 = 1_000;

    fn record() -> StoreRecord {
        let space = Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        StoreRecord::new(space, StoreLimits::default(), 0, Incarnation::new("7/1"))
    }

    fn known(index: u64, hwm_end: u64, released: bool) -> Candidate {
        let mut state = BlockState::new(Block::new(index), Epoch::FIRST, hwm_end);
        state.released = released;
        Candidate {
            state,
            mod_revision: 5,
        }
    }

    fn ask(blocks: u32) -> Acquire {
        Acquire::new(blocks, 10, 0)
    }

    fn indices(candidates: &[Candidate]) -> Vec<u64> {
        let indices = candidates.iter().map(|c| c.state.block.index());
        indices.collect()
    }

    #[test]
    fn fresh_then_idle_then_released() {
        let horizon = record().horizon_end(NOW);
        let view = View {
            lowest: vec![
                known(0, NOW - 1, false),
                known(1, NOW, true),
                known(2, NOW + 1, false),
                known(3, NOW + 2, true),
                known(4, NOW + 3, true),
                known(5, horizon, true),
            ],
            complete: true,
            window: 0..8,
            granted: (0..6).collect(),
        };
        let mut random = Random::new();
        for _ in 0..50 {
            let mut chosen = indices(&view.candidates(&record(), NOW, &ask(100), &mut random));
            chosen[..2].sort_unstable();
            chosen[2..4].sort_unstable();
            assert_eq!(chosen, [6, 7, 0, 1, 3, 4]);
            let three = view.candidates(&record(), NOW, &ask(3), &mut random);
            assert_eq!(three.len(), 3);
        }
        let LowestMarks { held, released } = view.lowest_marks();
        assert_eq!((held, released), (Some(NOW - 1), Some(NOW)));

        // Of the past those whose mark lies before it, and fresh ones.
        let past = Acquire::past(100, NOW - 1..NOW, 0);
        let mut chosen = indices(&view.candidates(&record(), NOW, &past, &mut random));
        chosen[..2].sort_unstable();
        assert_eq!(chosen, [6, 7, 0]);

        // Nothing lies within the horizon.
        let mut floor = record();
        floor.floor = horizon;
        assert!(
            view.candidates(&floor, NOW, &ask(100), &mut random)
                .is_empty()
        );
    }

    #[test]
    fn two_that_choose_seldom_choose_alike() {
        let view = View {
            lowest: Vec::new(),
            complete: true,
            window: 0..64,
            granted: BTreeSet::new(),
        };
        let choose = || indices(&view.candidates(&record(), NOW, &ask(1), &mut Random::new()))[0];
        let different: BTreeSet<_> = (0..100).map(|_| choose()).collect();
        assert!(different.len() > 20, "{different:?}");
    }

    #[test]
    fn windows_lie_anywhere_within_the_blocks() {
        let space = Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        let mut random = Random::new();
        let mut starts = BTreeSet::new();
        for _ in 0..2000 {
            let window = window(&space, 4000, &mut random);
            assert_eq!(window.end - window.start, 4000);
            assert!(window.end <= 4096);
            starts.insert(window.start);
        }
        assert!(starts.contains(&0) && starts.contains(&96), "{starts:?}");
        assert_eq!(window(&space, 4096, &mut random), 0..4096);
        assert_eq!(window(&space, 9999, &mut random), 0..4096);
    }
}
