//! Counters as a thread may load them: `cursor`, and `tail` much later.

use super::*;

/// A ring of four whose `tail` lies `ahead` positions after `cursor`: what a
/// reader has loaded that slept after `cursor`, while whole rounds went by.
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
