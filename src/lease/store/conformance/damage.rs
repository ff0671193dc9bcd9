//! Blocks whose record is damaged.

use std::fmt;
use std::time::{Duration, Instant};

use super::{Damage, NODE_BITS, Suite, by_epoch, fenced, limits};
use crate::lease::{Block, Fence, Grant, Renew, StoreError};

impl Suite<'_> {
    pub(super) fn quarantines_a_damaged_block(&self, damage: &Damage<'_>) {
        let (mut store, space) = self.namespace("damaged", NODE_BITS - 2);
        let grants = store.acquire(&space, &self.ask(3, 60)).unwrap();
        let [damaged, held, released] = [&grants[0], &grants[1], &grants[2]];
        damage(&space, damaged.block);

        // It costs this block, and no other.
        let longer = |grant: &Grant| Renew::new(grant, grant.ticks.end + 5, (self.now)());
        let renewals = [held, damaged, released].map(longer);
        let asked = renewals.each_ref().map(|renew| (&space, renew));
        let mut answers = store.renew_all(&asked).into_iter();
        let mut next = || answers.next().unwrap();
        assert_eq!(next().unwrap(), held.ticks.end + 5);
        quarantined(next());
        assert_eq!(next().unwrap(), released.ticks.end + 5);
        let mut again = renewals[0].clone();
        again.known_end += 5;
        assert_eq!(store.renew(&space, &again).unwrap(), again.known_end);
        let epoch = released.epoch;
        store.release(&space, released.block, epoch).unwrap();
        let renew = longer(damaged);
        quarantined(store.renew(&space, &renew));
        quarantined(store.release(&space, damaged.block, damaged.epoch));
        let listing = store.list(&space).unwrap();
        let listed: Vec<_> = listing.quarantined.iter().map(|it| it.block).collect();
        assert_eq!(listed, [Some(damaged.block)]);
        assert!(!listing.quarantined[0].reason.is_empty());
        assert_eq!(listing.blocks.len(), 2);
        let report = store.check(&space, (self.now)()).unwrap();
        assert_eq!(report.quarantined, listing.quarantined);
        assert_eq!((report.granted_blocks, report.held_blocks), (2, 1));

        // Evidence about it shows no loss.
        let evidence: Vec<_> = grants.iter().map(Grant::confirmed).collect();
        let ask = || self.ask(4, 60).with_evidence(evidence.clone());
        let rest = store.acquire(&space, &ask()).unwrap();
        let mut others: Vec<_> = rest.iter().map(|grant| grant.block.index()).collect();
        others.sort_unstable();
        assert_eq!(others.len(), 2, "{rest:?}");
        assert!(!others.contains(&damaged.block.index()), "{rest:?}");
        assert!(others.contains(&released.block.index()), "{rest:?}");
        exhausted(store.acquire(&space, &ask()));

        // A repair of a sound record, or by a clock that is off, changes
        // nothing.
        let beyond = Block::new(space.blocks());
        for block in [held.block, beyond, Block::new(u64::MAX)] {
            refused!(store.repair(&space, block, (self.now)()), NotQuarantined);
        }
        if report.store_unix_ms.is_some() {
            let off = (self.now)() - 3_600_000;
            refused!(store.repair(&space, damaged.block, off), ClockSkew);
        }
        assert_eq!(store.list(&space).unwrap().quarantined, listing.quarantined);

        let began = Instant::now();
        let before = self.tick(&space);
        let repaired = store.repair(&space, damaged.block, (self.now)()).unwrap();
        let expected = self.above_lost_grants(&space, before);
        assert!(expected.contains(&repaired.hwm_end), "{repaired:?}");
        assert!(repaired.epoch > damaged.epoch, "{repaired:?}");
        assert_eq!((repaired.released, &repaired.holder), (true, &None));
        let listing = store.list(&space).unwrap();
        assert!(listing.quarantined.is_empty(), "{listing:?}");
        assert!(listing.blocks.contains(&repaired), "{listing:?}");
        refused!(
            store.repair(&space, damaged.block, (self.now)()),
            NotQuarantined
        );

        // Its grant has ended, and the next one waits for the horizon.
        let fence = by_epoch(damaged.epoch, repaired.epoch);
        fenced(store.renew(&space, &renew), &fence);
        fenced(store.release(&space, damaged.block, damaged.epoch), &fence);
        let retry_after = exhausted(store.acquire(&space, &ask()));
        let failover = limits().failover();
        let least = failover.saturating_sub(began.elapsed());
        let expected = least..=failover + Duration::from_secs(5);
        assert!(expected.contains(&retry_after), "{retry_after:?}");
        assert_eq!(store.list(&space).unwrap(), listing);
    }

    pub(super) fn grants_nothing_of_damaged_blocks_alone(&self, damage: &Damage<'_>) {
        let (mut store, space) = self.namespace("all-damaged", NODE_BITS - 2);
        let grants = store.acquire(&space, &self.ask(4, 10)).unwrap();
        for grant in &grants {
            store.release(&space, grant.block, grant.epoch).unwrap();
            damage(&space, grant.block);
        }
        exhausted(store.acquire(&space, &self.ask(1, 10)));
        assert_eq!(store.list(&space).unwrap().quarantined.len(), 4);
        // One after the other comes back.
        for grant in &grants {
            store.repair(&space, grant.block, (self.now)()).unwrap();
        }
        assert_eq!(store.list(&space).unwrap().blocks.len(), 4);
    }
}

#[track_caller]
fn quarantined<T: fmt::Debug>(result: Result<T, StoreError>) {
    match result {
        Err(StoreError::Fenced {
            fence: Fence::Quarantined { reason },
            ..
        }) => assert!(!reason.is_empty()),
        other => panic!("{other:?}, of a block that is damaged"),
    }
}

#[track_caller]
fn exhausted<T: fmt::Debug>(result: Result<T, StoreError>) -> Duration {
    match result {
        Err(StoreError::Exhausted { retry_after, .. }) => retry_after,
        other => panic!("{other:?}, where no block is left"),
    }
}
