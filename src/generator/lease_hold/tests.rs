//! Leases that are brought to a user that counts the calls.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::*;
use crate::cipher::Cipher;
use crate::clock::{Clock, ManualClock};
use crate::generator::backing::Share;
use crate::generator::lease_options::LeaseOptions;
use crate::layout::Layout;
use crate::lease::protocol::Change;
use crate::lease::{
    Block, Epoch, Fingerprint, Grant, GrantSink, Lease, MemoryStore, Namespace, StaticLease,
};
use crate::timeline::ClaimPolicy;

const EPOCH: u64 = 1_000_000;

/// 8 blocks of 2 nodes, 4 IDs a node and tick, ticks of a second.
fn layout() -> Layout {
    Layout::builder()
        .bits(10, 4, 2)
        .tick(Duration::from_secs(1))
        .epoch_unix_ms(EPOCH)
        .build()
        .unwrap()
}

fn namespace() -> Namespace {
    Namespace::new("test", &layout(), Fingerprint::PLAIN)
        .and_then(|space| space.with_block_bits(1))
        .unwrap()
}

fn grant(block: u64, ticks: std::ops::Range<u64>) -> Grant {
    Grant::new(Block::new(block), Epoch::FIRST, ticks)
}

/// Clones share everything.
#[derive(Clone)]
struct Counting(Arc<Calls>);

struct Calls {
    sources: Vec<Source>,
    has_more: AtomicU64,
    /// How often it has to be asked to stop, and how often it was.
    patience: u64,
    stops: AtomicU64,
}

impl Counting {
    fn new(sources: usize, clock: &ManualClock, patience: u64) -> Self {
        let source = |_| {
            let policy = ClaimPolicy {
                borrow_limit: 20,
                follows_clock: true,
                serves_the_past: false,
            };
            let clock = Arc::new(clock.clone());
            let timeline = Timeline::for_leases(layout(), 4, clock, policy, Arc::default());
            Source::new(timeline.unwrap(), Cipher::plain())
        };
        Self(Arc::new(Calls {
            sources: (0..sources).map(source).collect(),
            has_more: AtomicU64::new(0),
            patience,
            stops: AtomicU64::new(0),
        }))
    }

    fn lanes(&self) -> GrantLanes<Self> {
        GrantLanes::new(self.clone(), namespace())
    }

    fn times_more(&self) -> u64 {
        self.0.has_more.load(Relaxed)
    }

    /// Nodes and ticks of the open lanes of each source.
    fn leases(&self) -> Vec<Vec<(std::ops::Range<u64>, std::ops::Range<u64>)>> {
        let leases = |source: &Source| source.timeline().leases();
        let rectangle = |lease: Lease| (lease.nodes(), lease.ticks());
        let sources = self.0.sources.iter();
        sources
            .map(|source| leases(source).into_iter().map(rectangle).collect())
            .collect()
    }
}

impl LeaseUser for Counting {
    fn sources(&self) -> &[Source] {
        &self.0.sources
    }

    fn has_more(&self) {
        self.0.has_more.fetch_add(1, Relaxed);
    }

    fn stop_serving(&self) -> bool {
        self.0.stops.fetch_add(1, Relaxed) + 1 < self.0.patience
    }
}

#[test]
fn a_grant_is_distinguished_from_another_of_the_same_block() {
    let clock = ManualClock::new(EPOCH);
    let user = Counting::new(2, &clock, 1);
    let mut lanes = user.lanes();
    let (first, second) = (grant(3, 0..10), grant(3, 10..20));
    lanes.apply(&Change::Opened(first.clone()));
    lanes.apply(&Change::Opened(second));
    lanes.apply(&Change::Extended(grant(3, 10..30)));
    assert_eq!(
        user.leases(),
        [
            [(6..7, 0..10), (6..7, 10..30)],
            [(7..8, 0..10), (7..8, 10..30)]
        ]
    );
    lanes.apply(&Change::Closed(first));
    assert_eq!(user.leases(), [[(6..7, 10..30)], [(7..8, 10..30)]]);
    lanes.apply(&Change::Revoked(grant(3, 10..30)));
    assert_eq!(user.leases(), [[], []]);
}

#[test]
fn each_change_that_brings_more_to_claim_is_reported() {
    let clock = ManualClock::new(EPOCH);
    let user = Counting::new(1, &clock, 1);
    let mut lanes = user.lanes();
    let more = [
        Change::Opened(grant(0, 0..10)),
        Change::Extended(grant(0, 0..20)),
        Change::Revived,
    ];
    for (before, change) in (0..).zip(more) {
        assert_eq!(user.times_more(), before);
        lanes.apply(&change);
        assert_eq!(user.times_more(), before + 1, "{change:?}");
    }
    lanes.apply(&Change::Expired { since_unix_ms: 0 });
    lanes.apply(&Change::Closed(grant(0, 0..20)));
    assert_eq!(user.times_more(), 3, "nothing to claim came with these");
}

