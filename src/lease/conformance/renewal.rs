//! Renewals and releases.

use super::super::{Block, Fence, Renew, StoreError};
use super::{NODE_BITS, Suite, fenced, limits, one};
impl Suite<'_> {
    pub(super) fn renews_by_comparison(&self) {
        let (mut store, space) = self.namespace("renew", 5);
        let now = (self.now)();
        let mut grant = one(store.acquire(&space, &self.ask(1, 10)));
        let end = grant.ticks.end;

        let mut wrong_epoch = grant.clone();
        wrong_epoch.epoch = grant.epoch.next();
        let mut wrong_end = grant.clone();
        wrong_end.ticks.end = end - 1;
        let mut wrong_block = grant.clone();
        wrong_block.block = Block::new(space.blocks() - 1);
        for (grant, expected) in [
            (
                wrong_epoch,
                Fence::Epoch {
                    held: grant.epoch.next(),
                    recorded: grant.epoch,
                },
            ),
            (
                wrong_end,
                Fence::End {
                    known: end - 1,
                    recorded: end,
                },
            ),
            (wrong_block, Fence::NeverGranted),
        ] {
            let renew = Renew::new(&grant, end + 5, now);
            fenced(store.renew(&space, &renew), &expected);
        }
        assert_eq!(store.list(&space).unwrap().blocks[0].hwm_end, end);

        let renew = Renew::new(&grant, end + 5, now);
        assert_eq!(store.renew(&space, &renew).unwrap(), end + 5);
        assert_eq!(store.list(&space).unwrap().blocks[0].hwm_end, end + 5);
        // The same request again, as a copy of this process would send it.
        fenced(
            store.renew(&space, &renew),
            &Fence::End {
                known: end,
                recorded: end + 5,
            },
        );
        // Nothing to add is no error, and shows that the grant still stands.
        grant.ticks.end = end + 5;
        let renew = Renew::new(&grant, end + 5, now);
        assert_eq!(store.renew(&space, &renew).unwrap(), end + 5);
    }

    pub(super) fn renews_up_to_the_horizon(&self) {
        let (mut store, space) = self.namespace("renew-horizon", 5);
        let mut grant = one(store.acquire(&space, &self.ask(1, 10)));
        let horizon = limits().horizon().as_secs();
        let before = self.tick(&space);
        let renew = Renew::new(&grant, u64::MAX, (self.now)());
        grant.ticks.end = store.renew(&space, &renew).unwrap();
        assert!(grant.ticks.end >= before + horizon - 2, "{grant}");
        assert!(
            grant.ticks.end <= self.tick(&space) + horizon + 2,
            "{grant}"
        );
        assert_eq!(
            store.list(&space).unwrap().blocks[0].hwm_end,
            grant.ticks.end
        );
    }

    pub(super) fn keeps_the_mark_at_a_release(&self) {
        let (mut store, space) = self.namespace("release", NODE_BITS);
        let first = one(store.acquire(&space, &self.ask(1, 30)));
        fenced(
            store.release(&space, first.block, first.epoch.next()),
            &Fence::Epoch {
                held: first.epoch.next(),
                recorded: first.epoch,
            },
        );
        fenced(
            store.release(&space, Block::new(1), first.epoch),
            &Fence::NeverGranted,
        );
        let error = store.acquire(&space, &self.ask(1, 30)).unwrap_err();
        assert!(matches!(error, StoreError::Exhausted { .. }), "{error}");

        store.release(&space, first.block, first.epoch).unwrap();
        let known = store.list(&space).unwrap().blocks;
        assert_eq!(
            (known[0].hwm_end, known[0].released),
            (first.ticks.end, true)
        );

        let second = one(store.acquire(&space, &self.ask(1, 30)));
        assert_eq!(second.ticks.start, first.ticks.end);
        assert_eq!(second.epoch, first.epoch.next());
        let fence = Fence::Epoch {
            held: first.epoch,
            recorded: second.epoch,
        };
        let renew = Renew::new(&first, first.ticks.end + 5, (self.now)());
        fenced(store.renew(&space, &renew), &fence);
        fenced(store.release(&space, first.block, first.epoch), &fence);
        assert!(!store.list(&space).unwrap().blocks[0].released);

        // A holder that changes its mind takes the block back by renewing.
        store.release(&space, second.block, second.epoch).unwrap();
        let renew = Renew::new(&second, second.ticks.end + 5, (self.now)());
        store.renew(&space, &renew).unwrap();
        let error = store.acquire(&space, &self.ask(1, 30)).unwrap_err();
        assert!(matches!(error, StoreError::Exhausted { .. }), "{error}");
    }
}
