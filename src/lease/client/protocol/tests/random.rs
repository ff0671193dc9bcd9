//! Copies of a manager, and random orders of all that can happen.

use proptest::prelude::*;

use super::*;

#[test]
fn both_copies_renew_and_one_is_fenced() {
    let mut rig = Rig::holding(1);
    let known = rig.opened()[0].clone();
    let mut copy = rig.manager.clone();
    let request = rig.intercept();
    rig.send(&request);
    let (_, step) = copy.next(rig.at(), IDLE);
    let Step::Ask(request) = step else {
        panic!("{step:?}")
    };
    assert_eq!(renewal(&request).known_end, known.ticks.end);
    let answer = request.send(&mut rig.store, &rig.space);
    assert!(copy.answer(rig.at(), answer).is_empty());
    assert_eq!(copy.status().grants[0].state, GrantState::Draining);
    assert_eq!(copy.status().grants[0].grant, known);
    assert_eq!(rig.states(), [GrantState::Held]);
}

/// What a random driver does next.
#[derive(Clone, Debug)]
enum Move {
    Advance(u64),
    /// The wall clock alone.
    Step(i64),
    /// The monotonic clock alone, to any time.
    Elapsed(u64),
    Next,
    Carry,
    Fail(usize),
    Forge(u64, u64),
    Demand(u64, usize),
    Invalidate,
    Release,
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        8 => (0..100_000_u64).prop_map(Move::Advance),
        1 => prop_oneof![-10_000_000..10_000_000_i64, Just(i64::MIN), Just(i64::MAX)]
            .prop_map(Move::Step),
        1 => any::<u64>().prop_map(Move::Elapsed),
        16 => Just(Move::Next),
        12 => Just(Move::Carry),
        6 => (0..20_usize).prop_map(Move::Fail),
        1 => (0..9_u64, any::<u64>()).prop_map(|(block, end)| Move::Forge(block, end)),
        2 => (0..1_000_u64, 0..9_usize).prop_map(|(s, room)| Move::Demand(s, room)),
        1 => Just(Move::Invalidate),
        1 => Just(Move::Release),
    ]
}

/// The lanes that a generator would have after these changes.
fn apply(lanes: &mut Vec<Grant>, changes: Vec<Change>) {
    let position = |lanes: &[Grant], grant: &Grant| {
        let same =
            |lane: &Grant| (lane.block, lane.ticks.start) == (grant.block, grant.ticks.start);
        let mut found = (0..lanes.len()).filter(|index| same(&lanes[*index]));
        let first = found.next().expect("a change of a grant that is open");
        assert_eq!(found.next(), None, "the same grant twice");
        first
    };
    for change in changes {
        match change {
            Change::Opened(grant) => {
                assert!(!grant.ticks.is_empty());
                lanes.push(grant);
            }
            Change::Extended(grant) => {
                let at = position(lanes, &grant);
                assert!(grant.ticks.end > lanes[at].ticks.end, "an end moved back");
                lanes[at] = grant;
            }
            Change::Closed(grant) | Change::Revoked(grant) => {
                let at = position(lanes, &grant);
                assert_eq!(lanes.remove(at), grant);
            }
            Change::Expired { .. } | Change::Revived => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever the driver, the store and the clocks do: requests are valid and
    /// come one at a time, changes add up to what the status says, and nothing
    /// panics.
    #[test]
    fn any_order_of_anything(
        seed in any::<u64>(),
        moves in prop::collection::vec(moves(), 1..300),
    ) {
        let mut rig = Rig::with(LeasePlan::new(2), 14, StoreLimits::default());
        rig.manager = Manager::new(rig.space.clone(), LeasePlan::new(2), seed).unwrap();
        let mut lanes = Vec::new();
        let mut flight: Option<Request> = None;
        for step in moves {
            match step {
                Move::Advance(ms) => rig.advance(Duration::from_millis(ms)),
                Move::Step(ms) => {
                    let now = rig.clock.unix_ms();
                    rig.clock.set(now.saturating_add_signed(ms));
                }
                Move::Elapsed(ms) => rig.elapsed = Duration::from_millis(ms),
                Move::Next => {
                    let (changes, step) = rig.manager.next(rig.at(), rig.demand);
                    apply(&mut lanes, changes);
                    match step {
                        Step::Ask(request) => {
                            prop_assert!(flight.is_none());
                            match &request {
                                Request::Acquire(acquire) => {
                                    acquire.validate().unwrap();
                                    prop_assert!(acquire.blocks as usize <= rig.demand.room);
                                }
                                Request::Renew(renew) => {
                                    renew.validate().unwrap();
                                    let known = |lane: &Grant| {
                                        lane.block == renew.block && lane.ticks.end == renew.known_end
                                    };
                                    prop_assert!(lanes.iter().any(known));
                                }
                                _ => {}
                            }
                            flight = Some(request);
                        }
                        Step::Wait(wait) => prop_assert!(wait >= Duration::from_millis(1)),
                        Step::Done => {
                            prop_assert!(lanes.is_empty());
                        }
                    }
                }
                Move::Carry => {
                    if let Some(request) = flight.take() {
                        let answer = request.send(&mut rig.store, &rig.space);
                        apply(&mut lanes, rig.manager.answer(rig.at(), answer));
                    }
                }
                Move::Fail(pick) => {
                    let mut errors = refusals();
                    errors.extend([unavailable(), ambiguous(), fenced(Block::new(0))]);
                    let error = errors.swap_remove(pick % errors.len());
                    let request = flight.take().unwrap_or(Request::Check { now_unix_ms: 0 });
                    let answer = request.failed(error);
                    apply(&mut lanes, rig.manager.answer(rig.at(), answer));
                }
                Move::Forge(block, end) => {
                    let answer = match flight.take() {
                        Some(Request::Acquire(_)) => {
                            let grant = Grant::new(Block::new(block), Epoch::FIRST, end / 2..end);
                            Answer::Acquired(Ok(vec![grant; 3]))
                        }
                        _ => Answer::Renewed(Ok(end)),
                    };
                    apply(&mut lanes, rig.manager.answer(rig.at(), answer));
                }
                Move::Demand(borrowed, room) => {
                    rig.demand = Demand { borrowed: secs(borrowed), room, ..IDLE };
                }
                Move::Invalidate => {
                    apply(&mut lanes, rig.manager.invalidate());
                    prop_assert!(lanes.is_empty());
                }
                Move::Release => rig.manager.release(),
            }
            let status = rig.manager.status();
            let known: Vec<_> = status.grants.into_iter().map(|g| g.grant).collect();
            prop_assert_eq!(&known, &lanes);
        }
    }
}
