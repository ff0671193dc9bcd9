//! Requests that fail, or whose outcome is unknown.

use super::*;

#[test]
fn an_ambiguous_renewal_gives_up_the_block_and_risks_no_other() {
    let mut rig = Rig::holding(4);
    let lost = renewal(&rig.intercept()).block;
    rig.answer(Answer::Renewed(Err(ambiguous())));

    // Until a reply arrives, it sends no request whose loss would cost a block.
    let asked = rig.run_with(secs(300), |rig, _| {
        rig.answer(Answer::Checked(Err(ambiguous())));
    });
    assert!((10..30).contains(&asked.len()), "{}", asked.len());
    assert!(
        asked
            .iter()
            .all(|(_, request)| matches!(request, Request::Check { .. }))
    );
    assert_eq!(rig.states().len(), 4);

    let asked = rig.run(secs(60));
    assert!(matches!(asked[0].1, Request::Check { .. }));
    assert_eq!(acquisitions(&asked).len(), 1);
    let renewed: Vec<_> = asked
        .iter()
        .filter_map(|(_, request)| match request {
            Request::Renew(renew) => Some(renew.block),
            _ => None,
        })
        .collect();
    assert_eq!(renewed.len(), 3);
    assert!(!renewed.contains(&lost));
}

#[test]
fn an_ambiguous_acquisition_grants_nothing_and_is_not_repeated() {
    let mut rig = Rig::new(LeasePlan::new(2));
    let first = rig.asked();
    // It was carried out, and nobody learned of it.
    let _ = first.send(&mut rig.store, &rig.space);
    rig.answer(Answer::Acquired(Err(ambiguous())));
    assert!(rig.changes.is_empty());
    let asked = rig.run(secs(10));
    assert!(matches!(asked[0].1, Request::Check { .. }));
    assert_eq!(acquisition(&asked[1].1).blocks, 2);
    let blocks: Vec<_> = rig.opened().iter().map(|g| g.block.index()).collect();
    assert_eq!(blocks, [2, 3]);
}

#[test]
fn a_store_that_is_overrun_is_asked_less_and_less() {
    let mut rig = Rig::new(LeasePlan::new(1));
    let asked = rig.run_with(secs(1200), |rig, request| match request {
        Request::Check { .. } => rig.send(request),
        _ => {
            rig.advance(secs(5));
            rig.answer(Answer::Acquired(Err(ambiguous())));
        }
    });
    let wanted = acquisitions(&asked);
    assert!((15..60).contains(&wanted.len()), "{}", wanted.len());
    let gaps = wanted.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let longest = gaps.max().unwrap();
    assert!(longest > secs(40) && longest < secs(66), "{longest:?}");
}

#[test]
fn an_answer_of_another_kind_counts_as_lost() {
    let mut rig = Rig::holding(1);
    rig.intercept();
    rig.answer(Answer::Checked(Ok(())));
    assert_eq!(rig.states(), [GrantState::Draining]);
    assert!(matches!(rig.intercept(), Request::Check { .. }));
}

#[test]
fn an_answer_to_no_request_is_dropped() {
    let mut rig = Rig::holding(1);
    let mut grant = rig.opened()[0].clone();
    grant.block = Block::new(99);
    rig.answer(Answer::Acquired(Ok(vec![grant])));
    assert_eq!(rig.states().len(), 1);
    rig.answer(Answer::Renewed(Ok(START + 10_000)));
    assert_eq!(
        rig.manager.status().grants[0].grant.ticks.end,
        START + LEASE_DURATION + 1
    );
}

