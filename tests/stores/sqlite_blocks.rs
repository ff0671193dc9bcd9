//! What `SqliteStore` offers beyond the trait: certain blocks, and many releases
//! at once.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use ringflake::lease::{
    Acquire, Block, BlockState, Epoch, Fingerprint, Grant, History, Init, LeaseStore, Namespace,
    OpenOptions, SqliteStore, StoreError,
};
use ringflake::{Clock, Layout, ManualClock};
use tempfile::TempDir;

const START_MS: u64 = 1_760_000_000_000;

/// A store with 16 blocks of 8,192 nodes, and its clock.
struct Desk {
    _directory: TempDir,
    store: SqliteStore,
    space: Namespace,
    clock: ManualClock,
}

impl Desk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(START_MS);
        let options = OpenOptions::new().accept_best_effort(true);
        let mut store = SqliteStore::new(directory.path().join("leases.db"), &options)
            .unwrap()
            .with_clock(Arc::new(clock.clone()));
        let space = Namespace::new("a", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
        let space = space.with_block_bits(13).unwrap();
        store
            .init(&space, &Init::new(History::New, START_MS))
            .unwrap();
        Self {
            _directory: directory,
            store,
            space,
            clock,
        }
    }

    fn ask(&self, blocks: u32) -> Acquire {
        Acquire::new(blocks, 10, self.clock.unix_ms())
    }

    fn within(&mut self, blocks: u32, range: Range<u64>) -> Result<Vec<Grant>, StoreError> {
        let ask = self.ask(blocks);
        self.store.acquire_within(&self.space, &ask, range)
    }

    fn anywhere(&mut self, blocks: u32) -> Vec<u64> {
        let ask = self.ask(blocks);
        indexes(&self.store.acquire(&self.space, &ask).unwrap())
    }

    fn states(&mut self) -> Vec<BlockState> {
        self.store.list(&self.space).unwrap().blocks
    }
}

fn indexes(grants: &[Grant]) -> Vec<u64> {
    grants.iter().map(|grant| grant.block.index()).collect()
}

#[test]
fn blocks_come_from_the_range_alone() {
    let mut desk = Desk::new();
    assert_eq!(indexes(&desk.within(2, 5..9).unwrap()), [5, 6]);
    // From the end down to the beginning, and over what is held.
    assert_eq!(indexes(&desk.within(3, 15..16).unwrap()), [15]);
    assert_eq!(indexes(&desk.within(9, 3..9).unwrap()), [7, 8, 3, 4]);
    match desk.within(1, 3..9) {
        Err(StoreError::Exhausted {
            wanted,
            retry_after,
            ..
        }) => assert_eq!((wanted, retry_after), (1, Duration::from_secs(10))),
        other => panic!("{other:?}"),
    }
    // The other blocks are as free as before.
    assert_eq!(desk.anywhere(9), [0, 1, 2, 9, 10, 11, 12, 13, 14]);
}

#[test]
fn passed_blocks_come_before_gaps_and_gaps_before_released_ones() {
    let mut desk = Desk::new();
    desk.within(1, 15..16).unwrap();
    desk.within(1, 4..5).unwrap();
    desk.clock.advance(Duration::from_secs(5));
    let later = desk.within(1, 2..3).unwrap().remove(0);
    desk.store
        .release(&desk.space, later.block, later.epoch)
        .unwrap();
    desk.clock.advance(Duration::from_secs(5));
    assert_eq!(desk.anywhere(4), [4, 15, 0, 1]);
    assert_eq!(desk.anywhere(16), [3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 2]);
    // The released one goes on where it ended.
    let states = desk.states();
    assert_eq!(states.len(), 16);
    assert_eq!(states[2].epoch, Epoch::new(2));
    assert_eq!(states[2].hwm_end, later.ticks.end + 10);
}

#[test]
fn a_range_that_is_none_is_refused() {
    let mut desk = Desk::new();
    #[expect(clippy::reversed_empty_ranges, reason = "one of those to be refused")]
    for range in [3..3, 4..3, 0..17, 16..17, 20..30] {
        match desk.within(1, range.clone()) {
            Err(StoreError::Invalid { value, max, .. }) => {
                assert_eq!((value, max), (range.end, 16), "{range:?}");
            }
            other => panic!("{range:?}: {other:?}"),
        }
    }
    assert_eq!(desk.states(), []);
}

#[test]
fn many_releases_are_one_step_that_passes_over_what_is_not_ours() {
    let mut desk = Desk::new();
    let mut grants = desk.within(4, 0..16).unwrap();
    let marks: Vec<_> = desk.states().iter().map(|block| block.hwm_end).collect();
    grants[1].epoch = Epoch::new(7);
    let mut ours: Vec<_> = grants
        .iter()
        .map(|grant| (grant.block, grant.epoch))
        .collect();
    ours.push((Block::new(9), Epoch::FIRST));
    desk.store.release_all(&desk.space, &ours).unwrap();
    let states = desk.states();
    let released: Vec<_> = states.iter().map(|block| block.released).collect();
    assert_eq!(released, [true, false, true, true]);
    assert!(states.iter().map(|block| block.hwm_end).eq(marks));
    desk.store.release_all(&desk.space, &[]).unwrap();

    let other = Namespace::new("b", &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
    assert!(matches!(
        desk.store.release_all(&other, &ours),
        Err(StoreError::NotInitialised { .. })
    ));
}
