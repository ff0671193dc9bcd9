//! How often requests went how.

use super::*;

fn counts(rig: &Rig) -> LeaseCounts {
    rig.manager.status().counts
}

#[test]
fn each_renewal_is_counted_by_its_outcome() {
    let denied = || StoreError::Denied {
        source: "password".into(),
    };
    let corrupt = || StoreError::Corrupt {
        detail: "no number".to_owned(),
        source: None,
    };
    let mut rig = Rig::holding(8);
    assert_eq!(counts(&rig), LeaseCounts::default());
    let answers: [fn(&Renew) -> Answer; 6] = [
        |renew| Answer::Renewed(Ok(renew.new_end)),
        |renew| Answer::Renewed(Err(fenced(renew.block))),
        |_| Answer::Renewed(Err(unavailable())),
        |_| Answer::Renewed(Err(ambiguous())),
        // Of another kind.
        |_| Answer::Released(Ok(())),
        |_| Answer::Checked(Ok(Some(40))),
    ];
    for (nth, answer) in answers.iter().enumerate() {
        for _ in 0..=nth {
            let renew = next_renewal(&mut rig);
            rig.answer(answer(&renew));
        }
    }
    for error in [denied(), corrupt(), corrupt()] {
        next_renewal(&mut rig);
        rig.answer(Answer::Renewed(Err(error)));
    }
    let expected = RenewalCounts {
        renewed: 1,
        fenced: 2,
        unavailable: 3,
        ambiguous: 4 + 5 + 6,
        denied: 1,
        other: 2,
    };
    let counts = counts(&rig);
    assert_eq!(counts.renewals, expected);
    let epoch = FenceCounts {
        epoch: 2,
        ..FenceCounts::default()
    };
    assert_eq!(counts.fenced, epoch);
    assert_eq!(counts.incarnation_changes, 0);
    assert_eq!(rig.manager.status().clock, None, "nothing said its time");
}

/// The next renewal, where the store answers everything else.
fn next_renewal(rig: &mut Rig) -> Renew {
    loop {
        match rig.intercept() {
            Request::Renew(renew) => return renew,
            other => {
                let answer = match other.send(&mut rig.store, &rig.space) {
                    Answer::Checked(Ok(_)) => Answer::Checked(Ok(None)),
                    answer => answer,
                };
                rig.answer(answer);
            }
        }
    }
}

#[test]
fn each_fence_is_counted_by_the_comparison_that_failed() {
    let fences = [
        Fence::NeverGranted,
        Fence::Epoch {
            held: Epoch::FIRST,
            recorded: Epoch::FIRST,
        },
        Fence::End {
            known: 1,
            recorded: 2,
        },
        Fence::Floor { known: 1, floor: 2 },
        Fence::Incarnation,
        Fence::Upstream,
        Fence::Quarantined {
            reason: "it is torn".to_owned(),
        },
    ];
    let mut rig = Rig::holding(2);
    for (nth, fence) in fences.iter().enumerate() {
        for _ in 0..=nth {
            let block = next_renewal(&mut rig).block;
            let fence = fence.clone();
            rig.answer(Answer::Renewed(Err(StoreError::Fenced { block, fence })));
        }
    }
    let expected = FenceCounts {
        never_granted: 1,
        epoch: 2,
        end: 3,
        floor: 4,
        incarnation: 5,
        upstream: 6,
        quarantined: 7,
    };
    assert_eq!(counts(&rig).fenced, expected);
    assert_eq!(counts(&rig).renewals.fenced, 28);
}

#[test]
fn a_change_of_the_incarnation_counts_once_however_many_it_fences() {
    let mut rig = Rig::holding(3);
    for changes in 1..=2 {
        rig.store
            .set_incarnation(Incarnation::new(format!("restored {changes}")));
        // The fenced ones, then a lease duration for those in their place.
        rig.run(secs(3 * LEASE_DURATION));
        let counts = counts(&rig);
        // By the floor, once another was acquired.
        let fenced = counts.fenced.incarnation + counts.fenced.floor;
        assert_eq!(fenced, 3 * changes);
        assert!(counts.fenced.incarnation >= 2 * changes, "{counts:?}");
        assert_eq!(counts.incarnation_changes, changes);
    }
}

#[test]
fn a_lost_history_is_counted_at_each_answer_that_says_so() {
    let mut rig = Rig::holding(2);
    let snapshot = rig.store.snapshot();
    rig.run(secs(200));
    assert_eq!(counts(&rig).history_lost, 0);
    rig.store.restore(&snapshot);
    rig.run(secs(200));
    assert_eq!(counts(&rig).history_lost, 1);
}

#[test]
fn the_clocks_are_compared_where_the_store_says_its_time() {
    let mut rig = Rig::new(LeasePlan::new(1));
    rig.asked();
    let skew = StoreError::ClockSkew {
        store_unix_ms: 5_000,
        client_unix_ms: 12_000,
        limit: secs(5),
    };
    rig.answer(Answer::Acquired(Err(skew)));
    let offset = |rig: &Rig| rig.manager.status().clock.unwrap();
    let measured_unix_ms = rig.clock.unix_ms();
    let expected = ClockOffset {
        store_ahead_ms: -7_000,
        measured_unix_ms,
    };
    assert_eq!(offset(&rig), expected);

    // After a lost reply it asks for the state, which has the store's time.
    let mut rig = Rig::holding(1);
    rig.intercept();
    rig.answer(Answer::Renewed(Err(ambiguous())));
    let Request::Check { now_unix_ms } = rig.intercept() else {
        panic!("not asked");
    };
    let check = Request::Check {
        now_unix_ms: now_unix_ms - 300,
    };
    rig.send(&check);
    assert_eq!(offset(&rig).store_ahead_ms, 300);
}
