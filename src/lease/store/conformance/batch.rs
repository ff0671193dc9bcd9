//! Renewals, one alone and several in one call.

use super::{Suite, by_end, by_epoch, fenced, limits, none_of, one, state_of};
use crate::layout::Layout;
use crate::lease::{Fence, Fingerprint, Floor, Grant, MAX_ACQUIRE, Namespace, Renew, StoreError};

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
        assert_eq!(store.list(&left).unwrap().record, known.record);
        for (space, renew) in &wanted {
            let found = state_of(&mut *store, space, renew.block);
            assert_eq!((found.epoch, found.hwm_end), (renew.epoch, renew.new_end));
            assert!(!found.released, "{found:?}");
        }
        // The same again, as a copy of this process would send it.
        for (answer, (_, renew)) in store.renew_all(&asked(&wanted)).into_iter().zip(&wanted) {
            match answer {
                Ok(end) => assert_eq!((end, end), (renew.known_end, renew.new_end)),
                refused => fenced(refused, &by_end(renew.known_end, renew.new_end)),
            }
        }
    }

    /// In one call, and one after the other.
    pub(super) fn renews_by_comparison(&self) {
        for names in [
            ["several-compared", "several-floor", "several-missing"],
            ["compared", "compared-floor", "compared-missing"],
        ] {
            self.compares_renewals(names);
        }
    }

    fn compares_renewals(&self, [compared, floor, missing]: [&str; 3]) {
        let (mut store, space) = self.namespace(compared, 5);
        let (_, below) = self.namespace(floor, 5);
        let missing = super::space(missing, 5);
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
            // Nothing to add is no error, and shows that the grant still stands.
            (&space, longer(|grant| grant.ticks.end += 5, 0)),
        ];
        let answers = match compared.starts_with("several") {
            true => store.renew_all(&asked(&wanted)),
            false => {
                let each = wanted.iter();
                each.map(|(space, renew)| store.renew(space, renew))
                    .collect()
            }
        };
        let mut answers = answers.into_iter();
        let mut next = || answers.next().unwrap();
        assert_eq!(next().unwrap(), end + 5);
        fenced(next(), &by_epoch(grants[1].epoch.next(), grants[1].epoch));
        fenced(
            next(),
            &by_end(grants[2].ticks.end - 1, grants[2].ticks.end),
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
        refused!(next(), Invalid);
        assert_eq!(next().unwrap(), grants[5].ticks.end + 5);
        refused!(next(), FingerprintMismatch);
        refused!(next(), LayoutMismatch);
        refused!(next(), LayoutMismatch);
        fenced(next(), &by_end(end, end + 5));
        assert_eq!(next().unwrap(), end + 5);
        assert!(answers.next().is_none());
        for (index, grant) in grants.iter().enumerate() {
            let moved = if matches!(index, 0 | 5) { 5 } else { 0 };
            let found = state_of(&mut *store, &space, grant.block);
            assert_eq!(found.hwm_end, grant.ticks.end + moved, "{index}");
        }
        assert_eq!(store.list(&below).unwrap().blocks[0].hwm_end, low.ticks.end);
    }

    /// One alone, and more than a step holds.
    pub(super) fn renews_up_to_the_horizon(&self) {
        let (mut store, space) = self.namespace("renew-horizon", 5);
        let mut grants = store.acquire(&space, &self.ask(MAX_ACQUIRE, 10)).unwrap();
        grants.extend(store.acquire(&space, &self.ask(40, 10)).unwrap());
        let horizon = limits().horizon().as_secs();
        let before = self.tick(&space);
        let renew = |grant: &Grant| (&space, Renew::new(grant, u64::MAX, (self.now)()));
        let wanted: Vec<_> = grants.iter().map(renew).collect();
        let (space, first) = &wanted[0];
        let mut answers = vec![store.renew(space, first)];
        answers.extend(store.renew_all(&asked(&wanted[1..])));
        assert_eq!(answers.len(), grants.len());
        let latest = self.tick(space) + horizon + 2;
        let blocks = store.list(space).unwrap().blocks;
        for (grant, answer) in grants.iter().zip(answers) {
            let end = answer.unwrap();
            assert!((before + horizon - 2..=latest).contains(&end), "{end}");
            let found = blocks.iter().find(|block| block.block == grant.block);
            assert_eq!(found.unwrap().hwm_end, end);
        }
    }
}
