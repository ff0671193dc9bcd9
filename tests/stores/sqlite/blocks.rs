//! What `SqliteStore` offers beyond the trait: certain blocks, and many releases
//! at once.

use std::ops::Range;
use std::time::Duration;

use ringflake::Clock;
use ringflake::lease::{
    Acquire, Block, BlockState, Epoch, Grant, LeaseStore, Namespace, SqliteStore, StoreError,
};
use ringflake_kit::server::data_directory;
use tempfile::TempDir;

use super::Site;
use crate::kit::{self, not_initialised};

/// A store with 16 blocks of 8,192 nodes.
struct Fixture {
    _directory: TempDir,
    site: Site,
    store: SqliteStore,
    space: Namespace,
}

impl Fixture {
    fn new() -> Self {
        let directory = data_directory();
        let site = Site::new(directory.path());
        let mut store = site.store("leases.db");
        let space = kit::sized("a", 13);
        store.init(&space, &site.init()).unwrap();
        Self {
            _directory: directory,
            site,
            store,
            space,
        }
    }

    fn ask(&self, blocks: u32) -> Acquire {
        Acquire::new(blocks, 10, self.site.clock.unix_ms())
    }

    fn within(&mut self, blocks: u32, range: Range<u64>) -> Result<Vec<Grant>, StoreError> {
        let ask = self.ask(blocks);
        self.store.acquire_within(&self.space, &ask, range)
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
    let mut fixture = Fixture::new();
    let first = indexes(&fixture.within(2, 5..9).unwrap());
    assert!(
        first.iter().all(|block| (5..9).contains(block)),
        "{first:?}"
    );
    assert_eq!(indexes(&fixture.within(1, 15..16).unwrap()), [15]);
    let mut rest = indexes(&fixture.within(9, 3..9).unwrap());
    rest.extend(first);
    rest.sort_unstable();
    assert_eq!(rest, [3, 4, 5, 6, 7, 8]);
    match fixture.within(1, 3..9) {
        Err(StoreError::Exhausted {
            wanted: 1,
            blocks: 6,
            retry_after,
        }) => assert_eq!(retry_after, Duration::from_secs(10)),
        other => panic!("{other:?}"),
    }
    // The other blocks are as free as before.
    let ask = fixture.ask(9);
    let mut others = indexes(&fixture.store.acquire(&fixture.space, &ask).unwrap());
    others.sort_unstable();
    assert_eq!(others, [0, 1, 2, 9, 10, 11, 12, 13, 14]);
}

#[test]
fn a_range_that_is_none_is_refused() {
    let mut fixture = Fixture::new();
    #[expect(clippy::reversed_empty_ranges, reason = "one of those to be refused")]
    for range in [3..3, 4..3, 0..17, 16..17, 20..30] {
        match fixture.within(1, range.clone()) {
            Err(StoreError::Invalid { value, max, .. }) => {
                assert_eq!((value, max), (range.end, 16), "{range:?}");
            }
            other => panic!("{range:?}: {other:?}"),
        }
    }
    assert_eq!(fixture.states(), []);
}

#[test]
fn many_releases_are_one_step_that_passes_over_what_is_not_ours() {
    let mut fixture = Fixture::new();
    let mut grants = fixture.within(4, 0..4).unwrap();
    grants.sort_by_key(|grant| grant.block);
    let mut expected = fixture.states();
    for index in [0, 2, 3] {
        expected[index].released = true;
    }
    grants[1].epoch = Epoch::new(7);
    let mut ours: Vec<_> = grants.iter().map(|it| (it.block, it.epoch)).collect();
    ours.push((Block::new(9), Epoch::FIRST));
    fixture.store.release_all(&fixture.space, &ours).unwrap();
    assert_eq!(fixture.states(), expected);
    fixture.store.release_all(&fixture.space, &[]).unwrap();

    not_initialised(fixture.store.release_all(&kit::space("b"), &ours));
}
