//! A line, a cursor, a lane and the choice of a lane, each alone: a broken one fails an
//! assertion here, where a claim could go on for ever.

use super::*;
use crate::timeline::cursor::FIRST;
use crate::timeline::line::Line;

/// Nodes 2 to 4, ticks 5 to 7, four sequences each: twelve positions a tick.
fn line(layout: &Layout) -> Line<'_> {
    Line::new(layout, 2, 3, 5..8)
}

#[test]
fn a_line_counts_sequence_then_node_then_tick() {
    let layout = layout(4, 3, 2, 1000);
    let line = line(&layout);
    assert_eq!((line.len(), line.nodes(), line.ticks()), (36, 2..5, 5..8));
    for (position, tick, node, sequence) in [
        (0, 5, 2, 0),
        (3, 5, 2, 3),
        (4, 5, 3, 0),
        (17, 6, 3, 1),
        (35, 7, 4, 3),
    ] {
        let run = line.run(position, position + 1);
        assert_eq!(run.first, layout.pack(tick, node, sequence).unwrap());
        assert_eq!(run.len, 1);
        assert_eq!(line.tick_of(position), tick);
    }
    assert_eq!(line.run(17, 20).len, 3);
    assert_eq!(line.tick_of(36), 8, "the end of the lease for the end");
}

#[test]
fn a_tick_begins_where_its_first_node_does() {
    let layout = layout(4, 3, 2, 1000);
    let line = line(&layout);
    let begin: Vec<_> = (0..=36).filter(|&at| line.begins_tick(at)).collect();
    assert_eq!(begin, [0, 12, 24, 36]);
    let places = [0, 4, 5, 6, 8, 9, u64::MAX].map(|tick| line.position_of(tick));
    assert_eq!(places, [0, 0, 0, 12, 36, 36, 36]);
}

#[test]
fn a_run_ends_with_its_node() {
    let layout = layout(4, 3, 2, 1000);
    let ends = [0, 3, 4, 5, 35].map(|at| line(&layout).run_end(at));
    assert_eq!(ends, [4, 4, 8, 8, 36]);
}

/// A lease over a whole layout has 2^64 raws: one more than a word can count.
#[test]
fn u3_the_longest_line_leaves_a_word_for_its_end() {
    let layout = Layout::RANDFLAKE;
    let line = Line::new(&layout, 0, layout.nodes(), 0..layout.ticks());
    assert_eq!(line.len(), u64::MAX - 1);
}

#[test]
fn u1_nothing_leads_a_cursor_out_of_zero_which_is_a_fork() {
    let word = AtomicU64::new(0);
    let cursor = Cursor::new(&word);
    assert_eq!(cursor.next(), None);
    assert_eq!(cursor.advance(7, 9), Err(None));
    cursor.reset();
    assert_eq!((cursor.next(), word.load(Relaxed)), (None, 0));
    cursor.start_at(7);
    assert_eq!((cursor.next(), word.load(Relaxed)), (None, 0));
}

#[test]
fn a_cursor_is_stored_one_higher() {
    let word = AtomicU64::new(FIRST);
    let cursor = Cursor::new(&word);
    assert_eq!(cursor.next(), Some(0));
    cursor.start_at(7);
    assert_eq!((cursor.next(), word.load(Relaxed)), (Some(7), 8));
    assert_eq!(cursor.advance(6, 9), Err(Some(7)));
    // An exchange may fail where nothing has changed.
    assert!((0..1_000).any(|_| cursor.advance(7, 9).is_ok()));
    assert_eq!(cursor.next(), Some(9));
    cursor.start_at(u64::MAX);
    assert_eq!(cursor.next(), Some(u64::MAX - 1), "cut where it ends");
    cursor.reset();
    assert_eq!((cursor.next(), word.load(Relaxed)), (Some(0), 1));
}

#[test]
fn a_lane_is_open_between_open_and_close() {
    let layout = layout(4, 3, 2, 1000);
    let (lane, word) = (Lane::closed(), AtomicU64::new(FIRST));
    let cursor = Cursor::new(&word);
    assert!(!lane.is_open() && lane.view(&layout).is_none());
    for first_node in [0, 3] {
        lane.open(cursor, &(first_node..first_node + 2), &(1..4));
        assert!(lane.is_open());
        let view = lane.view(&layout).unwrap();
        assert_eq!(view.line.nodes(), first_node..first_node + 2);
        assert_eq!(view.line.ticks(), 1..4);
        assert!(lane.still(&view));
        assert_eq!(cursor.next(), Some(0), "nothing is claimed");
        cursor.start_at(8);
        lane.close();
        lane.close();
        assert!(!lane.is_open() && lane.view(&layout).is_none());
        assert!(!lane.still(&view));
    }
}

#[test]
fn u1_a_look_at_a_lane_does_not_stand_when_it_was_opened_again() {
    let layout = layout(4, 3, 2, 1000);
    let (lane, word) = (Lane::closed(), AtomicU64::new(FIRST));
    let cursor = Cursor::new(&word);
    lane.open(cursor, &(0..1), &(1..4));
    let view = lane.view(&layout).unwrap();
    lane.close();
    lane.open(cursor, &(0..1), &(1..4));
    assert!(!lane.still(&view), "the same rectangle, another grant");
}

