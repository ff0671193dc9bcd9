//! The timeline, through the generator that has nothing else in it.

use std::sync::Arc;
use std::time::Duration;

use ringflake::{ClockPolicy, DirectGenerator, Id, Layout, Lease, ManualClock};
use ringflake_loom_tests::{Role, assert_distinct, epoch_from, explore, race};

const EPOCH: u64 = 1_000_000;

/// Two sequences, two nodes, four ticks of a second.
fn layout() -> Layout {
    Layout::builder()
        .bits(2, 1, 1)
        .tick(Duration::from_secs(1))
        .epoch_unix_ms(epoch_from(EPOCH))
        .build()
        .unwrap()
}

/// A generator whose clock is `since_epoch_ms` milliseconds after the epoch.
fn direct(
    since_epoch_ms: u64,
    policy: ClockPolicy,
    ticks: std::ops::Range<u64>,
) -> (ManualClock, Arc<DirectGenerator>) {
    let layout = layout();
    let clock = ManualClock::new(layout.epoch_unix_ms() + since_epoch_ms);
    let lease = Lease::new(layout, 0..2, ticks).unwrap();
    let ids = DirectGenerator::builder(layout)
        .plain()
        .lease(lease)
        .clock(clock.clone())
        .clock_policy(policy)
        .build();
    (clock, Arc::new(ids.unwrap()))
}

fn taking(ids: &Arc<DirectGenerator>, times: usize) -> Role<Vec<u64>> {
    let ids = Arc::clone(ids);
    Box::new(move || {
        (0..times)
            .filter_map(|_| ids.take().ok())
            .map(Id::to_u64)
            .collect()
    })
}

fn taking_batch(ids: &Arc<DirectGenerator>, want: usize) -> Role<Vec<u64>> {
    let ids = Arc::clone(ids);
    Box::new(move || {
        let mut out = vec![Id::default(); want];
        let count = ids.take_batch(&mut out).unwrap_or(0);
        out[..count].iter().map(|id| id.to_u64()).collect()
    })
}

fn sorted(taken: [Vec<u64>; 2]) -> Vec<u64> {
    let mut taken = taken.concat();
    taken.sort_unstable();
    taken
}

/// U1: claims that meet at the edge of a run cut it without a gap or an overlap.
#[test]
fn claims_at_the_edge_of_a_run() {
    explore(2, None, |first| {
        let (_, ids) = direct(0, ClockPolicy::Refuse, 0..4);
        let taken = race(first, [taking(&ids, 1), taking_batch(&ids, 3)]);
        assert_eq!(sorted(taken), [0, 1, 2, 3]);
    });
}

/// U1, U2: claims that meet at the limit get the rest, and no more.
#[test]
fn claims_at_the_limit() {
    explore(2, None, |first| {
        let (_, ids) = direct(0, ClockPolicy::Refuse, 0..4);
        let taken = race(first, [taking(&ids, 3), taking(&ids, 3)]);
        assert_eq!(sorted(taken), [0, 1, 2, 3], "one tick of two nodes");
    });
}

/// U2: the same at the end of the lease, where the borrow limit is no help.
#[test]
fn claims_at_the_end_of_the_lease() {
    explore(2, None, |first| {
        let policy = ClockPolicy::Logical {
            at_most_ahead: Duration::from_secs(100),
        };
        let (_, ids) = direct(0, policy, 3..4);
        let taken = race(first, [taking_batch(&ids, 3), taking_batch(&ids, 3)]);
        assert_eq!(sorted(taken), [12, 13, 14, 15]);
    });
}

/// U1: a claim that skips to the clock and one that does not yet see it move
/// never get the same raw, and the skip is never undone.
#[test]
fn clock_skip_against_claim() {
    explore(2, None, |first| {
        let (clock, ids) = direct(0, ClockPolicy::Refuse, 0..4);
        let skipping = {
            let (ids, clock) = (Arc::clone(&ids), clock.clone());
            Box::new(move || {
                clock.advance(Duration::from_secs(2));
                let after = ids.take().unwrap().to_u64();
                assert!(after >= 8, "tick 2 or later");
                vec![after]
            })
        };
        assert_distinct(race(first, [taking(&ids, 2), skipping]).concat());
        assert!(ids.take().unwrap().to_u64() >= 8, "never back");
    });
}

/// U1: a clock that steps back and forth between claims makes no raw twice,
/// whichever lane a thread is sent to.
#[test]
fn clock_step_back_against_claim() {
    explore(2, None, |first| {
        let (clock, ids) = direct(2_000, ClockPolicy::SwitchNode, 0..4);
        let stepping = {
            let (ids, clock) = (Arc::clone(&ids), clock.clone());
            Box::new(move || {
                let before = ids.take().ok();
                clock.step_back(Duration::from_secs(1));
                let after = ids.take().ok();
                before.into_iter().chain(after).map(Id::to_u64).collect()
            })
        };
        assert_distinct(race(first, [taking(&ids, 2), stepping]).concat());
    });
}
