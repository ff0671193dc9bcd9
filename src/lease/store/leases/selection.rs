//! The blocks that an acquisition can have, in the order in which it asks for them.
//!
//! First blocks that were never granted, then those whose mark has passed, then released ones
//! whose mark lies ahead, the lowest marks first: grants of these start at the mark. Acquirers
//! that pick the same block conflict, so each takes a run of blocks from a random place on. In a
//! table that few use at once, the lowest block comes first, until there is a conflict.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;

use crate::lease::block::{Block, BlockState};
use crate::lease::namespace::Namespace;
use crate::lease::store::format::judge_block;
use crate::lease::store::random::SplitMix64;
use crate::lease::store::record::{LowestMarks, StoreRecord};
use crate::lease::store::request::Acquire;
use crate::lease::store::table::{Blocks, Snapshot};

/// How a choice that the rules leave open is made.
#[derive(Clone, Debug)]
pub(super) enum BlockSelection {
    Lowest,
    Random(SplitMix64),
    /// The lowest, until there was a conflict.
    #[cfg_attr(
        not(feature = "sqlite"),
        expect(dead_code, reason = "only files are used so")
    )]
    LowestFirst(SplitMix64, HasConflicted),
}

/// Whether the acquisition has met a conflict.
type HasConflicted = bool;

/// How many blocks an acquisition reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// A few with the lowest marks, and a window of indices.
    Sample,
    /// All.
    Full,
}

/// A block that can be granted, with its value as it was read; none if it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) state: BlockState,
    pub(super) value: Option<String>,
}

/// A namespace's blocks, as far as they were read.
#[derive(Debug)]
pub(super) struct View {
    /// The sound blocks.
    granted: Vec<Candidate>,
    /// Indices with an entry, sound or not.
    present: BTreeSet<u64>,
    /// The range in which `present` is complete.
    window: Range<u64>,
}

impl BlockSelection {
    /// Random, from the standard library's hash keys: they need be no secret.
    pub(super) fn random() -> Self {
        Self::seeded(RandomState::new().build_hasher().finish())
    }

    pub(super) fn seeded(seed: u64) -> Self {
        Self::Random(SplitMix64::new(seed))
    }

    #[cfg(feature = "sqlite")]
    pub(super) fn lowest_first() -> Self {
        let seed = RandomState::new().build_hasher().finish();
        Self::LowestFirst(SplitMix64::new(seed), false)
    }

    /// How to read at first.
    pub(super) fn first_reading(&self) -> Reading {
        match self {
            Self::Lowest => Reading::Full,
            Self::Random(_) | Self::LowestFirst(..) => Reading::Sample,
        }
    }

    /// Says whether what follows is for after a conflict.
    pub(super) fn note(&mut self, has_conflicted: bool) {
        if let Self::LowestFirst(_, noted) = self {
            *noted = has_conflicted;
        }
    }

    /// A number below `bound`; 0 in order.
    fn below(&mut self, bound: u64) -> u64 {
        match self {
            Self::Lowest | Self::LowestFirst(_, false) => 0,
            Self::Random(random) | Self::LowestFirst(random, true) => {
                let wide = u128::from(random.next()) * u128::from(bound);
                (wide >> 64) as u64
            }
        }
    }

    /// Sorts blocks by mark, and lets the first `free` of them begin anywhere.
    fn arrange(&mut self, blocks: &mut [Candidate], free: usize) {
        blocks.sort_by_key(|it| (it.state.hwm_end, it.state.block));
        let free = free.min(blocks.len());
        let first = self.below(free as u64) as usize;
        blocks[..free].rotate_left(first);
    }

    /// What to read of the blocks, to choose `wanted` of them.
    /// More after each conflict.
    pub(super) fn query(
        &mut self,
        namespace: &Namespace,
        reading: Reading,
        wanted: u32,
        conflicts: u32,
    ) -> Blocks {
        let name = namespace.name().to_owned();
        match reading {
            Reading::Full => Blocks::All { namespace: name },
            Reading::Sample => {
                // Twice what is wanted, so that two that choose need not collide.
                let limit = (2 * wanted + 16) << conflicts.min(6);
                let length = u64::from(limit) + 16;
                let last = namespace.blocks().saturating_sub(length);
                let start = self.below(last.saturating_add(1));
                Blocks::Lowest {
                    namespace: name,
                    limit,
                    window: start..namespace.blocks().min(start.saturating_add(length)),
                }
            }
        }
    }
}

