//! The same steps on this store and on the reference, one by one: every answer
//! and all that is kept must be the same.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use ringflake::lease::{
    Acquire, Block, Epoch, Floor, Grant, History, Holder, Incarnation, Init, LeaseStore,
    MemoryStore, Namespace, Renew, StoreError, StoreLimits,
};
use ringflake::{Clock, Layout, ManualClock};

use super::Place;
use crate::kit;

const START_MS: u64 = 1_760_000_000_000;
const HORIZON: u64 = 60;

#[derive(Clone, Debug)]
enum Step {
    Acquire {
        blocks: u32,
        length: u64,
        named: bool,
        off_ms: i64,
    },
    /// From so many ticks after the layout's epoch or before now on.
    Past {
        blocks: u32,
        start: Start,
        length: u64,
    },
    /// Of one of the grants, with an end known that may be wrong.
    Renew {
        pick: usize,
        wrong_by: i64,
        longer: u64,
    },
    Release {
        pick: usize,
        wrong_by: u64,
    },
    Floor {
        ahead: i64,
    },
    OverLostGrants,
    Pass {
        ms: i64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Start {
    Epoch(u64),
    Ago(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![4 => 1..HORIZON, 1 => Just(u64::MAX)];
    let seldom_wrong = prop_oneof![6 => Just(0_i64), 1 => -2_i64..3];
    let start = prop_oneof![
        (0..400_u64).prop_map(Start::Epoch),
        (0..60_u64).prop_map(Start::Ago),
    ];
    let pass = prop_oneof![6 => 0_i64..40_000, 1 => -100_000_i64..200_000];
    prop_oneof![
        6 => (1_u32..4, length, any::<bool>(), prop_oneof![8 => Just(0_i64), 1 => -9_000_i64..9_000])
            .prop_map(|(blocks, length, named, off_ms)| Step::Acquire { blocks, length, named, off_ms }),
        4 => (1_u32..4, start, prop_oneof![0..40_u64, Just(u64::MAX)])
            .prop_map(|(blocks, start, length)| Step::Past { blocks, start, length }),
        4 => (any::<usize>(), seldom_wrong, 0..2 * HORIZON)
            .prop_map(|(pick, wrong_by, longer)| Step::Renew { pick, wrong_by, longer }),
        3 => (any::<usize>(), prop_oneof![4 => Just(0_u64), 1 => 0_u64..2])
            .prop_map(|(pick, wrong_by)| Step::Release { pick, wrong_by }),
        1 => (-50_i64..80).prop_map(|ahead| Step::Floor { ahead }),
        1 => Just(Step::OverLostGrants),
        4 => pass.prop_map(|ms| Step::Pass { ms }),
    ]
}

struct Both<'a> {
    stores: [&'a mut dyn LeaseStore; 2],
    space: Namespace,
    clock: ManualClock,
    /// One that was never given, and all that were.
    grants: Vec<Grant>,
}

impl Both<'_> {
    /// Asks both, and compares the answers.
    fn ask<T: std::fmt::Debug>(
        &mut self,
        ask: impl Fn(&mut dyn LeaseStore, &Namespace) -> Result<T, StoreError>,
    ) -> Option<T> {
        let space = self.space.clone();
        let [one, other] = self.stores.each_mut().map(|store| ask(*store, &space));
        // Errors can't be compared, but show all that they hold. The file does not keep where a
        // grant began.
        let shown = |answer: &Result<T, StoreError>| {
            let text = format!("{answer:?}");
            let mut parts = text.split("start: ");
            let first = parts.next().unwrap_or_default().to_owned();
            parts.fold(first, |shown, part| {
                let rest = part.trim_start_matches("None").trim_start_matches("Some(");
                let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
                shown + rest.trim_start_matches(')')
            })
        };
        assert_eq!(shown(&one), shown(&other));
        one.ok()
    }

    fn take(&mut self, step: &Step) {
        let now = self.clock.unix_ms();
        match *step {
            Step::Acquire {
                blocks,
                length,
                named,
                off_ms,
            } => {
                let mut ask = Acquire::new(blocks, length, now.saturating_add_signed(off_ms));
                if named {
                    ask = ask.held_by(Holder::new("host", "1"));
                }
                let granted = self.ask(|store, space| store.acquire(space, &ask));
                self.grants.extend(granted.into_iter().flatten());
            }
            Step::Past {
                blocks,
                start,
                length,
            } => {
                let tick = Layout::RANDFLAKE.tick_at(now).unwrap();
                let start = match start {
                    Start::Epoch(start) => start,
                    Start::Ago(ago) => tick - ago,
                };
                let past = start..start.saturating_add(length);
                let ask = Acquire::past(blocks, past, now);
                let granted = self.ask(|store, space| store.acquire(space, &ask));
                self.grants.extend(granted.into_iter().flatten());
            }
            Step::Renew {
                pick,
                wrong_by,
                longer,
            } => {
                let index = pick % self.grants.len();
                let mut grant = self.grants[index].clone();
                grant.ticks.end = grant.ticks.end.saturating_add_signed(wrong_by);
                let renew = Renew::new(&grant, grant.ticks.end.saturating_add(longer), now);
                if let Some(end) = self.ask(|store, space| store.renew(space, &renew)) {
                    self.grants[index].ticks.end = end;
                }
            }
            Step::Release { pick, wrong_by } => {
                let grant = self.grants[pick % self.grants.len()].clone();
                let epoch = Epoch::new(grant.epoch.get() + wrong_by);
                self.ask(|store, space| store.release(space, grant.block, epoch));
            }
            Step::Floor { ahead } => {
                let tick = Layout::RANDFLAKE.tick_at(now).unwrap();
                let floor = Floor::Tick(tick.saturating_add_signed(ahead));
                self.ask(|store, space| store.raise_floor(space, floor, now));
            }
            Step::OverLostGrants => {
                self.ask(|store, space| store.raise_floor(space, Floor::OverLostGrants, now));
            }
            Step::Pass { ms } => self.clock.set(now.saturating_add_signed(ms)),
        }
        self.ask(|store, space| store.list(space));
        let counts = self.ask(|store, space| {
            let report = store.check(space, now)?;
            Ok((report.granted_blocks, report.held_blocks, report.skew_ms()))
        });
        assert!(counts.is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_store_and_the_reference_give_the_same_answers(
        steps in prop::collection::vec(step(), 1..60),
        history in prop_oneof![Just(History::New), Just(History::Unused)],
    ) {
        let place = Place::in_memory();
        let clock = ManualClock::new(START_MS);
        let space = kit::space("test").with_block_bits(15).unwrap();
        let limits = StoreLimits::default()
            .with_horizon(Duration::from_secs(HORIZON))
            .with_failover(Duration::from_secs(14));
        let init = Init::new(history, START_MS).with_limits(limits);

        let mut file = place.store_at(&clock);
        let record = file.init(&space, &init).unwrap();
        let mut memory = MemoryStore::new(Arc::new(clock.clone()));
        memory.set_incarnation(Incarnation::new(record.incarnation.as_str()));
        assert_eq!(memory.init(&space, &init).unwrap(), record);

        let mut both = Both {
            stores: [&mut file, &mut memory],
            space,
            clock,
            grants: vec![Grant::new(Block::new(3), Epoch::FIRST, 0..1)],
        };
        for step in &steps {
            both.take(step);
        }
    }
}
