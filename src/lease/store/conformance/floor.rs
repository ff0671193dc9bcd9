//! The start of grants: at the floor, above an unknown history, above forgotten grants.

use std::time::{Duration, Instant};

use super::{NODE_BITS, Suite, fenced, limits, none_of, one, space};
use crate::lease::{Block, Confirmed, Fence, Floor, Grant, History, Init, Renew, StoreError};

impl Suite<'_> {
    pub(super) fn starts_at_the_floor(&self) {
        let (mut store, space) = self.namespace("floor", 5);
        let floor = self.tick(&space) + 100;
        let raised = store.raise_floor(&space, Floor::Tick(floor), (self.now)());
        assert_eq!(raised.unwrap(), floor);
        let lower = store.raise_floor(&space, Floor::Tick(floor - 50), (self.now)());
        assert_eq!(lower.unwrap(), floor);
        assert_eq!(store.list(&space).unwrap().record.floor, floor);

        let grant = one(store.acquire(&space, &self.ask(1, 10)));
        assert_eq!(grant.ticks, floor..floor + 10);
    }

    pub(super) fn refuses_a_floor_far_ahead(&self) {
        let (mut store, space) = self.namespace("floor-far", 5);
        let known = store.list(&space).unwrap();
        let over = limits().horizon().as_secs() + limits().failover().as_secs() + 1;
        let began = Instant::now();
        let far = self.tick(&space) + over + 60;
        match store.raise_floor(&space, Floor::Tick(far), (self.now)()) {
            Err(StoreError::FloorTooFar {
                tick,
                tick_unix_ms,
                latest,
                latest_unix_ms,
                idle,
            }) => {
                assert_eq!(tick, far);
                assert_eq!(tick_unix_ms, space.layout().tick_start_unix_ms(far));
                let elapsed = began.elapsed();
                let expected = far - 62..=far - 50 + elapsed.as_secs();
                assert!(expected.contains(&latest), "{latest}, not {expected:?}");
                assert_eq!(latest_unix_ms, space.layout().tick_start_unix_ms(latest));
                let least = Duration::from_secs(80).saturating_sub(elapsed);
                let expected = least..=Duration::from_secs(94);
                assert!(expected.contains(&idle), "{idle:?}");
            }
            other => panic!("{other:?}, not a refusal of a floor far ahead"),
        }
        assert_eq!(store.list(&space).unwrap(), known);

        // Client and server may disagree about "near", unless they share one clock.
        let hour = 3_600_000;
        let near = Floor::Tick(self.tick(&space) + 10);
        let has_clock = self.has_clock(&mut *store, &space);
        for floor in [near, Floor::OverLostGrants] {
            for client in [(self.now)() - hour, (self.now)() + hour] {
                if has_clock {
                    refused!(store.raise_floor(&space, floor, client), ClockSkew);
                }
            }
        }
        assert_eq!(store.list(&space).unwrap(), known);

        let forced = store.raise_floor(&space, Floor::AnyTick(far), (self.now)() - hour);
        assert_eq!(forced.unwrap(), far);
        refused!(store.acquire(&space, &self.ask(1, 10)), FloorAhead);
        // Where it is already, nothing is raised.
        let again = store.raise_floor(&space, Floor::Tick(far), (self.now)());
        assert_eq!(again.unwrap(), far);
        let beyond = Floor::AnyTick(space.layout().ticks());
        refused!(store.raise_floor(&space, beyond, (self.now)()), Invalid);
    }

    pub(super) fn fences_below_the_floor(&self) {
        let (mut store, space) = self.namespace("floor-fence", 5);
        let grant = one(store.acquire(&space, &self.ask(1, 10)));
        let end = grant.ticks.end;
        let renew = Renew::new(&grant, end + 5, (self.now)());

        let floor = Floor::Tick(end + 1);
        store.raise_floor(&space, floor, (self.now)()).unwrap();
        fenced(
            store.renew(&space, &renew),
            &Fence::Floor {
                known: end,
                floor: end + 1,
            },
        );
        assert_eq!(store.list(&space).unwrap().blocks[0].hwm_end, end);

        // At the floor is not below it.
        let grant = one(store.acquire(&space, &self.ask(1, 10)));
        let floor = Floor::Tick(grant.ticks.end);
        store.raise_floor(&space, floor, (self.now)()).unwrap();
        let renew = Renew::new(&grant, grant.ticks.end + 5, (self.now)());
        assert_eq!(store.renew(&space, &renew).unwrap(), grant.ticks.end + 5);
    }

    pub(super) fn starts_above_an_unknown_history(&self) {
        let mut store = (self.open)();
        let lost = space("unknown", 5);
        let before = self.tick(&lost);
        let init = Init::new(History::Unknown, (self.now)()).with_limits(limits());
        let floor = store.init(&lost, &init).unwrap().floor;
        let expected = self.above_lost_grants(&lost, before);
        assert!(expected.contains(&floor), "{floor}, not {expected:?}");
        refused!(store.acquire(&lost, &self.ask(1, 10)), FloorAhead);

        let (mut store, raised) = self.namespace("raised", 5);
        let before = self.tick(&raised);
        let floor = store
            .raise_floor(&raised, Floor::OverLostGrants, (self.now)())
            .unwrap();
        let expected = self.above_lost_grants(&raised, before);
        assert!(expected.contains(&floor), "{floor}, not {expected:?}");
        refused!(store.acquire(&raised, &self.ask(1, 10)), FloorAhead);
    }

    pub(super) fn grants_where_it_knows_what_it_confirmed(&self) {
        let (mut store, space) = self.namespace("history", 5);
        let grants = store.acquire(&space, &self.ask(2, 10)).unwrap();
        let evidence: Vec<_> = grants.iter().map(Grant::confirmed).collect();
        // The recorded end, an earlier one, and none.
        let mut less = evidence.clone();
        less[0].end -= 1;
        for evidence in [evidence.clone(), less, Vec::new()] {
            let ask = self.ask(1, 10).with_evidence(evidence);
            one(store.acquire(&space, &ask));
        }
    }

    pub(super) fn refuses_where_it_knows_less(&self) {
        let changes: [fn(&mut Confirmed, Block); 3] = [
            |it, _| it.end += 1,
            |it, _| it.epoch = it.epoch.next(),
            |it, other| it.block = other,
        ];
        for (name, change) in ["lost-end", "lost-epoch", "lost-block"].iter().zip(changes) {
            let (mut store, space) = self.namespace(name, 5);
            let grants = store.acquire(&space, &self.ask(2, 10)).unwrap();
            let known = store.list(&space).unwrap().blocks;
            let mut evidence: Vec<_> = grants.iter().map(Grant::confirmed).collect();
            change(&mut evidence[1], none_of(&grants));
            let ask = self.ask(1, 10).with_evidence(evidence.clone());
            match store.acquire(&space, &ask) {
                Err(StoreError::HistoryLost { confirmed, .. }) => {
                    assert_eq!(confirmed, evidence[1]);
                }
                other => panic!("{other:?}, with {evidence:?}"),
            }
            assert_eq!(store.list(&space).unwrap().blocks, known);
        }
    }

    pub(super) fn recovers_what_it_forgot(&self) {
        let (mut store, space) = self.namespace("recover", NODE_BITS);
        let grant = one(store.acquire(&space, &self.ask(1, 10)));
        let confirmed = |end| {
            let confirmed = Confirmed::new(grant.block, grant.epoch, end);
            self.ask(1, 10).with_evidence(vec![confirmed])
        };
        let end = grant.ticks.end;
        // Above all that a lost grant can reach, evidence shows nothing.
        refused!(
            store.acquire(&space, &confirmed(end + 1_000_000)),
            Exhausted
        );
        // It takes precedence over the error that no block is free.
        let before = self.tick(&space);
        refused!(store.acquire(&space, &confirmed(end + 5)), HistoryLost);
        let floor = store.list(&space).unwrap().record.floor;
        assert!(self.above_lost_grants(&space, before).contains(&floor));
        // Once is enough.
        refused!(store.acquire(&space, &confirmed(end + 5)), FloorAhead);
        assert_eq!(store.list(&space).unwrap().record.floor, floor);
        let renew = Renew::new(&grant, end + 5, (self.now)());
        let known = end;
        fenced(store.renew(&space, &renew), &Fence::Floor { known, floor });
    }
}