#[test]
fn s4_a_given_lease_is_stopped_until_nothing_is_to_come() {
    let clock = ManualClock::new(EPOCH);
    let user = Counting::new(2, &clock, 5);
    let lease = StaticLease::assume_unique(layout(), 0..2);
    let backing = LeaseBacking::given(lease.into(), &layout(), None, EPOCH).unwrap();
    let leases = LeaseHold::of(backing, user.clone()).unwrap();
    user.lanes().apply(&Change::Opened(grant(0, 0..10)));
    leases.invalidate(&user);
    assert_eq!(user.0.stops.load(Relaxed), 5);
    assert_eq!(user.leases(), [[], []]);
}

#[test]
fn the_demand_is_that_of_the_source_closest_to_the_clock() {
    let clock = ManualClock::new(EPOCH);
    let user = Counting::new(2, &clock, 1);
    let mut lanes = user.lanes();
    lanes.apply(&Change::Opened(grant(0, 0..100)));
    let claim_ticks = |source: usize, ticks| {
        for _ in 0..ticks {
            user.0.sources[source].timeline().claim(4).unwrap();
        }
    };
    claim_ticks(0, 10);
    claim_ticks(1, 4);
    let demand = lanes.demand();
    assert_eq!(demand.borrowed, Duration::from_secs(3));
    assert_eq!(demand.borrow_limit, Duration::from_secs(20));
    assert_eq!(demand.room, 3);
}

/// As many as may be held, as many that replace them while they are used up, and
/// some for those that come and go.
#[test]
fn a_timeline_has_room_for_grants_and_for_what_replaces_them() {
    for widen_to in [1, 2, 8, 100] {
        let store = MemoryStore::new(Arc::new(ManualClock::new(EPOCH)));
        let options = LeaseOptions {
            namespace: Some("test".to_owned()),
            block_bits: Some(0),
            widen_to: Some(widen_to),
            ..LeaseOptions::default()
        };
        let layout = Layout::RANDFLAKE;
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(layout.tick_start_unix_ms(0)));
        let backing =
            LeaseBacking::kept(Box::new(store), options, &layout, Fingerprint::PLAIN, None)
                .unwrap();
        let policy = ClaimPolicy {
            borrow_limit: 0,
            follows_clock: true,
            serves_the_past: false,
        };
        let timeline = backing.timeline(Share::WHOLE, &layout, clock, policy);
        let room = timeline.unwrap().room();
        assert!(room > 2 * widen_to as usize, "{widen_to}: {room}");
    }
}

/// As a signal handler can fork between the claim and the timeline.
#[test]
#[cfg(unix)]
fn u1_a_child_that_is_forked_in_a_build_gets_no_timeline_of_its_parents_lease() {
    // No other test's.
    let layout = Layout::builder().bits(10, 5, 2).epoch_unix_ms(EPOCH);
    let layout = layout.tick(Duration::from_secs(1)).build().unwrap();
    let lease = Lease::new(layout, 0..16, 0..1000).unwrap();
    let backing = LeaseBacking::given(lease.into(), &layout, None, EPOCH).unwrap();
    let timeline = || {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(EPOCH));
        let policy = ClaimPolicy {
            borrow_limit: 0,
            follows_clock: true,
            serves_the_past: false,
        };
        backing.timeline(Share::WHOLE, &layout, clock, policy)
    };
    let status = ringflake_kit::child::in_a_fork(|| match timeline() {
        Err(BuildError::LeaseOfParent { .. }) => 0,
        _ => 1,
    });
    assert_eq!(status, Ok(0));
    assert!(timeline().is_ok());
}

#[test]
fn u1_the_shares_of_a_lease_are_its_nodes_once() {
    for (nodes, count, shares) in [
        (9..16, 3, vec![9..11, 11..13, 13..16]),
        (0..4, 4, vec![0..1, 1..2, 2..3, 3..4]),
        (5..13, 2, vec![5..9, 9..13]),
    ] {
        let lease = Lease::new(layout(), nodes, 3..9).unwrap();
        let parts = (0..count).map(|index| Share { index, count }.of(&lease).unwrap());
        let parts: Vec<_> = parts
            .inspect(|part| assert_eq!(part.ticks(), 3..9))
            .collect();
        assert!(parts.iter().map(Lease::nodes).eq(shares), "{parts:?}");
    }
    let narrow = Lease::new(layout(), 0..1, 0..1).unwrap();
    assert!(Share { index: 0, count: 2 }.of(&narrow).is_err());
}

#[test]
fn processes_that_start_together_have_different_seeds() {
    let mut seeds: Vec<_> = (0..100).map(|_| seed()).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 100);
}