impl View {
    /// The blocks that were read by `query`.
    pub(super) fn new(namespace: &Namespace, snapshot: &Snapshot, query: Option<&Blocks>) -> Self {
        let all = 0..namespace.blocks();
        let mut view = Self {
            granted: Vec::new(),
            present: BTreeSet::new(),
            window: match query {
                Some(Blocks::Lowest { window, .. }) if !snapshot.complete => window.clone(),
                _ => all.clone(),
            },
        };
        for (key, value) in &snapshot.entries {
            // Keys that name no block, or another, are skipped.
            let block = key.to_block(namespace.name());
            let Some(block) = block.filter(|block| all.contains(&block.index())) else {
                continue;
            };
            view.present.insert(block.index());
            match judge_block(namespace, block, value) {
                Ok(state) => view.granted.push(Candidate {
                    state,
                    value: Some(value.clone()),
                }),
                Err(found) => found.log(namespace),
            }
        }
        view
    }

    /// Up to as many blocks as are asked for that can be granted at the store's time `now`,
    /// in ticks.
    pub(super) fn candidates(
        &self,
        record: &StoreRecord,
        now: u64,
        acquire: &Acquire,
        selection: &mut BlockSelection,
    ) -> Vec<Candidate> {
        let Some(window) = record.mark_window(now, acquire) else {
            return Vec::new();
        };
        let wanted = acquire.blocks as usize;
        let Range { start, end } = self.window;
        // From a random index on, and around.
        let first = start + selection.below(end.saturating_sub(start));
        let fresh = (first..end)
            .chain(start..first)
            .filter(|index| !self.present.contains(index))
            .map(|index| Candidate {
                state: BlockState::never_granted(Block::new(index)),
                value: None,
            });
        let mut chosen: Vec<_> = fresh.take(wanted).collect();
        let is_idle = |it: &&Candidate| it.state.hwm_end <= window.idle_until;
        let (idle, later): (Vec<_>, Vec<_>) = self.granted.iter().partition(is_idle);
        let mut idle: Vec<_> = idle.into_iter().cloned().collect();
        let all = idle.len();
        selection.arrange(&mut idle, all);
        let mut released: Vec<_> = later
            .into_iter()
            .filter(|it| it.state.released && it.state.hwm_end < window.released_below)
            .cloned()
            .collect();
        // A few alone: the higher the mark, the further ahead a grant starts.
        selection.arrange(&mut released, 2 * wanted + 16);
        chosen.extend(idle.into_iter().chain(released));
        chosen.truncate(wanted);
        chosen
    }

    pub(super) fn lowest_marks(&self) -> LowestMarks {
        LowestMarks::of(self.granted.iter().map(|it| &it.state))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::layout::Layout;
    use crate::lease::block::Epoch;
    use crate::lease::fingerprint::Fingerprint;
    use crate::lease::store::format::encode_block;
    use crate::lease::store::limits::StoreLimits;
    use crate::lease::store::record::Incarnation;
    use crate::lease::store::table::{Key, StoreTime};

    const NOW: u64 = 1_000;

    fn space() -> Namespace {
        // Eight blocks.
        Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN)
            .and_then(|space| space.with_block_bits(14))
            .unwrap()
    }

    fn record() -> StoreRecord {
        StoreRecord::new(space(), StoreLimits::default(), 0, Incarnation::new("7"))
    }

