//! Grants of ticks that are over.

use std::ops::Range;

use super::{GrantedTicks, NODE_BITS, Suite, by_epoch, fenced, limits, one, space};
use crate::lease::block::BlockState;
use crate::lease::{
    Acquire, Confirmed, Floor, History, Init, LeaseStore, Namespace, Renew, StoreError,
};

impl Suite<'_> {
    /// Whether the store grants the past. One that doesn't must say so.
    pub(super) fn grants_the_past(&self) -> bool {
        let (mut store, space) = self.unused("past", 5);
        match store.acquire(&space, &self.past(1, 0..10)) {
            Ok(_) => true,
            Err(StoreError::PresentOnly { .. }) => {
                assert!(store.list(&space).unwrap().blocks.is_empty());
                false
            }
            Err(other) => panic!("{other}"),
        }
    }

    pub(super) fn reaches_back_as_far_as_the_history_says(&self) {
        let (mut store, unused) = self.unused("past-unused", NODE_BITS);
        assert_eq!(store.list(&unused).unwrap().record.floor, 0);
        let end = self.tick(&unused) - 5;
        let grant = one(store.acquire(&unused, &self.past(1, 0..end)));
        assert_eq!((grant.ticks.clone(), grant.epoch.get()), (0..end, 1));
        let BlockState {
            hwm_end, released, ..
        } = self.only(&mut *store, &unused);
        assert_eq!((hwm_end, released), (end, false));

        let (mut store, new) = self.namespace("past-new", 5);
        let floor = store.list(&new).unwrap().record.floor;
        for past in [0..10, floor - 1..floor] {
            let asked = past.start;
            match store.acquire(&new, &self.past(1, past)).unwrap_err() {
                StoreError::BeforeFloor {
                    start,
                    floor: found,
                    ..
                } => assert_eq!((start, found), (asked, floor)),
                other => panic!("{other}"),
            }
        }
        assert!(store.list(&new).unwrap().blocks.is_empty());
    }

    pub(super) fn grants_the_past_apart_from_all_else(&self) {
        let (mut store, space) = self.unused("past-apart", NODE_BITS - 1);
        let mut given = GrantedTicks::default();
        for (past, blocks) in [(0..100, 2), (100..200, 2), (250..251, 3)] {
            let grants = store.acquire(&space, &self.past(blocks, past.clone()));
            let grants = grants.unwrap();
            assert_eq!(grants.len(), 2, "{past:?}");
            for grant in grants {
                assert_eq!(grant.ticks, past);
                given.add(&grant);
            }
        }
        let lowest = space.layout().tick_start_unix_ms(251);
        self.exhausted(&mut *store, &space, 250..300, Some(lowest));
        let before = self.tick(&space);
        for grant in store.acquire(&space, &self.ask(2, 10)).unwrap() {
            assert!(grant.ticks.start + 3 >= before, "{grant}");
            assert_eq!(grant.epoch.get(), 4);
            given.add(&grant);
        }
        assert_eq!(given.intervals(), 8);
        self.exhausted(&mut *store, &space, 300..400, None);
    }

    pub(super) fn leaves_the_past_of_blocks_of_the_present(&self) {
        let (mut store, space) = self.unused("past-held", NODE_BITS);
        let grant = one(store.acquire(&space, &self.ask(1, 10)));
        self.exhausted(&mut *store, &space, 0..100, None);
        // Nor of one that was released before its end.
        store.release(&space, grant.block, grant.epoch).unwrap();
        let lowest = space.layout().tick_start_unix_ms(grant.ticks.end);
        self.exhausted(&mut *store, &space, 0..100, Some(lowest));
    }

    pub(super) fn takes_for_past_what_is_over_alone(&self) {
        let (mut store, space) = self.unused("past-over", 5);
        let now = self.tick(&space);
        for end in [now + 10, space.layout().ticks() + 5, u64::MAX] {
            match store
                .acquire(&space, &self.past(1, now - 10..end))
                .unwrap_err()
            {
                StoreError::NotPast {
                    end: found, latest, ..
                } => {
                    assert_eq!(found, end);
                    let later = self.tick(&space) + 3;
                    assert!((now - 2..=later).contains(&latest), "{latest}, not {now}");
                }
                other => panic!("{other}"),
            }
        }
        let inverted = Range { start: 10, end: 9 };
        for past in [10..10, inverted] {
            refused!(store.acquire(&space, &self.past(1, past)), Invalid);
        }
        if self.has_clock(&mut *store, &space) {
            let off = (self.now)() - 3_600_000;
            refused!(
                store.acquire(&space, &Acquire::past(1, 0..10, off)),
                ClockSkew
            );
        }
        assert!(store.list(&space).unwrap().blocks.is_empty());
    }

    pub(super) fn closes_the_past_below_the_floor(&self) {
        let (mut store, space) = self.unused("past-floor", 5);
        let floor = Floor::Tick(1000);
        assert_eq!(
            store.raise_floor(&space, floor, (self.now)()).unwrap(),
            1000
        );
        let error = store.acquire(&space, &self.past(1, 999..2000)).unwrap_err();
        let StoreError::BeforeFloor { start, floor, .. } = error else {
            panic!("{error}");
        };
        assert_eq!((start, floor), (999, 1000));
        one(store.acquire(&space, &self.past(1, 1000..2000)));
        store
            .raise_floor(&space, Floor::OverLostGrants, (self.now)())
            .unwrap();
        let end = self.tick(&space) - 5;
        refused!(store.acquire(&space, &self.past(1, 2000..end)), BeforeFloor);
        assert_eq!(store.list(&space).unwrap().blocks.len(), 1);
    }

    pub(super) fn fences_whoever_had_the_block_before(&self) {
        let (mut store, space) = self.unused("past-fence", NODE_BITS);
        let first = one(store.acquire(&space, &self.past(1, 0..100)));
        let second = one(store.acquire(&space, &self.past(1, 100..200)));
        assert_eq!(first.block, second.block);
        let fence = by_epoch(first.epoch, second.epoch);
        let renew = Renew::new(&first, 150, (self.now)());
        fenced(store.renew(&space, &renew), &fence);
        fenced(store.release(&space, first.block, first.epoch), &fence);
        assert_eq!(self.only(&mut *store, &space).hwm_end, 200);
        // The last one may grow, as any.
        let renew = Renew::new(&second, 250, (self.now)());
        assert_eq!(store.renew(&space, &renew).unwrap(), 250);
        let third = one(store.acquire(&space, &self.past(1, 250..260)));
        assert_eq!(third.ticks, 250..260);
    }

    pub(super) fn closes_the_past_that_it_forgot(&self) {
        let (mut store, space) = self.unused("past-lost", 5);
        let grant = one(store.acquire(&space, &self.past(1, 0..100)));
        let confirmed = Confirmed::new(grant.block, grant.epoch, grant.ticks.end + 1);
        // Before another refusal.
        let ask = self.past(1, 0..u64::MAX).with_evidence(vec![confirmed]);
        refused!(store.acquire(&space, &ask), HistoryLost);
        refused!(store.acquire(&space, &self.past(1, 200..300)), BeforeFloor);
    }

    /// As [`namespace`](Self::namespace), in which no ID was ever issued.
    fn unused(&self, name: &str, block_bits: u32) -> (Box<dyn LeaseStore>, Namespace) {
        let mut store = (self.open)();
        let space = space(name, block_bits);
        let init = Init::new(History::Unused, (self.now)()).with_limits(limits());
        store.init(&space, &init).unwrap();
        (store, space)
    }

    fn past(&self, blocks: u32, ticks: Range<u64>) -> Acquire {
        Acquire::past(blocks, ticks, (self.now)())
    }

    #[track_caller]
    fn only(&self, store: &mut dyn LeaseStore, space: &Namespace) -> BlockState {
        let mut blocks = store.list(space).unwrap().blocks;
        assert_eq!(blocks.len(), 1);
        blocks.remove(0)
    }

    /// No block is left for this past, and the lowest mark is this one, if it is given.
    #[track_caller]
    fn exhausted(
        &self,
        store: &mut dyn LeaseStore,
        space: &Namespace,
        past: Range<u64>,
        lowest: Option<u64>,
    ) {
        let known = store.list(space).unwrap();
        match store
            .acquire(space, &self.past(1, past.clone()))
            .unwrap_err()
        {
            StoreError::PastExhausted {
                wanted: 1,
                blocks,
                start,
                lowest_mark_unix_ms: Some(found),
                ..
            } => {
                assert_eq!((blocks, start), (space.blocks(), past.start));
                assert_eq!(found, lowest.unwrap_or(found));
            }
            other => panic!("{other}"),
        }
        assert_eq!(store.list(space).unwrap(), known);
    }
}
