//! What `SqliteStore` offers beyond the trait: certain blocks, and many releases
//! at once.

use std::ops::Range;
use std::time::Duration;

use ringflake::lease::{
    Acquire, Block, BlockState, Epoch, Grant, History, Init, LeaseStore, Namespace, SqliteStore,
    StoreError,
};
use ringflake::{Clock, ManualClock};

use super::Place;
use crate::kit::{self, not_initialised};

const START_MS: u64 = 1_760_000_000_000;

/// A store with 16 blocks of 8,192 nodes, and its clock.
struct Desk {
    _place: Place,
    store: SqliteStore,
    space: Namespace,
    clock: ManualClock,
}

impl Desk {
    fn new() -> Self {
        let place = Place::in_memory();
        let clock = ManualClock::new(START_MS);
        let mut store = place.store_at(&clock);
        let space = kit::space("a").with_block_bits(13).unwrap();
        let init = Init::new(History::New, START_MS);
        store.init(&space, &init).unwrap();
        Self {
            _place: place,
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
            wanted: 1,
            retry_after,
            ..
        }) => assert_eq!(retry_after, Duration::from_secs(10)),
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
    let released = desk.store.release(&desk.space, later.block, later.epoch);
    released.unwrap();
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
    let mut expected = desk.states();
    for index in [0, 2, 3] {
        expected[index].released = true;
    }
    grants[1].epoch = Epoch::new(7);
    let mut ours: Vec<_> = grants.iter().map(|it| (it.block, it.epoch)).collect();
    ours.push((Block::new(9), Epoch::FIRST));
    desk.store.release_all(&desk.space, &ours).unwrap();
    assert_eq!(desk.states(), expected);
    desk.store.release_all(&desk.space, &[]).unwrap();

    not_initialised(desk.store.release_all(&kit::space("b"), &ours));
}
