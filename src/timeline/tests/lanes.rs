//! Several leases at a time, as a store grants them.

use super::*;

/// Four IDs a node and tick.
fn layout() -> Layout {
    super::layout(10, 4, 2, 1000)
}

fn at(tick: u64) -> u64 {
    EPOCH + tick * 1000
}

struct Rig {
    clock: ManualClock,
    timeline: Timeline,
}

impl Rig {
    fn new(lanes: usize, borrow_limit: u64) -> Self {
        let policy = ClaimPolicy {
            borrow_limit,
            follows_clock: true,
            serves_the_past: false,
        };
        Self::with_policy(lanes, policy)
    }

    fn with_policy(lanes: usize, policy: ClaimPolicy) -> Self {
        let clock = ManualClock::new(at(0));
        let shared = Arc::new(clock.clone());
        let health = Arc::default();
        let timeline = Timeline::for_leases(layout(), lanes, shared, policy, health).unwrap();
        Self { clock, timeline }
    }

    fn open(&self, node: u64, ticks: Range<u64>) -> Option<LaneIndex> {
        let lease = Lease::new(layout(), node..node + 1, ticks).unwrap();
        self.timeline.open(&lease)
    }

    /// Tick, node and length of the next claim.
    fn claim(&self, want: usize) -> Result<(u64, u64, usize), Refused> {
        let run = self.timeline.claim(want)?;
        let parts = layout().unpack(run.first).unwrap();
        Ok((parts.tick, parts.node, run.len))
    }

    /// The same until there is no more.
    fn claim_all(&self, want: usize) -> Vec<(u64, u64, usize)> {
        let claimed: Vec<_> = std::iter::from_fn(|| self.claim(want).ok())
            .take(1000)
            .collect();
        assert!(claimed.len() < 1000, "it never ends");
        claimed
    }

    fn nodes(&self) -> Vec<u64> {
        let leases = self.timeline.leases();
        leases.iter().map(|lease| lease.nodes().start).collect()
    }
}

#[test]
fn lanes_are_opened_in_turn_where_there_is_room() {
    let rig = Rig::new(3, 0);
    assert_eq!(rig.timeline.room(), 3);
    for place in [1, 2, 0, 1] {
        let lane = rig.open(5, 0..1).unwrap();
        assert_eq!(lane, LaneIndex(place));
        assert_eq!(rig.timeline.room(), 2);
        rig.timeline.close(lane);
    }
    let lanes = [0, 1, 2].map(|node| rig.open(node, 0..1).unwrap());
    assert_eq!(lanes.map(|lane| lane.0), [2, 0, 1]);
    assert_eq!((rig.timeline.room(), rig.open(3, 0..1)), (0, None));
    assert_eq!(rig.nodes(), [1, 2, 0]);
    rig.timeline.close(lanes[1]);
    assert_eq!((rig.timeline.room(), rig.nodes()), (1, vec![2, 0]));
    assert_eq!(rig.open(3, 0..1), Some(lanes[1]), "past those in use");
}

#[test]
fn no_timeline_has_more_lanes_than_words() {
    let rig = Rig::new(1000, 0);
    assert_eq!(rig.timeline.room(), Timeline::MAX_LANES);
    assert_eq!(Timeline::MAX_LANES, 511, "one word of 512 is the mark");
}

