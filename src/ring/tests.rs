//! Levels and retirement, also where a thread loads `tail` much later than `cursor`.

use std::cell::Cell;

use super::*;

/// A ring of four whose `tail` lies `ahead` positions after `cursor`: as a reader loads
/// them that slept in between, while whole rounds went by.
fn seen_late(ahead: u64) -> RingBuffer {
    let ring = RingBuffer::with_capacity(4).unwrap();
    let ids = [1, 2, 3, 4].map(Id::from_u64);
    assert_eq!(ring.push_batch(&ids), 4);
    // Relaxed: no other thread has the ring.
    let cursor = ring.counters.cursor.load(Relaxed);
    ring.counters.tail.store(cursor + ahead, Relaxed);
    ring
}

#[test]
fn the_level_is_never_more_than_the_capacity() {
    for (ahead, level) in [(0, 0), (3, 3), (4, 4), (5, 4), (400, 4)] {
        let ring = seen_late(ahead);
        assert_eq!(ring.len(), level, "{ahead} positions ahead");
        assert_eq!(ring.is_empty(), level == 0);
    }
}

#[test]
fn a_batch_reads_no_slot_twice() {
    for (ahead, count) in [(3, 3), (4, 4), (5, 4), (8, 4), (400, 4)] {
        let ring = seen_late(ahead);
        let mut out = [Id::default(); 8];
        assert_eq!(ring.take_batch(&mut out), count, "{ahead} positions ahead");
        let ids = [1, 2, 3, 4].map(Id::from_u64);
        assert_eq!(out[..count], ids[..count]);
        assert_eq!(out[count..], [Id::default(); 8][count..], "untouched");
    }
}

#[test]
fn the_largest_capacity_is_allowed_and_no_larger_one() {
    let largest = RingBuffer::MAX_CAPACITY;
    for possible in [1, 2, 1 << 20, largest] {
        assert!(RingBuffer::check_capacity(possible).is_ok(), "{possible}");
    }
    for impossible in [0, 3, largest - 1, largest + 1, 2 * largest] {
        assert!(
            RingBuffer::check_capacity(impossible).is_err(),
            "{impossible}"
        );
    }
}

#[test]
fn a_take_says_how_many_it_leaves() {
    let ring = two_hundred();
    assert_eq!(ring.take_leaving(), Some((Id::from_u64(0), 199)));
    let mut out = [Id::default(); 150];
    assert_eq!(ring.take_batch_leaving(&mut out), (150, 49));
    assert_eq!(ring.take_batch_leaving(&mut []), (0, 49));
    assert_eq!(ring.take_batch_leaving(&mut out), (49, 0));
    assert_eq!(ring.take_batch_leaving(&mut out), (0, 0));
    assert_eq!(ring.take_leaving(), None);
    assert_eq!(ring.taken(), 200);
}

#[test]
fn promised_slots_are_neither_filled_nor_room() {
    let ring = two_hundred();
    let level = || {
        let Level { filled, room } = ring.settled_level();
        (filled, room, ring.has_more_to_come())
    };
    assert_eq!(level(), (200, 56, false));
    let permit = ring.reserve(16).unwrap();
    assert_eq!(permit.len(), 16);
    assert_eq!(level(), (200, 40, true));
    assert_eq!(permit.push(&[Id::from_u64(200)]), 1);
    assert_eq!(level(), (201, 55, false));
    let permit = ring.reserve(1);
    assert_eq!(level(), (201, 54, true));
    drop(permit);
    assert!(ring.take().is_some());
    assert_eq!(level(), (200, 56, false));
}

#[test]
fn there_is_room_below_the_limit_until_all_is_promised() {
    let ring = two_hundred();
    let limit = ring.fill_limit();
    assert!(ring.has_room_below(limit) && !ring.has_room_below(limit - 56));
    let first = ring.reserve_below(limit, 55).unwrap();
    assert!(ring.has_room_below(limit));
    let last = ring.reserve_below(limit, 9).unwrap();
    assert_eq!((first.len(), last.len()), (55, 1));
    assert!(!ring.has_room_below(limit) && ring.has_room_below(limit + 1));
}

/// Pushed one by one, no ID waits for those that share its word of flags.
#[test]
fn each_id_is_there_when_it_is_pushed() {
    let ring = RingBuffer::with_capacity(128).unwrap();
    for value in 0..300 {
        ring.push(Id::from_u64(value)).unwrap();
        assert_eq!(ring.take(), Some(Id::from_u64(value)));
    }
    let permit = ring.reserve(2).unwrap();
    assert_eq!(permit.push(&[]), 0);
    assert_eq!((ring.len(), ring.has_more_to_come()), (0, false));
}

/// A ring of 256 slots that holds the IDs from 0 to 199.
fn two_hundred() -> RingBuffer {
    let ring = RingBuffer::with_capacity(256).unwrap();
    let ids: Vec<Id> = (0..200).map(Id::from_u64).collect();
    assert_eq!(ring.push_batch(&ids), 200);
    ring
}

#[test]
fn only_ids_that_were_there_are_retired() {
    let ring = two_hundred();
    let mut steps = Vec::new();
    ring.retire(
        |_| true,
        |count| {
            steps.push(count);
            // A producer is as fast.
            let more = vec![Id::from_u64(7); count];
            assert_eq!(ring.push_batch(&more), count);
            steps.len() < 100
        },
    );
    assert_eq!(steps, [64, 64, 64, 8]);
    assert_eq!(ring.len(), 200);
}

#[test]
fn retiring_ends_at_the_first_that_is_not_stale() {
    for fresh in [0, 1, 63, 64, 65, 130, 199] {
        let ring = two_hundred();
        let mut retired = 0;
        let looks = Cell::new(0);
        ring.retire(
            |id| {
                looks.set(looks.get() + 1);
                assert!(looks.get() < 1_000, "it does not end");
                id.to_u64() < fresh
            },
            |count| {
                retired += count as u64;
                true
            },
        );
        assert_eq!(retired, fresh);
        assert_eq!(ring.take(), Some(Id::from_u64(fresh)));
    }
}

#[test]
fn retiring_ends_when_the_callback_says_so() {
    let ring = two_hundred();
    ring.retire(|_| true, |_| false);
    assert_eq!(ring.len(), 200 - 64);
}

/// A signal handler that forks in the middle of a fill leaves its child such a ring.
#[test]
fn u1_a_wiped_ring_publishes_nothing_of_its_parent() {
    let ring = RingBuffer::with_capacity(4).unwrap();
    let ids = [1, 2, 3, 4].map(Id::from_u64);
    // To the second round, whose flags are those of round 0.
    for _ in 0..2 {
        assert_eq!(ring.push_batch(&ids), 4);
        assert_eq!(ring.take_batch(&mut [Id::default(); 4]), 4);
    }
    let counters = &ring.counters;
    for counter in [&counters.cursor, &counters.tail, &counters.reserved] {
        // Relaxed: no other thread has the ring.
        counter.store(WIPED, Relaxed);
    }
    assert!(!ring.advance_tail());
    assert_eq!((ring.len(), ring.take()), (0, None));
}
