//! The blocks of a namespace are found, and those of no other.

use super::TableSuite;
use super::connection::{Entries, all_of, block, lowest_of, marked, put, written};
use crate::lease::store::table::{Key, Put, Query};

/// Marks from 1 to above 50,000, in an order that is neither that of the keys nor that of the
/// marks' digits.
fn shuffled(name: &str) -> Vec<Put> {
    let mark = |index: u64| (index * 17 % 40).pow(3) + 1;
    (0..40)
        .map(|index| marked(name, 3 * index, mark(index)))
        .collect()
}

/// The entries with the lowest ranks, and those of a window.
fn expected(puts: &[Put], limit: usize, window: &std::ops::Range<u64>, name: &str) -> Entries {
    let mut by_rank: Vec<_> = puts.iter().collect();
    by_rank.sort_by_key(|put| put.rank);
    let bounds = [window.start, window.end].map(|index| block(name, index));
    let is_within = |put: &&Put| put.key >= bounds[0] && put.key < bounds[1];
    written(
        by_rank
            .into_iter()
            .take(limit)
            .chain(puts.iter().filter(is_within)),
    )
}

impl TableSuite<'_> {
    pub(super) fn the_lowest_ranks_are_found(&self) {
        let mut table = self.connect();
        let name = "table-suite-lowest";
        let puts = shuffled(name);
        table.write(puts.clone());
        table.write([put(&Key::record(name), "record")]);
        for limit in [1, 2, 7, 20, 39, 40, 41, 200] {
            for window in [
                0..0,
                7..7,
                0..10,
                3..4,
                48..60,
                100..1_000,
                500..600,
                0..200,
            ] {
                let query = lowest_of(name, limit, window.clone());
                let expected = expected(&puts, limit as usize, &window, name);
                assert_eq!(table.entries(&query), expected, "{query:?}");
            }
        }
    }

    pub(super) fn a_rank_changes_with_its_entry(&self) {
        let mut table = self.connect();
        let name = "table-suite-rank";
        let mut puts = shuffled(name);
        table.write(puts.clone());
        for round in 0..10 {
            puts.sort_by_key(|put| put.rank);
            let lowest = puts.remove(0);
            let read = lowest_of(name, 1, 0..0);
            assert_eq!(table.entries(&read), written([&lowest]));
            let index = lowest.key.to_block(name).expect("it is a block").index();
            let later = marked(name, index, 100_000 + round);
            table.write([later.clone()]);
            puts.push(later);
        }
    }

    pub(super) fn complete_tells_whether_blocks_are_left_out(&self) {
        let mut table = self.connect();
        let name = "table-suite-complete";
        let puts = shuffled(name);
        for count in [1, 5, 40] {
            table.write(puts[..count].to_vec());
            let most = u32::try_from(count).expect("it is small");
            for (limit, complete) in [(most - 1, false), (most, true), (most + 1, true)] {
                if limit == 0 {
                    continue;
                }
                for window in [0..0, 0..1] {
                    let query = lowest_of(name, limit, window);
                    let snapshot = table.read(&query);
                    let shown = (snapshot.entries.len(), snapshot.complete);
                    assert_eq!(snapshot.complete, complete, "{shown:?} by {query:?}");
                }
            }
            assert!(table.read(&all_of(name)).complete);
        }
        // Keys beside the blocks do not count.
        let query = Query {
            keys: vec![Key::record(name), block("table-suite-rank", 0)],
            ..lowest_of(name, 40, 0..0)
        };
        assert!(table.read(&query).complete);
    }

    pub(super) fn thousands_of_blocks_are_read(&self) {
        let mut table = self.connect();
        let name = "table-suite-thousands";
        let mut puts: Vec<_> = (0..4_321)
            .map(|index| marked(name, 2 * index, 9_999 - index))
            .collect();
        // The last keys of all.
        puts.push(marked(name, u64::MAX, 1));
        for page in puts.chunks(120) {
            table.write(page.iter().cloned());
        }
        let snapshot = table.read(&all_of(name));
        let (shown, all) = (snapshot.entries.len(), puts.len());
        assert_eq!(shown, all, "not all blocks are read");
        assert!(snapshot.complete && snapshot.entries == written(&puts));
        let window = 100..200;
        let query = lowest_of(name, 3_000, window.clone());
        let snapshot = table.read(&query);
        let expected = expected(&puts, 3_000, &window, name);
        assert!(!snapshot.complete && snapshot.entries == expected);
    }

    pub(super) fn similar_names_are_kept_apart(&self) {
        let mut table = self.connect();
        // `_` and `.` match any character in some patterns.
        let names = [
            "table_suite",
            "table-suite",
            "table.suite",
            "tablesuite",
            "table1suite",
            "table_suite2",
            "table_suite-",
            "table_suit",
            "table_suite.block",
        ];
        let of = |at: usize| {
            let mark = move |index| 10 * index + at as u64 + 1;
            (0..4).map(move |index| marked(names[at], index, mark(index)))
        };
        for (at, name) in names.iter().enumerate() {
            table.write(of(at));
            table.write([put(&Key::record(name), name), put(&Key::check(name), name)]);
        }
        for (at, name) in names.iter().enumerate() {
            let blocks: Vec<_> = of(at).collect();
            assert_eq!(table.entries(&all_of(name)), written(&blocks), "{name}");
            for (limit, window) in [(2, 0..0), (4, 0..0), (1, 2..4)] {
                let snapshot = table.read(&lowest_of(name, limit, window.clone()));
                let expected = expected(&blocks, limit as usize, &window, name);
                assert_eq!(snapshot.entries, expected, "{name}");
                assert_eq!(snapshot.complete, limit == 4, "{name}");
            }
            assert_eq!(table.value(&Key::record(name)).as_deref(), Some(*name));
        }
    }

    pub(super) fn keys_may_repeat_and_overlap_blocks(&self) {
        let mut table = self.connect();
        let name = "table-suite-overlap";
        let record = put(&Key::record(name), "record");
        let blocks: Vec<_> = (0..6).map(|index| marked(name, index, 9 - index)).collect();
        table.write(blocks.iter().chain([&record]).cloned());
        let absent = block(name, 77);
        let twice = [0, 5, 0, 5].map(|index| block(name, index));
        let keys: Vec<_> = twice
            .into_iter()
            .chain([&record.key, &record.key, &absent, &absent].map(Key::clone))
            .collect();
        let all: Vec<_> = blocks.iter().chain([&record]).collect();
        let named = [&blocks[0], &blocks[5], &record];
        for (blocks, expected) in [
            (None, written(named)),
            (all_of(name).blocks, written(all.clone())),
            (
                lowest_of(name, 1, 0..2).blocks,
                written(named.into_iter().chain([&blocks[1]])),
            ),
            (lowest_of(name, 9, 0..9).blocks, written(all)),
        ] {
            let query = Query {
                keys: keys.clone(),
                blocks,
            };
            assert_eq!(table.entries(&query), expected, "{query:?}");
        }
    }
}