#[test]
fn an_outage_costs_nothing_while_the_leases_last() {
    let mut rig = Rig::holding(3);
    let down = rig.clock.unix_ms();
    let asked = rig.run_with(secs(400), |rig, request| {
        renewal(request);
        rig.answer(Answer::Renewed(Err(unavailable())));
    });
    // One backoff for all three; the first retries come fast.
    assert!((20..80).contains(&asked.len()), "{}", asked.len());
    let gaps: Vec<_> = asked.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(gaps[..5].iter().sum::<Duration>() < secs(4), "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= secs(30)), "{gaps:?}");
    let health = rig.manager.status().health;
    let since = health.failing_since_unix_ms.unwrap() - down;
    assert!((60_000..=90_000).contains(&since), "{since}");
    assert!(matches!(
        *health.last_error.unwrap(),
        StoreError::Unavailable { .. }
    ));
    assert_eq!(rig.states(), [GrantState::Held; 3]);

    let asked = rig.run(secs(15));
    assert_eq!(asked.len(), 3);
    assert!(rig.last_error().is_none());
    assert!(!rig.has_expired());
}

#[test]
fn expires_once_the_last_end_passes_and_revives_with_a_renewal() {
    let mut rig = Rig::holding(2);
    let end = LAYOUT.tick_start_unix_ms(START + LEASE_DURATION + 1);
    let asked = rig.run_with(secs(2 * LEASE_DURATION), |rig, request| {
        renewal(request);
        rig.answer(Answer::Renewed(Err(unavailable())));
    });
    // The less is left, the more often it asks.
    let late = asked.windows(2).rev().take(200);
    assert!(late.clone().all(|pair| pair[1].0 - pair[0].0 <= secs(5)));
    assert_eq!(late.count(), 200);
    let expired = Change::Expired { since_unix_ms: end };
    assert_eq!(rig.changes.last(), Some(&expired));
    assert_eq!(rig.manager.status().expired_since_unix_ms, Some(end));
    let count = |rig: &Rig, change: &Change| rig.changes.iter().filter(|c| *c == change).count();
    assert_eq!(count(&rig, &expired), 1);

    rig.run(secs(10));
    assert_eq!(count(&rig, &Change::Revived), 1);
    assert_eq!(rig.manager.status().expired_since_unix_ms, None);
    assert_eq!(rig.opened().len(), 2, "both could still be renewed");
}

#[test]
fn expiry_is_reported_to_the_millisecond() {
    let mut rig = Rig::holding(1);
    rig.intercept();
    let end = LAYOUT.tick_start_unix_ms(START + LEASE_DURATION + 1);
    rig.clock.set(end - 1);
    assert_eq!(rig.waits(), Duration::from_millis(1));
    assert_eq!(rig.changes.len(), 1);
    rig.clock.set(end);
    rig.waits();
    let expired = Change::Expired { since_unix_ms: end };
    assert_eq!(rig.changes.last(), Some(&expired));

    // Noticed late, it is reported as of then.
    let mut rig = Rig::holding(1);
    rig.intercept();
    rig.clock.set(end + 100_000);
    rig.waits();
    assert_eq!(rig.changes.last(), Some(&expired));
}

#[test]
fn refusals_keep_the_grants_and_are_retried_most_slowly() {
    for pick in 0..refusals().len() {
        let refusal = || refusals().swap_remove(pick);
        let kind = refusal().to_string();
        let mut rig = Rig::new(LeasePlan::new(1));
        let asked = rig.run_with(secs(100), |rig, _| {
            rig.answer(Answer::Acquired(Err(refusal())));
        });
        assert!((20..=41).contains(&asked.len()), "{kind}: {}", asked.len());
        assert_eq!(rig.last_error().unwrap().to_string(), kind);
        rig.run(secs(10));
        assert_eq!(rig.states(), [GrantState::Held], "{kind}");
        assert!(rig.last_error().is_none());

        rig.advance(secs(100));
        let asked = rig.run_with(secs(100), |rig, _| {
            rig.answer(Answer::Renewed(Err(refusal())));
        });
        assert!((20..=41).contains(&asked.len()), "{kind}: {}", asked.len());
        assert_eq!(rig.last_error().unwrap().to_string(), kind);
        assert_eq!(rig.states(), [GrantState::Held], "{kind}");
        rig.run(secs(10));
        assert!(rig.last_error().is_none());
        let left = rig.manager.status().grants[0].grant.ticks.end - rig.tick();
        assert!(left > LEASE_DURATION - 20, "{kind}");
    }
}

#[test]
fn one_corrupt_block_does_not_hold_up_the_others() {
    let mut rig = Rig::holding(3);
    let corrupt = rig.opened()[1].block;
    rig.run_with(secs(500), |rig, request| {
        if renewal(request).block == corrupt {
            rig.answer(Answer::Renewed(Err(refusals().swap_remove(4))));
        } else {
            rig.send(request);
        }
    });
    for status in rig.manager.status().grants {
        let topped_up = status.grant.ticks.end >= rig.tick() + LEASE_DURATION - 90;
        assert_eq!(topped_up, status.grant.block != corrupt, "{}", status.grant);
    }
}

#[test]
fn exhausted_is_a_failure_only_while_nothing_is_in_force() {
    // Four blocks, of which another holds two.
    let mut rig = Rig::with(LeasePlan::new(3), 15, StoreLimits::default());
    rig.acquire_beside(2, 60).unwrap();
    let request = rig.asked();
    rig.send(&request);
    // Two were had at once, the third is asked for without hurry.
    assert_eq!(rig.states().len(), 2);
    assert!(rig.waits() >= Duration::from_millis(2500));
    let asked = rig.run(secs(30));
    let wanted = acquisitions(&asked);
    assert!(wanted.iter().all(|(_, blocks)| *blocks == 1));
    assert!((1..=2).contains(&wanted.len()), "{wanted:?}");
    assert!(rig.last_error().is_none());
    assert_eq!(rig.manager.status().target, 3);
    rig.run(secs(200));
    assert_eq!(rig.states().len(), 3);

    let mut rig = Rig::with(LeasePlan::new(1), 17, StoreLimits::default());
    rig.acquire_beside(1, 40).unwrap();
    let asked = rig.run(secs(30));
    assert_eq!(asked.len(), 1);
    assert_error!(rig, StoreError::Exhausted { .. });
    rig.run(secs(31));
    assert_eq!(rig.states().len(), 1);
    assert!(rig.last_error().is_none());
}

#[test]
fn a_lost_history_is_replaced_by_few_requests() {
    let limits = StoreLimits::default().with_failover(secs(60));
    let mut rig = Rig::with(LeasePlan::new(24), 5, limits);
    rig.settle();
    rig.run(secs(300));
    rig.store.set_incarnation(Incarnation::new("promoted"));
    let asked = rig.run(secs(400));
    let wanted = acquisitions(&asked);
    assert!(wanted.len() <= 4, "{wanted:?}");
    assert_eq!(rig.opened().len(), 48);
    let status = rig.manager.status();
    let held = |grant: &&GrantStatus| grant.state == GrantState::Held;
    assert_eq!(status.grants.iter().filter(held).count(), 24);
    assert!(!rig.has_expired());
    // The new ones start above the floor, and grow as the clock comes near.
    rig.run(secs(1800));
    assert!(rig.all_topped_up());
    assert!(rig.last_error().is_none());
}

#[test]
fn a_horizon_under_the_duration_never_lets_a_lease_lapse() {
    for horizon in [2, 20, 100] {
        let limits = StoreLimits::default().with_horizon(secs(horizon));
        let mut rig = Rig::with(LeasePlan::new(2), 5, limits);
        rig.run(secs(600));
        assert_eq!(rig.opened().len(), 2);
        assert!(!rig.has_expired(), "{horizon}");
        let reach = rig.manager.status().reach;
        assert!(reach <= secs(horizon) && reach >= secs(horizon - 1));
    }
}