    fn view(marks: &[(u64, u64, bool)], complete: bool, window: Range<u64>) -> View {
        let entry = |&(index, hwm_end, released): &(u64, u64, bool)| {
            let mut state = BlockState::new(Block::new(index), Epoch::FIRST, hwm_end);
            state.released = released;
            (Key::block("a", state.block), encode_block(&state))
        };
        let mut entries: BTreeMap<_, _> = marks.iter().map(entry).collect();
        entries.insert(Key::from("a/block/x".to_owned()), String::new());
        entries.insert(Key::record("a"), String::new());
        let snapshot = Snapshot {
            entries,
            complete,
            time: Ok(StoreTime::exactly(0)),
            incarnation: Incarnation::new("7"),
        };
        let blocks = Blocks::Lowest {
            namespace: "a".into(),
            limit: 6,
            window,
        };
        View::new(&space(), &snapshot, Some(&blocks))
    }

    fn indices(candidates: &[Candidate]) -> Vec<u64> {
        candidates.iter().map(|it| it.state.block.index()).collect()
    }

    #[test]
    fn fresh_then_idle_then_released() {
        let horizon = record().horizon_end(NOW);
        let marks = [
            (0, NOW, true),
            (1, NOW - 1, false),
            (2, NOW + 1, false),
            (3, NOW + 3, true),
            (4, NOW + 2, true),
            (5, horizon, true),
        ];
        let view = view(&marks, true, 0..8);
        let ask = |blocks| Acquire::new(blocks, 10, 0);
        let choose = |ask: &Acquire, selection: &mut BlockSelection| {
            indices(&view.candidates(&record(), NOW, ask, selection))
        };
        assert_eq!(
            choose(&ask(100), &mut BlockSelection::Lowest),
            [6, 7, 1, 0, 4, 3]
        );
        assert_eq!(choose(&ask(3), &mut BlockSelection::Lowest), [6, 7, 1]);
        let mut seen = BTreeSet::new();
        for _ in 0..1000 {
            let mut chosen = choose(&ask(100), &mut BlockSelection::random());
            seen.insert((chosen[0], chosen[2], chosen[4]));
            for pair in [0..2, 2..4, 4..6] {
                chosen[pair].sort_unstable();
            }
            assert_eq!(chosen, [6, 7, 0, 1, 3, 4]);
        }
        assert_eq!(seen.len(), 8, "{seen:?}");
        let LowestMarks { held, released } = view.lowest_marks();
        assert_eq!((held, released), (Some(NOW - 1), Some(NOW)));

        // Of the past those whose mark lies before it, and fresh ones.
        let past = Acquire::past(100, NOW - 1..NOW, 0);
        assert_eq!(choose(&past, &mut BlockSelection::Lowest), [6, 7, 1]);

        // Nothing lies within the horizon.
        let mut floor = record();
        floor.floor = horizon;
        let chosen = view.candidates(&floor, NOW, &ask(100), &mut BlockSelection::Lowest);
        assert_eq!(chosen, []);
    }

    #[test]
    fn unread_blocks_are_not_fresh() {
        let view = view(&[(0, NOW + 9, false)], false, 4..6);
        let chosen = view.candidates(
            &record(),
            NOW,
            &Acquire::new(9, 1, 0),
            &mut BlockSelection::Lowest,
        );
        assert_eq!(indices(&chosen), [4, 5]);
    }

    #[test]
    fn a_damaged_block_is_neither_fresh_nor_granted() {
        let view = view(&[(0, 0, false), (1, NOW + 9, false)], true, 0..8);
        let chosen = view.candidates(
            &record(),
            NOW,
            &Acquire::new(9, 1, 0),
            &mut BlockSelection::Lowest,
        );
        assert_eq!(indices(&chosen), [2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn windows_lie_anywhere_within_the_blocks() {
        let space = Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        let mut selection = BlockSelection::random();
        let mut windows = |wanted| match selection.query(&space, Reading::Sample, wanted, 0) {
            Blocks::Lowest { window, .. } => window,
            Blocks::All { .. } => unreachable!("a part was asked for"),
        };
        let mut starts = BTreeSet::new();
        for _ in 0..2000 {
            let window = windows(1984);
            assert_eq!(window.end - window.start, 4000);
            assert!(window.end <= 4096);
            starts.insert(window.start);
        }
        assert!(starts.contains(&0) && starts.contains(&96), "{starts:?}");
        assert_eq!(windows(2032), 0..4096);
        assert_eq!(windows(9999), 0..4096);
    }
}
