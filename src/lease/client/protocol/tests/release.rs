//! Invalidation and release.

use super::*;

#[test]
fn while_a_reply_is_awaited_the_next_end_is() {
    let mut rig = Rig::holding(2);
    rig.manager.width.target = 1;
    rig.run(secs(100));
    let request = rig.intercept();
    let status = rig.manager.status().grants;
    let left = |state| {
        let mut ends = status.iter().filter(|grant| grant.state == state);
        let end = ends.next().unwrap().grant.ticks.end;
        Duration::from_millis(LAYOUT.tick_start_unix_ms(end) - rig.clock.unix_ms())
    };
    let (held, lapsing) = (left(GrantState::Held), left(GrantState::Lapsing));
    assert!(lapsing < held);
    assert_eq!(rig.waits(), lapsing);
    rig.advance(lapsing);
    rig.waits();
    assert_eq!(rig.states(), [GrantState::Held], "the other is closed");
    rig.send(&request);
}

#[test]
fn invalidate_gives_up_everything_at_once() {
    let mut rig = Rig::holding(2);
    let known = rig.opened();
    let request = rig.intercept();
    let revoked = rig.manager.invalidate();
    let expected: Vec<_> = known.iter().cloned().map(Change::Revoked).collect();
    assert_eq!(revoked, expected);
    assert!(rig.states().is_empty());

    // The reply to a request in flight is dropped.
    rig.changes.clear();
    rig.send(&request);
    assert!(rig.changes.is_empty());
    let asked = rig.settle();
    assert_eq!(acquisition(&asked[0]).blocks, 2);
    assert_eq!(asked.len(), 1);
    for grant in rig.opened() {
        assert!(!known.iter().any(|k| k.block == grant.block));
    }
}

#[test]
fn release_closes_first_and_then_asks_the_store() {
    let mut rig = Rig::holding(3);
    let grants = rig.opened();
    rig.manager.release();
    rig.changes.clear();
    let first = rig.asked();
    let expected: Vec<_> = grants.iter().cloned().map(Change::Closed).collect();
    assert_eq!(rig.changes, expected);
    rig.send(&first);
    rig.settle();
    assert_eq!(rig.next(), Step::Done);
    let listing = rig.store.list(&rig.space).unwrap();
    assert!(listing.blocks.iter().all(|block| block.released));
    assert_eq!(listing.blocks.len(), 3);
    assert_eq!(rig.next(), Step::Done);
    assert!(rig.changes.len() == 3, "{:?}", rig.changes);
    assert!(!rig.has_expired());
}

#[test]
fn release_spares_blocks_that_may_be_anothers() {
    let mut rig = Rig::holding(3);
    let fenced_one = renewal(&rig.intercept()).block;
    rig.answer(Answer::Renewed(Err(fenced(fenced_one))));
    let mut unsure_one = None;
    rig.run_with(secs(100), |rig, request| match request {
        Request::Renew(renew) if unsure_one.is_none() => {
            unsure_one = Some(renew.block);
            rig.answer(Answer::Renewed(Err(ambiguous())));
        }
        other => rig.send(other),
    });
    rig.manager.release();
    let released: Vec<_> = rig
        .settle()
        .into_iter()
        .map(|request| match request {
            Request::Release { block, .. } => block,
            other => panic!("{other:?}"),
        })
        .collect();
    // Two of the three, one of them in doubt only as to its end; and two that
    // replaced those lost.
    assert_eq!(released.len(), 4);
    assert!(released.contains(&unsure_one.unwrap()));
    assert!(!released.contains(&fenced_one));
}

#[test]
fn release_gives_up_where_the_store_fails() {
    for failure in [unavailable, ambiguous] {
        let mut rig = Rig::holding(3);
        rig.manager.release();
        rig.asked();
        rig.answer(Answer::Released(Err(failure())));
        assert_eq!(rig.next(), Step::Done);
    }
}

#[test]
fn invalidate_drops_an_acquisition_that_is_under_way() {
    let mut rig = Rig::new(LeasePlan::new(1));
    let request = rig.asked();
    assert!(rig.manager.invalidate().is_empty());
    rig.send(&request);
    assert!(rig.changes.is_empty());
    rig.settle();
    assert_eq!(rig.opened()[0].block, Block::new(1));
}

#[test]
fn release_includes_what_was_under_way() {
    let mut rig = Rig::new(LeasePlan::new(2));
    let request = rig.asked();
    rig.manager.release();
    rig.send(&request);
    assert!(rig.changes.is_empty(), "{:?}", rig.changes);
    assert_eq!(rig.settle().len(), 2);
    assert_eq!(rig.next(), Step::Done);
}