#[test]
fn u1_all_lanes_of_a_tick_come_before_the_next_tick() {
    let rig = Rig::new(3, 2);
    for node in 0..3 {
        rig.open(node, 0..9).unwrap();
    }
    let claimed = rig.claim_all(2);
    // The lane in use gives its whole tick before another one does.
    let halves: Vec<_> = claimed.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    assert!(halves.iter().all(|(a, b)| a == b), "{claimed:?}");
    let ticks: Vec<_> = halves.iter().map(|(half, _)| half.0).collect();
    assert_eq!(ticks, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
    for of_a_tick in halves.chunks(3) {
        let mut nodes: Vec<_> = of_a_tick.iter().map(|(half, _)| half.1).collect();
        nodes.sort_unstable();
        assert_eq!(nodes, [0, 1, 2]);
    }
}

#[test]
fn a_claim_moves_on_where_the_lane_in_use_has_nothing() {
    let rig = Rig::new(2, 1);
    let in_use = rig.open(0, 0..9).unwrap();
    rig.open(1, 0..9).unwrap();
    assert_eq!(rig.claim(1), Ok((0, 1, 1)));
    // Neither claim reaches the limit, where one that goes too far would stay.
    rig.timeline.close(LaneIndex(1 - in_use.0));
    assert_eq!(rig.claim(1), Ok((0, 0, 1)));
}

#[test]
fn a_lane_that_begins_later_waits_for_its_turn() {
    let rig = Rig::new(2, 5);
    rig.open(0, 3..9).unwrap();
    rig.open(1, 1..9).unwrap();
    let ticks: Vec<_> = rig.claim_all(4).iter().map(|claim| claim.0).collect();
    assert_eq!(ticks, [1, 2, 3, 3, 4, 4, 5, 5]);
}

#[test]
fn u2_a_closed_lane_gives_nothing() {
    let rig = Rig::new(2, 1);
    let first = rig.open(0, 0..9).unwrap();
    rig.open(1, 0..9).unwrap();
    rig.timeline.close(first);
    assert_eq!(rig.claim_all(4), [(0, 1, 4), (1, 1, 4)]);
    assert!(matches!(rig.claim(1), Err(Refused::BorrowLimit { .. })));
    rig.timeline.close_all();
    assert!(matches!(rig.claim(1), Err(Refused::NoLease { .. })));
    assert_eq!((rig.timeline.room(), rig.nodes()), (2, vec![]));
}

#[test]
fn u2_a_lane_goes_on_where_its_end_was_moved() {
    let rig = Rig::new(2, 9);
    let lane = rig.open(0, 0..1).unwrap();
    assert_eq!(rig.claim_all(4), [(0, 0, 4)]);
    assert_eq!(rig.timeline.end_unix_ms(), at(1));
    rig.timeline.extend(lane, 3);
    assert_eq!(rig.timeline.end_unix_ms(), at(3));
    assert_eq!(rig.claim_all(4), [(1, 0, 4), (2, 0, 4)]);
    rig.open(1, 0..2).unwrap();
    assert_eq!(rig.timeline.end_unix_ms(), at(3), "the last of the ends");
}

#[test]
fn a_refusal_is_known_without_a_claim() {
    let rig = Rig::new(2, 1);
    let refused = || rig.timeline.refused_now();
    assert!(matches!(
        refused(),
        Some(Refused::NoLease { end_unix_ms: 0, .. })
    ));
    rig.open(0, 0..9).unwrap();
    assert_eq!(refused(), None);
    rig.claim_all(4);
    assert_eq!(refused(), rig.claim(1).err());
    let limit = Duration::from_secs(1);
    assert_eq!(
        refused(),
        Some(Refused::BorrowLimit {
            retry_after: Duration::from_secs(1),
            limit,
        })
    );
    rig.clock.set(at(1));
    assert_eq!(refused(), None);
    rig.timeline
        .words
        .iter()
        .for_each(|word| word.store(0, Relaxed));
    assert_eq!(refused(), Some(Refused::Forked));
}

#[test]
fn a_given_lease_has_ended_or_was_invalidated() {
    let clock = ManualClock::new(at(0));
    let timeline = timeline(layout(), 0..1, 0..1, 0, &clock);
    timeline.claim(4).unwrap();
    assert!(matches!(timeline.claim(1), Err(Refused::LeaseEnded { .. })));
    timeline.close_all();
    assert_eq!(timeline.claim(1), Err(Refused::Invalidated));
    assert_eq!(timeline.refused_now(), Some(Refused::Invalidated));
}

#[test]
fn the_rest_of_a_past_grant_comes_last() {
    let rig = Rig::with_policy(
        2,
        ClaimPolicy {
            borrow_limit: 0,
            follows_clock: true,
            serves_the_past: true,
        },
    );
    rig.open(0, 0..3).unwrap();
    assert_eq!(rig.claim(1), Ok((0, 0, 1)));
    let present = rig.open(1, 5..9).unwrap();
    rig.clock.set(at(5));
    // The lane in use has one turn.
    let ticks = || rig.claim_all(4).iter().map(|claim| claim.0).collect();
    let before: Vec<_> = ticks();
    assert_eq!(before, [0, 5]);
    rig.timeline.close(present);
    let after: Vec<_> = ticks();
    assert_eq!(after, [1, 2]);
}

#[test]
fn the_lead_is_that_of_the_last_raw_where_only_the_clock_helps() {
    let rig = Rig::new(2, 2);
    let seconds = |count| Some(Duration::from_secs(count));
    let ahead = || rig.timeline.ahead();
    assert_eq!(ahead(), None, "there is nothing");
    rig.clock.set(at(10));
    rig.open(0, 13..99).unwrap();
    assert_eq!(ahead(), None, "what is to come just waits");
    rig.open(1, 10..99).unwrap();
    assert_eq!(ahead(), seconds(0));
    rig.claim(4).unwrap();
    rig.claim(1).unwrap();
    assert_eq!(ahead(), seconds(1), "there is another");
    rig.claim_all(4);
    assert_eq!(ahead(), seconds(2));
    rig.clock.set(at(5));
    assert_eq!(ahead(), seconds(7), "in full, past the limit");
    assert_eq!(rig.timeline.borrow_limit(), Duration::from_secs(2));
}

#[test]
fn a_lead_of_nothing_is_none() {
    let rig = Rig::new(1, 0);
    rig.open(0, 0..9).unwrap();
    rig.claim_all(4);
    assert_eq!(rig.timeline.ahead(), None);
}
