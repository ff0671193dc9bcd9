//! Several renewals in one call.

use super::super::{Fence, Fingerprint, Floor, Grant, MAX_ACQUIRE, Namespace, Renew, StoreError};
use super::{Damage, NODE_BITS, Suite, fenced, limits, none_of, one};
use crate::layout::Layout;

/// The requests as a call wants them.
fn asked<'a>(wanted: &'a [(&'a Namespace, Renew)]) -> Vec<(&'a Namespace, &'a Renew)> {
    wanted
        .iter()
        .map(|(space, renew)| (*space, renew))
        .collect()
}

impl Suite<'_> {
    pub(super) fn renews_several_at_once(&self) {
        let (mut store, left) = self.namespace("several-1", 5);
        let (_, right) = self.namespace("several-2", 5);
        assert!(store.renew_all(&[]).is_empty());

        let known = store.list(&left).unwrap();
        let grants = store.acquire(&left, &self.ask(4, 10)).unwrap();
        let other = one(store.acquire(&right, &self.ask(1, 20)));
        let longer = |grant: &Grant, ticks| {
            let end = grant.ticks.end + ticks;
            Renew::new(grant, end, (self.now)())
        };
        store
            .release(&left, grants[0].block, grants[0].epoch)
            .unwrap();
        // Each by another number, out of order.
        let wanted = [
            (&left, longer(&grants[2], 5)),
            (&right, longer(&other, 6)),
            (&left, longer(&grants[0], 7)),
            (&left, longer(&grants[3], 0)),
            (&left, longer(&grants[1], 8)),
        ];
        let answers = store.renew_all(&asked(&wanted));
        assert_eq!(answers.len(), wanted.len());
        for (answer, (_, renew)) in answers.into_iter().zip(&wanted) {
            assert_eq!(answer.unwrap(), renew.new_end);
        }
        let listing = store.list(&left).unwrap();
        assert_eq!(listing.record, known.record);
        for (space, renew) in &wanted {
            let blocks = store.list(space).unwrap().blocks;
            let found = blocks.iter().find(|block| block.block == renew.block);
            let found = found.unwrap();
            assert_eq!((found.epoch, found.hwm_end), (renew.epoch, renew.new_end));
            assert!(!found.released, "{found:?}");
        }
        // The same again, as a copy of this process would send it.
        for (answer, (_, renew)) in store.renew_all(&asked(&wanted)).into_iter().zip(&wanted) {
            match answer {
                Ok(end) => assert_eq!((end, end), (renew.known_end, renew.new_end)),
                refused => fenced(
                    refused,
                    &Fence::End {
                        known: renew.known_end,
                        recorded: renew.new_end,
                    },
                ),
            }
        }
    }

    pub(super) fn renews_each_of_several_by_comparison(&self) {
        let (mut store, space) = self.namespace("several-compared", 5);
        let (_, below) = self.namespace("several-floor", 5);
        let missing = super::space("several-missing", 5);
        let now = (self.now)();
        let grants = store.acquire(&space, &self.ask(9, 10)).unwrap();
        let secret = Namespace::new(space.name(), space.layout(), Fingerprint::PLAIN).unwrap();
        let layout = Layout::TWITTER;
        let layout = Namespace::new(space.name(), &layout, space.fingerprint()).unwrap();
        let bits = space.clone().with_block_bits(6).unwrap();
        let low = one(store.acquire(&below, &self.ask(1, 10)));
        let floor = Floor::Tick(low.ticks.end + 1);
        let floor = store.raise_floor(&below, floor, now).unwrap();
        let end = grants[0].ticks.end;
        let longer = |change: fn(&mut Grant), index: usize| {
            let mut grant = grants[index].clone();
            change(&mut grant);
            Renew::new(&grant, grants[index].ticks.end + 5, now)
        };
        let mut never_granted = grants[3].clone();
        never_granted.block = none_of(&grants);
        let wanted = [
            (&space, longer(|_| {}, 0)),
            (&space, longer(|grant| grant.epoch = grant.epoch.next(), 1)),
            (&space, longer(|grant| grant.ticks.end -= 1, 2)),
            (
                &space,
                Renew::new(&never_granted, grants[3].ticks.end + 5, now),
            ),
            (&missing, longer(|_| {}, 3)),
            (&below, Renew::new(&low, low.ticks.end + 5, now)),
            (&space, Renew::new(&grants[4], grants[4].ticks.end - 1, now)),
            (&space, longer(|_| {}, 5)),
            (&secret, longer(|_| {}, 6)),
            (&layout, longer(|_| {}, 7)),
            (&bits, longer(|_| {}, 8)),
            // The block of the first again: it compares with the result of
            // that.
            (&space, longer(|_| {}, 0)),
        ];
        let answers = store.renew_all(&asked(&wanted));
        let mut answers = answers.into_iter();
        let mut next = || answers.next().unwrap();
        assert_eq!(next().unwrap(), end + 5);
        fenced(
            next(),
            &Fence::Epoch {
                held: grants[1].epoch.next(),
                recorded: grants[1].epoch,
            },
        );
        fenced(
            next(),
            &Fence::End {
                known: grants[2].ticks.end - 1,
                recorded: grants[2].ticks.end,
            },
        );
        fenced(next(), &Fence::NeverGranted);
        match next() {
            Err(StoreError::NotInitialised { namespace }) => {
                assert_eq!(namespace, missing.name());
            }
            other => panic!("{other:?}"),
        }
        fenced(
            next(),
            &Fence::Floor {
                known: low.ticks.end,
                floor,
            },
        );
        let error = next().unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
        assert_eq!(next().unwrap(), grants[5].ticks.end + 5);
        let error = next().unwrap_err();
        assert!(
            matches!(error, StoreError::FingerprintMismatch { .. }),
            "{error}"
        );
        for error in [next().unwrap_err(), next().unwrap_err()] {
            assert!(
                matches!(error, StoreError::LayoutMismatch { .. }),
                "{error}"
            );
        }
        fenced(
            next(),
            &Fence::End {
                known: end,
                recorded: end + 5,
            },
        );
        assert!(answers.next().is_none());
        for (index, grant) in grants.iter().enumerate() {
            let moved = if matches!(index, 0 | 5) { 5 } else { 0 };
            let blocks = store.list(&space).unwrap().blocks;
            let found = blocks.iter().find(|block| block.block == grant.block);
            assert_eq!(found.unwrap().hwm_end, grant.ticks.end + moved, "{index}");
        }
        assert_eq!(store.list(&below).unwrap().blocks[0].hwm_end, low.ticks.end);
    }

    pub(super) fn renews_more_than_a_step_holds(&self) {
        let (mut store, space) = self.namespace("several-steps", 5);
        let mut grants = store.acquire(&space, &self.ask(MAX_ACQUIRE, 10)).unwrap();
        grants.extend(store.acquire(&space, &self.ask(40, 10)).unwrap());
        let horizon = limits().horizon().as_secs();
        let before = self.tick(&space);
        let renew = |grant: &Grant| (&space, Renew::new(grant, u64::MAX, (self.now)()));
        let wanted: Vec<_> = grants.iter().map(renew).collect();
        let answers = store.renew_all(&asked(&wanted));
        assert_eq!(answers.len(), grants.len());
        let latest = self.tick(&space) + horizon + 2;
        let blocks = store.list(&space).unwrap().blocks;
        for (grant, answer) in grants.iter().zip(answers) {
            let end = answer.unwrap();
            assert!((before + horizon - 2..=latest).contains(&end), "{end}");
            let found = blocks.iter().find(|block| block.block == grant.block);
            assert_eq!(found.unwrap().hwm_end, end);
        }
    }

    pub(super) fn a_damaged_block_costs_no_other_renewal(&self, damage: &Damage<'_>) {
        let (mut store, space) = self.namespace("several-damaged", NODE_BITS - 2);
        let grants = store.acquire(&space, &self.ask(3, 60)).unwrap();
        damage(&space, grants[1].block);
        let renew = |grant: &Grant| {
            let end = grant.ticks.end + 5;
            (&space, Renew::new(grant, end, (self.now)()))
        };
        let wanted: Vec<_> = grants.iter().map(renew).collect();
        for (index, answer) in store.renew_all(&asked(&wanted)).into_iter().enumerate() {
            match (index, answer) {
                (1, Err(StoreError::Fenced { fence, .. })) => {
                    assert!(matches!(fence, Fence::Quarantined { .. }), "{fence:?}");
                }
                (0 | 2, answer) => assert_eq!(answer.unwrap(), grants[index].ticks.end + 5),
                other => panic!("{other:?}"),
            }
        }
    }
}
