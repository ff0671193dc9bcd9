//! Releases.

use super::{NODE_BITS, Suite, by_epoch, fenced, one};
use crate::lease::{Block, Fence, Renew, StoreError};

impl Suite<'_> {
    pub(super) fn keeps_the_mark_at_a_release(&self) {
        let (mut store, space) = self.namespace("release", NODE_BITS);
        let first = one(store.acquire(&space, &self.ask(1, 30)));
        fenced(
            store.release(&space, first.block, first.epoch.next()),
            &by_epoch(first.epoch.next(), first.epoch),
        );
        fenced(
            store.release(&space, Block::new(1), first.epoch),
            &Fence::NeverGranted,
        );
        refused!(store.acquire(&space, &self.ask(1, 30)), Exhausted);

        store.release(&space, first.block, first.epoch).unwrap();
        let known = store.list(&space).unwrap().blocks;
        assert_eq!(
            (known[0].hwm_end, known[0].released),
            (first.ticks.end, true)
        );

        let second = one(store.acquire(&space, &self.ask(1, 30)));
        assert_eq!(second.ticks.start, first.ticks.end);
        assert_eq!(second.epoch, first.epoch.next());
        let fence = by_epoch(first.epoch, second.epoch);
        let renew = Renew::new(&first, first.ticks.end + 5, (self.now)());
        fenced(store.renew(&space, &renew), &fence);
        fenced(store.release(&space, first.block, first.epoch), &fence);
        assert!(!store.list(&space).unwrap().blocks[0].released);

        // A holder that changes its mind takes the block back by renewing.
        store.release(&space, second.block, second.epoch).unwrap();
        let renew = Renew::new(&second, second.ticks.end + 5, (self.now)());
        store.renew(&space, &renew).unwrap();
        refused!(store.acquire(&space, &self.ask(1, 30)), Exhausted);
    }
}