#[test]
fn the_end_of_a_lane_only_moves_outwards() {
    let layout = layout(4, 3, 2, 1000);
    let (lane, word) = (Lane::closed(), AtomicU64::new(FIRST));
    let cursor = Cursor::new(&word);
    lane.open(cursor, &(0..1), &(1..4));
    for (end_tick, reached) in [(6, 6), (5, 6)] {
        lane.extend(end_tick);
        assert_eq!(lane.view(&layout).unwrap().line.ticks(), 1..reached);
    }
}

#[test]
fn the_next_tick_follows_the_clock_until_the_lane_is_used_up() {
    let layout = layout(4, 3, 2, 1000);
    let (lane, word) = (Lane::closed(), AtomicU64::new(FIRST));
    let cursor = Cursor::new(&word);
    lane.open(cursor, &(0..1), &(1..4));
    let view = lane.view(&layout).unwrap();
    let now = |tick| Now {
        unix_ms: 0,
        tick,
        limit: tick + 1,
    };
    let policy = |follows_clock, serves_the_past| ClaimPolicy {
        borrow_limit: 0,
        follows_clock,
        serves_the_past,
    };
    for (position, tick, next) in [
        (0, 0, Some(1)),
        (0, 2, Some(2)),
        (4, 0, Some(2)),
        (11, 0, Some(3)),
        (12, 0, None),
        (0, 4, None),
    ] {
        let found = view.next_tick(position, now(tick), policy(true, false));
        assert_eq!(found, next, "{position} at {tick}");
    }
    // A grant that the clock has passed is left to a policy that serves the past.
    assert_eq!([3, 4].map(|tick| view.is_passed(now(tick))), [false, true]);
    assert_eq!(view.next_tick(4, now(9), policy(true, true)), Some(2));
    assert_eq!(view.next_tick(4, now(3), policy(false, true)), Some(2));
    assert_eq!(view.next_tick(4, now(3), policy(true, true)), Some(3));
}

#[test]
fn a_claim_ends_with_its_run_the_limit_or_a_multiple_of_64() {
    let layout = layout(8, 3, 8, 1000);
    let policy = ClaimPolicy {
        borrow_limit: 0,
        follows_clock: true,
        serves_the_past: false,
    };
    let now = Now {
        unix_ms: 0,
        tick: 0,
        limit: 1,
    };
    let (lane, word) = (Lane::closed(), AtomicU64::new(FIRST));
    let cursor = Cursor::new(&word);
    lane.open(cursor, &(0..2), &(0..4));
    let claim = |want| {
        let claimed = lane.claim(cursor, &layout, want, now, policy)?;
        Some((claimed.run.first, claimed.run.len, claimed.may_pass_on))
    };
    assert_eq!(claim(10), Some((0, 10, false)));
    assert_eq!(claim(100), Some((10, 54, false)));
    assert_eq!(claim(63), Some((64, 63, false)));
    assert_eq!(claim(500), Some((127, 129, false)), "the end of the node");
    assert_eq!(claim(256), Some((256, 256, true)), "the end of the tick");
    assert_eq!(claim(1), None, "the limit");
    lane.close();
    assert_eq!(
        lane.claim(cursor, &layout, 1, now, policy).map(|c| c.run),
        None
    );
}

#[test]
fn the_earliest_lane_is_the_next_one() {
    let layout = layout(4, 3, 2, 1000);
    let clock = Arc::new(ManualClock::new(EPOCH));
    let policy = ClaimPolicy {
        borrow_limit: 1,
        follows_clock: true,
        serves_the_past: true,
    };
    let timeline = Timeline::for_leases(layout, 4, clock, policy, Arc::default()).unwrap();
    let now = |tick| Now {
        unix_ms: EPOCH + tick * 1000,
        tick,
        limit: tick + 2,
    };
    assert_eq!(timeline.earliest(0, now(3)), None);
    // In the places 1, 2, 3 and 0.
    for (node, ticks) in [(0, 5..9), (1, 2..6), (2, 2..3), (3, 4..9)] {
        let lease = Lease::new(layout, node..node + 1, ticks).unwrap();
        timeline.open(&lease).unwrap();
    }
    assert_eq!(timeline.earliest(0, now(0)), Some((2, 2)));
    // The first after the given one of those that begin at the same tick.
    assert_eq!(timeline.earliest(2, now(0)), Some((3, 2)));
    assert_eq!(timeline.earliest(3, now(0)), Some((2, 2)));
    // Place 3 is passed, and comes after all others.
    assert_eq!(timeline.earliest(2, now(3)), Some((2, 3)));
    // Place 2 is used up: all of its 16 positions.
    timeline.cursor(2).start_at(16);
    assert_eq!(timeline.earliest(2, now(3)), Some((0, 4)));
    timeline.cursor(0).start_at(8);
    assert_eq!(timeline.earliest(2, now(3)), Some((1, 5)));
    timeline.words[2].store(0, Relaxed);
    assert_eq!(timeline.earliest(2, now(3)), Some((0, 6)), "a wiped cursor");
    timeline.close(LaneIndex(0));
    assert_eq!(
        timeline.earliest(0, now(3)),
        Some((3, 2)),
        "the clock has passed it"
    );
}
